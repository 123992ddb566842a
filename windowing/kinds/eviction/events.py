"""Window marks and ticks as numbered events, which may evict keys (semantics section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ...clock.grids import AnyGrid, CalendarGrid, RightClosed, clock_cell
from ...clock.interval_grid import clock_values, now_as_measure
from ...clock.tick_grid import Grid
from ...columns.arrays import ClockValue, Ints, Measures, combined, scale_of
from ...errors import DataError
from ...rows.marks import Marks, epochs
from ...rows.sequence import Sequences

MOST_SECONDS = 2**62
"""Seconds are less than this, so that differences fit 64 bit."""


@dataclass(frozen=True, slots=True)
class Events:
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
        ahead = min(ahead, MOST_SECONDS - int(seconds.min(initial=MOST_SECONDS)))
        return self.first(np.minimum(seconds, MOST_SECONDS - ahead) + ahead)


def mark_events(sequences: Sequences, marks: Marks) -> Events:
    """Return window marks as events, each at the instant of the row that it follows."""

    def first(seconds: Ints) -> Ints:
        behind = np.flatnonzero(marks.pos >= 0)  # the other marks come before all rows
        clock = combined(marks.take(behind).rows.column(0))
        own = whole_seconds(clock_values(clock, sequences.order[0]), clock.type)
        return np.searchsorted(own, seconds) + (len(marks) - len(behind))

    return Events(epochs(sequences, marks) - 1, len(marks) - 1, first)


def tick_events(values: Measures, grid: AnyGrid, sequences: Sequences, clock: ClockValue | None) -> Events | None:
    """Return ticks of the clock as events: each tick is the lower bound of the cell of its number; None without rows.

    ``values``: the clock column, in the measure of the grid.
    """
    if not len(values):
        return None
    assert not isinstance(grid, RightClosed)  # a plan refuses such windows with partition eviction
    cells, last = grid.cells(values), clock_cell(grid, values, clock)
    if isinstance(grid, CalendarGrid):
        return Events(cells, last, grid.first_cells)
    ticks, dtype = grid, sequences.rows.column(sequences.order[0]).type
    clock_now = now_as_measure(values, clock)

    def first(seconds: Ints) -> Ints:
        return _first_ticks(ticks, dtype, np.minimum(seconds, whole_seconds(clock_now, dtype) + 1))

    return Events(cells, last, first)


def _first_ticks(grid: Grid, dtype: pa.DataType, seconds: Ints) -> Ints:
    """Return the first tick at or after each of ``seconds``."""
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return grid.first_ticks(seconds.astype(np.float64))
    fine = per_second * grid.refine
    if int(np.abs(seconds).max(initial=1)) * fine.numerator >= 2**63 - grid.reach:
        raise DataError("the ticks do not reach to the end of a second in 64 bit", "use a coarser unit")
    return grid.first_ticks(-(-seconds * np.int64(fine.numerator) // np.int64(fine.denominator)))


def whole_seconds(values: Measures, dtype: pa.DataType) -> Ints:
    """Return the whole second of each clock value."""
    per_second = scale_of(dtype).per_second or Fraction(1)
    ends = np.array([values.min(), values.max()]) if len(values) else values
    if not all(abs(end) * per_second.denominator < MOST_SECONDS * per_second.numerator for end in ends.tolist()):
        raise DataError("the clock is too far from 0 to count ages in seconds", "leave such rows out")
    if values.dtype != np.int64:
        return np.floor(values).astype(np.int64)
    if per_second >= 2**63:
        return -(values < 0).astype(np.int64)
    return values * np.int64(per_second.denominator) // np.int64(per_second.numerator)
