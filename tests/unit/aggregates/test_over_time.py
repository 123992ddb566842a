"""Values that hold until the next one, lines through values, and nulls that are filled: each against its twin."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.over_time import integral, locf, slope, twa
from support.strategies import examples
from wincli.windowing.errors import ConfigError

CLOCKS: dict[str, tuple[pa.DataType, st.SearchStrategy[int], int]] = {
    "whole": (pa.int64(), st.integers(0, 12), 1),
    "far": (pa.int64(), st.integers(-(2**61), 2**61), 2),
    "small": (pa.uint16(), st.integers(0, 12), 1),
    "days": (pa.date32(), st.integers(0, 40), 0),
    "ms": (pa.timestamp("ms"), st.integers(0, 12_000), 1000),
    "ns": (pa.timestamp("ns", "Europe/Paris"), st.integers(0, 12) | st.integers(0, 10**18), 10**9),
    "cents": (pa.decimal128(9, 2), st.integers(0, 1_000), 100),
    "floats": (pa.float64(), st.integers(0, 12), 1),
}
"""Types of the clock, its values in ticks, and how many of these make one second."""
FLOATS = st.sampled_from([0.0, 0.1, -0.1, 1e16, 3.5, math.nan, math.inf, -math.inf]) | st.floats(-1e100, 1e100)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "float64": (pa.float64(), FLOATS),
    "float32": (pa.float32(), st.floats(-1e10, 1e10, width=32)),
    "int64": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 3) | st.integers(0, 2**64 - 1)),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(12, 2), st.decimals(-99999, 99999, places=2)),
    "wide decimal": (pa.decimal128(38, 5), st.decimals(-(10**25), 10**25, places=5)),
}
WINDOWS = [
    ("time", {"empty": "row"}), ("time", {}), ("time", {"closed": "right", "empty": "row"}), ("count(3)", {}),
    ("change(g)", {}), ("while(up)", {}), ("count(1000)", {}),
]  # fmt: skip


def clock_array(kind: pa.DataType, ticks: list[int]) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array([tick * 0.1 for tick in ticks])
    if pa.types.is_decimal(kind):
        return pa.array([f"{tick / 100:.2f}" for tick in ticks]).cast(kind)
    return pa.array(ticks, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)


def exact(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Times as numbers in one unit: seconds, or units of plain numbers."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[kind.unit]
        return [None if value is None else Fraction(value, per_second) for value in column.cast(pa.int64()).to_pylist()]
    return [None if value is None else Fraction(value) for value in column.to_pylist()]


@st.composite
def logs(draw: st.DrawFn) -> tuple[pa.Table, str]:
    """A log, and how long windows on its clock are."""
    kind, ticks, per_second = CLOCKS[draw(st.sampled_from(sorted(CLOCKS)))]
    size = draw(st.integers(1, 12))
    at = sorted(draw(st.lists(ticks, min_size=size, max_size=size)))
    dtype, values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    columns = {
        "t": clock_array(kind, at),
        "x": pa.array(draw(st.lists(st.none() | values, min_size=size, max_size=size)), dtype),
        "k": pa.array(draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))),
        "g": pa.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))),
        "up": pa.array(draw(st.lists(st.booleans() | st.none(), min_size=size, max_size=size)), pa.bool_()),
        "id": pa.array(range(size)),
    }
    span = {0: "3d", 10**9: "100d", 2: str(2**59)}.get(per_second, "4")
    return pa.table(columns), span


def alike(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    return bool(found == wanted)


EVENTS = pa.table({"t": [30, 90, 190], "x": [10, 20, 5], "k": ["a", "a", "a"], "up": [True, None, False]})


def column(table: pa.Table, window: str, call: str, **options: Any) -> list[Any]:
    result = wincli.aggregate(table, window, order_by="t", aggregates=f"y={call}", **options)
    return list(result["y"].to_pylist())


def test_values_hold_until_the_next_drawn() -> None:
    """
    t         0        60       120       180  190    240
    x              10-----20----------------------5
    windows   [--------)[--------)[--------)[-----    the clock ends at 190
    """
    row = {"empty": "row"}
    assert column(EVENTS, "time(60)", "integral(x)", **row) == [300, 900, 1200, 200]
    assert column(EVENTS, "time(60)", "twa(x)", **row) == [10, 15, 20, 20]
    assert column(EVENTS, "time(60)", "twa(x)") == [10, 15, 20]
    assert column(EVENTS, "time(60)", "integral(up)", **row) == [30, 60, 60, 10]
    assert column(EVENTS, "time(60)", "integral(x) where up", **row) == [300, 600, 600, 100]
    assert column(EVENTS, "time(60)", "locf(sum(x)) + 1", **row) == [11, 21, 21, 6]
    assert column(EVENTS, "count(3)", "integral(x)") == [10 * 60 + 20 * 100]
    assert column(EVENTS, "count(1)", "twa(x)") == [None, None, None]


def test_an_evicted_key_loses_what_held_and_its_window_ends_with_its_last_row() -> None:
    """Key a is evicted by the row of b at 40, and comes back with a null at 50.

    t    0   10   20   40   50   70   120
    a        1    -         -    2
    b                  8
    """
    table = pa.table({"t": [10, 20, 40, 50, 70], "k": [*"aabaa"], "x": [1, None, 8, None, 2]})
    window, options = "time(60), partitioned, partitionCount(1)", {"key": "k", "emit_evicted": True}
    result = wincli.aggregate(
        table, window, order_by="t", aggregates=["i=integral(x)", "f=locf(max(x))"], plain=True, **options
    )
    found = {(row["k"], row["window"]): (row["closed_by"], row["i"], row["f"]) for row in result.to_pylist()}
    assert found == {
        ("a", 0): ("evicted", 10.0, 1), ("b", 0): ("evicted", 0.0, 8),
        ("a", 1): ("time", None, None), ("a", 2): ("end", 0.0, 2),
    }  # fmt: skip


@pytest.mark.parametrize("call", ["integral(x)", "twa(x)", "locf(max(x))"])
@pytest.mark.parametrize("window", ["sliding, count(2)", "within 60", "timeInterval, intervalDuration(60)"])
def test_windows_that_overlap_are_refused(call: str, window: str) -> None:
    words = f"^{call[: call.index('(')]} needs rows in order of time and windows that do not overlap in their rows, and"
    by: dict[str, Any] = {"event_time": "t"} if window.startswith("timeInterval") else {"order_by": "t"}
    with pytest.raises(ConfigError, match=words):
        wincli.aggregate(EVENTS, window, aggregates=call, **by)


def test_a_clock_is_needed_and_no_groups() -> None:
    for call in ("integral(x)", "twa(x)", "slope(x)"):
        with pytest.raises(ConfigError, match=r"needs a clock; say --order-by, with a column of times or numbers$"):
            wincli.aggregate(EVENTS, "count(2)", order_by="arrival", aggregates=call)
        with pytest.raises(ConfigError, match=r"needs a clock, and column 'k' is string; say --order-by"):
            wincli.aggregate(EVENTS, "count(2)", order_by="k", aggregates=call)
    with pytest.raises(ConfigError, match=r"--group-by divides windows; make the groups keys of their own: --key k$"):
        column(EVENTS, "count(2)", "twa(x)", group_by="k")
    with pytest.raises(ConfigError, match=r"^locf\(x\): column x is int64; locf needs an aggregate, as in locf"):
        column(EVENTS, "count(2)", "locf(x)")
    assert wincli.aggregate(EVENTS, "count(2)", order_by="arrival", aggregates="locf(max(x))")["locf_max_x"][1].as_py()


def test_a_state_of_another_job_holds_no_value() -> None:
    _, state = wincli.aggregate(EVENTS, "time(60)", order_by="t", aggregates="sum(x)", state="new")
    with pytest.raises(ConfigError, match=r"does not hold column twa\(x\)"):
        wincli.aggregate(EVENTS, "time(60)", order_by="t", aggregates="twa(x)", state=state)


@examples(800)
@given(logs(), st.sampled_from(WINDOWS))
def test_each_gives_what_its_twin_gives(log: tuple[pa.Table, str], case: tuple[str, dict[str, Any]]) -> None:
    """Windows are those of the product; what they show is taken from all rows of their key."""
    table, span = log
    has_slope = not pa.types.is_boolean(table.schema.field("x").type)
    calls = ["i=integral(x)", "w=twa(x)", *(["s=slope(x)"] if has_slope else []), "m=max(id) where g = 1",
             "f=locf(max(id) where g = 1)", "ids=collect(id)"]  # fmt: skip
    window = case[0].replace("time", f"time({span})")
    result = wincli.aggregate(table, window, key="k", order_by="t", aggregates=calls, plain=True, **case[1])
    times, values, keys = exact(table["t"]), table["x"].to_pylist(), table["k"].to_pylist()
    bounds = zip(exact(result["window_start"]), exact(result["window_end"]), strict=True)
    for row, (lo, end) in zip(result.to_pylist(), bounds, strict=True):
        ids = row["ids"] or []
        hi = max(lo, min(end, max(times))) if row["closed_by"] == "end" else end
        before = [i for i in range(min(ids, default=len(keys))) if keys[i] == row["k"] and (ids or times[i] <= lo)]
        events = [(times[i], values[i]) for i in (*before, *ids)]
        assert alike(row["i"], integral(events, lo, hi)), (row, events)
        assert alike(row["w"], twa(events, lo, hi)), (row, events)
        if has_slope:
            assert alike(row["s"], slope([(times[i], values[i]) for i in ids])), (row, events)
    for key in "ab":
        rows = [row for row in result.to_pylist() if row["k"] == key]
        assert [row["f"] for row in rows] == locf([row["m"] for row in rows])


@examples(200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 20), st.sampled_from([0, 1, 3, 30]), st.sampled_from("ab"), st.none() | st.integers(-3, 3)
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_a_value_of_a_row_that_is_over_holds_on_in_windows_of_rows_that_last(
    log: list[tuple[int, int, str, int | None]], is_right: bool
) -> None:
    log = sorted(log, key=lambda row: row[0])
    ends = [begin + length for begin, length, _, _ in log]
    table = pa.table({"t": [row[0] for row in log], "k": [row[2] for row in log], "e": ends})
    table = table.append_column("x", pa.array([row[3] for row in log], pa.int64()))
    options: dict[str, Any] = {"ends": "e", "closed": "right" if is_right else "left", "plain": True, "key": "k"}
    result = wincli.aggregate(table, "time(4)", order_by="t", aggregates=["i=integral(x)", "w=twa(x)"], **options)
    for row in result.to_pylist():
        lo, hi = row["window_start"], row["window_end"]
        if row["closed_by"] == "end":
            hi = max(lo, min(hi, log[-1][0]))
        last = [1 if is_right and length == 0 else 0 for _, length, _, _ in log]  # at the end of its window
        known = [
            each[0] - more < row["window_end"] and each[2] == row["k"] for each, more in zip(log, last, strict=True)
        ]
        events = [(each[0], each[3]) for each, is_known in zip(log, known, strict=True) if is_known]
        assert alike(row["i"], integral(events, lo, hi)), (row, events)
        assert alike(row["w"], twa(events, lo, hi)), (row, events)


@examples(400)
@given(logs(), st.sampled_from(["sliding, count(3)", "sliding, count(4), count(2)", "retain 3", "retain all"]))
def test_lines_through_windows_that_overlap(log: tuple[pa.Table, str], window: str) -> None:
    table, _ = log
    if pa.types.is_boolean(table.schema.field("x").type):
        return
    options: dict[str, Any] = {"partial": True} if window.startswith("sliding") else {}
    key = [] if window == "retain all" else ["k"]
    calls = ["s=slope(x)", "ids=collect(id)"]
    result = wincli.aggregate(table, window, key=key, order_by="t", aggregates=calls, plain=True, **options)
    times, values = exact(table["t"]), table["x"].to_pylist()
    for row in result.to_pylist():
        events = [(times[i], values[i]) for i in row["ids"] or []]
        assert alike(row["s"], slope(events)), (row, events)
