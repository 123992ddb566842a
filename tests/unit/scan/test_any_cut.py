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
from support.in_memory_engine import MemorySource, in_one_pass, run_in_memory
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
    ``window``, ``options``: as of `wincli.aggregate`.
    ``plan``, ``marks``: the same as the engine takes them.
    """

    table: pa.Table
    places: list[int]
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


def in_slices(cut: Cut) -> pa.Table:
    """Slices of three rows or so: where a key may be cut, it is scanned in segments."""
    cuts = sliced(cut.plan, cut.table, 3)
    return run_in_memory(cut.plan, cut.source, cut.chunks, pa.table({}) if cuts is None else cuts, cut.marks).table


def in_relay(cut: Cut) -> pa.Table | None:
    """Chunks of a log that stands in order, each read and scanned once."""
    plan = cut.plan
    if plan.key or plan.takes_marks or plan.kind.needs.overlaps or not can_be_cut(plan) or not len(cut.table):
        return None
    return run_in_memory(plan, cut.source, cut.chunks, None, cut.marks, in_order=in_one_pass).table


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


def at_once(cut: Cut) -> pa.Table:
    return run_in_memory(cut.plan, cut.source, [], None, cut.marks).table


ROADS: Mapping[str, Callable[[Cut], pa.Table | None]] = {
    "one task": at_once,
    "slices and segments": in_slices,
    "chunks of a sorted log": in_relay,
    "units on a state": in_units,
    "calls of the library": in_calls,
    "batches of a stream": in_batches,
}


@examples(300)
@given(st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans())
def test_any_cut_on_any_road_gives_the_bits_of_one_scan(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
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
    cut = Cut(table, places, case[0], options, plan, "none" if options["marks"] is None else "column:flag")
    whole = in_order(wincli.aggregate(table, case[0], **options))
    for road, walk in ROADS.items():
        found = walk(cut)
        if found is not None:
            assert same(in_order(found), whole), f"{road}: {difference(in_order(found), whole)}"
