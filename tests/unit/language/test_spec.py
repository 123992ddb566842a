"""The window language as values: canonical text, the columns a spec names, whether it needs a clock."""

import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.errors import ConfigError
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import (
    AggregateCall,
    Calendar,
    Column,
    Count,
    Delta,
    Sliding,
    Time,
    Tumbling,
    default_name,
)
from wincli.windowing.language.tokens import column_text, decimal_text

CANONICAL = [
    *("count(5)", "delta(ts, 60)", 'delta("my ts", 0.5)', "time(0.000000001)", "punct()", "punct(last)"),
    *("gap(ts, 2), partitioned", "count(3), partitioned, partitionAge(2.9)", "calendar(day)", "calendar(week@mon)"),
    *('calendar(week@sun, tz="Europe/Paris", at=07:00)', "calendar(year, at=23:59:30)"),
    *("sliding, count(0), count(1)", "sliding, time(2), delta(a, 2), partitioned"),
    "sliding, count(2), count(1), partitioned, tupleCount(4)",
    "timeInterval, intervalDuration(3), creationPeriod(1.1), discardAge(2), intervalOffset(0.2), partitioned",
    *(
        "within 1.5 every 0.5 retain 2",
        "retain 2 every 3 with unique k",
        'partition by a, "b c" within 2',
        "retain all",
    ),
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    is_other = text.startswith(("sliding", "timeInterval", "within", "retain", "partition"))
    assert str(parse_window(text)) == (text if is_other else f"tumbling, {text}")


def test_defaults_are_in_the_canonical_text() -> None:
    assert str(Sliding(Count(0))) == "sliding, count(0), count(1)"
    assert str(Tumbling(Calendar("week", "Europe/Paris", dt.time(7), "sun"))) == (
        'tumbling, calendar(week@sun, tz="Europe/Paris", at=07:00)'
    )


@pytest.mark.parametrize(
    ("window", "attributes", "clock"),
    [
        ("count(5)", (), False),
        ("delta(ts, 2)", ("ts",), False),
        ("gap(ts, 2)", ("ts",), False),
        ("time(2)", (), True),
        ("punct()", (), False),
        ("punct(done)", ("done",), False),
        ("calendar(day)", (), True),
        ("count(5), partitioned, partitionAge(2)", (), True),
        ("count(5), partitioned, tupleCount(2)", (), False),
        ("sliding, delta(a, 2), delta(b, 2)", ("a", "b"), False),
        ("sliding, delta(a, 2), delta(a, 0.5)", ("a",), False),
        ("sliding, count(3), delta(b, 2)", ("b",), False),
        ("sliding, time(2), count(1)", (), True),
        ("sliding, count(3), time(2)", (), True),
        ("sliding, count(3), count(1), partitioned, partitionAge(2)", (), True),
        ("timeInterval, intervalDuration(2)", (), False),
        ("within 2", (), True),
        ("retain 2 every 3", (), False),
        ("retain all", (), False),
        ("partition by p, q retain 2 with unique u", ("p", "q", "u"), False),
    ],
)
def test_what_a_window_reads(window: str, attributes: tuple[str, ...], clock: bool) -> None:
    needs = kind_of(parse_window(window)).needs
    assert (needs.attributes, needs.clock) == (attributes, clock)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("amount", "amount"),
        ("a.b_2", "a.b_2"),
        ("größe", "größe"),
        ("時刻", "時刻"),
        ("_x", "_x"),
        ("count", "count"),
        ("", '""'),
        ("2nd", '"2nd"'),
        (".a", '".a"'),
        ("user-id", '"user-id"'),
        ("a b", '"a b"'),
        ('a"b', '"a""b"'),
        ("a\n", '"a\n"'),
        ("'x'", "\"'x'\""),
    ],
)
def test_a_column_is_quoted_only_where_it_must_be(name: str, text: str) -> None:
    assert column_text(name) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(100), "100"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(-1, 20), "-0.05"),
        (Fraction(1, 10**12), "0.000000000001"),
        (Fraction(10**20 + 1, 8), "12500000000000000000.125"),
    ],
)
def test_decimal_text(amount: Fraction, text: str) -> None:
    assert decimal_text(amount) == text


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimal_text_is_exact_and_has_no_exponent(number: object) -> None:
    text = decimal_text(Fraction(str(number)))
    assert Fraction(text) == Fraction(str(number))
    assert "e" not in text.lower()


def test_a_third_has_no_decimal_text() -> None:
    with pytest.raises(ConfigError, match="the amount 1/3 of a window has no exact decimal text"):
        str(Tumbling(Time(Fraction(1, 3))))


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        ("count", (), "count"),
        ("sum", (Column("amount"),), "sum_amount"),
        ("arg_max", (Column("y"), Column("x")), "arg_max_y_x"),
        ("quantile", (Column("latency"), Fraction("0.95")), "quantile_latency_0.95"),
        ("nth", (Column("x"), Fraction(-1)), "nth_x_-1"),
        ("string_join", (Column("x"), ";"), "string_join_x_;"),
        ("stats.mine:trimmed", (Column("my x"),), "trimmed_my x"),
    ],
)
def test_default_name(function: str, arguments: tuple[Column | Fraction | str, ...], name: str) -> None:
    assert default_name(function, arguments) == name


def test_an_aggregate_prints_as_it_would_be_written() -> None:
    call = AggregateCall("my p95", "string_join", (Column("a b"), Fraction("0.95"), "it's"))
    assert str(call) == "\"my p95\"=string_join(\"a b\", 0.95, 'it''s')"


def test_values_are_equal_by_what_they_say_and_can_be_keys() -> None:
    assert Tumbling(Delta("a", Fraction("2.0"))) == Tumbling(Delta("a", Fraction(2)))
    assert len({Sliding(Count(3)), Sliding(Count(3), Count(1)), Sliding(Count(3), Count(2))}) == 2
