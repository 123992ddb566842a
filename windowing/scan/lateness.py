"""Lateness of rows by the watermark: one watermark for all keys, while keys stay apart (semantics section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..clock.values import clock_values
from ..clock.watermark import NO_LEVEL, Lateness, Watermarks, highest, in_order, rises, watermarks_at
from ..columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ..columns.numeric import overflows
from ..kinds.signals import Signals
from ..planning.plan import Plan
from ..sequences.marks import no_marks
from ..sequences.sequence import Sequences, order_of
from ..state.state_types import StateTypes


@dataclass(frozen=True, slots=True)
class LatenessResult:
    """The lateness of some rows.

    ``late``: bool (n,), which rows are too late for any pane.
    ``watermarks``: the advances of the watermark.
    ``watermark``: the watermark after the rows, as a reading; None: no row yet, or rows ordered by event time.
    """

    late: Mask
    watermarks: Watermarks
    watermark: ClockValue | None = None


def is_read_in_order(plan: Plan) -> bool:
    """Whether rows are read in arrival order, and the watermark takes every rise: then no global pass is needed."""
    return not plan.sort and not plan.options.min_gap


def is_ordered_by_time(plan: Plan) -> bool:
    """Whether rows are ordered by event time, so that nothing is ever late."""
    return bool(plan.order.columns)


def event_times(plan: Plan, rows: pa.RecordBatch | pa.Table) -> tuple[Measures, Ints]:
    """Return the usable event times, and the indices of their rows, int64."""
    name = plan.options.event_time
    assert name is not None
    column = combined(rows.column(name))
    is_usable = column.is_valid().to_numpy(zero_copy_only=False)
    is_overflow = overflows(column)
    values = clock_values(column, name)
    if values.dtype.kind == "f":
        is_usable = is_usable & np.isfinite(values)
    places = np.flatnonzero(is_usable if is_overflow is None else is_usable & ~is_overflow)
    return values[places], places


def highest_reading(plan: Plan, rows: pa.RecordBatch | pa.Table) -> ClockValue | None:
    """Return the highest reading of some rows: all that a watermark without ``--min-gap`` needs of them."""
    values, _ = event_times(plan, rows)
    return highest(lateness_of(plan, rows).readings(values))


def assess(plan: Plan, announced: ClockValue | None, rows: pa.RecordBatch, pos: Ints) -> LatenessResult:
    """Advance the watermark over rows in the order they were read, and find the late ones.

    ``announced``: the watermark before them, as a reading; None: no row yet. ``pos``: int64 (n,), arrival positions.
    """
    lateness = lateness_of(plan, rows)
    watermark = None
    values, places = event_times(plan, rows)
    late = np.zeros(rows.num_rows, np.bool_)
    if is_ordered_by_time(plan):
        ascending = order_of([rows.column(name).take(pa.array(places)) for name in plan.sort])
        values, places = values[ascending], places[ascending]
        listed, level = lateness.list_advances_in_order(values)
    else:
        path = lateness.advance(values, announced)
        late[places] = lateness.beyond_repair(values, path)
        listed, level = lateness.list_advances(values, path)
        watermark = path.final
    order = rows.select(list(plan.sort))
    return LatenessResult(late, watermarks_at(order, pos, places[listed], level), watermark)


def merged_watermarks(plan: Plan, parts: Sequence[Watermarks]) -> Watermarks:
    """Merge the advances of parts of the rows in order; where nothing is late, keep only those that rise."""
    merged = in_order(parts)
    return rises(merged) if is_ordered_by_time(plan) else merged


def lateness_of(plan: Plan, rows: pa.RecordBatch | pa.Table) -> Lateness:
    """Return the lag, gap and discard age of the window in the unit of its event-time column."""
    dtype = rows.schema.field(plan.options.event_time).type
    return plan.kind.lateness(dtype, plan.options.lag, plan.options.min_gap)


def clock_column(plan: Plan) -> str | None:
    """Return the column that the clock at the end of a run is a measure of; None: the window has no clock."""
    return plan.sort[0] if plan.kind.needs_clock and plan.sort else None


def retyped_watermark(plan: Plan, types: StateTypes, watermark: ClockValue | None) -> ClockValue | None:
    """Return a watermark of a state, a reading, in the type that the event time has now.

    Where that was ticks and is a float now, a reading has the lag taken off. Raises `ConfigError` as
    `StateTypes.measure` does.
    """
    name = plan.options.event_time
    value = types.measure(name, watermark)
    if isinstance(value, float) and isinstance(watermark, int):
        lateness = plan.kind.lateness(types.now.field(name).type, plan.options.lag, plan.options.min_gap)
        return highest(lateness.readings(np.array([value])))
    return value


def no_watermarks(rows: pa.RecordBatch, order: Sequence[str]) -> Watermarks:
    """Return an empty list of advances."""
    return Watermarks(no_marks(rows, order), np.empty(0, np.int64))


def relevant_advances(watermarks: Watermarks, last_closed: int) -> Watermarks:
    """Return the advances that panes after ``last_closed`` depend on, and the one before these advances."""
    first = max(0, int(np.searchsorted(watermarks.level, last_closed, side="right")) - 1)
    picks: Ints = np.arange(first, len(watermarks))
    return Watermarks(watermarks.marks.take(picks), watermarks.level[picks])


def last_closed(plan: Plan, sequences: Sequences, signals: Signals, watermark: ClockValue | None) -> int:
    """Return the last event-time pane that no row can enter any more.

    ``watermark``: after all rows, as a reading; None: no row yet, or rows ordered by event time.
    """
    if signals.watermarks is None:
        return NO_LEVEL
    if is_ordered_by_time(plan):
        return int(signals.watermarks.level[-1]) if len(signals) else NO_LEVEL
    return NO_LEVEL if watermark is None else lateness_of(plan, sequences.rows).last_closed(watermark)
