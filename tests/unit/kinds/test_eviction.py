"""Keys that are evicted, from any window (section 4): the library agrees with the reference, and by hand.

partitionCount(2), tumbling count(3)    a b a c: the third key makes one too many, and b came in longest ago
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.calendar import calendar_of
from references.sliding import sliding
from support import strategies as my
from support.pane_laws import check, library_table, panes_in, policy, seconds_of
from support.strategies import examples
from wincli.windowing.errors import DataError

CLOCKS = [
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns")),
    *(pa.int64(), pa.uint32(), pa.float64(), pa.float32(), pa.decimal128(18, 3), pa.date32()),
]
MANY = examples(1500)  # there are many pairs of windows and evictions
Policy = tuple[str, Any]


# --- any window, any eviction -------------------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn) -> my.Stream:
    """Rows of a few keys whose clock goes on by quarters of a second, or its own unit, and now and then by minutes."""
    size = draw(st.integers(0, 30))
    kind = draw(st.sampled_from(CLOCKS))
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5, 9, 14, 400]), min_size=size, max_size=size))
    begin = draw(st.sampled_from([0, 0, 1_600_000_000 * 4, -9, 86_400 * 4 * 100])) * (kind != pa.uint32())
    places = list(accumulate(steps, initial=begin))[1:]
    keys = draw(st.integers(1, 6))
    columns = {
        "id": pa.array(range(size), pa.int64()),
        "key": pa.array(draw(st.lists(st.integers(0, keys - 1), min_size=size, max_size=size)), pa.int64()),
        "at": clock_of(draw(st.permutations(places)) if draw(st.booleans()) else places, kind),
        "a": draw(my.column(draw(st.sampled_from([pa.int64(), pa.int8(), pa.float64(), pa.uint64()])), size)),
        "flag": pa.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), pa.bool_()),
    }
    return my.Stream(pa.table(columns), ("key",), draw(st.sampled_from([(), ("at",), ("at", "a")])))


def clock_of(quarters: list[int], kind: pa.DataType) -> pa.Array:
    """Quarters of a second as values of a type; what is coarser counts its own units instead."""
    if pa.types.is_floating(kind):
        return pa.array([q % 10**6 / 4 for q in quarters], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(q % 10**6) / 4 for q in quarters], kind)
    if pa.types.is_timestamp(kind) and kind.unit != "s":
        per_quarter = {"ms": 250, "us": 250_000, "ns": 250_000_000}[kind.unit]
        return pa.array([q * per_quarter for q in quarters], pa.int64()).cast(kind)
    whole = pa.array([q % 10**6 for q in quarters], pa.int32())
    return (whole if kind == pa.date32() else whole.cast(pa.int64())).cast(kind)


def unit_of(kind: pa.DataType) -> Fraction:
    """How many seconds the smallest step of `clock_of` is."""
    if kind == pa.date32():
        return Fraction(86_400)
    return Fraction(1) if pa.types.is_integer(kind) or kind == pa.timestamp("s") else Fraction(1, 4)


def policies(draw: st.DrawFn, stream: my.Stream, words: list[str], origin: Fraction = Fraction(0)) -> Policy:
    """One of the policies that these words name, as a spec has it and as the reference does."""
    word, clock = draw(st.sampled_from(words)), stream.kind("at")
    if word in {"calendar", "cron"}:  # at half past two: cron has the same instants as the days that begin then
        unit = draw(st.sampled_from(["day", "month"])) if word == "calendar" else "day"
        windows = {"calendar": f'calendar({unit}, "Europe/Paris", 02:30)', "cron": 'cron("30 2 * * *", "Europe/Paris")'}
        reason = {"reason": "cron"} if word == "cron" else {}
        return windows[word], calendar_of(stream.table["at"], unit, "Europe/Paris", dt.time(2, 30), **reason)
    amounts = {
        "count": st.integers(1, 5).map(Fraction),
        "nothing": st.just(Fraction(0)),
        "time": st.sampled_from([1, 2, 3, 4, 10, 12, 30, 50]).map(lambda n: n * unit_of(clock)),
    }
    amount = draw(amounts.get(word, my.amounts(stream.kind("a"))))
    return policy("count" if word == "nothing" else word, amount, stream.kind("a"), clock, origin)


def goings(draw: st.DrawFn, stream: my.Stream) -> tuple[str, reference.Eviction]:
    kind: Any = draw(st.sampled_from(["partitionAge", "partitionAge", "partitionCount", "tupleCount"]))
    amount = Fraction(draw(st.integers(1, 9 if kind == "tupleCount" else 4)))
    if kind == "partitionAge":
        amount = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 11, 13])) * unit_of(stream.kind("at"))
        amount += draw(st.sampled_from([Fraction(0), Fraction(9, 10)]))
    return f"partitioned, {kind}({my.text(amount)})", (kind, amount)


def ordered(stream: my.Stream, is_timed: bool) -> my.Stream:
    order = stream.order or (("at",) if is_timed else ())
    return my.Stream(stream.table, stream.key, order)


def drawn_clock(data: st.DataObject, stream: my.Stream) -> Any:
    """Where the clock stands, in its column's own terms."""
    kind, values = stream.kind("at"), reference.ticks_of(stream.table["at"])
    if not values or not stream.order:
        return None
    steps = data.draw(st.sampled_from([0, 0, 3, 7, 20, 100])) * unit_of(kind) / reference.seconds_per_unit(kind)
    if steps.denominator > 1:  # of floats and decimals
        return max(values) + type(values[0])(steps.numerator) / steps.denominator
    return max(values) + int(steps)


TUMBLING = ["count", "delta", "gap", "change", "time", "time", "time", "calendar", "cron", "punct", "flag"]


@MANY
@given(st.data(), streams(), st.booleans(), st.integers(-9, 9))
def test_tumbling_windows_agree_with_the_reference(
    data: st.DataObject, stream: my.Stream, emit: bool, origin: int
) -> None:
    begin = origin * unit_of(stream.kind("at"))
    window, ends = data.draw(st.composite(policies)(stream, TUMBLING, begin))
    text, eviction = data.draw(st.composite(goings)(stream))
    stream = ordered(stream, isinstance(ends, reference.Time) or eviction[0] == "partitionAge")
    marks = data.draw(my.marks(len(stream.table))) if window == "punct()" else []
    kind, clock = stream.kind("at"), drawn_clock(data, stream)
    options: dict[str, Any] = {"emit_evicted": emit, "clock": seconds_of(clock, kind)}
    options |= {"marks": marks} if marks else {}
    options |= {"origin": begin} if window.startswith("time") else {}
    more: dict[str, Any] = {"kind": kind if stream.order else None, "key": stream.key, "order": stream.order}
    rows = reference.read(stream.table)
    found = reference.tumbling(rows, ends, marks=marks, clock=clock, eviction=eviction, emit=emit, **more)
    check(stream, f"{window}, {text}", found.panes, **options)


SLIDING = ["count", "delta", "time", "time"]


@MANY
@given(st.data(), streams(), st.booleans())
def test_sliding_windows_agree_with_the_reference(data: st.DataObject, stream: my.Stream, partial: bool) -> None:
    out, evict = data.draw(st.composite(policies)(stream, [*SLIDING, "nothing"]))
    look, trigger = data.draw(st.composite(policies)(stream, SLIDING))
    text, eviction = data.draw(st.composite(goings)(stream))
    stream = ordered(stream, "time" in out + look or eviction[0] == "partitionAge")
    kind, clock = stream.kind("at"), drawn_clock(data, stream)
    more: dict[str, Any] = {"kind": kind if stream.order else None, "key": stream.key, "order": stream.order}
    rows = reference.read(stream.table)
    panes = sliding(rows, evict, trigger, clock=clock, eviction=eviction, partial=partial, **more)
    options = {"partial": partial, "clock": seconds_of(clock, kind)}
    check(stream, f"sliding, {out}, {look}, {text}", panes, **options)


# --- by hand ------------------------------------------------------------------------------------------------------


def panes(window: str, go: str, keys: str, at: list[float] | None = None, **more: Any) -> list[str]:
    """The panes of rows 1, 2, .. of keys of one letter, as ``key: rows why @ the row or instant that caused it``."""
    columns = {"id": range(len(keys)), "key": list(keys), "at": at or list(range(len(keys)))}
    stream = my.Stream(pa.table(columns), ("key",), ("at",) if at else ())
    if "sliding" not in window:
        more |= {"emit_evicted": True}
    return [
        f"{out.key[0]}{out.number}: {','.join(str(row + 1) for row in out.rows)} {out.closed_by} "
        + ("-" if out.pos is None else f"at {out.at[0]}" if out.pos < 0 and out.at else f"by {out.pos + 1}")
        for out in panes_in(library_table(stream, f"{window}, partitioned, {go}", **more), ("key",))
        if out.key is not None
    ]


BY_HAND: list[tuple[str, str, str, list[float] | None, list[str]]] = [
    # c makes one too many: b is a third key, and b came in longest ago
    ("count(3)", "partitionCount(2)", "abacbb", None,
     ["a0: 1,3 evicted by 5", "b0: 2 evicted by 4", "b1: 5,6 end -", "c0: 4 end -"]),
    # more than 2 rows are open before count(3) can close them; sliding, the window is never full
    ("count(3)", "tupleCount(2)", "aaaa", None, ["a0: 1,2,3 evicted by 3", "a1: 4 end -"]),
    ("sliding, count(3), count(3)", "tupleCount(2)", "aaaa", None, []),
    # a has no open row when b begins
    ("count(2)", "partitionCount(1)", "aabba", None, ["a0: 1,2 count by 2", "a1: 5 end -", "b0: 3,4 count by 4"]),
    # 2.1 s old at 3.0, and 1.6 s at 2.5; the tick finds a row that is 10 s old
    ("count(9)", "partitionAge(2)", "abc", [0.9, 2.5, 3.0], ["a0: 1 evicted by 3", "b0: 2 end -", "c0: 3 end -"]),
    ("time(10)", "partitionAge(2)", "aab", [0.0, 11.0, 14.5],
     ["a0: 1 evicted at 10.0", "a1: 2 evicted by 3", "b0: 3 end -"]),
    # row 1 is older than 1 s at 5, but it counts: row 3 is the second of x
    ("sliding, time(1), count(2)", "partitionCount(1)", "xyx", [0.0, 5.0, 9.0], ["x0: 3 trigger by 3"]),
    ("sliding, time(1), count(2)", "tupleCount(1)", "xyx", [0.0, 5.0, 9.0], ["x0: 3 trigger by 3"]),
    ("sliding, time(1), count(2)", "partitionAge(1)", "xyx", [0.0, 5.0, 9.0], ["x0: 3 trigger by 3"]),
]  # fmt: skip


@pytest.mark.parametrize(("window", "go", "keys", "at", "wanted"), BY_HAND)
def test_examples(window: str, go: str, keys: str, at: list[float] | None, wanted: list[str]) -> None:
    assert panes(window, go, keys, at) == wanted


def test_a_mark_closes_what_it_finds_and_looks_at_no_age() -> None:
    assert panes("punct()", "partitionAge(2)", "ab", [0.0, 9.0], marks=[1]) == ["a0: 1 punct by 1", "b0: 2 end -"]


def test_tick_evicts_all_old_keys_if_one_is_too_old() -> None:
    #   at      0.0   1.0   2.0   4.0   6.0   6.5
    #   a       [1]         [1]
    #   b             [2]   [2]                        at 4.0 a is older than 2 s, and so is b: both go, no pane
    #   c                                     [3]      at the end
    assert panes("sliding, count(9), time(2)", "partitionAge(2)", "abc", [0.0, 1.0, 6.5], partial=True) == [
        *("a0: 1 trigger at 2.0", "b0: 2 trigger at 2.0", "c0: 3 end -"),
    ]


def test_empty_key_at_a_tick_does_not_evict_others() -> None:
    #   at     0.9   1.1   ...   4.5
    #   x      1                 -        3.6 s old: gone with time(3.5), else evicted together with y
    #   y            2           [2]      3.4 s old
    window, rows = "sliding, time(3.5), time(4.5)", ("partitionAge(3)", "xy", [0.9, 1.1])
    assert panes(window, *rows, clock=4.6) == ["y0: 2 trigger at 4.5"]
    assert panes(window.replace("3.5", "3.6"), *rows, clock=4.6) == []


# --- far from zero ------------------------------------------------------------------------------------------------


def counted(at: pa.Array, window: str) -> int:
    table = pa.table({"key": range(len(at)), "at": at})
    return len(wincli.aggregate(table, window, key="key", order_by="at", emit_evicted=True))


def test_gap_of_years_takes_no_time() -> None:
    #   at     0   1   2   3   4   5   6   ... years ...   10**15
    #   row    0                       |                   1         row 0 is older than 5 s at tick 6
    table = pa.table({"id": [0, 1], "key": [0, 0], "at": [0, 10**15]})
    window = "sliding, count(9), time(1), partitioned, partitionAge(5)"
    found = wincli.aggregate(table, window, key="key", order_by="at", partial=True, aggregates="ids=collect(id)")
    assert found["ids"].to_pylist() == [[0]] * 5 + [[1]]


@pytest.mark.parametrize(
    "far",
    [
        pa.array([-(2**61), 0, 2**61], pa.int64()),
        pa.array([-(2.0**61), 0.0, 2.0**61]),
        pa.array([-(2**61), 0, 2**61], pa.int64()).cast(pa.timestamp("ns")),
        pa.array([Decimal(-5).scaleb(-20), Decimal(0), Decimal(2**62).scaleb(-20)], pa.decimal128(38, 20)),
    ],
    ids=lambda far: str(far.type),
)
def test_ages_beyond_all_clocks_evict_nothing(far: pa.Array) -> None:
    table = pa.table({"key": [0, 1, 2], "at": far})
    window = f"count(9), partitioned, partitionAge({10**30})"
    found = wincli.aggregate(table, window, key="key", order_by="at", emit_evicted=True)
    assert found["closed_by"].to_pylist() == ["end"] * 3


@pytest.mark.parametrize("far", [2**62, -(2**62), 1e300])
def test_clock_too_far_from_zero_for_ages_is_an_error(far: float) -> None:
    with pytest.raises(DataError, match="too far from 0 to count ages"):
        counted(pa.array([far]), "count(9), partitioned, partitionAge(1)")


def test_ticks_too_fine_for_ages_are_an_error() -> None:
    table = pa.table({"key": [0], "at": pa.array([2**63 - 10**6], pa.timestamp("ns"))})
    window = "sliding, count(9), time(0.000001), partitioned, partitionAge(1)"
    with pytest.raises(DataError, match="64 bit"):
        wincli.aggregate(table, window, key="key", order_by="at")
