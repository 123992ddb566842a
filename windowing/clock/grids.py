"""The grids whose cells the clock passes: ticks at even distances, and local days and dates."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import ClockValue, Ints, Mask, Measures, scale_of
from ..errors import DataError
from ..language.clock_policies import Calendar, zone_of
from ..support.jit import kernel
from .interval_grid import now_as_measure
from .tick_grid import Grid, roomy, ticks_array, ticks_per_second

# The grid of local days, weeks, months, quarters and years on the clock (semantics section 2, ``calendar``).
#
# A unit begins at the first instant at which the clocks of its zone show ``at`` or later on its first date. Where the
# clocks jump over ``at``, this is the instant of the jump; where they show it twice, it is the first time. A date
# that a zone leaves out begins at the same instant as the next date: its cell exists and holds no instant.
#
# The time zone is evaluated once for each unit from the first to the last instant of the data; values are then looked
# up. Where years without a value lie in between, as before a row of the year 9999, their units may be left out as
# one.


_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SECOND = dt.timedelta(seconds=1)
_DAY, _CYCLE = 86_400, 146_097 * 86_400  # seconds of a day, of 400 years
_EDGE = 60 * 366 * _DAY  # longer than any unit, and than cron looks back
_EPOCH = dt.datetime(1970, 1, 1)
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The first and the last second of the years 1 to 9999 in UTC: windows with dates hold no other instants."""
_BEYOND = ("a calendar window reaches beyond the years 1 to 9999", "leave such rows out")


@dataclass(frozen=True, slots=True)
class CalendarGrid:
    """The units that hold the instants of some clock column.

    ``type``: the type of the bounds.
    ``first``: the cell of the earliest instant.
    ``starts``: int64 or float64 (U+1,), the smallest measure of the clock column at or after the beginning of each
        unit from ``first`` on, including the unit after the last.
    ``begins``: int64 (U+1,), these beginnings in seconds.
    ``exact``: bool (U+1,), which beginnings are measures of the clock column.

    A cell is the number of a unit: days as `datetime.date.toordinal` counts them, weeks since the first week of the
    year 1, months, quarters and years since the year 0. Behind units that are left out it is smaller by their number.
    """

    type: pa.DataType
    first: int
    starts: Measures
    begins: Ints
    exact: npt.NDArray[np.bool_]

    def cells(self, values: Measures) -> Ints:
        """Return for each value the cell of its unit, int64 of shape (n,).

        ``values`` are measures of the clock column, between the two that the grid was made for.
        """
        return _places(self.starts, values.astype(self.starts.dtype, copy=False)) + self.first

    def bounds(self, cells: Ints) -> pa.Array:
        """Return the lower bounds of cells, up to the one after the last, in the grid's type."""
        seconds = self.begins[cells - self.first]
        if pa.types.is_floating(self.type):
            return pa.array(seconds.astype(np.float64))
        return ticks_array(seconds * np.int64(int(ticks_per_second(self.type))), self.type)

    def on_bound(self, values: Measures, cells: Ints) -> npt.NDArray[np.bool_]:
        """Return which values are the beginnings of their units, bool (n,)."""
        places = cells - self.first
        return np.asarray((values == self.starts[places]) & self.exact[places])

    def lasting(self, cells: Ints) -> npt.NDArray[np.bool_]:
        """Return which cells hold an instant at all: false for dates that the zone left out."""
        return self.begins[cells - self.first] < self.begins[cells - self.first + 1]


Beginnings: TypeAlias = Callable[[int, int], tuple[int, list[int]]]
"""Returns the number of the unit that holds a second, and the beginnings of units in seconds, from that of this unit up
to that of the unit after another second."""


def calendar_beginnings(spec: Calendar) -> Beginnings:
    """Return the beginnings of the units of a calendar. Raises `ConfigError` for an unknown zone."""
    return partial(_beginnings, spec, zone_of(spec.tz))


def make_calendar_grid(
    dtype: pa.DataType,
    beginnings: Beginnings,
    low: ClockValue | None,
    high: ClockValue | None,
    holes: Sequence[tuple[ClockValue, ClockValue]] = (),
) -> CalendarGrid:
    """Make the grid of a clock column of type ``dtype`` that reaches from ``low`` to ``high``, both included.

    ``low``, ``high``: measures of the column; None, None where it holds no value. ``holes``: ascending pairs of
    measures between which it holds none; the units that lie between them are left out, and belong to the cell before.
    Naive timestamps and dates are in UTC, plain numbers are seconds since the epoch. Raises `DataError` where a bound
    is beyond the years 1 to 9999 or the 64 bits of the column's own ticks.
    """
    bound_type = calendar_type(dtype)
    if low is None or high is None:
        kind = np.float64 if pa.types.is_floating(dtype) else np.int64
        return CalendarGrid(bound_type, 0, np.empty(0, kind), np.empty(0, np.int64), np.empty(0, np.bool_))
    try:
        bounds = [_seconds(dtype, each) for each in (low, *(end for hole in holes for end in hole), high)]
        first, begins = beginnings(*bounds[:2])
        for begin, end in zip(bounds[2::2], bounds[3::2], strict=True):
            begins += [each for each in beginnings(begin, end)[1] if each > begins[-1]]
    except (OverflowError, ValueError):  # of datetime
        raise DataError(*_BEYOND) from None
    instants = np.array(begins, np.int64)
    return CalendarGrid(bound_type, first, *_measures_at(dtype, instants))


def calendar_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the bounds on a clock column: its own, with room for all bounds; timestamp[s] for dates.

    Decimals coarser than a second get float64, as with ``time``.
    """
    if pa.types.is_date(dtype):
        return pa.timestamp("s")
    is_coarse = pa.types.is_decimal(dtype) and dtype.scale < 0
    return pa.float64() if pa.types.is_floating(dtype) or is_coarse else roomy(dtype)


def _seconds(dtype: pa.DataType, value: ClockValue) -> int:
    """Return the whole second of a clock value. Raises `DataError` beyond the years 1 to 9999."""
    per_second = scale_of(dtype).per_second
    instant = float(value) if per_second is None else int(value) / per_second
    if not FIRST <= instant < LAST + 1:
        raise DataError(*_BEYOND)
    return instant.__floor__()


def _measures_at(dtype: pa.DataType, seconds: Ints) -> tuple[Measures, Ints, Mask]:
    """Return the smallest measure at or after each second, the seconds, and which measures are the seconds themselves.

    ``seconds`` ascend.
    """
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return seconds.astype(np.float64), seconds, np.ones(len(seconds), np.bool_)
    low, high = (math.ceil(int(each) * per_second) for each in seconds[[0, -1]])
    if low < -(2**63) or high >= 2**63:
        raise DataError(f"the calendar does not reach from {low} to {high} in 64 bit", "use a coarser unit")
    ticks, parts = seconds * np.int64(per_second.numerator), per_second.denominator
    return -(-ticks // parts), seconds, ticks % parts == 0


_MOST_STEPS = 20_000_000


def stepped(grid: CalendarGrid, dtype: pa.DataType, step: int, held: Ints) -> tuple[CalendarGrid, Ints]:
    """Divide some units of a grid into steps; also return the first cell of each unit, and the end of the last.

    ``dtype``: the type of the clock column. ``step``: in seconds from the beginning of a unit; its last step may be
    shorter. ``held``: these units, counted from 0. Raises `DataError` for too many steps.
    """
    if not len(grid.begins):
        return grid, np.zeros(1, np.int64)
    steps = np.ones(len(grid.begins) - 1, np.int64)
    steps[held] = -(-np.diff(grid.begins)[held] // step)
    first = np.append(0, np.cumsum(steps))
    if first[-1] > _MOST_STEPS:
        raise DataError(f"the windows would have {first[-1]:,} steps of {step} s", "use a longer step")
    begins = np.repeat(grid.begins[:-1] - first[:-1] * step, steps) + np.arange(first[-1]) * step
    begins = np.append(begins, grid.begins[-1])
    return CalendarGrid(grid.type, 0, *_measures_at(dtype, begins)), first


# --- where units begin ----------------------------------------------------------------------------------------------


def _beginnings(spec: Calendar, zone: zoneinfo.ZoneInfo, low: int, high: int) -> tuple[int, list[int]]:
    unit = _unit(spec, (_EPOCH + dt.timedelta(seconds=low)).date()) + 1  # where clocks are ahead of UTC
    while (begin := _begin(zone, _first_reading(spec, unit))) > low:
        unit -= 1
    begins = [begin]
    while begins[-1] <= high:
        begins.append(_begin(zone, _first_reading(spec, unit + len(begins))))
    return unit, begins


def _unit(spec: Calendar, date: dt.date) -> int:
    match spec.unit:
        case "day":
            return date.toordinal()
        case "week":
            return (date.toordinal() - 1 - _WEEKDAYS.index(spec.start)) // 7  # day 1 is a Monday
        case "month":
            return date.year * 12 + date.month - 1
        case "quarter":
            return date.year * 4 + (date.month - 1) // 3
    return date.year


# A reading of the clocks is a number of seconds since they would have shown 1970: units begin and end in the years 0
# and 10000, too, which `datetime` lacks.


def _first_reading(spec: Calendar, unit: int) -> int:
    match spec.unit:
        case "day":
            ordinal = unit
        case "week":
            ordinal = unit * 7 + 1 + _WEEKDAYS.index(spec.start)
        case "month":
            ordinal = _ordinal(unit // 12, unit % 12 + 1)
        case "quarter":
            ordinal = _ordinal(unit // 4, unit % 4 * 3 + 1)
        case _:
            ordinal = _ordinal(unit, 1)
    at = dt.datetime.combine(_EPOCH, spec.at) - _EPOCH
    return (ordinal - _EPOCH.toordinal()) * _DAY + at // _SECOND


def _ordinal(year: int, month: int) -> int:
    cycles, rest = divmod(year - 1, 400)
    return dt.date(rest + 1, month, 1).toordinal() + cycles * (_CYCLE // _DAY)


def _begin(zone: zoneinfo.ZoneInfo, reading: int) -> int:
    before, after = _offsets(zone, reading)
    instant = reading - before
    if before >= after:
        return instant  # shown once, or first in the offset before they were put back
    early = reading - after  # the clocks jump between ``early`` and ``instant``
    while instant - early > 1:
        middle = (early + instant) // 2
        early, instant = (middle, instant) if _shown(zone, middle) < reading else (early, middle)
    if _shown(zone, early) // _DAY < reading // _DAY < _shown(zone, instant) // _DAY:
        return _begin(zone, reading + _DAY)  # a date left out
    return instant


def _offsets(zone: zoneinfo.ZoneInfo, reading: int) -> tuple[int, int]:
    """Return the offsets of a reading before and after the change that repeats or skips it; else its offset twice."""
    shown = _EPOCH + dt.timedelta(seconds=reading + cycles_to(reading))
    before, after = zone.utcoffset(shown), zone.utcoffset(shown.replace(fold=1))
    assert before is not None
    assert after is not None
    return before // _SECOND, after // _SECOND


def _shown(zone: zoneinfo.ZoneInfo, instant: int) -> int:
    moved = cycles_to(instant)
    utc = (_EPOCH + dt.timedelta(seconds=instant + moved)).replace(tzinfo=zone)
    return (zone.fromutc(utc).replace(tzinfo=None, fold=0) - _EPOCH) // _SECOND - moved


def cycles_to(second: int) -> int:
    """Return how far a second of the first or the last years is from one with the same date and the same rules.

    After 400 years dates have their weekdays again; no zone had changed in 1700, and no rule changes after 2200.
    """
    return _CYCLE if second < FIRST + _EDGE else -_CYCLE if second > LAST - _EDGE else 0


@kernel
def _places(starts: Measures, values: Measures) -> Ints:
    """Return for each value the index of the last of ``starts`` that is at most as large, int64 (n,)."""
    # Rows of a key are often in order of the clock, so most values lie in the unit of the value before: two
    # comparisons instead of a bisection.
    out = np.empty(len(values), np.int64)
    if not len(values):
        return out
    place, low, high = 0, starts[0], starts[0]
    for i in range(len(values)):
        if not (low <= values[i] < high):
            place = np.searchsorted(starts, values[i], side="right") - 1
            low, high = starts[place], starts[place + 1]
        out[i] = place
    return out


# A grid whose cells hold the instant that ends them, and not the one that begins them (semantics section 12).


@dataclass(frozen=True, slots=True)
class RightClosed:
    """Cells ``(bound(k), bound(k + 1)]`` of a grid.

    ``grid``: the grid whose cells are closed on the left; it must reach to before the first value.
    """

    grid: Grid | CalendarGrid

    @property
    def type(self) -> pa.DataType:
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


AnyGrid: TypeAlias = Grid | CalendarGrid | RightClosed


def clock_cell(grid: AnyGrid, values: Measures, clock: ClockValue | None) -> int:
    """Return the cell of the clock's current time; cells before it are complete. Needs a value or ``clock``."""
    return int(grid.cells(now_as_measure(values, clock))[0])
