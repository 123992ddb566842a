"""Windows in English: each clause has its sentence, in the words of the semantics."""

from __future__ import annotations

from fractions import Fraction

import pytest

from support.spec_texts import WINDOWS
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import EVICTIONS, POLICIES, TRIGGER_POLICIES, parse_aggregate, parse_window
from wincli.windowing.language.sentences import sentences_of
from wincli.windowing.language.spec import WindowSpec
from wincli.windowing.language.tokens import duration

TIMES = frozenset({"ts"})

CLAUSES = {
    "count(100)": ["A window ends when it holds 100 rows."],
    "delta(ts, 60)": ["A window ends before a row whose ts is more than 1 min after that of the window's first row."],
    "delta(v, 2.5)": ["A window ends before a row whose v is more than 2.5 above that of the window's first row."],
    "gap(ts, 90m)": ["A window ends before a row whose ts is more than 1 h 30 min after that of the row before it."],
    "gap(ts, patience)": [
        "A window ends before a row whose ts is more than patience after that of the row before it, where patience is "
        "that of the row before it."
    ],
    "count(n)": ["A window ends when it holds as many rows as n says in its first row."],
    "delta(ts, 2 * previous(mean(x), 30))": [
        "A window ends before a row whose ts is more than 2 * previous(mean(x), 30) after that of the window's first "
        "row, where 2 * previous(mean(x), 30) is that of the window's first row, and previous(..) asks for the window "
        "before of the same key."
    ],
    "time(5m)": ["Windows are the intervals of 5 min on the clock, and a row is in the one that its time is in."],
    'calendar(week@sun, "Europe/Paris", 06:00)': [
        "Windows are the weeks in Europe/Paris, which begin on Sundays at 06:00, and a row is in the one that its time "
        "is in."
    ],
    'cron("59 23 * * 1-5")': [
        'Windows are the intervals between the instants of cron "59 23 * * 1-5" in UTC, and a row is in the one that '
        "its time is in."
    ],
    "punct()": ["A window ends at a window mark, which ends the windows of all keys."],
    "punct(a > 1)": ["A window ends with a row for which a > 1 is true."],
    "change(a, b)": ["A window ends before a row whose a and b are not as in the row before it."],
    "when(a)": [
        "A window begins at each row for which a is true; rows before the first are in no window.",
        "A window ends before the next such row.",
    ],
    "while(a)": [
        "Only rows for which a is true are in windows.",
        "A window ends before a row for which it is not.",
    ],
    "from(a, until=b)": [
        "A window begins at a row for which a is true; rows between windows are in none.",
        "A window ends with the first row for which b is true, which may be the row that opened it.",
    ],
    "reaches(sum(x), 1000)": ["A window ends with the row by which sum(x) of its rows is 1000 or more."],
    "reaches(range(ts), 90)": ["A window ends with the row by which range(ts) of its rows is 1 min 30 s or more."],
    "gap(ts, 30m) or count(9) or calendar(day)": [
        "A window ends at whichever comes first: (1) before a row whose ts is more than 30 min after that of the row "
        "before it; (2) when it holds 9 rows; (3) with the day in UTC that its first row is in."
    ],
    "sliding, count(3), time(5m)": [
        "The window holds the last 3 rows.",
        "It comes out every 5 min of the clock, before the rows of that instant.",
        "Nothing comes out before it holds 3 rows.",
    ],
    "sliding, delta(v, 2), delta(ts, 60)": [
        "A row leaves the window when the v of a later row is more than 2 above its own.",
        "It comes out before a row whose ts is more than 1 min after that of the row at which it last did.",
        "Nothing comes out before a row has left it.",
    ],
    "sliding, time(1h), when(a)": [
        "The window holds the rows of the last 1 h on the clock.",
        "It comes out at each row for which a is true, with that row.",
    ],
    "timeInterval, intervalDuration(1h), creationPeriod(10m), discardAge(5m)": [
        "Windows are the intervals of 1 h of event time, one every 10 min.",
        "A row is in each window that its time is in.",
        "The watermark is the latest time that any row had so far.",
        "A window comes out when the watermark reaches its end, and again when rows come up to 5 min late; later rows "
        "are rejected.",
    ],
    "within 5m every 1m retain 3 with unique k": [
        "The window holds the last 3 rows among the rows of the last 5 min on the clock.",
        "Rows enter and leave only every 1 min of the clock.",
        "Of rows with the same k, only the newest is visible.",
        "It comes out whenever what it holds changes.",
    ],
    "partition by a retain 2 every 3": [
        "The window holds the last 2 rows of each a.",
        "Rows enter in lots of 3 of each a.",
        "It comes out whenever what it holds changes.",
    ],
    "retain all": ["The window holds all rows so far, and comes out with every row."],
    "count(3), partitionAge(60)": [
        "A window ends when it holds 3 rows.",
        "A key that got no row for more than 1 min is evicted, and the rows of its open window are in no result.",
    ],
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


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (3600, "1 h"), (90061, "1 day 1 h 1 min 1 s"), (172800, "2 days")]
)
def test_durations_in_words(seconds: int, words: str) -> None:
    assert duration(Fraction(seconds)) == words
    assert duration(Fraction(seconds) + Fraction(1, 4)).endswith("0.25 s" if seconds % 60 == 0 else ".25 s")
