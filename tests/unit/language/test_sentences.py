"""Windows in English: each clause has its sentence, in the words of the semantics."""

from __future__ import annotations

from fractions import Fraction

import pytest

from support.places import blocks_of
from support.spec_texts import WINDOWS
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import EVICTIONS, POLICIES, TRIGGER_POLICIES, parse_aggregate, parse_window
from wincli.windowing.language.sentences import sentences_of
from wincli.windowing.language.spec import WindowSpec
from wincli.windowing.language.tokens import duration

TIMES = frozenset({"ts"})

CLAUSES = {
    window: [line.strip() for line in lines]
    for window, *lines in (block.split("\n") for block in blocks_of("window_sentences"))
}


def clauses(text: str) -> list[str]:
    """The sentences of a spec alone: without those on its key, its aggregates and the end of the data."""
    return list(sentences_of(parse_window(text), ("k",), None, Options(), TIMES)[1:-2])


@pytest.mark.parametrize("text", CLAUSES)
def test_each_clause_has_a_sentence(text: str) -> None:
    assert clauses(text) == CLAUSES[text]


@pytest.mark.parametrize("spec", [spec for _, spec in WINDOWS], ids=[text for text, _ in WINDOWS])
def test_every_window_has_whole_sentences(spec: WindowSpec) -> None:
    found = sentences_of(spec, (), None, Options(event_time="ts"), TIMES)
    assert all(each[0].isupper() and each.endswith(".") and "  " not in each for each in found)
    assert len(set(found)) == len(found) >= 3


def test_the_examples_have_every_word_of_the_language() -> None:
    texts = " ".join(CLAUSES).lower() + " partitioncount( tuplecount("
    assert [word for word in {**POLICIES, **EVICTIONS, **TRIGGER_POLICIES} if f"{word}(" not in texts] == []


def test_options_have_sentences_where_they_change_something() -> None:
    options = Options(
        let=(("x", parse_expression("a + 1")),),
        where=parse_expression("a > 0"),
        distinct=parse_distinct("a, site within 90 count 7"),
        having=parse_expression("n > 1"),
        group_by=("site", "page"),
        empty="row",
        closed="right",
        at_end="hold",
    )
    calls = (parse_aggregate("n=count()"), parse_aggregate("mean(x) where b"))
    assert sentences_of(parse_window("time(1d)"), ("user", "shop"), calls, options, TIMES) == (
        "Each row gets x = a + 1.",
        "Rows for which a > 0 is not true are left out.",
        "A row with the a and site of one that was let through, at most 1 min 30 s before and 7 rows of its key "
        "before, is left out.",
        "Each user and shop has windows of its own.",
        "Windows are the intervals of 1 day on the clock, and a row is in the one that its time is in.",
        "A row on a bound is the last of the window that ends there.",
        "A window without rows, between the first and the last, gives a row with count 0.",
        "Each window gives one row for each group of site and page: n = count(), mean_x = mean(x) where b.",
        "Rows of the result for which n > 1 is not true are not written.",
        "Windows that are open at the end of the data wait in the state for the next run.",
    )


def test_a_lag_and_a_gap_of_the_watermark_are_reported() -> None:
    spec = parse_window("timeInterval, intervalDuration(1h), creationPeriod(2h), intervalOffset(5m)")
    found = sentences_of(spec, (), None, Options(event_time="at", lag=Fraction(90), min_gap=Fraction(10)), TIMES)
    assert found[1:6] == (
        "Windows are the intervals of 1 h of at, one every 2 h, 5 min after the grid.",
        "Rows between windows are in none.",
        "The watermark is the latest time that any row had so far, less 1 min 30 s.",
        "It moves when it has risen by 10 s or more.",
        "A window comes out when the watermark reaches its end; later rows are rejected.",
    )


def test_how_far_ahead_rows_may_be_is_told() -> None:
    found = sentences_of(parse_window("gap(at, 5m)"), (), None, Options(max_ahead=Fraction(86_400)), TIMES)
    assert found[:2] == (
        "All rows are one sequence.",
        "Fewer than 10 rows that are more than 1 day ahead of all others move no clock.",
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (3600, "1 h"), (90061, "1 day 1 h 1 min 1 s"), (172800, "2 days")]
)
def test_durations_in_words(seconds: int, words: str) -> None:
    assert duration(Fraction(seconds)) == words
    assert duration(Fraction(seconds) + Fraction(1, 4)).endswith("0.25 s" if seconds % 60 == 0 else ".25 s")


def test_rows_that_last_are_in_each_window_that_they_overlap() -> None:
    options = Options(ends="gone", closed="right")
    assert sentences_of(parse_window("time(1h)"), ("k",), None, options, TIMES)[1:3] == (
        "Windows are the intervals of 1 h on the clock, and a row is in each that it overlaps: it lasts from its time "
        "until gone.",
        "A row of no length on a bound is in the window that ends there.",
    )
