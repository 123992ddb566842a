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
)
"""The units of ``date_trunc``."""


def part(_failures: Failures, values: pa.Array, name: str) -> pa.Array:
    """Return a part of timestamps, in their own zone: int64 (n,)."""
    return PARTS[name](values).cast(pa.int64())


def epoch(_failures: Failures, values: pa.Array) -> pa.Array:
    """Return the seconds since 1970 of timestamps, or those of intervals: float64 (n,)."""
    return pc.divide(as_float(values.cast(pa.int64()), pa.float64()), float(_SECOND[values.type.unit]))


def truncate(_failures: Failures, values: pa.Array, unit: str) -> pa.Array:
    """Return the beginning of the unit that timestamps are in, in their own zone; weeks begin on Mondays."""
    return pc.floor_temporal(values, unit=unit, week_starts_monday=True)


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


def _within_minute(values: pa.Array, unit: str) -> pa.Array:
    """The time since the minute began, in a unit of time."""
    start = pc.floor_temporal(values, unit="minute")
    gone = pc.subtract(values.cast(pa.int64()), start.cast(pa.int64()))
    size, wanted = _SECOND[values.type.unit], _SECOND[unit]
    return pc.multiply(gone, wanted // size) if wanted >= size else floor_divide(gone, size // wanted)
