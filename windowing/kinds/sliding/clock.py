"""The clock of sliding windows: the clock column as numbers, the current time, and the grid of triggering ticks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...clock.interval_grid import clock_values, now, time_grid
from ...clock.tick_grid import Grid
from ...columns.arrays import ClockValue, Ints, Measures, Scale, combined, scale_of
from ...rows.sequence import Sequences, amount_in_measure
from ..context import WindowContext


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
