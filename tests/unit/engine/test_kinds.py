"""Every kind of window and output, however the work is cut: the answer of one scan, and every row accounted for."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wincli
from support.in_memory_engine import MemorySource, run_in_memory
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan

Asked = tuple[str, list[str] | str, dict[str, Any]]
T, ARRIVAL = ["t"], "arrival"
SLIDING = ["count(3)", "count(0)", "delta(a, 2)", "time(4)"]
TRIGGERS = ["count(1)", "count(2)", "delta(a, 1)", "time(3)"]
WINDOWS: list[Asked] = [
    *((f"sliding, {e}, {t}", T, {"partial": p}) for e in SLIDING for t in TRIGGERS for p in (False, True)),
    ("timeInterval, intervalDuration(4)", ARRIVAL, {"event_time": "t", "lag": Fraction(1)}),
    ("timeInterval, intervalDuration(6), creationPeriod(2), discardAge(5)", ARRIVAL, {"event_time": "t"}),
    ("timeInterval, intervalDuration(2), creationPeriod(3), intervalOffset(1)", T, {"event_time": "t"}),
    ("timeInterval, intervalDuration(6), creationPeriod(4)", ARRIVAL, {"event_time": "t", "min_gap": Fraction(3)}),
    ("within 3", T, {}),
    ("within 2.5 retain 2", T, {}),
    ("within 4 every 3 with unique u", T, {}),
    ("retain 3", ARRIVAL, {}),
    ("partition by u retain 2", ARRIVAL, {}),
    ("partition by u retain 2 every 3 with unique flag", ARRIVAL, {}),
    ("retain all", ARRIVAL, {}),
    ('calendar(day, tz="Europe/Paris", at=00:00)', T, {}),
    ("count(3)", ARRIVAL, {}),
    ("count(3), partitioned, tupleCount(5)", ARRIVAL, {"emit_evicted": True}),
    ("delta(a, 2), partitioned, partitionCount(2)", T, {"emit_evicted": True}),
    ("time(4), partitioned, partitionAge(3)", T, {"emit_evicted": True}),
    ("punct(flag), partitioned, partitionAge(2)", T, {}),
    ("sliding, count(2), count(1), partitioned, partitionCount(2)", ARRIVAL, {"partial": True}),
    ("sliding, time(4), time(3), partitioned, tupleCount(4)", T, {}),
    ("punct()", ARRIVAL, {}),
]
AGGREGATES = ["count()", "sum(a)", "ids=collect(id)", "top=max(x)", "mean(x)", "spread=var(x)"]


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 30))
    step = st.sampled_from([0, 0, 1, 1, 1, 2, 3, -1, -2, -9, 8])

    def some(values: list[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    def walk() -> list[int]:
        return list(accumulate(draw(st.lists(step, min_size=size, max_size=size)), initial=100))[1:]

    return pa.table({
        "id": pa.array(range(size), pa.int64()),
        "t": pa.array(walk(), pa.timestamp("s")),
        "a": pa.array(walk(), pa.int32()),
        "x": pa.array(some([0.1, 1e16, -3.0, 0.7, float("nan"), None]), pa.float64()),
        "u": pa.array(some(["p", "q", "r"]), pa.string()),
        "flag": pa.array(some([True, False]), pa.bool_()),
        "k": pa.array(some(["a", "b", "c", "d"]), pa.string()),
    })  # fmt: skip


@st.composite
def cut_up(draw: st.DrawFn, table: pa.Table, keyed: bool) -> tuple[MemorySource, list[int], pa.Table | None]:
    """The table as files, splits, chunks and slices."""
    source, chunk_bounds = as_files(draw, table)
    cuts = sorted(draw(st.sets(st.sampled_from("abcd")))) if keyed else []
    keys = pa.table({"k": pa.array(cuts, pa.string())}) if keyed else pa.table({})
    return source, chunk_bounds, draw(st.sampled_from([keys, keys, None]))


def as_files(draw: st.DrawFn, table: pa.Table, most: int = 3) -> tuple[MemorySource, list[int]]:
    """The table as files and splits, cut at up to so many places each, and where chunks begin."""
    places = st.lists(st.integers(0, len(table)), max_size=most)
    edges = [0, *sorted(draw(places)), len(table)]
    tables = [table.slice(low, high - low) for low, high in pairwise(edges)]
    source = MemorySource(tables, [draw(places) for _ in tables])
    return source, draw(st.lists(st.integers(0, 2 * most + 1), max_size=2 * most))


def what_comes_out(draw: st.DrawFn, window: str) -> dict[str, Any]:
    changes = "sliding" in window or "within" in window or ("retain" in window and "all" not in window)
    emit = draw(st.sampled_from(["aggregates", "aggregates", "rows", *(["entered", "left"] if changes else [])]))
    if emit != "aggregates":
        return {"emit": emit, "sort_by": draw(st.sampled_from([(), ("x desc", "u")]))}
    return {"group_by": draw(st.sampled_from([(), (), ("u",), ("flag", "x")]))}


@settings(max_examples=300)
@given(st.data(), logs(), st.sampled_from(WINDOWS), st.booleans())
def test_no_cut_changes_the_answer(data: st.DataObject, table: pa.Table, asked: Asked, keyed: bool) -> None:
    window, order_by, options = asked
    keyed |= "partitioned" in window
    key = ["k"] if keyed else []
    options = options | data.draw(st.composite(what_comes_out)(window))
    options["at_end"] = data.draw(st.sampled_from(["flush", "drop"]))
    calls = AGGREGATES if options.get("emit", "aggregates") == "aggregates" else None
    source, chunk_bounds, cuts = data.draw(cut_up(table, keyed))
    whole = wincli.aggregate(
        table, window, key=key, order_by=order_by, aggregates=calls, rejected="drop", **options
    )  # fmt: skip
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    plan = make_plan(parse_window(window), table.schema, key, order_by, parsed, Options(**options))
    cut = run_in_memory(plan, source, chunk_bounds, cuts, "none")
    assert same(cut.table, whole), difference(cut.table, whole)
    assert cut.counts.rows_in == len(table)
    assert cut.counts.balanced
    assert cut.rejects["reason"].to_pylist() == ["late"] * sum(cut.counts.rejected.values())


def difference(one: pa.Table, other: pa.Table) -> str:
    rows = zip(one.to_pylist(), other.to_pylist(), strict=False)
    first = next(((a, b) for a, b in rows if repr(a) != repr(b)), None)
    return f"{len(one)} and {len(other)} rows; {first}"


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal to the bit, where NaN equals NaN."""
    return one.schema == other.schema and all(
        a.combine_chunks().equals(b.combine_chunks()) or repr(a.to_pylist()) == repr(b.to_pylist())
        for a, b in zip(one.columns, other.columns, strict=True)
    )


@pytest.mark.parametrize("asked", WINDOWS, ids=lambda asked: f"{asked[0]} {asked[2]}")
@pytest.mark.parametrize("keyed", [False, True])
def test_an_input_without_rows_has_no_panes(asked: Asked, keyed: bool) -> None:
    window, order_by, options = asked
    columns = {"id": pa.int64(), "t": pa.timestamp("s"), "a": pa.int32(), "x": pa.float64(), "u": pa.string()}
    empty = pa.schema([*columns.items(), ("flag", pa.bool_()), ("k", pa.string())]).empty_table()
    key = ["k"] if keyed or "partitioned" in window else []
    result = wincli.aggregate(empty, window, key=key, order_by=order_by, aggregates=AGGREGATES, **options)
    assert len(result) == 0
