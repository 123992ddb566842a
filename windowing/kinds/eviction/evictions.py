"""Partition eviction: which keys are evicted, and when (semantics section 4).

An eviction depends on all keys together, so one pass over all rows in their total order decides it (the global pass,
docs/decisions/013). Of a window the pass only needs to know when it ends or how many rows it holds. Afterwards the
keys are independent again: see `windowing.kinds.eviction.key_lifetimes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ...clock.calendar_grid import CalendarGrid
from ...clock.tick_grid import Grid
from ...clock.values import clock_values, now_as_measure
from ...columns.arrays import Ints, Mask, Measures, combined
from ...columns.numeric import scale_of
from ...errors import DataError
from ...language.spec import Calendar, Count, Delta, Gap, PartitionEviction, Policy, Punct, Sliding, Time, Tumbling
from ...panes.membership import Ranges
from ...panes.panes import AT_END
from ...sequences.marks import NO_FILE, Marks, epochs, no_marks, with_marks_behind
from ...sequences.sequence import Sequences, arrange
from ...state.window_state import RestoredState
from ..context import WindowContext
from ..sliding.panes import evicted_at, lost_at
from ..tumbling.clock_windows import clock_cell, clock_grid
from ..tumbling.panes import tumbling_panes
from .kernels import BY_EVENT, STAYS, Rules, Times, Windows, evicted_by

_MOST = np.iinfo(np.int64).max
_MOST_SECONDS = 2**62  # so that differences fit 64 bit
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Evictions:
    """V evictions, by key, then in the order in which they happened. Keys are stored by value, rows never by number.

    ``keys``: the evicted keys, ascending, one row each.
    ``key``: int64 (V,), the index of each eviction's key in ``keys``.
    ``rows``: int64 (V,), how many rows of the key had come before the eviction, at least 1.
    ``causes``: V marks, on the row that caused each eviction or that precedes the window mark that caused it.
    ``by_tick``: bool (V,), which evictions the clock caused; their marks have no meaning.
    ``tick``: int64 (V,), the first tick that no longer finds the key, where ticks trigger a sliding window; of any
        value elsewhere.
    """

    keys: pa.Table
    key: Ints
    rows: Ints
    causes: Marks
    by_tick: Mask
    tick: Ints


def evictions(spec: Tumbling | Sliding, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
    """Return all evictions of a window; ``sequences`` hold all rows of all keys, at least in the columns of the spec.

    ``marks`` must be in total order; only ``punct()`` reads them. Ages count in whole seconds, of the clock and of the
    spec. Raises `DataError` where these are beyond 2**62.
    """
    assert spec.eviction is not None
    order, begin = _total_order(sequences, context.restored)
    key = np.repeat(np.arange(len(sequences.bounds) - 1, dtype=np.int32), np.diff(sequences.bounds))
    windows = _windows(spec, sequences, context, order)
    times = _times(spec, sequences, marks, context, order)
    cause, event = evicted_by(order, key, len(sequences.bounds) - 1, _rules(spec.eviction), windows, times, begin)
    last = np.flatnonzero(cause != STAYS)
    cause, event = cause[last], event[last] if len(event) else np.zeros(len(last), np.int64)
    by_mark = (cause == BY_EVENT) & (isinstance(spec, Tumbling) and spec.policy == Punct())
    return _in_order(sequences, marks, last, np.where(by_mark, len(sequences) + event, cause), event)


def _total_order(sequences: Sequences, restored: RestoredState | None) -> tuple[Ints, int]:
    """Return the row at each place of the total order of all keys, and how many of these rows are restored."""
    by_arrival = np.argsort(sequences.pos, kind="stable")
    columns = [sequences.rows.column(name).take(pa.array(by_arrival)) for name in sequences.order]
    permutation = arrange(None, np.array([0, len(sequences)]), columns)
    order = by_arrival if permutation is None else by_arrival[permutation]
    if restored is None:
        return order, 0
    new = restored.is_new(sequences.bounds)[order]
    return np.concatenate([order[~new], order[new]]), int(restored.restored_rows.sum())


def _in_order(sequences: Sequences, marks: Marks, last: Ints, cause: Ints, event: Ints) -> Evictions:
    """Return the evictions after the rows ``last``. ``cause``: a row, n + m for mark m, or `BY_EVENT` for a tick."""
    assert sequences.keys is not None
    key = np.searchsorted(sequences.bounds, last, side="right") - 1
    evicted = np.flatnonzero(np.bincount(key, minlength=sequences.keys.num_rows))
    by_tick = cause == BY_EVENT
    rows = sequences.rows.select(list(sequences.order))
    joined = [with_marks_behind(*columns) for columns in zip(rows.columns, marks.rows.columns, strict=True)]
    both = Marks(
        pa.RecordBatch.from_arrays(joined, schema=rows.schema),
        np.concatenate([sequences.pos, marks.pos]),
        np.full(len(sequences) + len(marks), NO_FILE),
    )
    return Evictions(
        sequences.keys.take(pa.array(evicted)),
        np.searchsorted(evicted, key),
        last + 1 - sequences.bounds[key],
        both.take(np.where(by_tick, last, cause)),
        by_tick,
        event,
    )


# --- arguments of the loop ------------------------------------------------------------------------------------------


def _rules(eviction: PartitionEviction) -> Rules:
    amount = min(eviction.amount.__floor__(), _MOST)
    match eviction.kind:
        case "partitionAge":
            return Rules(_MOST, _MOST, amount)
        case "partitionCount":
            return Rules(_MOST, amount, _MOST)
    return Rules(amount, _MOST, _MOST)


def _windows(spec: Tumbling | Sliding, sequences: Sequences, context: WindowContext, order: Ints) -> Windows:
    if isinstance(spec, Tumbling):
        ends_before = isinstance(spec.policy, Delta | Gap)
        return Windows(True, _window_ends(spec.policy, sequences, context), ends_before, _NONE, False)
    empties = isinstance(spec.evict, Time)
    counts_rows = spec.eviction is not None and spec.eviction.kind == "tupleCount"
    return Windows(
        False, _NONE, False, _evicted_places(spec, sequences, order) if counts_rows or empties else _NONE, empties
    )


def _window_ends(policy: Policy, sequences: Sequences, context: WindowContext) -> Ints:
    """Return for each row the row before which a window that begins at it ends; more than n where it never ends."""
    n = len(sequences)
    match policy:
        case Count(rows):
            return np.arange(n) + min(rows, n + 1)
        case Delta():
            return evicted_at(Sliding(policy), sequences)  # the row that would evict the first row ends the window
        case Gap() | Punct(str()):
            panes = tumbling_panes(Tumbling(policy), sequences, no_marks(sequences.rows, sequences.order), context)
            assert isinstance(panes.membership, Ranges)
            lo, hi = panes.membership.lo, panes.membership.hi  # wherever the window begins
            return np.repeat(np.where(panes.cause == AT_END, n + 1, hi), hi - lo)
    return _NONE


def _evicted_places(spec: Sliding, sequences: Sequences, order: Ints) -> Ints:
    """Return for each row the place in the total order at which it leaves its window, n where it never does."""
    n = len(sequences)
    leaves = np.empty(n, np.int64)
    if isinstance(spec.evict, Time):  # one clock for all keys: any row of any key may evict it
        rows = sequences.rows.select(list(sequences.order)).take(pa.array(order))
        leaves[order] = evicted_at(spec, replace(sequences, bounds=np.array([0, n]), rows=rows))
        return leaves
    leaves[order] = np.arange(n)
    return np.append(leaves, n)[evicted_at(spec, sequences)]


def _times(spec: Tumbling | Sliding, sequences: Sequences, marks: Marks, context: WindowContext, order: Ints) -> Times:
    assert spec.eviction is not None
    events = _events(spec, sequences, marks, context)
    passed = _NONE if events is None else events.passed[order]
    end = 0 if events is None else events.end
    if spec.eviction.kind != "partitionAge":
        return Times(_NONE, passed, end, _NONE, _NONE, _NONE)
    clock = combined(sequences.rows.column(sequences.order[0]))
    seconds = _seconds(clock_values(clock, sequences.order[0]), clock.type)[order]
    age = spec.eviction.amount.__floor__()
    due, stale = (_NONE if events is None else events.from_on(seconds, ahead) for ahead in (age + 1, age))
    lost = _NONE
    if events is not None and isinstance(spec, Sliding) and isinstance(spec.evict, Time):
        lost = lost_at(spec, sequences, context)[order]
    return Times(seconds, passed, end, due, stale, lost)


@dataclass(frozen=True, slots=True)
class _Events:
    """Window marks or ticks, numbered.

    ``passed``: int64 (n,), the last event before each row.
    ``end``: the last event of all.
    ``first``: a function of seconds, int64 (m,), that returns the first event at or after each, int64 (m,); any
        number greater than ``end`` where there is none.
    """

    passed: Ints
    end: int
    first: Callable[[Ints], Ints]

    def from_on(self, seconds: Ints, ahead: int) -> Ints:
        """Return the first event at least ``ahead`` seconds after each of ``seconds``; more than ``end`` if none."""
        ahead = min(ahead, _MOST_SECONDS - int(seconds.min(initial=_MOST_SECONDS)))
        return self.first(np.minimum(seconds, _MOST_SECONDS - ahead) + ahead)


def _events(spec: Tumbling | Sliding, sequences: Sequences, marks: Marks, context: WindowContext) -> _Events | None:
    match spec.trigger if isinstance(spec, Sliding) else spec.policy:
        case Punct(None):
            return _mark_events(sequences, marks)
        case Time() | Calendar() as policy:
            return _tick_events(policy, sequences, context) if len(sequences) else None
    return None


def _mark_events(sequences: Sequences, marks: Marks) -> _Events:
    """Return window marks as events, each at the instant of the row that it follows."""

    def first(seconds: Ints) -> Ints:
        behind = np.flatnonzero(marks.pos >= 0)  # the other marks come before all rows
        clock = combined(marks.take(behind).rows.column(0))
        own = _seconds(clock_values(clock, sequences.order[0]), clock.type)
        return np.searchsorted(own, seconds) + (len(marks) - len(behind))

    return _Events(epochs(sequences, marks) - 1, len(marks) - 1, first)


def _tick_events(policy: Time | Calendar, sequences: Sequences, context: WindowContext) -> _Events:
    """Return ticks of the clock as events: each tick is the lower bound of the cell of its number."""
    values, grid = clock_grid(policy, sequences, context)
    cells, last = grid.cells(values), clock_cell(grid, values, context.clock)
    if isinstance(grid, CalendarGrid):
        return _Events(cells, last, grid.first_cells)
    ticks, dtype = grid, sequences.rows.column(sequences.order[0]).type
    clock_now = now_as_measure(values, context.clock)

    def first(seconds: Ints) -> Ints:
        return _first_ticks(ticks, dtype, np.minimum(seconds, _seconds(clock_now, dtype) + 1))

    return _Events(cells, last, first)


def _first_ticks(grid: Grid, dtype: pa.DataType, seconds: Ints) -> Ints:
    """Return the first tick at or after each of ``seconds``."""
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return grid.first_ticks(seconds.astype(np.float64))
    fine = per_second * grid.refine
    if int(np.abs(seconds).max(initial=1)) * fine.numerator >= 2**63 - grid.reach:
        raise DataError("the ticks do not reach to the end of a second in 64 bit", "use a coarser unit")
    return grid.first_ticks(-(-seconds * np.int64(fine.numerator) // np.int64(fine.denominator)))


def _seconds(values: Measures, dtype: pa.DataType) -> Ints:
    """Return the whole second of each clock value."""
    per_second = scale_of(dtype).per_second or Fraction(1)
    ends = np.array([values.min(), values.max()]) if len(values) else values
    if not all(abs(end) * per_second.denominator < _MOST_SECONDS * per_second.numerator for end in ends.tolist()):
        raise DataError("the clock is too far from 0 to count ages in seconds", "leave such rows out")
    if values.dtype != np.int64:
        return np.floor(values).astype(np.int64)
    if per_second >= 2**63:
        return -(values < 0).astype(np.int64)
    return values * np.int64(per_second.denominator) // np.int64(per_second.numerator)
