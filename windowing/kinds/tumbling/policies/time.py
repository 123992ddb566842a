"""``time(duration)``: windows on a grid of ticks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pyarrow as pa

from ....clock.interval_grid import clock_values, time_grid
from ....clock.tick_grid import Grid
from ....columns.arrays import Measures
from ....language.spec import Time
from ...context import WindowContext
from ...contract import Option
from ..clock_policy import ClockPolicy


@dataclass(frozen=True, slots=True)
class TimePolicy(ClockPolicy):
    """``time(duration)``.

    ``value``: as in the spec.
    """

    value: Time

    options: ClassVar[frozenset[Option]] = frozenset({"empty", "origin", "closed"})

    def grid(
        self,
        dtype: pa.DataType,
        values: Measures,  # noqa: ARG002
        context: WindowContext,
        every_tick: bool = False,  # noqa: ARG002
    ) -> Grid:
        """Return the grid, which needs no values."""
        return time_grid(dtype, self.value.seconds, context.origin)

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType:
        """Return the type of ticks."""
        return time_grid(clock, self.value.seconds, origin).type

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
        """Return clock values in the type of ticks."""
        grid = time_grid(column.type, self.value.seconds, origin)
        return grid.to_arrow(grid.instants(clock_values(column, name)))
