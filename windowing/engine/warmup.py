"""Compile every kernel a run needs, on the driver, before workers start: they then load them from the cache."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates import warm as warm_aggregates
from ..language.spec import Delta, TimeInterval, Tumbling, needs_clock
from ..planning.plan import Plan, panes_only
from ..scan.lateness import assess, merged_watermarks
from ..scan.preaggregate import can_preaggregate, preaggregate, preaggregated_plan
from ..scan.scan import RunExtent, scan
from ..scan.signals import watermark_signals, window_marks
from ..segments.segment_scan import entry_states, exit_through, summarise
from ..segments.summary import can_be_cut
from ..sequences.marks import no_marks
from ..sequences.sequence import Sequences, build, merge


def warm(plan: Plan, schema: pa.Schema) -> None:
    """Run the code of a plan on three rows of the types of its input, whose columns are ``schema``.

    A few milliseconds when the kernels are in numba's cache, seconds the first time. User functions are not called.
    """
    bare = panes_only(plan) if plan.options.operator else _without_aggregates(plan)
    rows = pa.RecordBatch.from_arrays([_three(schema.field(name).type) for name in plan.columns], names=plan.columns)
    sequences = build(rows, np.arange(3), plan.key, plan.sort, plan.values)
    merged = merge([sequences, sequences])
    signals = window_marks(no_marks(merged.rows, plan.sort))
    if isinstance(plan.spec, TimeInterval):
        signals = watermark_signals(merged_watermarks(plan, [assess(plan, None, merged.rows, merged.pos).watermarks]))
    if can_be_cut(plan):
        whole = Sequences(None, np.array([0, len(merged)]), merged.rows, merged.pos, merged.order)
        entry_states(plan, [summarise(plan, whole, signals)[0]] * 2, lambda _, value: exit_through(plan, whole, value))
        if isinstance(plan.spec, Tumbling) and isinstance(plan.spec.policy, Delta):
            exit_through(plan, whole, None)
    scanned = scan(bare, merged, signals, RunExtent(1 if needs_clock(plan.spec) else None))
    deque(scanned.tables, maxlen=0)
    warm_aggregates(plan.aggregates, schema, not isinstance(plan.spec, Tumbling))
    if can_preaggregate(plan, schema):
        then = preaggregated_plan(plan)
        combined = merge([preaggregate(plan, then, part) for part in (sequences, sequences)])
        deque(scan(then, combined, signals, RunExtent(1 if needs_clock(plan.spec) else None)).tables, maxlen=0)


def _without_aggregates(plan: Plan) -> Plan:
    names = [bound.name for bound in plan.aggregates]
    schema = pa.schema([field for field in plan.schema if field.name not in names])
    return replace(plan, aggregates=(), schema=schema)


def _three(dtype: pa.DataType) -> pa.Array:
    """Three values of a type, neither sorted nor all different where 1 is one of its values.

    Nulls of types that neither order rows nor are keys: a key of nothing but nulls would be no key at all.
    """
    if pa.types.is_fixed_size_binary(dtype):
        return pa.array([bytes(dtype.byte_width)] * 3, dtype)
    for texts in (["1", "0", "1"], ["0", "0", "0"]):
        for kind in (pa.int32(), pa.int64(), pa.string()):
            with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
                return pa.array(texts).cast(kind).cast(dtype)
    return pa.nulls(3, dtype)
