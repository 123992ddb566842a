"""Dates, timestamps and intervals over whole columns."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..support.column_types import PER_SECOND
from .arithmetic import as_float, integers, times
from .casts import floor_divide, moment_of, whole_numbers, zone_seconds
from .steps import Failures, as_array, as_mask, blank
from .types import TEXT

_DAY: Final = 86400  # seconds
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

_MONTHS: Final = {"month": 1, "quarter": 3}
_SECONDS: Final = {"hour": 3600, "minute": 60, "second": 1}
_PARTS_OF_SECOND: Final = {"millisecond": 10**3, "microsecond": 10**6}
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
TRUNCATIONS: Final = (*_YEARS, *_MONTHS, "week", "day", *_SECONDS, *_PARTS_OF_SECOND, "isoyear")
"""The units of ``date_trunc`` and ``date_diff``."""


def part(_failures: Failures, values: pa.Array, name: str) -> pa.Array:
    """Return a part of timestamps, in their own zone: int64 (n,)."""
    return PARTS[name](values).cast(pa.int64())


def epoch(_failures: Failures, values: pa.Array) -> pa.Array:
    """Return the seconds since 1970 of timestamps, or those of intervals: float64 (n,)."""
    return pc.divide(as_float(values.cast(pa.int64()), pa.float64()), float(PER_SECOND[values.type.unit]))


def truncate(_failures: Failures, values: pa.Array, unit: str) -> pa.Array:
    """Return the beginning of the unit that timestamps are in, in their own zone; weeks begin on Mondays."""
    if unit in _YEARS:
        return pc.floor_temporal(values, multiple=_YEARS[unit], unit="year")
    week = pc.floor_temporal(values, unit="week" if unit == "isoyear" else unit, week_starts_monday=True)
    if unit != "isoyear":
        return week
    kind = values.type
    monday = week if kind.tz is None else pc.local_timestamp(week)
    week_size = 7 * _DAY * PER_SECOND[kind.unit]
    gone = pc.multiply(pc.subtract(pc.iso_week(values), 1), week_size).cast(pa.duration(kind.unit))
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
    size = _DAY * PER_SECOND[values.type.unit]
    if unit in {"day", "week"}:
        return floor_divide((values if values.type.tz is None else pc.local_timestamp(values)).cast(pa.int64()), size)
    ticks = truncate(Failures(0), values, unit).cast(pa.int64())
    per_second = PER_SECOND[values.type.unit]
    size = per_second * _SECONDS[unit] if unit in _SECONDS else per_second // _PARTS_OF_SECOND[unit]
    return floor_divide(ticks, size)


def from_epoch(failures: Failures, seconds: pa.Array) -> pa.Array:
    """Return the instants of seconds since 1970, floats: timestamp[us, UTC] (n,). A row out of range fails."""
    micros = pc.multiply(seconds, 1e6)
    bad = failures.add(pc.invert(pc.less(pc.abs(micros), 2.0**63)), "seconds out of range")
    whole = pc.round(blank(micros, bad), round_mode="half_to_even")
    return whole.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))


def shift_months(failures: Failures, values: pa.Array, months: int) -> pa.Array:
    """Return timestamps moved by months: the same day, or the last one of a shorter month. A zone counts as UTC."""
    size = _DAY * PER_SECOND[values.type.unit]
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
    bad = failures.add(pc.greater(pc.abs(moved), 2**31 - 3), "a date out of range")
    return blank(moved, bad).cast(pa.int32()).cast(pa.date32())


def days_between(_failures: Failures, left: Any, right: Any) -> pa.Array:
    """Return the days from ``right`` to ``left``, dates: int64 (n,)."""
    return pc.subtract(left.cast(pa.int32()).cast(pa.int64()), right.cast(pa.int32()).cast(pa.int64()))


def scale(failures: Failures, spans: Any, factor: Any, sign: str, kind: pa.DataType) -> pa.Array:
    """Return intervals of a type times or by numbers, to the nearest unit below; a division by zero is null."""
    if sign == "*" and t.is_integer(factor.type):
        return times(failures, spans, factor, "*", kind)
    size, by = (
        as_float(whole.cast(pa.int64()) if t.is_duration(whole.type) else whole, pa.float64())
        for whole in (as_array(each, failures.n) for each in (spans, factor))
    )
    found = as_array(pc.multiply(size, by) if sign == "*" else pc.divide(size, by), failures.n)
    is_null = pc.and_(pc.equal(by, 0.0), sign == "/")
    found = pc.if_else(is_null, pa.scalar(None, pa.float64()), found)
    bad = failures.add(pc.invert(pc.less(pc.abs(found), 2.0**63)), "an interval out of range")
    return pc.trunc(blank(found, bad)).cast(pa.int64()).cast(kind)


def _age(values: pa.Array, years: int) -> pa.Array:
    year = pc.year(values)
    after = pc.add(pc.divide(pc.subtract(year, 1), years), 1)
    return pc.if_else(pc.greater(year, 0), after, pc.subtract(pc.divide(year, years), 1))


def _within_minute(values: pa.Array, unit: str) -> pa.Array:
    start = pc.floor_temporal(values, unit="minute")
    gone = pc.subtract(values.cast(pa.int64()), start.cast(pa.int64()))
    size, wanted = PER_SECOND[values.type.unit], PER_SECOND[unit]
    return pc.multiply(gone, wanted // size) if wanted >= size else floor_divide(gone, size // wanted)


# Times on the clocks of a zone, over whole columns: what the clocks show at an instant, and the instant of a reading.
#
# Where clocks are put back, a reading has two instants and the later one counts. Where they are put forward, a
# reading that they leave out counts as if they had gone on: half past two is half an hour after the change. Both as
# in DuckDB.
#
# A zone is asked once for each day that the column has. Arrow's own functions know no rules from the year 2038 on.


_EPOCH = datetime(1970, 1, 1)
_ONE_SECOND = timedelta(seconds=1)
_CYCLE = 146_097  # days of 400 years, after which dates have their weekdays again, and so rules their dates
_FIRST, _RULED = -98_615, 84_006  # 1700-01-01, when no zone had changed yet; 2200-01-01, when all follow their rules
_Offset = Callable[[zoneinfo.ZoneInfo, int], int]


def to_local(failures: Failures, values: pa.Array, zone: str) -> pa.Array:
    """Return what the clocks of a zone show at instants: timestamps without a zone. Those without one are in UTC."""
    return _moved(failures, values, zone, _shown, "+", pa.timestamp(values.type.unit))


def from_local(failures: Failures, values: pa.Array, zone: str) -> pa.Array:
    """Return the instants at which the clocks of a zone show timestamps without a zone."""
    return _moved(failures, values, zone, _meant, "-", pa.timestamp(values.type.unit, "UTC"))


def _moved(failures: Failures, values: pa.Array, zone: str, offset: _Offset, sign: str, kind: pa.DataType) -> pa.Array:
    per_second = PER_SECOND[values.type.unit]
    ticks = as_array(values, failures.n).cast(pa.int64())
    seconds = floor_divide(ticks.fill_null(0), per_second).to_numpy(zero_copy_only=False)
    # The offset in seconds that belongs to each second since 1970: int64 (n,).
    days = pa.array(seconds // _DAY).dictionary_encode()
    parts = np.array([_day(zone, offset, day) for day in days.dictionary.to_pylist()], np.int64).reshape(-1, 3)
    before, change, after = parts[days.indices.to_numpy()].T
    by = pa.array(np.where(seconds % _DAY < change, before, after) * per_second, mask=as_mask(ticks.is_null()))
    return integers(failures, ticks, by, sign, pa.int64()).cast(kind)


@lru_cache(maxsize=1 << 16)
def _day(name: str, offset: _Offset, day: int) -> tuple[int, int, int]:
    """Return the offset at the beginning of a day, the second of the day when it changes, and that from then on.

    No zone changes twice in a day.
    """
    if day >= _RULED:
        day = _RULED + (day - _RULED) % _CYCLE
    start = max(day, _FIRST) * _DAY
    zone = zoneinfo.ZoneInfo(name)
    before, after = offset(zone, start), offset(zone, start + _DAY - 1)
    low, high = start, start + _DAY - 1
    while before != after and high - low > 1:  # the offset at ``low`` is that before, at ``high`` that after
        middle = (low + high) // 2
        low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
    return before, high - start if before != after else 0, after


def _shown(zone: zoneinfo.ZoneInfo, second: int) -> int:
    utc = _EPOCH + timedelta(seconds=second)
    return (zone.fromutc(utc.replace(tzinfo=zone)).replace(tzinfo=None) - utc) // _ONE_SECOND


def _meant(zone: zoneinfo.ZoneInfo, second: int) -> int:
    """Return the offset by which a reading, in seconds since 1970 on the clocks of the zone, is an instant.

    Of a reading that the clocks show twice it is the later, smaller one, of one that they leave out the earlier,
    which is the smaller one, too.
    """
    reading = _EPOCH + timedelta(seconds=second)
    offsets = (zone.utcoffset(reading.replace(fold=fold)) for fold in (0, 1))
    return min(offset // _ONE_SECOND for offset in offsets if offset is not None)


# ``strptime``: texts in a layout become timestamps, whole columns at a time.


_MONTH_NAMES: Final = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                  "november", "december"]  # fmt: skip
_DAY_NAMES: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT: Final = [name[:3] for name in _MONTH_NAMES]


def _names(names: list[str]) -> str:
    return f"(?i:{'|'.join(names)})"


_PARTS: Final = {
    "Y": ("year", "[0-9]{4}"), "y": ("short_year", "[0-9]{1,2}"), "m": ("month", "[0-9]{1,2}"),
    "b": ("month_name", _names(_SHORT)), "B": ("month_name", _names(_MONTH_NAMES)), "d": ("day", "[0-9]{1,2}"),
    "j": ("day_of_year", "[0-9]{1,3}"), "H": ("hour", "[0-9]{1,2}"), "I": ("half_hour", "[0-9]{1,2}"),
    "p": ("half", "(?i:am|pm)"), "M": ("minute", "[0-9]{1,2}"), "S": ("second", "[0-9]{1,2}"),
    "f": ("part", "[0-9]{1,6}"), "g": ("part", "[0-9]{1,3}"), "n": ("part", "[0-9]{1,9}"),
    "z": ("zone", "Z|[+-][0-9]{2}(?::?[0-9]{2})?"),
}  # fmt: skip
_UNNAMED: Final = {"a": _names([day[:3] for day in _DAY_NAMES]), "A": _names(_DAY_NAMES), "%": "%"}
LETTERS: Final = "".join([*_PARTS, *_UNNAMED])
"""The letters that a layout may have behind ``%``."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of times, such as ``%d/%b/%Y:%H:%M:%S %z``.

    ``text``: as written.
    ``pattern``: the regular expression (RE2) of its texts, with a group for each part.
    ``parts``: the names of its parts.
    """

    text: str
    pattern: str
    parts: tuple[str, ...]


def layout_of(text: str) -> Layout | None:
    """Return a layout; None where it has an unknown letter, or one part twice."""
    pattern, parts = "", list[str]()
    for found in re.finditer(r"%-?(.)|(\s+)|([^%\s]+)|%", text, re.DOTALL):
        letter = found[1]
        if letter in _PARTS:
            name, expression = _PARTS[letter]
            parts.append(name)
            pattern += f"(?P<{name}>{expression})"
        elif letter in _UNNAMED:
            pattern += _UNNAMED[letter]
        elif found[2] or found[3]:
            pattern += r"\s+" if found[2] else re.escape(found[3])
        else:
            return None
    return Layout(text, rf"^\s*{pattern}\s*$", tuple(parts)) if len(set(parts)) == len(parts) else None


def strptime(failures: Failures, values: pa.Array, layout: Layout, kind: pa.DataType) -> pa.Array:
    """Return the timestamps that texts in a layout are; parts that it lacks are those of 1900-01-01 00:00:00.

    ``kind``: microseconds, with the zone UTC where the layout has a zone. A text of another form fails.
    """

    def detail() -> pa.Array:
        return pc.binary_join_element_wise("'", values.cast(TEXT), f"' is not in the layout '{layout.text}'", "")

    bad = failures.add(pc.invert(pc.match_substring_regex(values, layout.pattern)), detail)
    found = pc.extract_regex(blank(values, bad), layout.pattern) if layout.parts else None
    parts = {name: pc.struct_field(found, name) for name in layout.parts} if found is not None else {}
    kept = pc.is_valid(blank(values, bad))
    numbers = _numbers(parts, kept)
    days, seconds, is_time = moment_of(numbers)
    bad = bad | failures.add(pc.invert(is_time), detail)
    seconds = pc.add(pc.multiply(days, _DAY), seconds)
    if "zone" in parts:
        seconds = pc.subtract(seconds, zone_seconds(parts["zone"]))
    return blank(pc.add(pc.multiply(seconds, 10**6), numbers["part"]), bad).cast(kind)


def _numbers(parts: dict[str, pa.Array], kept: pa.Array) -> dict[str, pa.Array]:
    """The parts as whole numbers: year, month, day, hour, minute, second and part in microseconds."""

    def whole(name: str, absent: int) -> pa.Array:
        return whole_numbers(parts[name]) if name in parts else pc.if_else(kept, pa.scalar(absent, pa.int64()), None)

    found = {name: whole(name, absent) for name, absent in
             (("year", 1900), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))}  # fmt: skip
    if "short_year" in parts:
        short = whole("short_year", 0)
        found["year"] = pc.add(short, pc.if_else(pc.less(short, 69), 2000, 1900))
    if "month_name" in parts:
        names = pc.utf8_slice_codeunits(pc.ascii_lower(parts["month_name"]), 0, 3)
        found["month"] = pc.add(pc.index_in(names, value_set=pa.array(_SHORT)).cast(pa.int64()), 1)
    if "half_hour" in parts:
        half = whole("half_hour", 0)
        is_late = pc.equal(pc.ascii_lower(parts["half"]), "pm") if "half" in parts else pa.scalar(False)
        hour = pc.add(pc.if_else(pc.equal(half, 12), 0, half), pc.if_else(is_late, 12, 0))
        found["hour"] = pc.if_else(pc.and_(pc.greater(half, 0), pc.less_equal(half, 12)), hour, 99)
    if "day_of_year" in parts:
        found["day_of_year"] = whole("day_of_year", 0)
    found["part"] = (
        whole("part", 0)
        if "part" not in parts
        else whole_numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(parts["part"], 9, "0"), 0, 6))
    )
    return found
