"""The glossary: each term has one line, and is used in docs or code; words of other systems are there."""

from __future__ import annotations

import re

import pytest

from support.docs_pages import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
TEXT = GLOSSARY.read_text(encoding="utf-8")
SYSTEMS = ["Flink", "Spark", "SQL", "IBM Streams (SPL)", "Apama (EPL)"]
_LINE = re.compile(r'^- (?:<a id="([^"]*)"></a>)?\*\*(.*?)\*\*: (.*)$', re.MULTILINE)
_PACKAGES = ("cli", "conf", "readers", "windowing", "writers")

TERMS = """
    split, chunk, slice, block, segment, lifetime, part, entry state, window state, restore, snapshot,
    emitted, incremental run, backfill, reprocess, late data, partial aggregation, presorted,
    lateness, global pass, reject, condition, opener, amount, lag(x), filtered, as-of, lookup
"""
"""The words that stand for one thing each, in code, docs and messages."""

SEARCHED = """
    checkpoint, idempotent, watermark, punctuation, mark, pane, trigger, eviction, session, partition key, state,
    tumbling, sliding, hopping, event time, row accounting, commit, journal, manifest, exchange, membership
"""
"""Words that people search for who come from other systems."""


def words(text: str) -> list[str]:
    return [word.strip() for word in text.replace("\n", " ").split(",")]


LINES = {term: (anchor, meaning) for anchor, term, meaning in _LINE.findall(TEXT)}


def anchor_of(term: str) -> str:
    """The anchor of a heading with this text, as links in Markdown name it."""
    return re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-")


@pytest.fixture(scope="module")
def texts() -> str:
    """All docs but the glossary, and all code of the product, with line ends as blanks."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    code = [path for package in _PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = [path.read_text(encoding="utf-8") for path in (*pages, *code) if path != GLOSSARY]
    return re.sub(r"\s+", " ", "\n".join(found)).lower()


@pytest.mark.parametrize("term", words(TERMS))
def test_term_is_in_the_glossary(term: str) -> None:
    assert f"**{term}**" in TEXT


@pytest.mark.parametrize("term", words(SEARCHED))
def test_word_of_another_system_is_in_the_glossary(term: str) -> None:
    assert re.search(rf"(?<!\w){term}(?!\w)", TEXT, re.IGNORECASE)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_words_of_each_system_are_in_the_glossary(system: str) -> None:
    assert f"\n- **{system}**. " in TEXT


@pytest.mark.parametrize("term", LINES)
def test_term_has_a_meaning_and_its_own_anchor(term: str) -> None:
    anchor, meaning = LINES[term]
    assert anchor in ("", anchor_of(term))
    assert len(meaning) > 3


def test_each_line_of_a_list_is_a_term() -> None:
    assert len(re.findall(r"^- ", TEXT, re.MULTILINE)) == len(LINES) + len(SYSTEMS)


@pytest.mark.parametrize("term", LINES)
def test_term_is_used_in_docs_or_code(term: str, texts: str) -> None:
    assert re.search(rf"(?<!\w){re.escape(term.lower())}", texts)
