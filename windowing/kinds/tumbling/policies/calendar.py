"""``calendar(unit, tz, at)``: local days, weeks, months and years."""

from __future__ import annotations

from dataclasses import dataclass

from ....clock.grids import Beginnings, calendar_beginnings
from ....language.spec import Calendar
from ..clock_policy import DatedPolicy


@dataclass(frozen=True, slots=True)
class CalendarPolicy(DatedPolicy):
    """``calendar(unit, tz, at)``.

    ``value``: as in the spec.
    """

    value: Calendar

    def beginnings(self) -> Beginnings:
        """Return the beginnings of local days, weeks, months or years."""
        return calendar_beginnings(self.value)
