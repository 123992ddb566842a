"""Compile every kernel that a run needs on the driver, before workers start: these then load kernels from the cache."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates.table import warm as warm_aggregates
from ..emit.aggregate_rows import merging_plan
from ..kinds.context import Signals, watermark_signals, window_marks
from ..kinds.segment_summary import EntryState, Passage
from ..planning.plan import Plan, panes_only
from ..rows.marks import no_marks
from ..rows.merge import merge
from ..rows.sequence import Sequences, build
from ..scan.continue_scan import End, continue_scan
from ..scan.lag_rows import OrderedRows, with_lag_columns
from ..scan.row_validation import assess, merged_watermarks
from ..scan.scan import can_preaggregate, preaggregate
from ..scan.segment_scan import (
    can_be_cut,
    carry_behind,
    continued_before,
    entry_carry,
    scan_segment,
    sends_partials,
    window_part,
)
from ..state.carry import Carry
from .segments import tumbling


def warm(plan: Plan, schema: pa.Schema) -> None:
    """Run a plan on three rows that have the types of ``schema``, the columns of its input.

    Takes a few milliseconds when the kernels are in numba's cache, seconds the first time. Calls no user function.
    """
    kernel_plan = panes_only(plan) if plan.options.operator else _without_aggregates(plan)
    rows = pa.RecordBatch.from_arrays(
        [_three_values(schema.field(name).type) for name in plan.columns], names=plan.columns
    )
    read = build(rows, np.arange(3), plan.key, plan.sort, plan.read_values)
    sequences = with_lag_columns(plan, read).sequences
    merged = merge([sequences, sequences])
    signals = _signals(plan, merged)
    if can_be_cut(plan):
        # a segment that may come after itself: its first row is not before its last
        key = None if merged.keys is None else merged.keys.slice(0, 1)
        one = Sequences(key, np.array([0, 1]), merged.rows.slice(0, 1), merged.pos[:1], merged.order)
        has_order = not any(pa.types.is_null(one.rows.schema.field(name).type) for name in plan.sort)  # else no rows
        if plan.kind.needs.is_chained:
            carry_behind(plan, carry_behind(plan, Carry(), one, signals), one, signals)
        elif (entry := _entry_state(plan, one)).before and has_order and sends_partials(plan, schema):
            own = plan
            if any(bound.is_user_function for bound in plan.aggregates):
                others = tuple(bound for bound in plan.aggregates if not bound.is_user_function)
                own = replace(_without_aggregates(plan), aggregates=others)
            standing, continued = continued_before(own, [window_part(own, one, 0)], entry.value, one)
            deque(scan_segment(own, entry_carry(own, entry, standing, one, continued), one, signals, End()).tables, 0)
    end = End(1 if plan.uses_clock else None)
    deque(continue_scan(kernel_plan, OrderedRows(merged), signals, Carry(), end).tables, maxlen=0)
    columns = pa.schema([*schema, *plan.pane_schema])
    warm_aggregates(plan.aggregates, columns, plan.kind.needs.shares_rows)
    if can_preaggregate(plan, schema):
        scan_plan = merging_plan(plan)
        combined = merge([preaggregate(plan, scan_plan, part, signals.marks) for part in (sequences, sequences)])
        deque(continue_scan(scan_plan, OrderedRows(combined), signals, Carry(), end).tables, maxlen=0)


def _entry_state(plan: Plan, one: Sequences) -> EntryState:
    """Return the entry state of a segment that comes after itself."""
    kind, passages = tumbling(plan), list[Passage]()
    if kind.needs.run_through:
        passages.append(kind.pass_through(one, None, plan.context))
        passages.append(kind.pass_through(one, passages[0].value, plan.context))
    _, entry = kind.entry_states([kind.summarise(one, _signals(plan, one), plan.context)] * 2, passages, plan.context)
    return entry


def _signals(plan: Plan, rows: Sequences) -> Signals:
    if plan.kind.needs.watermark:
        return watermark_signals(merged_watermarks(plan, [assess(plan, None, rows.rows, rows.pos).watermarks]))
    return window_marks(no_marks(rows.rows, plan.sort))


def _without_aggregates(plan: Plan) -> Plan:
    """Return a plan without aggregates, but for those that a scan computes over all its panes."""
    ongoing = tuple(bound for bound in plan.aggregates if bound.holds_on)
    names = {bound.name for bound in plan.aggregates if bound not in ongoing}
    names |= {computed.name for computed in plan.results}
    schema = pa.schema([field for field in plan.schema if field.name not in names])
    # what is not computed has no condition
    return replace(plan, aggregates=ongoing, results=(), having=None, schema=schema, of_panes=())


def _three_values(dtype: pa.DataType) -> pa.Array:
    """Return three values of a type: neither sorted nor all different, where the type has a value 1.

    Only types that can neither order rows nor be keys get nulls: rows with a null key are rejected, so a key of nulls
    would leave no row to compile for.
    """
    if pa.types.is_fixed_size_binary(dtype):
        return pa.array([bytes(dtype.byte_width)] * 3, dtype)
    for texts in (["1", "0", "1"], ["0", "0", "0"]):
        for kind in (pa.int32(), pa.int64(), pa.string()):
            with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
                return pa.array(texts).cast(kind).cast(dtype)
    return pa.nulls(3, dtype)
