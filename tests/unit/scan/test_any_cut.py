"""One law for all cuts: however rows are divided, on whatever road, the answer is that of one scan, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs, sliced
from support.in_memory_engine import MemorySource, Result, in_one_pass, run_in_memory
from support.incremental_runs import IncrementalRuns
from support.strategies import examples
from support.stream_cases import in_order, options_of
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, T, WindowCase
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.scan.segment_scan import can_be_cut


@dataclass(frozen=True)
class Cut:
    """A log that is cut.

    ``places``: the rows before which it is cut, ascending.
    ``rows``, ``weights``: how many rows of the total order a slice has, or shares of them.
    ``window``, ``options``: as of `wincli.aggregate`.
    ``plan``, ``marks``: the same as the engine takes them.
    """

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
        runs.run([part], [[]], at_end, [], None)
    return runs.table


def in_calls(cut: Cut) -> pa.Table:
    state: Any = "new"
    found, parts = [], cut.parts
    for number, part in enumerate(parts):
        at_end = {} if number == len(parts) - 1 else {"at_end": "hold"}
        result, state = wincli.aggregate(part, cut.window, state=state, **cut.options | at_end)
        found.append(result)
    return pa.concat_tables(found)


def in_batches(cut: Cut) -> pa.Table:
    reader = pa.RecordBatchReader.from_batches(cut.table.schema, [b for part in cut.parts for b in part.to_batches()])
    with patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", 1):
        return wincli.aggregate_stream(reader, cut.window, **cut.options).read_all()


ENGINE: Mapping[str, Callable[[Cut], Result | None]] = {"slices and segments": in_slices, "sorted chunks": in_relay}
OTHERS: Mapping[str, Callable[[Cut], pa.Table]] = {
    "units on a state": in_units,
    "calls of the library": in_calls,
    "batches of a stream": in_batches,
}


@examples(500)
@given(
    st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans(), st.sampled_from([1, 3, 3, 5]),
    st.none() | st.lists(st.integers(0, 9), min_size=30, max_size=30),
)  # fmt: skip
def test_any_cut_on_any_road_gives_the_bits_of_one_scan(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int, weights: list[int] | None
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    options = data.draw(options_of(case, keyed))
    table = table.sort_by("t") if case[1] == T else table
    known = {field.name for field in fields(Options)}
    calls = None if options["aggregates"] is None else [parse_aggregate(text) for text in options["aggregates"]]
    plan = make_plan(
        parse_window(case[0]), table.schema, options["key"], options["order_by"], calls,
        Options(**{name: value for name, value in options.items() if name in known}),
    )  # fmt: skip
    places = data.draw(st.lists(st.integers(0, len(table)), max_size=4).map(sorted))
    marks = "none" if options["marks"] is None else "column:flag"
    cut = Cut(table, places, rows, weights and weights[: len(table)], case[0], options, plan, marks)
    whole = in_order(wincli.aggregate(table, case[0], **options))
    one = run_in_memory(plan, cut.source, [], None, marks)
    assert same(in_order(one.table), whole), f"one task: {difference(in_order(one.table), whole)}"
    for road, walk in OTHERS.items():
        found = in_order(walk(cut))
        assert same(found, whole), f"{road}: {difference(found, whole)}"
    for road, scan in ENGINE.items():
        result = scan(cut)
        if result is not None:
            assert same(result.table, one.table), f"{road}: {difference(result.table, one.table)}"
            assert (road, result.counts, result.falls) == (road, one.counts, one.falls)
            assert same(result.rejects, one.rejects), road
