"""Calendar windows once more (section 2): where local days, weeks, months and years begin, found by looking.

    at=02:30 in Europe/Paris    31 March 2024: 02:00 -> 03:00       27 October 2024: 03:00 -> 02:00
                                begins at 03:00, the jump           begins at the first of two 02:30

A zone is asked one thing only: what its clocks show at an instant. The panes are those of tumbling `time` windows whose
ticks are the beginnings.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from references.tumbling import Time, Value, seconds_per_unit, ticks_of, type_of_ticks

EPOCH = dt.datetime(1970, 1, 1)
SECOND, HOUR, DAY = Fraction(1), 3_600, 86_400
LONGEST = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


# --- instants, in whole seconds since the epoch -------------------------------------------------------------------


def shown(tz: str, instant: int) -> int:
    """What the clocks of a zone show at an instant, as the seconds from the epoch to the same reading in UTC."""
    utc = dt.datetime.fromtimestamp(instant, ZoneInfo("UTC"))
    return (utc.astimezone(ZoneInfo(tz)).replace(tzinfo=None) - EPOCH) // dt.timedelta(seconds=1)


def first_showing(tz: str, reading: int) -> int:
    """The first instant at which the clocks of a zone show a reading, or a later one where they jump over it.

    It is less than a day off, for that is how far a zone may be from UTC.
    """
    hours = range(reading - DAY, reading + DAY + 1, HOUR)
    offsets = {shown(tz, hour) - hour for hour in hours}
    exact = [reading - offset for offset in offsets]
    jumps = [jump(tz, a, b) for a, b in pairwise(hours) if shown(tz, a) - a != shown(tz, b) - b]
    return min(instant for instant in [*exact, *jumps] if shown(tz, instant) >= reading)


def jump(tz: str, before: int, after: int) -> int:
    """The first second at which a zone's offset is no longer what it was ``before``."""
    while after - before > 1:
        middle = (before + after) // 2
        same = shown(tz, middle) - middle == shown(tz, before) - before
        before, after = (middle, after) if same else (before, middle)
    return after


@cache
def begins(tz: str, date: dt.date, at: dt.time) -> int:
    """The instant at which a local date begins; a date that a zone left out begins when the next one does."""
    midnight = (dt.datetime.combine(date, dt.time(0)) - EPOCH) // dt.timedelta(seconds=1)
    if local_date(tz, first_showing(tz, midnight)) != date:
        return begins(tz, date + dt.timedelta(days=1), at)
    return first_showing(tz, midnight + at.hour * HOUR + at.minute * 60 + at.second)


def local_date(tz: str, instant: int) -> dt.date:
    return (EPOCH + dt.timedelta(seconds=shown(tz, instant))).date()


# --- units --------------------------------------------------------------------------------------------------------


def first_day(unit: str, date: dt.date, start: str) -> dt.date:
    """The first date of the day, week, month or year that holds a date."""
    if unit == "week":
        return date - dt.timedelta(days=(date.weekday() - WEEKDAYS.index(start)) % 7)
    quarter = date.replace(month=1 + 3 * ((date.month - 1) // 3), day=1)
    return {"day": date, "month": date.replace(day=1), "quarter": quarter, "year": date.replace(month=1, day=1)}[unit]


def units_from(unit: str, date: dt.date, start: str) -> Iterator[dt.date]:
    """The first dates of units, from the one that holds a date on."""
    first = first_day(unit, date, start)
    while True:
        yield first
        first = first_day(unit, first + dt.timedelta(days=LONGEST[unit]), start)


def starts(unit: str, tz: str, at: dt.time, start: str, low: Fraction, high: Fraction) -> list[int]:
    """Where units begin, from the last beginning at or before ``low`` to the first after ``high``, each once."""
    early = 2 + LONGEST[unit]  # a unit and two days: `at` and a date left out
    found: list[int] = []
    for date in units_from(unit, local_date(tz, math.floor(low)) - dt.timedelta(days=early), start):
        instant = begins(tz, date, at)
        if instant <= low:
            found = [instant]
        elif instant not in found:
            found.append(instant)
        if instant > high:
            return found
    raise AssertionError("units go on for ever")


# --- panes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calendar(Time):
    """Ticks where units begin: window k is ``[beginnings[k - 1], beginnings[k])``. ``length`` is their precision."""

    beginnings: tuple[int, ...] = ()

    def tick(self, k: int) -> Fraction:
        return Fraction(self.beginnings[k])

    @property
    def result_type(self) -> pa.DataType:
        return pa.timestamp("s") if pa.types.is_date(self.kind) else type_of_ticks(self.kind, self.length)

    def window_of(self, value: Value) -> int:
        return bisect_right(self.beginnings, self.clock(value))


def calendar_of(clock: pa.ChunkedArray, unit: str, tz: str, at: dt.time, start: str = "mon", **more: Any) -> Calendar:
    """The ticks of a calendar over the values of a clock column. ``more``: the others of `Calendar`."""
    seconds = [Fraction(value) * seconds_per_unit(clock.type) for value in ticks_of(clock)] or [Fraction(0)]
    return Calendar(
        SECOND, clock.type, beginnings=tuple(starts(unit, tz, at, start, min(seconds), max(seconds))), **more
    )
