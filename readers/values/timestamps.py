"""Timestamps in a declared format (``%d/%m/%y %H:%M:%S.%f``), parsed by one loop over the bytes of a column.

Arrow's ``strptime`` reads no fractions of a second and does not say which rows fail.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.support.column_types import PER_SECOND
from ...windowing.support.jit import njit
from .time_formats import (
    AM_PM,
    DAY,
    DAY_NAME,
    DAY_OF_YEAR,
    EPOCH,
    FRACTION,
    HOUR,
    HOUR12,
    LITERAL,
    MINUTE,
    MONTH,
    MONTH_NAME,
    SECOND,
    SPACE,
    YEAR,
    YEAR2,
    ZONE,
    compile_format,
)
from .types import ColumnType, Mask

_MONTHS = np.array(
    [
        *("january", "february", "march", "april", "may", "june"),
        *("july", "august", "september", "october", "november", "december"),
    ],
    "S9",
).view(np.uint8)  # nine bytes for each name, padded with zeros
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365], np.int64)
_OPS = EPOCH + 1
_UNSET = -1
# The fewest and the most digits of each numeric field, by operation.
_FEWEST = np.ones(_OPS, np.int64)
_MOST = np.full(_OPS, 2, np.int64)
_FEWEST[YEAR] = _MOST[YEAR] = 4
_FEWEST[YEAR2] = 2
_MOST[FRACTION], _MOST[DAY_OF_YEAR], _MOST[EPOCH] = 9, 3, 12


def parse_column(column: pa.ChunkedArray, want: ColumnType) -> tuple[pa.ChunkedArray, Mask | None]:
    """Parse texts to the wanted timestamp or date exactly; return the column, and the mask of texts that do not parse.

    The mask is bool (N,), or None if all texts parse. A text must match the whole format. Fields that the format lacks
    are those of 1900-01-01 00:00:00; a schema may lack only the fields for which
    `readers.values.time_formats.missing_part` assumes the beginning. A two-digit year is 1969 to 2068. Digits of
    ``%f`` below the unit of the type must be zero.
    """
    texts = pc.cast(column, pa.string()).combine_chunks()
    is_date = pa.types.is_date(want.type)
    unit = "us" if is_date else want.type.unit
    ticks, ok = _parse(texts, want.format or "", PER_SECOND[unit])
    known = np.array(pc.is_valid(texts), np.bool_)
    bad = known & ~ok
    parsed = pa.array(ticks, mask=~(known & ok)).cast(pa.timestamp(unit))
    final = parsed.cast(want.type, safe=False) if is_date else parsed.view(want.type)
    return pa.chunked_array([final]), bad if bad.any() else None


def warm() -> None:
    """Compile the loop or load it, so that workers that start later find it in the cache."""
    _parse(pa.array(["1"]), "%d", 1)


def _parse(texts: pa.StringArray, layout: str, per_second: int) -> tuple[npt.NDArray[np.int64], Mask]:
    program = np.array(compile_format(layout), np.int64).reshape(-1, 2)
    _, offset_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
    ticks, ok = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    if len(texts):
        _parse_all(data, offsets, program, per_second, ticks, ok)
    return ticks, ok


@njit(cache=True)
def _digits(text: npt.NDArray[np.uint8], at: int, fewest: int, most: int) -> tuple[int, int]:
    value, start = 0, at
    while at < text.size and at - start < most and 48 <= text[at] <= 57:
        value = 10 * value + (text[at] - 48)
        at += 1
    return (at if at - start >= fewest else _UNSET), value


@njit(cache=True)
def _after_letters(text: npt.NDArray[np.uint8], at: int) -> int:
    start = at  # text | 32 is the lower case of a letter
    while at < text.size and 97 <= text[at] | 32 <= 122:
        at += 1
    return at if at - start >= 3 else _UNSET


@njit(cache=True)
def _is_name(word: npt.NDArray[np.uint8], name: npt.NDArray[np.uint8]) -> bool:
    # A name of nine letters has no zero behind it, so the length is compared before the padding.
    if word.size > name.size or (word.size != 3 and word.size < name.size and name[word.size] != 0):
        return False
    return bool(np.all((word | 32) == name[: word.size]))


@njit(cache=True)
def _month(text: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the offset behind an English month name or its first three letters, and the number of the month.

    The offset is negative where there is no such name.
    """
    end = _after_letters(text, at)
    for month in range(12):
        if end >= 0 and _is_name(text[at:end], _MONTHS[9 * month : 9 * month + 9]):
            return end, month + 1
    return _UNSET, 0


@njit(cache=True)
def _half(text: npt.NDArray[np.uint8], at: int) -> int:
    if at + 2 > text.size or text[at + 1] | 32 != 109:
        return _UNSET
    return 0 if text[at] | 32 == 97 else 1 if text[at] | 32 == 112 else _UNSET


@njit(cache=True)
def _zone(text: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Read ``Z``, ``+hh``, ``+hhmm`` or ``+hh:mm``; return the offset in the text behind it, and the zone in seconds.

    The offset is negative where there is no zone.
    """
    if at >= text.size:
        return _UNSET, 0
    if text[at] == 90:
        return at + 1, 0
    if text[at] != 43 and text[at] != 45:
        return _UNSET, 0
    sign = -1 if text[at] == 45 else 1
    after, hours = _digits(text, at + 1, 2, 2)
    if after < 0 or hours > 23:
        return _UNSET, 0
    colon = 1 if after < text.size and text[after] == 58 else 0
    end, minutes = _digits(text, after + colon, 2, 2)
    if end < 0:  # hours alone; a colon without minutes is an error
        return (_UNSET if colon else after), sign * hours * 3600
    return (end if minutes < 60 else _UNSET), sign * (hours * 3600 + minutes * 60)


@njit(cache=True)
def _is_leap(year: int) -> int:
    return 1 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 0


@njit(cache=True)
def _is_clock(fields: npt.NDArray[np.int64]) -> bool:
    """Whether the fields are a valid date and time of day; a leap second is not."""
    year, month, day = fields[YEAR], fields[MONTH], fields[DAY]
    leap = _is_leap(year)
    # The month first: it is an index into _DAYS_BEFORE.
    if not (1 <= month <= 12 and 1 <= fields[HOUR12] <= 12):
        return False
    if not 1 <= day <= _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (leap and month == 2):
        return False
    if fields[DAY_OF_YEAR] != _UNSET and not 1 <= fields[DAY_OF_YEAR] <= 365 + leap:
        return False
    return bool(fields[HOUR] <= 23 and fields[MINUTE] <= 59 and fields[SECOND] <= 59)


@njit(cache=True)
def _read_fields(text: npt.NDArray[np.uint8], program: npt.NDArray[np.int64], fields: npt.NDArray[np.int64]) -> bool:
    """Read the fields of a text; return whether all of it matches the format, and the fields are a valid time.

    ``fields``: int64 (_OPS,), one element for each operation, overwritten.
    """
    # Defaults for what the format lacks. `_UNSET` marks the fields that take part only where the format has them.
    fields[:] = 0
    fields[YEAR], fields[MONTH], fields[DAY] = 1900, 1, 1
    fields[AM_PM] = fields[DAY_OF_YEAR] = fields[EPOCH] = _UNSET
    fields[HOUR12] = 12
    at = 0
    # Invariant: text[:at] has matched the steps before; a step that does not match sets ``at`` to a negative number.
    for step in range(program.shape[0]):
        op = program[step, 0]
        if op == LITERAL:
            at = at + 1 if at < text.size and text[at] == program[step, 1] else _UNSET
        elif op == SPACE:
            while at < text.size and (text[at] == 32 or text[at] == 9):
                at += 1
        elif op == MONTH_NAME:
            at, fields[MONTH] = _month(text, at)
        elif op == DAY_NAME:
            at = _after_letters(text, at)
        elif op == AM_PM:
            fields[AM_PM] = _half(text, at)
            at = at + 2 if fields[AM_PM] >= 0 else _UNSET
        elif op == ZONE:
            at, fields[ZONE] = _zone(text, at)
        else:
            start = at
            at, fields[op] = _digits(text, at, _FEWEST[op], _MOST[op])
            if op == YEAR2:
                fields[YEAR] = fields[YEAR2] + (1900 if fields[YEAR2] >= 69 else 2000)
            elif op == FRACTION:  # scaled to ns by the number of digits read
                fields[FRACTION] *= 10 ** (9 - (at - start)) if at > start else 0
        if at < 0:
            return False
    return bool(at == text.size and _is_clock(fields))


@njit(cache=True)
def _seconds(fields: npt.NDArray[np.int64]) -> int:
    if fields[EPOCH] != _UNSET:
        return int(fields[EPOCH])
    year, month = fields[YEAR], fields[MONTH]
    past = year - 1
    day = 365 * past + past // 4 - past // 100 + past // 400 - 719162  # days from 1970-01-01 to January 1 of the year
    if fields[DAY_OF_YEAR] != _UNSET:
        day += fields[DAY_OF_YEAR] - 1
    else:
        day += _DAYS_BEFORE[month - 1] + fields[DAY] - 1 + (_is_leap(year) if month > 2 else 0)
    hour = fields[HOUR]
    if fields[AM_PM] != _UNSET:  # the hour is that of %H, or of %I where %H is absent or 0; 12 is hour 0 of its half
        hour = (fields[HOUR12] if hour == 0 else hour) % 12 + 12 * fields[AM_PM]
    return int(day * 86400 + hour * 3600 + fields[MINUTE] * 60 + fields[SECOND] - fields[ZONE])


@njit(cache=True)
def _parse_all(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32],
    program: npt.NDArray[np.int64],
    per_second: int,
    ticks: npt.NDArray[np.int64],
    ok: Mask,
) -> None:
    # Texts that do not parse keep ok = False and tick 0; the caller masks them, and the loop never raises.
    step = 1_000_000_000 // per_second
    limit = 9_223_372_036 if step == 1 else 9_223_372_036_854 * (step // 1000)  # the seconds that 64 bits of ticks hold
    fields = np.empty(_OPS, np.int64)
    for row in range(offsets.size - 1):
        if not _read_fields(data[offsets[row] : offsets[row + 1]], program, fields):
            continue
        seconds = _seconds(fields)
        # The fraction is always in ns. Digits below the tick are refused rather than cut: parsing loses nothing.
        if fields[FRACTION] % step == 0 and -limit < seconds < limit:
            ok[row] = True
            ticks[row] = seconds * per_second + fields[FRACTION] // step
