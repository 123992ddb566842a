"""What triggers the panes of sliding windows: count, delta, time or a condition (semantics section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..clock.interval_grid import clock_values, now, time_grid
from ..clock.tick_grid import Grid
from ..columns.arrays import ClockValue, Ints, Mask, Measures, Scale, combined, measures, scale_of, truth
from ..errors import DataError
from ..language.operands import operand_column
from ..language.spec import Count, Delta, Sliding, Time, When
from ..rows.panes import AT_END, BY_TICK
from ..rows.sequence import Sequences, amount_in_measure, measures_and_amount
from ..state.window_state import RestoredState
from .context import WindowContext
from .delta import comparable, delta_starts, risen_pairs

# The clock of sliding windows: the clock column as numbers, the current time, and the grid of triggering ticks.


@dataclass(frozen=True, slots=True)
class SlidingClock:
    """The clock column of some rows, and the grid of ticks over it where the clock triggers.

    ``values``: int64 or float64 (n,), the clock column; floats have 64 bit, as the bounds of grids have.
    ``now``: the current time of the one clock, in the same measure.
    ``scale``: the scale of both.
    ``grid``: the ticks of a ``time`` trigger; None for other triggers.
    """

    values: Measures
    now: ClockValue
    scale: Scale
    grid: Grid | None

    def age(self, seconds: Fraction) -> Any:
        """Return a number of seconds in the measure of the values."""
        return amount_in_measure(self.values, self.scale, seconds)

    def cell(self, instant: ClockValue) -> int:
        """Return the cell of the grid that holds an instant."""
        assert self.grid is not None
        return int(self.grid.cells(np.array([instant], self.values.dtype))[0])

    def finer(self) -> SlidingClock:
        """Return the same clock in a unit in which ticks are whole."""
        if self.grid is None or self.grid.refine == 1 or self.scale.per_second is None:
            return self
        refine = self.grid.refine
        return SlidingClock(
            self.values * np.int64(refine), self.now * refine, Scale(self.scale.per_second * refine), self.grid
        )

    def ticks(self, cells: Ints) -> Measures:
        """Return the lower bounds of cells, in the unit of `finer`."""
        assert self.grid is not None
        if self.grid.exact:
            return cells * np.int64(self.grid.period) + np.int64(self.grid.origin)
        return self.grid.bounds(cells).to_numpy()


def sliding_clock(period: Fraction | None, sequences: Sequences, context: WindowContext) -> SlidingClock:
    """Return the clock of a window that evicts or triggers by time. ``period``: between two ticks; None: no ticks."""
    values, scale = sliding_clock_values(sequences)
    instant = now(values, context.clock)
    if instant is None:
        instant = context.since or 0  # no tick has come since
    dtype = sequences.rows.column(sequences.order[0]).type
    grid = None if period is None else time_grid(dtype, period, context.origin)
    return SlidingClock(values, instant, scale, grid)


def sliding_clock_values(sequences: Sequences) -> tuple[Measures, Scale]:
    """Return the first order column as int64 or float64 (n,), and its scale."""
    column = combined(sequences.rows.column(sequences.order[0]))
    values = clock_values(column, sequences.order[0])
    return values if values.dtype == np.int64 else values.astype(np.float64), scale_of(column.type)


MOST_TICKS = 50_000_000
"""The most ticks that may emit a pane."""
_ROUNDED = 8  # rounding of ticks to floats never makes more additional ticks than this fit into a span


@dataclass(frozen=True, slots=True)
class Triggers:
    """L triggers, key after key, in the order in which they come.

    ``key``: int64 (L,), the key of each trigger.
    ``place``: int64 (L,), the place of each: the rows ``[bounds[key], place)`` have done their steps.
    ``cause``: int64 (L,), as in `Panes`.
    ``cell``: int64 (L,), the cell whose lower bound is the tick, of any value at the end; None unless time triggers.
    """

    key: Ints
    place: Ints
    cause: Ints
    cell: Ints | None = None

    def filtered(self, chosen: Mask) -> Triggers:
        """Return the chosen triggers."""
        if bool(chosen.all()):
            return self
        cell = None if self.cell is None else self.cell[chosen]
        return Triggers(self.key[chosen], self.place[chosen], self.cause[chosen], cell)

    def with_ends(self, has_new_rows: Mask, bounds: Ints) -> Triggers:
        """Add a trigger at the end of the data for each key that has received rows since its last trigger."""
        keys = np.flatnonzero(has_new_rows)
        behind = np.searchsorted(self.key, keys, side="right")
        key, place = np.insert(self.key, behind, keys), np.insert(self.place, behind, bounds[keys + 1])
        cell = None if self.cell is None else np.insert(self.cell, behind, 0)
        return Triggers(key, place, np.insert(self.cause, behind, AT_END), cell)


def triggers_of(
    spec: Sliding,
    sequences: Sequences,
    context: WindowContext,
    clock: SlidingClock | None,
    full: Ints,
    emits_empty: bool,
) -> Triggers:
    """Return all triggers, those at the end of the data included.

    ``clock``: None where the window uses none. ``full``: int64 (K,), the place from which on the window of each key is
    full. ``emits_empty``: whether empty windows are emitted.
    """
    match spec.trigger:
        case Count(n):
            return _count_triggers(sequences.bounds, n, context.restored)
        case Delta():
            return _delta_triggers(spec.trigger, sequences, context.restored)
        case When(condition):
            return _condition_triggers(truth(sequences.rows, operand_column(condition)), sequences)
        case Time():
            assert clock is not None
            return _tick_triggers(spec, sequences.bounds, context, clock, full, emits_empty)


def _count_triggers(bounds: Ints, n: int, restored: RestoredState | None) -> Triggers:
    ahead = np.zeros(len(bounds) - 1, np.int64) if restored is None else restored.ahead
    reached = np.diff(bounds) + ahead
    key, step = spread(reached // n - ahead // n)
    place = (bounds[:-1] - ahead + ahead // n * n)[key] + (step + 1) * n
    return Triggers(key, place, place - 1).with_ends(reached % n > 0, bounds)


def _delta_triggers(trigger: Delta, sequences: Sequences, restored: RestoredState | None) -> Triggers:
    bounds, starts = sequences.bounds, tripping(trigger, sequences, restored)
    key, step = spread(np.diff(np.searchsorted(starts, bounds)))
    is_set = np.zeros(len(bounds) - 1, np.bool_)
    if restored is not None:
        is_set = restored.key_state.baseline.is_valid().to_numpy(zero_copy_only=False)
    exceeds = (step > 0) | is_set[key]  # the first row of a key only sets the baseline
    rows = starts[exceeds]
    return Triggers(key[exceeds], rows, rows).with_ends(np.diff(bounds) > 0, bounds)


def tripping(trigger: Delta, sequences: Sequences, restored: RestoredState | None) -> Ints:
    """Return the rows that set or advance the baseline of a ``delta`` trigger: int64, ascending."""
    values, amount = measures_and_amount(sequences, trigger.attribute, trigger.amount)
    bounds, begin = sequences.bounds, sequences.bounds[:-1]
    known, baseline = np.zeros(len(begin), np.bool_), np.zeros(1, values.dtype)
    if restored is not None:
        known = restored.key_state.baseline.is_valid().to_numpy(zero_copy_only=False)
        baseline = measures(restored.key_state.baseline)
        begin = np.where(known, begin + restored.restored_rows, begin)
    return np.flatnonzero(delta_starts(bounds, values, amount, begin, known, baseline))


def _condition_triggers(met: Mask, sequences: Sequences) -> Triggers:
    """Return a trigger after each row of ``met``; at the end of the data too, if rows have come since."""
    bounds, rows, newest = sequences.bounds, np.flatnonzero(met), sequences.newest
    key = np.searchsorted(bounds, rows, side="right") - 1
    has_new_rows = np.zeros(len(bounds) - 1, np.bool_)
    has_new_rows[np.searchsorted(bounds, newest, side="right") - 1] = ~met[newest]
    return Triggers(key, rows + 1, rows).with_ends(has_new_rows, bounds)


def _tick_triggers(
    spec: Sliding, bounds: Ints, context: WindowContext, clock: SlidingClock, full: Ints, emits_empty: bool
) -> Triggers:
    """Return triggers at the ticks after each row, up to the next row of its key, the clock, or the key's last tick.

    Where empty windows are emitted, all ticks count, including those after ``since`` and before the first row.
    Otherwise only ticks that find a full window count, so that a gap of years costs nothing.
    """
    assert clock.grid is not None
    cell, last = clock.grid.cells(clock.values), clock.cell(clock.now)
    newest = bounds[1:][bounds[:-1] < bounds[1:]] - 1
    until = np.append(cell, last)[1:]
    key, step = spread(np.diff(bounds))
    until[newest] = last
    if context.last_tick is not None:
        until[newest] = np.clip(context.last_tick[key[newest]], cell[newest], last)
    place = bounds[key] + step + 1
    has_new_rows = np.zeros(len(full), np.bool_)
    has_new_rows[key[newest]] = cell[newest] == last
    if emits_empty and context.since is not None:
        stop = cell[0] if len(cell) else last
        begin = min(clock.cell(context.since), stop)
        key, place, cell, until = (
            np.insert(array, 0, value) for array, value in ((key, 0), (place, 0), (cell, begin), (until, stop))
        )
    count = at_most(until, cell)
    if not emits_empty:
        count = np.where(place < full[key], 0, ticks_that_find(spec, clock, cell, count))
    if count.sum() > MOST_TICKS:
        raise DataError(f"{spec.trigger} would trigger more than {MOST_TICKS:,} times", "use a longer trigger period")
    after, step = spread(count)
    triggers = Triggers(key[after], place[after], np.full(len(after), BY_TICK), cell[after] + step + 1)
    return triggers.with_ends(has_new_rows, bounds)


def ticks_that_find(spec: Sliding, clock: SlidingClock, cell: Ints, count: Ints) -> Ints:
    """Return how many of the ``count`` ticks after each row find it in its window. ``cell``: that of each row."""
    match spec:
        case Sliding(Count(0)):
            return np.zeros_like(count)
        case Sliding(Time(seconds), Time(period)):
            most = seconds // period + (1 if clock.grid is None or clock.grid.exact else _ROUNDED)
            count = np.minimum(count, min(most, MOST_TICKS + 1))
            clock = clock.finer()
            values, age = comparable(clock.values), clock.age(seconds)
            # ``most`` is an upper bound; the loop removes the few ticks at which the row is already too old
            while (too_late := risen_pairs(comparable(clock.ticks(cell + count)), values, age)).any():
                count = count - too_late
    return count


def at_most(until: Ints, cell: Ints) -> Ints:
    """Return how many ticks there are after each cell, at most one more than the limit."""
    # the difference of two cells may need 64 unsigned bits
    return np.minimum((until - cell).view(np.uint64), np.uint64(MOST_TICKS + 1)).astype(np.int64)


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """Return each index as often as its count says, and a running number from 0 for each of them."""
    index = np.repeat(np.arange(len(counts)), counts)
    return index, np.arange(len(index)) - (np.cumsum(counts) - counts)[index]
