"""Values that hold until the next one, lines through values, and nulls that are filled: each against its twin."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.over_time import integral, locf, slope, twa
from support.strategies import examples

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
