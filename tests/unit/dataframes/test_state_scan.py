"""Tasks that go on from a state: N parts of a table give the windows of the table, whatever the partitions."""

from __future__ import annotations

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
from support.stream_cases import in_order, is_by_key, options_of
from support.table_equality import difference, same
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
    ScanPartition,
)
from wincli.windowing.dataframes.windows import union_schema
from wincli.windowing.errors import ConfigError
from wincli.windowing.planning.plan import Plan
from wincli.windowing.state.one_table import NO_KEY, PART, REGISTERS
from wincli.windowing.streaming.kept_state import StateForm, form_of
from wincli.windowing.streaming.keyed_scan import COARSE_BITS, PART_OF, STATE_OF


def plan_for(window: str, schema: pa.Schema, options: dict[str, Any]) -> Plan:
    return plan_of_call(schema, {**options, "window": window})


class Partitions:
    """Stands for Spark: it lays rows and states out in partitions, runs a task over each, and takes rows apart."""

    def __init__(self, plan: Plan, schema: pa.Schema, layout: Layout, buckets: dict[str, int], batch: int) -> None:
        self.plan, self.layout, self.buckets, self.batch = plan, layout, buckets, batch
        self.form: StateForm = form_of(plan)
        mark = "flag" if plan.takes_marks else None
        schema = pa.schema([schema.field(name) for name in layout.columns])
        task = ScanPartition(plan, schema, plan.schema, "drop", layout, "pos", mark)
        if layout.clock:
            task = replace(task, schema=schema.append(pa.field(CLOCK, pa.int64())))
        self.task = replace(task, form=self.form, result=union_schema(plan.schema, self.form))

    def run(self, new: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        """The result and the state of one call. ``state``: that of the call before; None: the first."""
        new = new.select(self.layout.columns)
        registers = self.first_registers(state)
        by_key = self.layout.by_key
        held = (registers if state is None else state) if not by_key or state is not None else None
        if held is not None and by_key:
            held = held.filter(pc.field(PART) != NO_KEY)
        rows = self.mixed(new, held)
        if self.layout.clock:
            rows = rows.append_column("clock", pa.array([self.clock_of(new)] * len(rows), pa.int64()))
        if by_key and state is not None:
            found = registers.filter(pc.field(PART) == NO_KEY)[REGISTERS].combine_chunks()
            rows = rows.append_column(BEFORE, found.take(pa.array(np.zeros(len(rows), np.int64))))
        places = dict(zip(self.layout.columns, place_names(len(self.layout.columns)), strict=True))
        parts = [part.rename_columns([places.get(n, n) for n in part.column_names]) for part in self.partitions(rows)]
        both = pa.concat_tables(map(self.both, parts))
        result = both.filter(pc.is_null(both[PART_OF])).select(self.plan.schema.names)
        left = both.filter(pc.is_valid(both[PART_OF]))
        fields_of = dict(zip(IN_STRUCT, left[STATE_OF].combine_chunks().flatten(), strict=True))
        after = pa.table({**{name: left[name] for name in self.plan.key}, PART: left[PART_OF], **fields_of})
        return result, pa.concat_tables([after, registers]) if by_key else after

    def first_registers(self, state: pa.Table | None) -> pa.Table:
        task = FirstRegisters(self.form, self.form.schema)
        one = pa.record_batch({"id": [0]})
        if state is not None:
            found = state.filter(pc.field(PART) == NO_KEY)[REGISTERS].combine_chunks()
            one = pa.record_batch({FOUND: pa.ListArray.from_arrays(pa.array([0, len(found)], pa.int32()), found)})
        return pa.Table.from_batches(task([one]))

    def mixed(self, new: pa.Table, held: pa.Table | None) -> pa.Table:
        """New rows and those of a state, in any order."""
        if held is None:
            return new
        structs = pa.StructArray.from_arrays([held[name].combine_chunks() for name in IN_STRUCT], list(IN_STRUCT))
        columns = {name: held[name] for name in self.plan.key} | {PART_IN: held[PART], STATE_IN: structs}
        schema = new.schema.append(pa.field(PART_IN, pa.int64())).append(pa.field(STATE_IN, structs.type))
        both = [new.to_pylist(), pa.table(columns).to_pylist()]
        arrays = [pa.array([row.get(field.name) for part in both for row in part], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def clock_of(self, new: pa.Table) -> int | None:
        task = FindClock(self.plan, new.schema, pa.schema({CLOCK: pa.int64()}), "drop")
        found = [row[CLOCK] for batch in task(new.to_batches()) for row in batch.to_pylist()]
        return found[0] if found else None

    def partitions(self, rows: pa.Table) -> list[pa.Table]:
        """Rows in partitions, sorted as Spark sorts them."""
        is_held = pc.is_valid(rows[PART_IN]) if PART_IN in rows.column_names else pa.nulls(len(rows), pa.bool_())
        if not self.layout.by_key:
            first = rows.append_column("first", pc.if_else(is_held.fill_null(False), 0, 1))
            by = ["first", *self.layout.order, *self.layout.ties]
            return [first.sort_by([(name, "ascending") for name in by]).drop_columns(["first"])]
        bucket = np.array([self.buckets[key] for key in rows["k"].to_pylist()], np.int64)
        steps = rows[self.layout.order[0]].cast(pa.int64()).fill_null(0).to_numpy()
        held = np.array(is_held.fill_null(False).to_pylist(), np.bool_)
        codes = (bucket << COARSE_BITS) + np.where(held, -(1 << (COARSE_BITS - 1)), steps // 3)
        rows = rows.append_column("code", pa.array(codes))
        return [rows.filter(pa.array(bucket % 2 == side)).sort_by("code") for side in (0, 1)]

    def both(self, part: pa.Table) -> pa.Table:
        batches = self.task(part.to_batches(self.batch)) if len(part) else []
        return pa.Table.from_batches(batches, self.task.result)


@examples(60, deadline=None)
@given(st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans(), st.integers(1, 9))
def test_parts_give_the_windows_of_the_table(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, batch: int
) -> None:
    options = data.draw(options_of(case, keyed or "partitioned" in case[0]))
    table = table.append_column("pos", pa.array(np.arange(len(table))))
    table = table.sort_by([("t", "ascending"), ("pos", "ascending")]) if case[1] == ["t"] else table
    table = table.set_column(table.column_names.index("pos"), "pos", pa.array(np.arange(len(table))))
    buckets = dict(zip("abcd", data.draw(st.lists(st.integers(-2, 2), min_size=4, max_size=4)), strict=True))
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=3).map(sorted))
    most = data.draw(st.sampled_from([0, 3, 100]))
    with (
        patch("wincli.windowing.streaming.keyed_scan._MOST_HELD", most),
        patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", batch),
        patch("wincli.windowing.state.one_table._PART_BYTES", 200),
    ):
        found = run_parts(table, cuts, case, options, buckets, batch)
    whole = in_order(wincli.aggregate(table, case[0], **options))
    assert same(found, whole), difference(found, whole)


def run_parts(
    table: pa.Table, cuts: list[int], case: WindowCase, options: dict[str, Any], buckets: dict[str, int], batch: int
) -> pa.Table:
    state, results = None, []
    bounds = [0, *cuts, len(table)]
    for place, (low, high) in enumerate(pairwise(bounds)):
        at_end = options["at_end"] if place == len(bounds) - 2 else "hold"
        plan = plan_for(case[0], table.schema, options | {"at_end": at_end})
        layout = layout_of(plan, "pos", "flag" if plan.takes_marks else None)
        assert layout.by_key == (is_by_key(case) and bool(options["key"]))
        result, state = Partitions(plan, table.schema, layout, buckets, batch).run(table[low:high], state)
        results.append(result)
    return in_order(pa.concat_tables(results))


def test_registers_of_another_job_are_refused() -> None:
    log = pa.table({"k": ["a"], "t": [1]})
    one, other = (form_of(plan_for(window, log.schema, OPTIONS)) for window in ("delta(t, 1)", "delta(t, 2)"))
    written = pa.Table.from_batches(FirstRegisters(one, one.schema)([pa.record_batch({"id": [0]})]))
    found = written[REGISTERS].combine_chunks()
    batch = pa.record_batch({FOUND: pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), found)})
    with pytest.raises(ConfigError, match=r"its window is tumbling, delta\(t, 1\), not tumbling, delta\(t, 2\)"):
        list(FirstRegisters(other, other.schema)([batch]))
    nothing = pa.record_batch({FOUND: pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), found)})
    with pytest.raises(ConfigError, match="the state has no registers"):
        list(FirstRegisters(one, one.schema)([nothing]))


OPTIONS: dict[str, Any] = {"key": "k", "order_by": "t", "aggregates": None}
