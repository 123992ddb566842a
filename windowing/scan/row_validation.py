"""Which rows windows see, and which no window can place, and why (semantics sections 2 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.grids import FIRST, LAST
from ..clock.interval_grid import clock_values
from ..clock.watermark import NO_LEVEL, Belief, Lateness, Watermarks, highest, in_order, rises, watermarks_at
from ..columns.arrays import (
    ClockValue,
    Ints,
    Mask,
    Measures,
    combined,
    has_nan,
    is_negative,
    is_true,
    measures,
    overflows,
    scale_of,
)
from ..columns.sort_keys import sorts_before
from ..kinds.context import Signals
from ..kinds.lasting import beyond_clock, ends_as_clock
from ..language.joins import BOTH, LEFT, RIGHT, SIDE
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..ports import Batch
from ..rows.marks import Marks, no_marks
from ..rows.sequence import Sequences, order_of
from ..state.state_types import StateTypes
from .rows_ahead import LatestRows, RowsAhead, clocks, is_ahead, latest_rows

Reasons = npt.NDArray[np.object_]
FAILED = "expression_error"
"""The reason of a row for which an expression fails."""


def validate_rows(plan: Plan, rows: pa.RecordBatch, of_lag_columns: bool = False) -> Reasons | None:
    """Return the reject reason of each row (None: kept), or None where all rows are kept.

    The first reason that applies, of ``null_order``, ``null_key`` (null or NaN), ``null_attribute``, ``nan_attribute``,
    ``negative_amount``, ``type_overflow`` and ``inverted_interval`` (it ends before it begins). ``type_overflow`` is a
    value beyond the 64 bit ticks in which distances and clocks are computed, an infinite clock, or in windows with
    dates one beyond the years 1 to 9999. ``of_lag_columns``: whether columns with ``lag``, which come later, say so;
    else all others do.
    """
    late = {column.name for column in plan.lag_columns}
    reasons: Reasons | None = None
    for reason, mask in _violations(plan, rows, lambda name: (name in late) == of_lag_columns):
        if reasons is None:
            reasons = np.full(rows.num_rows, None, np.object_)
        reasons[mask & (reasons == None)] = reason  # noqa: E711 - element by element
    return reasons


def add_late(reasons: Reasons | None, late: Mask, reason: str = "late") -> Reasons | None:
    """Add the reason ``late`` to reject reasons; a row that has a reason already keeps it. ``late``: bool (n,)."""
    if not late.any():
        return reasons
    reasons = np.full(len(late), None, np.object_) if reasons is None else reasons
    reasons[late & (reasons == None)] = reason  # noqa: E711 - element by element
    return reasons


def split_by_reason(reasons: npt.NDArray[np.object_]) -> tuple[Ints, Ints]:
    """Return the indices of rows without a reject reason, and of rows with one, both int64 and ascending."""
    is_kept = reasons == None  # noqa: E711 - element by element
    return np.flatnonzero(is_kept), np.flatnonzero(~is_kept)


def _violations(plan: Plan, rows: pa.RecordBatch, asked: Callable[[str], bool]) -> Iterator[tuple[str, Mask]]:
    needs, event_time = plan.kind.needs, (plan.options.event_time,) if plan.options.event_time else ()
    named = dict.fromkeys([*needs.required, *event_time])
    clock = event_time or (plan.order.columns[:1] if plan.uses_clock else ())
    ends = () if needs.ends is None else (needs.ends,)
    alone = _may_be_alone(plan, rows)
    for null, nan, names in (
        ("null_order", "null_order", plan.order.columns),
        ("null_key", "null_key", plan.key),
        ("null_attribute", "nan_attribute", named),
    ):
        for name in filter(asked, names):
            column = combined(rows.column(name))
            spared = ~alone if null == "null_key" and alone is not None else True
            if column.null_count:
                yield null, column.is_null().to_numpy(zero_copy_only=False) & spared
            if has_nan(column):
                valid = column.is_valid().to_numpy(zero_copy_only=False)
                yield nan, np.isnan(measures(column)) & valid & spared
    for name in filter(asked, needs.amounts):
        negative = is_negative(combined(rows.column(name)))
        if negative.any():
            yield "negative_amount", negative
    for name in filter(asked, dict.fromkeys([*clock, *ends, *needs.measured])):
        is_overflow = overflows(combined(rows.column(name)))
        if is_overflow is not None:
            yield "type_overflow", is_overflow
    for name in filter(asked, (*clock, *ends)):
        column = combined(rows.column(name))
        if pa.types.is_floating(column.type) and bool(np.isinf(measures(column)).any()):  # in no window of a grid
            yield "type_overflow", np.isinf(measures(column))
        if needs.dated:
            yield from _undated(column)
    for name in filter(asked, ends):
        yield from _inverted(combined(rows.column(clock[0])), combined(rows.column(name)))


_ALONE: Final = {"left": LEFT, "anti": LEFT, "right": RIGHT, "full": BOTH}
"""The sides whose rows come out without a partner, by the HOW of a join."""


def _may_be_alone(plan: Plan, rows: pa.RecordBatch) -> Mask | None:
    """Return the rows of a join that come out without a partner, bool (n,), whatever their key; None: there are none.

    A key with null or NaN equals no other, so it is certain that these have none.
    """
    sides = 0 if plan.options.join is None else _ALONE.get(plan.options.join.how, 0)
    return (rows.column(SIDE).to_numpy() & sides) != 0 if sides else None


def _inverted(begins: pa.Array, ends: pa.Array) -> Iterator[tuple[str, Mask]]:
    is_far = beyond_clock(ends, begins.type)
    if is_far.any():
        yield "type_overflow", is_far
        ends = pc.if_else(pa.array(is_far), pa.scalar(None, ends.type), ends)
    yield "inverted_interval", is_true(pc.less(ends_as_clock(ends, begins.type), begins))


def _undated(column: pa.Array) -> Iterator[tuple[str, Mask]]:
    values, per_second = measures(column), scale_of(column.type).per_second or 1
    low, high = (second * per_second for second in (FIRST, LAST + 1))
    if pa.types.is_uint64(column.type):  # measures are shifted down
        low, high = low - 2**63, high - 2**63
    if values.dtype == np.int64:
        low, high = max(low.__ceil__(), -(2**63)), min(high.__ceil__() - 1, 2**63 - 1)
        is_far = (values < low) | (values > high)
    else:
        is_far = (values < float(low)) | (values >= float(high))
    if is_far.any():
        yield "type_overflow", is_far


# Lateness of rows by the watermark: one watermark for all keys, while keys stay apart (semantics section 5).


@dataclass(frozen=True, slots=True)
class LatenessResult:
    """The lateness of some rows.

    ``late``: bool (n,), which rows are too late for any pane.
    ``watermarks``: the advances of the watermark.
    ``watermark``: the watermark after the rows, as a reading; None: no row yet, or rows ordered by event time.
    ``belief``: what is believed after the rows; None without ``--max-ahead``.
    ``ahead``: the rows ahead of their time.
    """

    late: Mask
    watermarks: Watermarks
    watermark: ClockValue | None = None
    belief: Belief | None = None
    ahead: RowsAhead = RowsAhead()  # noqa: RUF009 - frozen


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


def assess(
    plan: Plan, announced: ClockValue | None, rows: pa.RecordBatch, pos: Ints, belief: Belief | None = None
) -> LatenessResult:
    """Advance the watermark over rows in the order they were read, and find the late ones.

    ``announced``: the watermark before them, as a reading; None: no row yet. ``pos``: int64 (n,), arrival positions.
    ``belief``: as in `Registers`.
    """
    lateness = lateness_of(plan, rows)
    watermark, ahead = None, RowsAhead()
    values, places = event_times(plan, rows)
    late = np.zeros(rows.num_rows, np.bool_)
    if is_ordered_by_time(plan):
        ascending = order_of([rows.column(name).take(pa.array(places)) for name in plan.sort])
        values, places = values[ascending], places[ascending]
        listed, level = lateness.list_advances_in_order(values)
    else:
        path = lateness.advance(values, announced, belief)
        belief, ahead = path.belief, rows_ahead(path.ahead, values, pos[places])
        late[places] = lateness.beyond_repair(values, path)
        listed, level = lateness.list_advances(values, path)
        watermark = path.final
    order = rows.select(list(plan.sort))
    return LatenessResult(late, watermarks_at(order, pos, places[listed], level), watermark, belief, ahead)


def rows_ahead(ahead: Mask | None, values: Measures, pos: Ints) -> RowsAhead:
    """Return the account of the rows that are ahead, bool (n,); None: of none."""
    if ahead is None or not ahead.any():
        return RowsAhead()
    first = int(np.argmax(ahead))
    return RowsAhead(int(ahead.sum()), int(pos[first]), values[first].item())


def latest_valid(plan: Plan, rows: pa.RecordBatch, pos: Ints, position: pa.Table | None) -> LatestRows:
    """Return the latest of those rows, by the first order column, that windows can place.

    ``rows``: with `validated_columns`, none of which has failed. ``position``: as in `Registers`.
    """
    values, picks = clocks(plan, rows)
    picks &= ~sorts_before(rows, position)
    if (reasons := validate_rows(plan, rows)) is not None:
        picks &= reasons == None  # noqa: E711 - element by element
    return latest_rows(values[picks], pos[picks])


def validated_columns(plan: Plan) -> list[str]:
    """Return the columns that decide whether windows can place a row: those looked at, and those that may fail."""
    needs, computed = plan.kind.needs, {column.name for column in plan.projection.computed}
    alone = {SIDE} if plan.options.join is not None and plan.options.join.how in _ALONE else set()
    asked = {
        *alone,
        *plan.key,
        *plan.order.columns,
        *needs.required,
        *needs.amounts,
        *needs.measured,
        plan.options.event_time,
    }
    return [name for name in plan.columns if name in asked or name in computed]


def merged_watermarks(plan: Plan, parts: Sequence[Watermarks]) -> Watermarks:
    """Merge the advances of parts of the rows in order; where nothing is late, keep only those that rise."""
    merged = in_order(parts)
    return rises(merged) if is_ordered_by_time(plan) else merged


def lateness_of(plan: Plan, rows: pa.RecordBatch | pa.Table) -> Lateness:
    """Return the lag, gap and discard age of the window in the unit of its event-time column."""
    dtype = rows.schema.field(plan.options.event_time).type
    lateness = plan.kind.lateness(dtype, plan.options.lag, plan.options.min_gap)
    return replace(lateness, max_ahead=plan.options.max_ahead if plan.lets_vote else None)


def clock_column(plan: Plan) -> str | None:
    """Return the column that the clock at the end of a run is a measure of; None: there is no clock."""
    return plan.sort[0] if plan.uses_clock and plan.sort else None


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


def retyped_belief(plan: Plan, types: StateTypes, belief: Belief | None) -> Belief | None:
    """Return what a state believes, in the type that the event time has now. Raises as `StateTypes.measure` does."""
    if belief is None:
        return None
    latest, least = (types.measure(plan.options.event_time, value) for value in (belief.latest, belief.least))
    return Belief(latest, belief.votes, least)


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

    ``watermark``: after all rows, as a reading; None: no row yet, rows ordered by event time, or signals alone say it.
    """
    if signals.watermarks is None:
        return NO_LEVEL
    if watermark is None or is_ordered_by_time(plan):
        return plan.kind.last_closed(signals, plan.context)
    return lateness_of(plan, sequences.rows).last_closed(watermark)


# One reading of a chunk: splits of an input, or one batch of a stream (semantics sections 1, 2, 5 and 11).
#
# Some of its rows are marks only, some the condition of the run leaves out, and for some an expression fails. The rest
# is validated; a row that sorts before the last row of earlier runs is late, and so is one that comes too late by the
# watermark; a row for which an expression fails does not move it, nor does one before the last row of earlier runs.


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which of the rows of a chunk are selected.

    ``picks``: int64, the selected rows, ascending; None: all rows. Those that have failed are among them: they are
        rejected.
    ``failed``: bool, which of the selected rows have failed; None: none.
    ``mark_only``: how many rows are marks only.
    ``filtered``: how many rows the condition leaves out.
    """

    picks: Ints | None = None
    failed: Mask | None = None
    mark_only: int = 0
    filtered: int = 0

    def without_failures(self) -> RowSelection:
        """Return the selection of those rows that have not failed."""
        if self.failed is None or self.picks is None:
            return self if self.failed is None else RowSelection(np.flatnonzero(~self.failed))
        return RowSelection(self.picks[~self.failed])

    def take(self, rows: pa.RecordBatch, pos: Ints) -> tuple[pa.RecordBatch, Ints]:
        """Return the selected rows, and their arrival positions."""
        if self.picks is None:
            return rows, pos
        return (rows.take(pa.array(self.picks)) if rows.num_columns else rows), pos[self.picks]


def select_rows(batches: Sequence[Batch], rows: pa.RecordBatch | pa.Table, is_stream: bool) -> RowSelection:
    """Select rows of a chunk; ``rows``: those of all ``batches``, one after the other.

    ``is_stream``: whether they are read as a result, so that some may be marks only.
    """
    count, skipped = sum(len(batch.pos) for batch in batches), sum(batch.skipped for batch in batches)
    only = None
    if is_stream:
        mark_only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
        only = mark_only if mark_only.any() else None
    if only is None and all(batch.kept is None and batch.failures is None for batch in batches):
        return RowSelection(filtered=skipped)
    kept, failed = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    first = 0
    for batch in batches:
        stop = first + len(batch.pos)
        if batch.kept is not None:
            kept[first:stop] = batch.kept
        if batch.failures is not None:
            failed[first + batch.failures.row] = True
        first = stop
    filtered = ~(kept | failed)
    if only is not None:
        filtered &= ~only
        kept &= ~only
        failed &= ~only
    selected = kept | failed
    picks = None if selected.all() else np.flatnonzero(selected)
    marks = 0 if only is None else int(only.sum())
    return RowSelection(picks, failed[selected] if failed.any() else None, marks, int(filtered.sum()) + skipped)


Assess = Callable[[pa.RecordBatch, Ints], LatenessResult]
"""Advances the watermark over rows, at their arrival positions, and finds the late ones."""


def judge_rows(
    plan: Plan,
    rows: pa.RecordBatch,
    pos: Ints,
    failed: Mask | None,
    position: pa.Table | None,
    assess: Assess | None,
    cut: ClockValue | None = None,
) -> tuple[Reasons | None, LatenessResult | None]:
    """Return the reject reason of each row, None where it is kept, or None where all are; and how late rows are.

    ``failed``: as in `RowSelection`; such a row has that reason before any other: a value that it lacks is no null.
    ``position``: as in `Registers`. ``assess``: None without a watermark; then lateness is None, too. ``cut``: the
    clock behind which rows are ahead of their time, and move no watermark; None: none is.
    """
    behind = sorts_before(rows, position)
    reasons, lateness = add_late(validate_rows(plan, rows), behind), None
    unseen = failed
    if behind.any():  # its advance would come among those that earlier runs have seen
        unseen = behind if failed is None else behind | failed
    if cut is not None:
        ahead = is_ahead(plan, rows, cut)
        reasons, unseen = add_late(reasons, ahead, "ahead"), ahead if unseen is None else ahead | unseen
    if assess is not None:
        if unseen is None:
            lateness = assess(rows, pos)
        else:
            known, late = np.flatnonzero(~unseen), np.zeros(len(pos), np.bool_)
            lateness = assess(rows.take(pa.array(known)), pos[known])
            late[known] = lateness.late
            lateness = replace(lateness, late=late)
        reasons = add_late(reasons, lateness.late)
    if failed is not None:
        reasons = np.full(len(pos), None, np.object_) if reasons is None else reasons
        reasons[failed] = FAILED
    return reasons, lateness


def marks_behind(plan: Plan, marks: Marks, position: pa.Table | None, cut: ClockValue | None = None) -> Marks:
    """Return the marks that are neither late nor ahead: a mark is where its row is.

    ``position``: as in `Registers`. ``cut``: as in `judge_rows`.
    """
    if cut is not None:
        marks = marks.take(np.flatnonzero(~is_ahead(plan, marks.rows, cut)))
    return marks if position is None else marks.take(np.flatnonzero(~sorts_before(marks.rows, position)))
