"""The grids whose cells the clock passes: ticks at even distances, and local days and dates."""

from __future__ import annotations

from typing import TypeAlias

from ..columns.arrays import ClockValue, Measures
from .calendar_grid import CalendarGrid
from .right_closed import RightClosed
from .tick_grid import Grid
from .values import now_as_measure

AnyGrid: TypeAlias = Grid | CalendarGrid | RightClosed


def clock_cell(grid: AnyGrid, values: Measures, clock: ClockValue | None) -> int:
    """Return the cell of the clock's current time; cells before it are complete. Needs a value or ``clock``."""
    return int(grid.cells(now_as_measure(values, clock))[0])
