"""The glossary: each term has one line, an anchor and a word for each other system, and is used in docs or code."""

from __future__ import annotations

import re

import pytest

from support.docs_pages import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
SYSTEMS = ["SPL", "Apama", "Flink", "Spark", "SQL"]
_ROW = re.compile(r'^\| <a id="([^"]*)"></a>\*\*(.*?)\*\* \|(.*)\|$', re.MULTILINE)
_PACKAGES = ("cli", "conf", "readers", "windowing", "writers")

TERMS = """
    split, chunk, slice, block, segment, lifetime, part, entry state, window state, restore, snapshot,
    emitted, request, incremental run, backfill, reprocess, late data, partial aggregation, presorted,
    single-pass scan with look-back, lateness, global pass, row validation, reject, expression, condition, opener,
    amount, previous, lag(x), filtered, enrich, as-of, lookup, sketch, expectation
"""
"""The words that stand for one thing each, in code, docs and messages."""

SEARCHED = """
    checkpoint, idempotent, watermark, punctuation, mark, pane, trigger, eviction, session, partition key, state,
    tumbling, sliding, hopping, event time, row accounting, commit, journal, manifest, exchange, membership
"""
"""Words that people search for who come from other systems."""


def words(text: str) -> list[str]:
    return [word.strip() for word in text.replace("\n", " ").split(",")]


ROWS = {
    term: (anchor, [cell.strip() for cell in rest.split("|")])
    for anchor, term, rest in _ROW.findall(GLOSSARY.read_text())
}


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


@pytest.mark.parametrize("term", [*words(TERMS), *words(SEARCHED)])
def test_term_is_in_the_glossary(term: str) -> None:
    assert term in ROWS


def test_each_line_of_a_table_is_a_term() -> None:
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("|")]
    heads = [line for line in lines if line.startswith(("| our word", "|---"))]
    assert len(lines) == len(heads) + len(ROWS)
    assert {line for line in heads if "-" not in line} == {f"| our word | meaning | {' | '.join(SYSTEMS)} |"}


@pytest.mark.parametrize("term", ROWS)
def test_term_has_its_anchor_a_meaning_and_a_word_or_dash_for_each_system(term: str) -> None:
    anchor, (meaning, *others) = ROWS[term]
    assert anchor == anchor_of(term)
    assert len(meaning) > 3
    assert len(others) == len(SYSTEMS)
    assert all(others)


@pytest.mark.parametrize("term", ROWS)
def test_term_is_used_in_docs_or_code(term: str, texts: str) -> None:
    assert re.search(rf"(?<!\w){re.escape(term.lower())}", texts)


def test_anchors_differ() -> None:
    anchors = [anchor for anchor, _ in ROWS.values()]
    assert len(set(anchors)) == len(anchors)
