"""The glossary: each term has one line, and is used in docs or code; words of other systems are there."""

from __future__ import annotations

import re

from support.docs_pages import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
TEXT = GLOSSARY.read_text(encoding="utf-8")
SYSTEMS = ["Flink", "Spark", "SQL", "IBM Streams (SPL)", "Apama (EPL)"]

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


LINES = {
    term: (anchor, meaning)
    for anchor, term, meaning in re.findall(r'^- (?:<a id="([^"]*)"></a>)?\*\*(.*?)\*\*: (.*)$', TEXT, re.MULTILINE)
}


def test_terms_words_that_are_searched_and_those_of_each_system_are_in_the_glossary() -> None:
    assert [term for term in words(TERMS) if f"**{term}**" not in TEXT] == []
    searched = words(SEARCHED)
    assert [word for word in searched if not re.search(rf"(?<!\w){word}(?!\w)", TEXT, re.IGNORECASE)] == []
    assert [system for system in SYSTEMS if f"\n- **{system}**. " not in TEXT] == []


def test_each_line_of_a_list_is_a_term_with_a_meaning_and_its_own_anchor() -> None:
    assert len(re.findall(r"^- ", TEXT, re.MULTILINE)) == len(LINES) + len(SYSTEMS)
    for term, (anchor, meaning) in LINES.items():
        assert anchor in ("", re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-"))
        assert len(meaning) > 3, term


def test_each_term_is_used_in_docs_or_code() -> None:
    """All docs but the glossary, and all code of the product, with line ends as blanks."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    code = [path for top in ("cli", "conf", "readers", "windowing", "writers") for path in (ROOT / top).rglob("*.py")]
    found = [path.read_text(encoding="utf-8") for path in (*pages, *code) if path != GLOSSARY]
    text = re.sub(r"\s+", " ", "\n".join(found)).lower()
    assert [term for term in LINES if not re.search(rf"(?<!\w){re.escape(term.lower())}", text)] == []
