"""Batched windows of all clauses together, keyed and not, cut at random, between tasks and between nights.

partition by u within 5 every 2 retain 2 with unique v

    rows    a b | c d | e    each part is scanned on from what the parts before it hold;
    nights  a b c | d e      together they give the lots of the reference, row for row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from references import tumbling as reference
from references.batched import Lot, batched, batched_groups
from support.event_logs import as_files, cut_up
from support.in_memory_engine import MemorySource, Result, run_in_memory
from support.incremental_runs import IncrementalRuns
from support.strategies import examples
from wincli.windowing.engine.range_cuts import PLACE, Samples, SliceBounds, choose_bounds
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.language.spec import Batched
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.scan.segment_scan import can_be_cut

MANY = examples(5 * settings().max_examples // 2)  # test_segments has 400 of these windows and others


# --- what is asked ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """Rows, a window over them, and what of it comes out: ``emit``, or aggregates of groups of ``group_by``."""

    table: pa.Table
    spec: Batched
    key: tuple[str, ...]
    order: tuple[str, ...]
    at_end: str
    emit: str = "aggregates"
    group_by: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        options = Options(emit=self.emit, group_by=self.group_by, at_end=self.at_end)
        calls = [parse_aggregate("ids=collect(id)")] if self.emit == "aggregates" else None
        order_by = list(self.order) or "arrival"
        return make_plan(self.spec, self.table.schema, list(self.key), order_by, calls, options)


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    """Rows on a clock that often stands still, of few keys, parts and values."""
    size = draw(st.integers(0, 30))
    few = draw(st.integers(1, 3))

    def some(values: Sequence[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    return pa.table({
        "id": pa.array(range(size), pa.int64()),
        "t": pa.array(accumulate(some([0, 0, 1, 1, 2, 5])), pa.timestamp("s")),
        "u": pa.array(some("pqr"[:few]), pa.string()),
        "v": pa.array(some([0.0, -0.0, 1.0, 2.0]), pa.float64()),
        "flag": pa.array(some([True, False]), pa.bool_()),
        "k": pa.array(some("ab"), pa.string()),
    })  # fmt: skip


@st.composite
def windows(draw: st.DrawFn) -> Batched:
    """Any clause but ``retain all``, most with several of them."""
    within = draw(st.none() | st.sampled_from([1, 2, 3, 5, Fraction(5, 2)]).map(Fraction))
    spec = Batched(
        within=within,
        every=draw(st.none() | st.integers(1, 4 if within is None else 3)),
        retain=draw(st.integers(1, 4)) if within is None else draw(st.none() | st.integers(1, 3)),
        unique=draw(st.sampled_from([None, "v", "v", "flag", "u"])),
        partition_by=draw(st.sampled_from([(), ("u",), ("u",), ("flag", "u")])),
    )
    parsed = parse_window(str(spec))
    assert isinstance(parsed, Batched)
    return parsed


@st.composite
def jobs(draw: st.DrawFn, emits: Sequence[str] = ("aggregates",)) -> Job:
    table, spec = draw(logs()), draw(windows())
    key = draw(st.sampled_from([(), ("k",)]))
    order = ("t",) if spec.within is not None else draw(st.sampled_from([(), ("t",)]))
    emit = draw(st.sampled_from(emits))
    group_by = ("flag",) if emit == "groups" else ()
    at_end = draw(st.sampled_from(["flush", "drop"]))
    return Job(table, spec, key, order, at_end, "aggregates" if group_by else emit, group_by)


# --- both sides ---------------------------------------------------------------------------------------------------


Out = tuple[Any, ...]


def by_reference(job: Job) -> list[Out]:
    """Key, number and close reason of each lot, its group, and the rows that are told of it."""
    rows = reference.read(job.table)
    names = ("within", "every", "retain", "unique", "partition_by")
    lots = batched(
        rows,
        **{name: getattr(job.spec, name) for name in names},
        key=job.key,
        order=job.order,
        clock_kind=job.table["t"].type,
        at_end=job.at_end,  # type: ignore[arg-type]
    )
    if job.group_by:
        lots = batched_groups(lots, rows, job.group_by)
    told = [(*lot.key, lot.number, str(lot.closed_by), lot.group or (), told_of(lot, job.emit)) for lot in lots]
    return sorted(one for one in told if job.emit in ("aggregates", "rows") or one[-1])


def told_of(lot: Lot, emit: str) -> tuple[int, ...]:
    return {"aggregates": lot.rows, "rows": lot.rows, "entered": lot.entered, "left": lot.left}[emit]


def by_engine(job: Job, table: pa.Table) -> list[Out]:
    table = table.filter(pa.compute.is_valid(table["window"]))
    names = [*job.key, "window", "closed_by"]
    columns = [table[name].to_pylist() for name in names]
    groups = [tuple(group.values()) for group in table.select(list(job.group_by)).to_pylist()]
    groups = groups or [()] * len(table)
    if job.emit == "aggregates":
        ids = [tuple(found or ()) for found in table["ids"].to_pylist()]
        return sorted(zip(*columns, groups, ids, strict=True))
    by_window = groupby(zip(zip(*columns, groups, strict=True), table["id"].to_pylist(), strict=True), lambda r: r[0])
    return sorted((*one, tuple(id_ for _, id_ in rows if id_ is not None)) for one, rows in by_window)


# --- cut at random ------------------------------------------------------------------------------------------------


def cut_at(plan: Plan, table: pa.Table, weights: Sequence[int], count: int) -> SliceBounds | None:
    """Cuts into so many slices of rows that weigh differently, in keys too."""
    names = list(dict.fromkeys([*plan.key, *plan.sort]))
    columns = [*table.select(names).columns, pa.array(range(len(table)), pa.int64())]
    samples = Samples(pa.Table.from_arrays(columns, names=[*names, PLACE]), np.array(weights, np.float64) + 0.01)
    return choose_bounds(samples, plan.key, count, can_be_cut(plan))


@MANY
@given(st.data(), jobs(("aggregates", "aggregates", "rows")))
def test_segments_of_keys_give_the_batches_of_the_reference(data: st.DataObject, job: Job) -> None:
    plan, size = job.plan, len(job.table)
    source, chunks = as_files(data.draw, job.table)
    weights = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    cuts = cut_at(plan, job.table, weights, data.draw(st.integers(2, 9)))
    event(f"cut in keys: {cuts is not None and bool(cuts.inside.any())}")
    cut = run_in_memory(plan, source, chunks, pa.table({}) if cuts is None else cuts, "none")
    assert by_engine(job, cut.table) == by_reference(job)
    assert_accounted(job, cut)


@MANY
@given(st.data(), jobs(("aggregates", "groups", "rows", "entered", "left")))
def test_incremental_runs_give_the_batches_of_the_reference(data: st.DataObject, job: Job) -> None:
    places = data.draw(st.lists(st.integers(0, len(job.table)), max_size=6).map(sorted))
    nights = IncrementalRuns(job.plan, "none")
    for i, (low, high) in enumerate(pairwise([0, *places, len(job.table)])):
        source, chunks, slices = data.draw(cut_up(job.table.slice(low, high - low), bool(job.key)))
        nights.run(source.tables, source.cuts, job.at_end if i == len(places) else "hold", chunks, slices)
    assert by_engine(job, nights.table) == by_reference(job)


def test_retained_row_of_one_partition_stays_in_every_segment() -> None:
    #   row       1   2   3   4  ...  699
    #   part a   [1 ---------------------       retain 1: row 1 stays
    #   part b       [2] [3] [4] ... [699]      each row drives out the one before
    #   panes     1  1 2 1 3 1 4 ...  1 699
    table = pa.table({
        "id": range(1, 700), "t": pa.array([0] * 699, pa.timestamp("s")), "u": ["a", *"b" * 698], "k": ["k"] * 699,
        "v": [0, 0, *(1 + n % 2 for n in range(3, 700))], "flag": [True] * 699,
    })  # fmt: skip
    spec = parse_window("partition by u retain 1 with unique v")
    assert isinstance(spec, Batched)
    job = Job(table, spec, (), (), "flush")
    cuts = cut_at(job.plan, table, [1] * 699, 10)
    assert cuts is not None
    assert cuts.inside.all()
    cut = run_in_memory(job.plan, MemorySource([table], [[200]]), [1], cuts, "none")
    assert cut.table["ids"].to_pylist() == [[1], *([1, n] for n in range(2, 700))]


def test_state_with_a_column_of_hidden_rows_is_restored() -> None:
    """Up to 0.4.1 rows of a state had a column for that, and other parts hid, too: now the rows themselves tell."""
    #   run      first          second
    #   t        1      2       3
    #   part a   [1 ---------------
    #   part b          [2]     [3]
    #   panes    1      1 2     1 3
    clock = pa.array([1, 2, 3], pa.timestamp("s"))
    table = pa.table({"id": [1, 2, 3], "t": clock, "u": ["a", "b", "b"], "v": [0, 0, 1]})
    spec = parse_window("partition by u retain 1 with unique v")
    assert isinstance(spec, Batched)
    nights = IncrementalRuns(Job(table, spec, (), ("t",), "flush").plan, "none")
    nights.run([table.slice(0, 2)], [[]], "hold", [], None)
    assert nights.files is not None
    for part in nights.files.parts("rows"):
        rows = nights.files.tables[part.name]
        nights.files.tables[part.name] = rows.append_column("__gone", pa.array([True, False]))
    nights.run([table.slice(2)], [[]], "flush", [], None)
    assert nights.table["ids"].to_pylist() == [[1], [1, 2], [1, 3]]


def assert_accounted(job: Job, cut: Result) -> None:
    whole = run_in_memory(job.plan, MemorySource([job.table], [[]]), [], None, "none")
    assert cut.counts == whole.counts
