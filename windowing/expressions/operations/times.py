"""Dates, timestamps and intervals over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..steps import Failures, as_array, as_mask, blank
from .arithmetic import as_float, integers
from .casts import floor_divide

_DAY: Final = {"s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
PARTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "year": pc.year, "quarter": pc.quarter, "month": pc.month, "week": pc.iso_week, "day": pc.day, "hour": pc.hour,
    "minute": pc.minute, "second": pc.second, "doy": pc.day_of_year, "isoyear": pc.iso_year,
    "isodow": lambda values: pc.day_of_week(values, count_from_zero=False),
    "dow": lambda values: pc.day_of_week(values, week_start=7),
    "millisecond": lambda values: floor_divide(_within_minute(values, "us"), 1000),
    "microsecond": lambda values: _within_minute(values, "us"),
    "decade": lambda values: pc.divide(pc.year(values), 10), "century": lambda values: _age(values, 100),
    "millennium": lambda values: _age(values, 1000),
    "yearweek": lambda values: pc.add(pc.multiply(pc.iso_year(values), 100), pc.iso_week(values)),
}  # fmt: skip
"""The parts of a timestamp that ``extract`` takes beside ``epoch``."""

TRUNCATIONS: Final = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "decade",
    "century",
    "millennium",
    "isoyear",
)
"""The units of ``date_trunc`` and ``date_diff``."""

_MONTHS: Final = {"month": 1, "quarter": 3}
_SECONDS: Final = {"hour": 3600, "minute": 60, "second": 1}
_PARTS_OF_SECOND: Final = {"millisecond": 10**3, "microsecond": 10**6}
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}


def part(_failures: Failures, values: pa.Array, name: str) -> pa.Array:
    """Return a part of timestamps, in their own zone: int64 (n,)."""
    return PARTS[name](values).cast(pa.int64())


def epoch(_failures: Failures, values: pa.Array) -> pa.Array:
    """Return the seconds since 1970 of timestamps, or those of intervals: float64 (n,)."""
    return pc.divide(as_float(values.cast(pa.int64()), pa.float64()), float(_SECOND[values.type.unit]))


def truncate(_failures: Failures, values: pa.Array, unit: str) -> pa.Array:
    """Return the beginning of the unit that timestamps are in, in their own zone; weeks begin on Mondays."""
    if unit in _YEARS:
        return pc.floor_temporal(values, multiple=_YEARS[unit], unit="year")
    week = pc.floor_temporal(values, unit="week" if unit == "isoyear" else unit, week_starts_monday=True)
    if unit != "isoyear":
        return week
    kind = values.type
    monday = week if kind.tz is None else pc.local_timestamp(week)
    gone = pc.multiply(pc.subtract(pc.iso_week(values), 1), 7 * _DAY[kind.unit]).cast(pa.duration(kind.unit))
    first = pc.subtract(monday, gone)
    return first if kind.tz is None else pc.assume_timezone(first, kind.tz, ambiguous="earliest", nonexistent="latest")


def boundaries(failures: Failures, start: Any, end: Any, unit: str) -> pa.Array:
    """Return how many units begin after ``start`` up to ``end``, timestamps of one type: int64 (n,).

    Weeks are seven days each, wherever they begin.
    """
    low, high = (_count(as_array(each, failures.n), unit) for each in (start, end))
    found = integers(failures, high, low, "-", pa.int64())
    return pc.divide(found, 7) if unit == "week" else found


def _count(values: pa.Array, unit: str) -> pa.Array:
    """Return the number of the unit that timestamps are in, of a week that of the day: int64 (n,)."""
    if unit in _YEARS:
        return pc.divide(pc.year(values), _YEARS[unit])
    if unit in _MONTHS:
        year = pc.multiply(pc.year(values), 12 // _MONTHS[unit])
        return pc.add(year, (pc.month if unit == "month" else pc.quarter)(values))
    if unit == "isoyear":
        return pc.iso_year(values)
    size = _DAY[values.type.unit]
    if unit in {"day", "week"}:
        return floor_divide((values if values.type.tz is None else pc.local_timestamp(values)).cast(pa.int64()), size)
    ticks = truncate(Failures(0), values, unit).cast(pa.int64())
    per_second = _SECOND[values.type.unit]
    size = per_second * _SECONDS[unit] if unit in _SECONDS else per_second // _PARTS_OF_SECOND[unit]
    return floor_divide(ticks, size)


def from_epoch(failures: Failures, seconds: pa.Array) -> pa.Array:
    """Return the instants of seconds since 1970, floats: timestamp[us, UTC] (n,). A row out of range fails."""
    micros = pc.multiply(seconds, 1e6)
    bad = as_mask(pc.fill_null(pc.invert(pc.less(pc.abs(micros), 2.0**63)), False))
    failures.add(bad, "seconds out of range")
    whole = pc.round(blank(micros, bad), round_mode="half_to_even")
    return whole.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))


def difference(failures: Failures, left: Any, right: Any, unit: str) -> pa.Array:
    """Return the time from ``right`` to ``left``, timestamps of one unit: duration (n,)."""
    return whole_steps(failures, left, right, "-", pa.duration(unit))


def shift(failures: Failures, values: Any, spans: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Return timestamps or intervals of a type, moved by intervals of its unit. A row out of range fails."""
    return whole_steps(failures, values, spans, sign, kind)


def whole_steps(failures: Failures, left: Any, right: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute over the whole numbers that are times, and return times of a type."""
    return integers(failures, left.cast(pa.int64()), right.cast(pa.int64()), sign, pa.int64()).cast(kind)


def shift_months(failures: Failures, values: pa.Array, months: int) -> pa.Array:
    """Return timestamps moved by months: the same day, or the last one of a shorter month. A zone counts as UTC."""
    size = _DAY[values.type.unit]
    numbers = as_array(values, failures.n).cast(pa.int64())
    whole = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    days = np.floor_divide(whole, size)
    dates = days.astype("datetime64[D]")
    first = dates.astype("datetime64[M]")
    moved = first + months
    length = ((moved + 1).astype("datetime64[D]") - moved.astype("datetime64[D]")).astype(np.int64)
    day = np.minimum((dates - first.astype("datetime64[D]")).astype(np.int64), length - 1)
    found = (moved.astype("datetime64[D]").astype(np.int64) + day) * size + (whole - days * size)
    return pa.array(found, mask=as_mask(numbers.is_null())).cast(values.type)


def shift_days(failures: Failures, dates: Any, days: Any, sign: str) -> pa.Array:
    """Return dates moved by days, integers. A row out of range fails."""
    moved = integers(failures, dates.cast(pa.int32()).cast(pa.int64()), days.cast(pa.int64()), sign, pa.int64())
    bad = as_mask(pc.greater(pc.abs(moved), 2**31 - 3))
    failures.add(bad, "a date out of range")
    return blank(moved, bad).cast(pa.int32()).cast(pa.date32())


def days_between(_failures: Failures, left: Any, right: Any) -> pa.Array:
    """Return the days from ``right`` to ``left``, dates: int64 (n,)."""
    return pc.subtract(left.cast(pa.int32()).cast(pa.int64()), right.cast(pa.int32()).cast(pa.int64()))


def scale(failures: Failures, spans: Any, factor: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Return intervals of a type times or by numbers, to the nearest unit below; a division by zero is null."""
    if sign == "*" and t.is_integer(factor.type):
        return whole_steps(failures, spans, factor, "*", kind)
    size, by = (_as_double(each, failures.n) for each in (spans, factor))
    found = as_array(pc.multiply(size, by) if sign == "*" else pc.divide(size, by), failures.n)
    is_null = pc.and_(pc.equal(by, 0.0), sign == "/")
    found = pc.if_else(is_null, pa.scalar(None, pa.float64()), found)
    bad = as_mask(pc.invert(pc.less(pc.abs(found), 2.0**63)))
    failures.add(bad, "an interval out of range")
    return pc.trunc(blank(found, bad)).cast(pa.int64()).cast(kind)


def _as_double(values: Any, n: int) -> pa.Array:
    whole = as_array(values, n)
    return as_float(whole.cast(pa.int64()) if t.is_duration(whole.type) else whole, pa.float64())


def _age(values: pa.Array, years: int) -> pa.Array:
    """The century or millennium of timestamps, of which the first begins with the year 1."""
    year = pc.year(values)
    after = pc.add(pc.divide(pc.subtract(year, 1), years), 1)
    return pc.if_else(pc.greater(year, 0), after, pc.subtract(pc.divide(year, years), 1))


def _within_minute(values: pa.Array, unit: str) -> pa.Array:
    """The time since the minute began, in a unit of time."""
    start = pc.floor_temporal(values, unit="minute")
    gone = pc.subtract(values.cast(pa.int64()), start.cast(pa.int64()))
    size, wanted = _SECOND[values.type.unit], _SECOND[unit]
    return pc.multiply(gone, wanted // size) if wanted >= size else floor_divide(gone, size // wanted)
