"""What the watermark makes of rows: one for all keys, while keys stay apart (semantics section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..clock.values import clock_values
from ..clock.watermark import Lateness, Watermarks, highest, in_order, make_lateness, rises, watermarks_at
from ..columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ..columns.numeric import overflows
from ..language.spec import TimeInterval
from ..planning.plan import Plan
from ..sequences.marks import no_marks
from ..sequences.sequence import order_of


@dataclass(frozen=True, slots=True)
class LatenessResult:
    """What the watermark makes of some rows: which are ``late`` beyond repair, and the advances it lists.

    ``stands``: where it stands after them, a reading; None: no row has come, or rows come by event time.
    """

    late: Mask
    watermarks: Watermarks
    watermark: ClockValue | None = None


def is_read_in_order(plan: Plan) -> bool:
    """Whether rows are read in the order in which a watermark that takes every rise sees them."""
    return not plan.sort and not plan.options.min_gap


def is_ordered_by_time(plan: Plan) -> bool:
    """Whether rows come by event time, so that nothing is ever late."""
    return bool(plan.order.columns)


def event_times(plan: Plan, rows: pa.RecordBatch | pa.Table) -> tuple[Measures, Ints]:
    """Return the event times of the rows that have one, and the places of these rows."""
    name = plan.options.event_time
    assert name is not None
    column = combined(rows.column(name))
    there = column.is_valid().to_numpy(zero_copy_only=False)
    over = overflows(column)
    values = clock_values(column, name)
    if values.dtype.kind == "f":
        there = there & np.isfinite(values)
    places = np.flatnonzero(there if over is None else there & ~over)
    return values[places], places


def rows_summary(plan: Plan, rows: pa.RecordBatch | pa.Table) -> ClockValue | None:
    """All that rows do to a watermark that takes every rise."""
    values, _ = event_times(plan, rows)
    return highest(lateness_of(plan, rows).readings(values))


def assess(plan: Plan, announced: ClockValue | None, rows: pa.RecordBatch, pos: Ints) -> LatenessResult:
    """Let rows, as they were read, raise the watermark, and see which are late."""
    lateness = lateness_of(plan, rows)
    stands = None
    values, places = event_times(plan, rows)
    late = np.zeros(rows.num_rows, np.bool_)
    if is_ordered_by_time(plan):
        ascending = order_of([rows.column(name).take(pa.array(places)) for name in plan.sort])
        values, places = values[ascending], places[ascending]
        listed, level = lateness.list_advances_in_order(values)
    else:
        course = lateness.advance(values, announced)
        late[places] = lateness.beyond_repair(values, course)
        listed, level = lateness.list_advances(values, course)
        stands = course.final
    order = rows.select(list(plan.sort))
    return LatenessResult(late, watermarks_at(order, pos, places[listed], level), stands)


def merged_watermarks(plan: Plan, parts: Sequence[Watermarks]) -> Watermarks:
    """Put the advances that parts of the rows list in order; where nothing is late, only those that count."""
    found = in_order(parts)
    return rises(found) if is_ordered_by_time(plan) else found


def lateness_of(plan: Plan, rows: pa.RecordBatch | pa.Table) -> Lateness:
    """The window's lag, gap and discard age on the type of its event-time column."""
    assert isinstance(plan.spec, TimeInterval)
    dtype = rows.schema.field(plan.options.event_time).type
    return make_lateness(dtype, plan.spec, plan.options.lag, plan.options.min_gap)


def no_watermarks(rows: pa.RecordBatch, order: Sequence[str]) -> Watermarks:
    """An empty list of advances."""
    return Watermarks(no_marks(rows, order), np.empty(0, np.int64))
