"""A grid whose cells hold the instant that ends them, and not the one that begins them (semantics section 12)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..columns.arrays import Ints, Mask, Measures
from .calendar_grid import CalendarGrid
from .tick_grid import Grid


@dataclass(frozen=True, slots=True)
class RightClosed:
    """Cells ``(bound(k), bound(k + 1)]`` of a grid.

    ``grid``: the grid whose cells are closed on the left; it must reach to before the first value.
    """

    grid: Grid | CalendarGrid

    @property
    def type(self) -> pa.DataType:
        """The type of its bounds."""
        return self.grid.type

    def cells(self, values: Measures) -> Ints:
        """Return for each value the k of its window, int64 (n,): that before it, where the value is a bound."""
        cells = self.grid.cells(values)
        return cells - self.grid.on_bound(values, cells)

    def bounds(self, cells: Ints) -> pa.Array:
        """Return the lower bounds of cells, in the grid's type."""
        return self.grid.bounds(cells)

    def lasting(self, cells: Ints) -> Mask:
        """Return which cells hold an instant at all."""
        return self.grid.lasting(cells)
