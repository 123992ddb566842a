"""``calendar(unit, tz, at)``: local days, weeks, months and years."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from ....clock.calendar_grid import CalendarGrid, calendar_type, make_calendar_grid
from ....clock.values import now
from ....columns.arrays import Measures
from ....language.spec import Calendar
from ...context import WindowContext
from ..clock_policy import ClockPolicy


@dataclass(frozen=True, slots=True)
class CalendarPolicy(ClockPolicy):
    """``calendar(unit, tz, at)``.

    ``value``: as in the spec.
    """

    value: Calendar

    def grid(self, dtype: pa.DataType, values: Measures, context: WindowContext) -> CalendarGrid:
        """Return the units from the first value, or ``context.since``, to the clock."""
        dtype = pa.int64() if pa.types.is_null(dtype) else dtype
        if not len(values):
            return make_calendar_grid(dtype, self.value, None, None)
        begins = min([values.min().item(), *([] if context.since is None else [context.since])])
        return make_calendar_grid(dtype, self.value, begins, now(values, context.clock))

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType:  # noqa: ARG002
        """Return the type of the beginnings of units."""
        return calendar_type(pa.int64() if pa.types.is_null(clock) else clock)
