"""What tasks do with the batches of a partition, without Spark: they pickle, and give the windows of the table."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.strategies import examples
from support.stream_cases import is_by_key, options_of
from support.table_equality import difference, in_order, same
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.arguments import plan_of_call
from wincli.windowing.dataframes.layout import Layout, layout_of, place_names
from wincli.windowing.dataframes.partition_scan import (
    BEFORE,
    CLOCK,
    FOUND,
    IN_STRUCT,
    PART_IN,
    STATE_IN,
    FindClock,
    FirstRegisters,
    Prepare,
    ScanPartition,
)
from wincli.windowing.dataframes.windows import union_schema
from wincli.windowing.errors import ConfigError
from wincli.windowing.planning.plan import Plan
from wincli.windowing.state.one_table import NO_KEY, PART, REGISTERS
from wincli.windowing.streaming.kept_state import form_of
from wincli.windowing.streaming.keyed_scan import COARSE_BITS, PART_OF, STATE_OF

CASES = st.sampled_from([*WINDOWS, *MORE])
LOG = pa.table({"k": ["a", "a", "b", "b", "b"], "t": [0, 7, 1, 2, 30], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})


def plan_for(window: str, schema: pa.Schema, **options: Any) -> Plan:
    return plan_of_call(schema, {"key": "k", "order_by": "t", "aggregates": None, **options, "window": window})


class Partitions:
    """Stands for Spark: it lays rows and states out in partitions, runs a task over each, and takes rows apart.

    ``buckets``: those of the keys. ``batch``: the rows of a batch. ``seed``: of the order in which rows come.
    """

    def __init__(
        self, plan: Plan, layout: Layout, arrival: str | None, buckets: dict[str, int], batch: int, seed: int
    ) -> None:
        self.plan, self.layout, self.buckets, self.batch, self.seed = plan, layout, buckets, batch, seed
        self.form = form_of(plan)
        mark = "flag" if plan.takes_marks else None
        self.schema = pa.schema([plan.projection.schema.field(name) for name in layout.columns])
        clock = [pa.field(CLOCK, pa.int64())] if layout.clock else []
        self.task = ScanPartition(plan, pa.schema([*self.schema, *clock]), plan.schema, "drop", layout, arrival, mark)

    def run(self, new: pa.Table) -> pa.Table:
        """The result without a state."""
        return pa.concat_tables(self.scanned(self.task, self.with_clock(new, new)))

    def go_on(self, new: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        """The result and the state of one call. ``state``: that of the call before; None: the first."""
        registers = self.first_registers(state)
        by_key = self.layout.by_key
        held = (registers if state is None else state) if not by_key or state is not None else None
        if held is not None and by_key:
            held = held.filter(pc.field(PART) != NO_KEY)
        rows = self.with_clock(self.mixed(new.select(self.layout.columns), held), new)
        if by_key and state is not None:
            found = registers.filter(pc.field(PART) == NO_KEY)[REGISTERS].combine_chunks()
            rows = rows.append_column(BEFORE, found.take(pa.array(np.zeros(len(rows), np.int64))))
        task = replace(self.task, form=self.form, result=union_schema(self.plan.schema, self.form))
        both = pa.concat_tables(self.scanned(task, rows))
        result = both.filter(pc.is_null(both[PART_OF])).select(self.plan.schema.names)
        left = both.filter(pc.is_valid(both[PART_OF]))
        fields_of = dict(zip(IN_STRUCT, left[STATE_OF].combine_chunks().flatten(), strict=True))
        after = pa.table({**{name: left[name] for name in self.plan.key}, PART: left[PART_OF], **fields_of})
        return result, pa.concat_tables([after, registers]) if by_key else after

    def first_registers(self, state: pa.Table | None) -> pa.Table:
        one = pa.record_batch({"id": [0]})
        if state is not None:
            one = found_registers(state.filter(pc.field(PART) == NO_KEY)[REGISTERS].combine_chunks())
        return pa.Table.from_batches(FirstRegisters(self.form, self.form.schema)([one]))

    def mixed(self, new: pa.Table, held: pa.Table | None) -> pa.Table:
        """New rows and those of a state."""
        if held is None:
            return new
        structs = pa.StructArray.from_arrays([held[name].combine_chunks() for name in IN_STRUCT], list(IN_STRUCT))
        columns = {name: held[name] for name in self.plan.key} | {PART_IN: held[PART], STATE_IN: structs}
        schema = new.schema.append(pa.field(PART_IN, pa.int64())).append(pa.field(STATE_IN, structs.type))
        both = [new.to_pylist(), pa.table(columns).to_pylist()]
        arrays = [pa.array([row.get(field.name) for part in both for row in part], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def with_clock(self, rows: pa.Table, new: pa.Table) -> pa.Table:
        if not self.layout.clock:
            return rows
        task = FindClock(self.plan, self.schema, pa.schema({CLOCK: pa.int64()}), "drop")
        found = [
            row[CLOCK] for batch in task(new.select(self.layout.columns).to_batches()) for row in batch.to_pylist()
        ]
        return rows.append_column("clock", pa.array([found[0] if found else None] * len(rows), pa.int64()))

    def scanned(self, task: ScanPartition, rows: pa.Table) -> list[pa.Table]:
        """What a task makes of partitions that are sorted as Spark sorts them, with columns called by their places."""
        rows = rows.take(pa.array(np.random.default_rng(self.seed).permutation(len(rows))))
        is_held = pc.is_valid(rows[PART_IN]) if PART_IN in rows.column_names else pa.nulls(len(rows), pa.bool_())
        held = np.array(is_held.fill_null(False).to_pylist(), np.bool_)
        if not self.layout.by_key:
            by = ["first", *self.layout.order, *self.layout.ties]
            first = rows.append_column("first", pa.array(np.where(held, 0, 1)))
            parts = [first.sort_by([(name, "ascending") for name in by]).drop_columns(["first"])]
        else:
            bucket = np.array([self.buckets[key] for key in rows["k"].to_pylist()], np.int64)
            steps = rows[self.layout.order[0]].cast(pa.int64()).fill_null(0).to_numpy()
            codes = (bucket << COARSE_BITS) + np.where(held, -(1 << (COARSE_BITS - 1)), steps // 3)
            rows = rows.append_column("code", pa.array(codes))
            parts = [rows.filter(pa.array(bucket % 2 == side)).sort_by("code") for side in (0, 1)]
        places = dict(zip(self.layout.columns, place_names(len(self.layout.columns)), strict=True))
        parts = [part.rename_columns([places.get(name, name) for name in part.column_names]) for part in parts]
        task = pickle.loads(pickle.dumps(task))
        batches = [task(part.to_batches(self.batch)) if len(part) else [] for part in parts]
        return [pa.Table.from_batches(each, task.result) for each in batches]


def found_registers(registers: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({FOUND: pa.ListArray.from_arrays(pa.array([0, len(registers)], pa.int32()), registers)})


@examples(130, deadline=None)
@given(st.data(), logs(), CASES, st.booleans(), st.integers(1, 9), st.booleans())
def test_parts_give_the_windows_of_the_table(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, batch: int, has_arrival: bool
) -> None:
    """Whatever the partitions and batches, with states and without; other columns decide where none is the arrival."""
    options = data.draw(options_of(case, keyed or "partitioned" in case[0]))
    bound = "within 3" if case[1] == ["t"] else "count 3"
    options |= data.draw(st.sampled_from([{}, {}, {"distinct": f"u {bound}"}, {"distinct": "x, flag count 2"}]))
    arrival = "pos" if has_arrival or case[1] != ["t"] else None
    if arrival:
        table = table.append_column("pos", pa.array(np.arange(len(table))))
    plan = plan_for(case[0], table.schema, **options)
    layout = layout_of(plan, arrival, "flag" if plan.takes_marks else None, has_state=True)
    assert layout.by_key == (is_by_key(case) and bool(options["key"]))
    if case[1] == ["t"]:
        ties = [arrival] if arrival else [name for name in layout.ties if name != "t"]
        table = table.sort_by([(name, "ascending") for name in ("t", *ties)])
    if arrival:
        table = table.set_column(table.column_names.index("pos"), "pos", pa.array(np.arange(len(table))))
    buckets = dict(zip("abcd", data.draw(st.lists(st.integers(-2, 2), min_size=4, max_size=4)), strict=True))
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=3).map(sorted))
    whole = in_order(wincli.aggregate(table, case[0], **options))
    with (
        patch("wincli.windowing.streaming.keyed_scan._MOST_HELD", data.draw(st.sampled_from([0, 3, 100]))),
        patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", batch),
        patch("wincli.windowing.state.one_table._PART_BYTES", 200),
    ):
        at_once = in_order(Partitions(plan, layout, arrival, buckets, 1000, batch).run(table))
        one, state, results = in_order(Partitions(plan, layout, arrival, buckets, batch, 0).run(table)), None, []
        for low, high in pairwise([0, *cuts, len(table)]):
            at_end = options["at_end"] if len(results) == len(cuts) else "hold"
            held = plan_for(case[0], table.schema, **options | {"at_end": at_end})
            result, state = Partitions(held, layout, arrival, buckets, batch, 1).go_on(table[low:high], state)
            results.append(result)
    for found in (one, in_order(pa.concat_tables(results))):
        assert same(found, at_once), difference(found, at_once)
    if arrival is None and layout.by_key:  # positions number the rows of each key
        whole, at_once = (
            each.drop_columns([name for name in ("_pos",) if name in each.column_names]) for each in (whole, at_once)
        )
    assert same(at_once, whole), difference(at_once, whole)


def test_the_clock_is_the_largest_of_the_rows_that_the_window_sees() -> None:
    plan = plan_for("time(5)", LOG.schema, where="x < 5")
    task = FindClock(plan, LOG.schema, pa.schema({CLOCK: pa.int64()}), "drop")
    assert pa.Table.from_batches(task(LOG.to_batches())).to_pylist() == [{CLOCK: 7}]
    assert list(task([])) == []


def test_rows_are_prepared_with_the_columns_that_are_moved() -> None:
    plan = plan_for("count(2)", LOG.schema, key="u", let="u=upper(k)", where="x <> 2", aggregates="sum(x)")
    result = pa.schema({"u": pa.string(), "x": pa.float64()})
    found = pa.Table.from_batches(Prepare(plan, LOG.schema, result, "error")(LOG.to_batches()))
    assert found.to_pylist() == [{"c0": name, "c1": x} for name, x in zip("ABBB", [1.0, 3.0, 4.0, 5.0], strict=True)]


def test_registers_of_another_job_are_refused() -> None:
    log = pa.table({"k": ["a"], "t": [1]})
    one, other = (form_of(plan_for(window, log.schema)) for window in ("delta(t, 1)", "delta(t, 2)"))
    written = pa.Table.from_batches(FirstRegisters(one, one.schema)([pa.record_batch({"id": [0]})]))
    found = written[REGISTERS].combine_chunks()
    with pytest.raises(ConfigError, match=r"its window is tumbling, delta\(t, 1\), not tumbling, delta\(t, 2\)"):
        list(FirstRegisters(other, other.schema)([found_registers(found)]))
    with pytest.raises(ConfigError, match="the state has no registers"):
        list(FirstRegisters(one, one.schema)([found_registers(found[:0])]))
