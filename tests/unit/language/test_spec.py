"""The window language as values: canonical text, the columns a spec names, whether it needs a clock."""

import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.errors import ConfigError
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.spec import (
    AggregateCall,
    Batched,
    Calendar,
    Column,
    Count,
    Delta,
    Gap,
    PartitionEviction,
    Punct,
    Sliding,
    Time,
    TimeInterval,
    Tumbling,
    WindowSpec,
    default_name,
)
from wincli.windowing.language.tokens import column_text, decimal_text

TWO = Fraction(2)
HALF = Fraction(1, 2)

CANONICAL = [
    (Tumbling(Count(5)), "tumbling, count(5)"),
    (Tumbling(Delta("ts", Fraction(60))), "tumbling, delta(ts, 60)"),
    (Tumbling(Delta("my ts", HALF)), 'tumbling, delta("my ts", 0.5)'),
    (Tumbling(Time(Fraction(1, 10**9))), "tumbling, time(0.000000001)"),
    (Tumbling(Punct()), "tumbling, punct()"),
    (Tumbling(Punct("last")), "tumbling, punct(last)"),
    (Tumbling(Gap("ts", TWO), partitioned=True), "tumbling, gap(ts, 2), partitioned"),
    (
        Tumbling(Count(3), True, PartitionEviction("partitionAge", Fraction("2.9"))),
        "tumbling, count(3), partitioned, partitionAge(2.9)",
    ),
    (Tumbling(Calendar("day")), "tumbling, calendar(day)"),
    (Tumbling(Calendar("week")), "tumbling, calendar(week@mon)"),
    (
        Tumbling(Calendar("week", "Europe/Paris", dt.time(7), "sun")),
        'tumbling, calendar(week@sun, tz="Europe/Paris", at=07:00)',
    ),
    (Tumbling(Calendar("year", at=dt.time(23, 59, 30))), "tumbling, calendar(year, at=23:59:30)"),
    (Sliding(Count(0)), "sliding, count(0), count(1)"),
    (Sliding(Time(TWO), Delta("a", TWO), True), "sliding, time(2), delta(a, 2), partitioned"),
    (
        Sliding(Count(2), Count(1), True, PartitionEviction("tupleCount", Fraction(4))),
        "sliding, count(2), count(1), partitioned, tupleCount(4)",
    ),
    (
        TimeInterval(Fraction(3), Fraction("1.1"), TWO, Fraction("0.2"), True),
        "timeInterval, intervalDuration(3), creationPeriod(1.1), discardAge(2), intervalOffset(0.2), partitioned",
    ),
    (Batched(within=Fraction("1.5"), every=HALF, retain=2), "within 1.5 every 0.5 retain 2"),
    (Batched(retain=2, every=3, unique="k"), "retain 2 every 3 with unique k"),
    (Batched(within=TWO, partition_by=("a", "b c")), 'partition by a, "b c" within 2'),
    (Batched(retain_all=True), "retain all"),
]


@pytest.mark.parametrize(("spec", "text"), CANONICAL, ids=[text for _, text in CANONICAL])
def test_canonical_text(spec: WindowSpec, text: str) -> None:
    assert str(spec) == text


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (Tumbling(Count(5)), ()),
        (Tumbling(Delta("ts", TWO)), ("ts",)),
        (Tumbling(Gap("ts", TWO)), ("ts",)),
        (Tumbling(Punct()), ()),
        (Tumbling(Punct("done")), ("done",)),
        (Tumbling(Calendar("day")), ()),
        (Sliding(Delta("a", TWO), Delta("b", TWO)), ("a", "b")),
        (Sliding(Delta("a", TWO), Delta("a", HALF)), ("a",)),
        (Sliding(Count(3), Delta("b", TWO)), ("b",)),
        (TimeInterval(TWO, TWO), ()),
        (Batched(within=TWO), ()),
        (Batched(retain=2, unique="u", partition_by=("p", "q")), ("p", "q", "u")),
    ],
    ids=str,
)
def test_attributes(spec: WindowSpec, names: tuple[str, ...]) -> None:
    assert kind_of(spec).needs.attributes == names


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        (Tumbling(Count(5)), False),
        (Tumbling(Delta("ts", TWO)), False),
        (Tumbling(Time(TWO)), True),
        (Tumbling(Calendar("day")), True),
        (Tumbling(Count(5), True, PartitionEviction("partitionAge", TWO)), True),
        (Tumbling(Count(5), True, PartitionEviction("tupleCount", TWO)), False),
        (Sliding(Count(3), Delta("a", TWO)), False),
        (Sliding(Time(TWO), Count(1)), True),
        (Sliding(Count(3), Time(TWO)), True),
        (Sliding(Count(3), Count(1), True, PartitionEviction("partitionAge", TWO)), True),
        (TimeInterval(TWO, TWO), False),
        (Batched(within=TWO), True),
        (Batched(retain=2, every=3), False),
        (Batched(retain_all=True), False),
    ],
    ids=str,
)
def test_needs_clock(spec: WindowSpec, needed: bool) -> None:
    assert kind_of(spec).needs.clock is needed


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
    assert Tumbling(Delta("a", Fraction("2.0"))) == Tumbling(Delta("a", TWO))
    assert len({Sliding(Count(3)), Sliding(Count(3), Count(1)), Sliding(Count(3), Count(2))}) == 2
