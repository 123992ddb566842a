"""One law for all cuts: however rows are divided, on whatever road, the answer is that of one scan, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import cut_up, logs, sliced
from support.in_memory_engine import MemorySource, Result, in_one_pass, run_in_memory
from support.incremental_runs import IncrementalRuns, check_runs
from support.keeping_operators import ASKING, KEEPER
from support.strategies import examples
from support.stream_cases import options_of
from support.table_equality import difference, in_order, same
from support.window_cases import (
    AGGREGATES,
    AMOUNTS,
    ARRIVAL,
    MERGING,
    MORE,
    OVER_TIME,
    WINDOWS,
    T,
    WindowCase,
    overlaps,
    plan_of_case,
)
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let
from wincli.windowing.language.spec import Batched
from wincli.windowing.planning.plan import Plan
from wincli.windowing.scan.segment_scan import can_be_cut

CASES = st.sampled_from([*WINDOWS, *MORE, *AMOUNTS])
EXPRESSIONS = {
    "let": ["twice=CASE WHEN a % 2 = 0 THEN id * 2 END"],
    "where": "id % 5 <> 3 OR a IS NULL",
    "having": "window % 3 <> 1",
    "distinct": "",
}
DISTINCT = {
    True: ["u within 3", "flag, u within 4 count 3", "a count 2", "x within 9", "t, x within 0", "k, flag count 1"],
    False: ["u count 3", "a, flag count 5", "x count 2"],
}
"""Duplicates where there is a clock, and where there is none."""


@st.composite
def batched_cases(draw: st.DrawFn) -> WindowCase:
    """Any clause of batched windows but ``retain all``, most with several of its parts."""
    within = draw(st.none() | st.sampled_from([1, 2, 3, 5, Fraction(5, 2)]).map(Fraction))
    spec = Batched(
        within=within,
        every=draw(st.none() | st.integers(1, 4 if within is None else 3)),
        retain=draw(st.integers(1, 4)) if within is None else draw(st.none() | st.integers(1, 3)),
        unique=draw(st.sampled_from([None, "x", "x", "flag", "u"])),
        partition_by=draw(st.sampled_from([(), ("u",), ("u",), ("flag", "u")])),
    )
    return str(spec), T if within is not None else draw(st.sampled_from([T, ARRIVAL])), {}


@dataclass(frozen=True)
class Cut:
    """A log that is cut.

    ``draw``: of what else a road needs.
    ``places``: the rows before which it is cut, ascending.
    ``rows``, ``weights``: how many rows of the total order a slice has, or shares of them.
    ``window``, ``options``: as of `wincli.aggregate`.
    ``plan``, ``marks``: the same as the engine takes them.
    """

    draw: Callable[[st.SearchStrategy[Any]], Any]
    table: pa.Table
    places: list[int]
    rows: int
    weights: list[int] | None
    window: str
    options: dict[str, Any]
    plan: Plan
    marks: str

    @property
    def parts(self) -> list[pa.Table]:
        return [self.table.slice(low, high - low) for low, high in pairwise([0, *self.places, len(self.table)])]

    @property
    def source(self) -> MemorySource:
        return MemorySource([self.table], [self.places])

    @property
    def chunks(self) -> list[int]:
        return [*range(1, len(self.places) + 1)]


def in_slices(cut: Cut) -> Result:
    """Slices of some rows: where a key may be cut, it is scanned in segments."""
    cuts = sliced(cut.plan, cut.table, cut.rows, cut.weights)
    return run_in_memory(cut.plan, cut.source, cut.chunks, pa.table({}) if cuts is None else cuts, cut.marks)


def in_files(cut: Cut) -> Result:
    """Files, splits and chunks, and slices between keys."""
    return run_in_memory(cut.plan, *cut.draw(cut_up(cut.table, bool(cut.plan.key))), cut.marks)


def in_relay(cut: Cut) -> Result | None:
    """Chunks of a log that stands in order, each read and scanned once."""
    plan = cut.plan
    if plan.key or plan.takes_marks or plan.kind.needs.overlaps or not can_be_cut(plan) or not len(cut.table):
        return None
    return run_in_memory(plan, cut.source, cut.chunks, None, cut.marks, in_order=in_one_pass)


def in_units(cut: Cut) -> pa.Table:
    runs, parts = IncrementalRuns(cut.plan, cut.marks), cut.parts
    for number, part in enumerate(parts):
        at_end = cut.plan.options.at_end if number == len(parts) - 1 else "hold"
        source, chunks, slices = cut.draw(cut_up(part, bool(cut.plan.key)))
        runs.run(source.tables, source.cuts, at_end, chunks, slices)
    return runs.table


def in_calls(cut: Cut) -> pa.Table:
    state: Any = "new"
    found, parts = [], cut.parts
    with patch("wincli.windowing.state.one_table._PART_BYTES", cut.draw(st.sampled_from([8, 200, 2**20]))):
        for number, part in enumerate(parts):
            at_end = {} if number == len(parts) - 1 else {"at_end": "hold"}
            result, state = wincli.aggregate(part, cut.window, state=moved(state), **cut.options | at_end)
            found.append(result)
    return pa.concat_tables(found)


def moved(state: Any) -> Any:
    """A state as other libraries and Spark give it back: in another order, and in other types of the same values."""
    if isinstance(state, str):
        return state
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, state.schema) as file:
        file.write_table(state.take(pa.array(range(len(state))[::-1])), max_chunksize=2)
    state = pa.ipc.open_stream(written.getvalue()).read_all()
    large = [field.with_type(pa.large_string()) if field.type == pa.string() else field for field in state.schema]
    return state.cast(pa.schema(large))


def in_batches(cut: Cut) -> pa.Table:
    reader = pa.RecordBatchReader.from_batches(cut.table.schema, [b for part in cut.parts for b in part.to_batches()])
    with patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", 1):
        return wincli.aggregate_stream(reader, cut.window, **cut.options).read_all()


ENGINE: Mapping[str, Callable[[Cut], Result | None]] = {
    "slices and segments": in_slices,
    "files and slices of keys": in_files,
    "sorted chunks": in_relay,
}
OTHERS: Mapping[str, Callable[[Cut], pa.Table]] = {
    "units on a state": in_units,
    "calls of the library": in_calls,
    "batches of a stream": in_batches,
}


@examples(600)
@given(
    st.data(), logs(), CASES | CASES | batched_cases(), st.booleans(), st.sampled_from([1, 2, 3, 3, 5]),
    st.none() | st.lists(st.integers(0, 9), min_size=30, max_size=30),
    st.sets(st.sampled_from(sorted(EXPRESSIONS))) | st.just(set()),
)  # fmt: skip
def test_any_cut_on_any_road_gives_the_bits_of_one_scan(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int, weights: list[int] | None,
    expressions: set[str],
) -> None:  # fmt: skip
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    options = data.draw(options_of(case, keyed)) | {name: EXPRESSIONS[name] for name in expressions}
    if "distinct" in expressions:
        options["distinct"] = data.draw(st.sampled_from(DISTINCT[case[1] == T]))
    merges = options["aggregates"] is not None and not (options.get("group_by") and overlaps(case))
    if merges and data.draw(st.booleans()):
        options["aggregates"] = data.draw(st.lists(st.sampled_from(MERGING), unique=True, min_size=1, max_size=6))
    if options["aggregates"] is not None and "let" in expressions:
        options["aggregates"] = [*options["aggregates"], "two=sum(twice + 1)"]
    check_roads(data, table.sort_by("t") if case[1] == T else table, case[0], options, rows, weights)


@examples(200)
@given(
    st.data(), logs(), st.sampled_from([case for case in (*WINDOWS, *MORE) if case[1] == T and not overlaps(case)]),
    st.booleans(), st.sampled_from([1, 2, 3, 5]),
)  # fmt: skip
def test_values_go_on_over_any_cut(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    calls = data.draw(st.lists(st.sampled_from(OVER_TIME), unique=True, min_size=1, max_size=4))
    options = data.draw(options_of(case, keyed)) | {"aggregates": calls, "emit": "aggregates", "group_by": ()}
    check_roads(data, table.sort_by("t"), case[0], options | {"sort_by": ()}, rows, None)


def check_roads(
    data: st.DataObject, table: pa.Table, window: str, options: dict[str, Any], rows: int, weights: list[int] | None
) -> None:
    """Cut a log, and go all roads."""
    plan = plan_of(table, window, options)
    places = data.draw(st.lists(st.integers(0, len(table)), max_size=4).map(sorted))
    marks = "none" if options["marks"] is None else "column:flag"
    cut = Cut(data.draw, table, places, rows, weights and weights[: len(table)], window, options, plan, marks)
    whole = in_order(wincli.aggregate(table, window, **options))
    one = run_in_memory(plan, cut.source, [], None, marks)
    assert same(in_order(one.table), whole), f"one task: {difference(in_order(one.table), whole)}"
    assert one.counts.balanced
    assert (one.counts.rows_in, len(one.rejects)) == (len(table), sum(one.counts.rejected.values()))
    for road, walk in OTHERS.items():
        found = in_order(walk(cut))
        assert same(found, whole), f"{road}: {difference(found, whole)}"
    for road, scan in ENGINE.items():
        result = scan(cut)
        if result is not None:
            # each slice puts the marks of windows that a condition hides behind its windows
            got, want = (each if plan.options.having is None else in_order(each) for each in (result.table, one.table))
            assert same(got, want), f"{road}: {difference(got, want)}"
            assert (road, result.counts, result.falls) == (road, one.counts, one.falls)
            assert same(result.rejects.drop_columns(["file", "line"]), one.rejects.drop_columns(["file", "line"])), road


def plan_of(table: pa.Table, window: str, options: dict[str, Any]) -> Plan:
    """The plan of a call of the library."""
    known = {field.name: options[field.name] for field in fields(Options) if field.name in options}
    known |= {name: parse_expression(known[name]) for name in ("where", "having") if name in known}
    known |= {"distinct": parse_distinct(known["distinct"])} if "distinct" in known else {}
    known |= {"let": tuple(map(parse_let, known.get("let", ())))}
    calls = None if options.get("aggregates") is None else [parse_aggregate(text) for text in options["aggregates"]]
    known |= {"windows": options.get("windows", {})}
    return plan_of_case(window, table.schema, options["key"], options["order_by"], calls, known)


@examples(200)
@given(
    st.data(),
    logs(),
    st.sampled_from([case for case in [*WINDOWS, *MORE] if "ends" not in case[2] and "overlapping" not in case[0]]),
    st.booleans(),
    st.booleans(),
)
def test_operators_are_called_as_in_one_scan(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, asks: bool
) -> None:
    """By units on a state, and by batches of a stream."""
    window, order_by, own = case
    evicts = any(word in window for word in ("partitionAge", "partitionCount", "tupleCount"))
    keyed = (keyed or "partitioned" in window) and own.get("empty") != "mark"
    table, end = table.sort_by("t") if order_by == T else table, data.draw(st.sampled_from(["flush", "drop"]))
    options = {"key": ["k"] if keyed else [], "order_by": order_by, "at_end": end, **own}
    options |= data.draw(st.sampled_from([{}, {"distinct": DISTINCT[order_by == T][0]}]))
    asks &= not evicts and (keyed or not own.get("partial"))
    plan = plan_of(table, window, options | {"operator": ASKING if asks else KEEPER})
    check_runs(data, plan, table, keyed, end)
    if "punct()" in window or evicts:
        return
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7))
    more: dict[str, Any] = {**options, "operator": plan.options.operator, "rejected": "drop"}
    streamed = stamped(wincli.aggregate_stream(reader, window, **more).read_all())
    at_once = stamped(wincli.aggregate(table, window, **more))
    assert same(streamed, at_once), difference(streamed, at_once)


def stamped(table: pa.Table) -> pa.Table:
    """Rows in the order of what brought them out, over all batches of a stream."""
    names = [name for name in ("k", "_at", "_turn", "_pos", "_step", "window", "_row") if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: f"{case[0]} {case[2]}")
def test_an_input_without_rows_has_no_panes(case: WindowCase) -> None:
    window, order_by, options = case
    columns = {"id": pa.int64(), "t": pa.timestamp("s"), "a": pa.int32(), "x": pa.float64(), "u": pa.string()}
    columns["till"] = pa.timestamp("s")
    empty = pa.schema([*columns.items(), ("flag", pa.bool_()), ("k", pa.string())]).empty_table()
    for key in (["k"],) if "partitioned" in window else ([], ["k"]):
        result = wincli.aggregate(empty, window, key=key, order_by=order_by, aggregates=AGGREGATES, **options)
        assert len(result) == 0
