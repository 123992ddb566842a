"""Convert a column to another type exactly, and report the rows whose value does not convert.

The fast path is one cast of the whole column. Only if that fails does the module look for the bad values: a pattern
finds those of the wrong shape all at once, bisection finds the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.support.column_types import PER_SECOND
from .types import ColumnType, Mask

# Casts from text that Arrow lacks, for the text forms in which results of wincli have these types.
#
# Binary is hexadecimal, a duration is a count of its unit, a time of day is ``10:00:01.5``, lists and structs are
# JSON.


_NO_DIGIT = 255
_DIGITS = np.full(256, _NO_DIGIT, np.uint8)
for _value, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _value
for _value, _digit in enumerate(b"ABCDEF", 10):
    _DIGITS[_digit] = _value


def caster(kind: pa.DataType) -> Callable[[pa.StringArray, pa.DataType], pa.Array] | None:
    """Return the function that casts an array of texts to ``kind``; None where Arrow's own cast does it.

    The function raises `pa.ArrowInvalid` for a text that is no value of the type.
    """
    if pa.types.is_duration(kind):
        return lambda texts, kind: pc.cast(pc.cast(texts, pa.int64()), kind)
    if pa.types.is_time(kind):
        return _time
    if pa.types.is_binary(kind):
        return _binary
    return _nested if pa.types.is_nested(kind) else None


def _time(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    stamps = pc.cast(pc.binary_join_element_wise("1970-01-01", texts, " "), pa.timestamp(kind.unit))
    return pc.cast(stamps, kind)


def _binary(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    whole = pc.fill_null(texts, "")
    _, offset_buffer, data_buffer = whole.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[whole.offset : whole.offset + len(whole) + 1]
    digits = _DIGITS[np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]]
    if (np.diff(offsets) % 2).any() or (digits == _NO_DIGIT).any():
        raise pa.ArrowInvalid("not hexadecimal")
    ends = pa.py_buffer(((offsets - offsets[0]) // 2).astype(np.int32))
    values = pa.Array.from_buffers(kind, len(whole), [None, ends, pa.py_buffer(digits[::2] << 4 | digits[1::2])])
    return pc.if_else(texts.is_valid(), values, pa.scalar(None, kind))


def _nested(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    from .json_fields import parse_lines  # noqa: PLC0415 - only where there is JSON

    if not len(texts):
        return pa.array([], kind)
    lines = pc.binary_join_element_wise('{"v":', pc.fill_null(texts, "null"), "}\n", "")
    ends = np.frombuffer(lines.buffers()[1], np.int32)
    data = lines.buffers()[2][: int(ends[len(lines)])]
    table = parse_lines(data, {"v": kind}, others=False)
    if len(table) != len(texts):
        raise pa.ArrowInvalid("not one value of JSON each")
    return table["v"].combine_chunks()


# Unix times: numbers of seconds, ms, us or ns since 1970-01-01 UTC, as integers, decimals, floats or text.


_PRECISION = 38


def from_unix(column: pa.ChunkedArray | pa.Array, kind: pa.TimestampType, digits: int) -> pa.ChunkedArray | pa.Array:
    """Return numbers as timestamps of type ``kind``, exactly.

    ``digits``: the most decimal digits behind the point; one tick of ``kind`` is one in the last of them. A float is
    taken as the shortest decimal that reads back as the same float. Raises `pyarrow.ArrowInvalid` where a value is no
    number, has more digits, or does not fit 64 bits of ticks.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([from_unix(chunk, kind, digits) for chunk in column.chunks], kind)
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.string())
    if not len(column):
        return pa.array([], kind)
    numbers = pc.cast(column, pa.decimal128(_PRECISION, digits))
    # A decimal128 is two little-endian words; it fits 64 bits if the high word is only the sign of the low one.
    words = np.frombuffer(numbers.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[numbers.offset : numbers.offset + len(numbers)].T
    known = numbers.is_valid().to_numpy(zero_copy_only=False)
    if (known & (high != low >> 63)).any():
        raise pa.ArrowInvalid("beyond 64 bits")
    return pa.array(low, mask=~known).view(kind)


_Column: TypeAlias = "pa.ChunkedArray | pa.Array"
_Cast = Callable[[_Column], _Column]

# A pattern that every text of the type matches; a text that matches may still be no value of the type.
_SHAPES = (
    (pa.types.is_integer, r"^-?[0-9a-fA-FxX]+$"),
    (pa.types.is_floating, r"^[-+.0-9a-zA-Z()]+$"),
    (pa.types.is_decimal, r"^[-+.0-9eE]+$"),
    (pa.types.is_boolean, r"^(?i:true|false|0|1)$"),
    (pa.types.is_date, r"^\d{4}-\d\d-\d\d$"),
    (pa.types.is_timestamp, r"^\d{4}-\d\d-\d\d"),
)
_FAR_TIME = r"^(?P<year>-\d{4,5}|\d{5})(?P<rest>-\d\d-\d\d.*)$"
_TRIMMED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
)  # the CSV parser trims these


def convert(column: pa.ChunkedArray, want: ColumnType) -> tuple[pa.ChunkedArray, Mask | None]:
    """Return ``column`` in the wanted type, and a mask of the rows whose value does not convert; None if all convert.

    The mask is bool (N,). Its rows are null in the result. No value is truncated or wraps around; only integers that
    become floats are rounded.
    """
    if column.type == want.type and want.format is None:
        return column, None
    cast: _Cast = partial(_cast, kind=want.type)
    if want.unix_digits is not None and not pa.types.is_temporal(column.type):
        cast = partial(from_unix, kind=want.type, digits=want.unix_digits)
    elif want.format is not None and (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        from .timestamps import parse_column  # noqa: PLC0415 - numba loads only where a format is given

        return parse_column(column, want)
    is_padded = pa.types.is_string(column.type) and any(matches(_shape_of(want)) for matches in _TRIMMED)
    prepared = pc.utf8_trim(column, " \t") if is_padded else column
    try:
        return cast(prepared), None
    except pa.ArrowInvalid:
        bad = _type_errors(prepared, want, cast)
    except pa.ArrowNotImplementedError:  # no value of this type is a value of the other
        bad = _numpy(pc.is_valid(prepared))
        return pa.chunked_array([pa.nulls(len(column), want.type)]), bad if bad.any() else None
    cleared = pc.if_else(pa.array(bad), pa.scalar(None, prepared.type), prepared)
    found = cast(cleared)
    if pa.types.is_string(prepared.type) and (pa.types.is_timestamp(want.type) or pa.types.is_date32(want.type)):
        far = _far_times(pc.if_else(pa.array(bad), prepared, pa.scalar(None, prepared.type)), want)
        found, bad = pc.coalesce(found, far), bad & ~_numpy(far.is_valid())
    return found, bad if bad.any() else None


def _far_times(texts: pa.ChunkedArray, want: ColumnType) -> pa.ChunkedArray:
    """Return the times of texts whose year has a sign or five digits, as results have them; null for all others.

    Arrow reads years of four digits. Dates come again after 400 years, so the year is moved into these and back.
    """
    if pa.types.is_timestamp(want.type) and want.type.unit == "ns":  # 64 bits hold no such year
        return pa.chunked_array([pa.nulls(len(texts), want.type)])
    parts = pc.extract_regex(texts, _FAR_TIME)
    year = pc.struct_field(parts, "year").cast(pa.int64())
    cycles = pc.floor(pc.divide(year.cast(pa.float64()), 400)).cast(pa.int64())
    near = pc.add(pc.subtract(year, pc.multiply(cycles, 400)), 2000).cast(pa.string())
    times, bad = convert(pc.binary_join_element_wise(near, pc.struct_field(parts, "rest"), ""), want)
    known = pc.and_(times.is_valid(), pa.array(~bad)) if bad is not None else times.is_valid()
    size = 1 if pa.types.is_date32(want.type) else 86_400 * PER_SECOND[want.type.unit]
    ticks = times.cast(pa.int32() if pa.types.is_date32(want.type) else pa.int64()).cast(pa.int64())
    moved = pc.add(ticks, pc.multiply(pc.subtract(cycles, 5), 146_097 * size))
    whole = moved.cast(pa.int32()) if pa.types.is_date32(want.type) else moved
    return pc.if_else(known, whole.cast(want.type), pa.scalar(None, want.type))


def _cast(column: _Column, kind: pa.DataType) -> _Column:
    from_text = caster(kind) if pa.types.is_string(column.type) else None
    if from_text is not None:
        if isinstance(column, pa.Array):
            return from_text(column, kind)
        return pa.chunked_array([from_text(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        return pc.cast(column, kind, safe=False)  # rounds beyond 2**53 to the nearest, as parsing the text would
    return pc.cast(column, kind)


def _type_errors(column: pa.ChunkedArray, want: ColumnType, cast: _Cast) -> Mask:
    whole = column.combine_chunks()
    bad = np.zeros(len(whole), np.bool_)
    if pa.types.is_string(whole.type):
        shape = next((shape for matches, shape in _SHAPES if matches(_shape_of(want))), "")
        bad = _numpy(pc.fill_null(pc.invert(pc.match_substring_regex(whole, shape)), False))
        whole = pc.if_else(pa.array(bad), pa.scalar(None, whole.type), whole)
    _halve(whole, cast, 0, bad)
    return bad


def _shape_of(want: ColumnType) -> pa.DataType:
    return want.type if want.unix_digits is None else pa.float64()


def _halve(values: pa.Array, cast: _Cast, start: int, bad: Mask) -> None:
    """Set in ``bad``, from index ``start``, the values that do not cast; bisects until one value is left."""
    try:
        cast(values)
    except pa.ArrowInvalid:
        if len(values) == 1:
            bad[start] = True
            return
        half = len(values) // 2
        _halve(values[:half], cast, start, bad)
        _halve(values[half:], cast, start + half, bad)


def _numpy(mask: pa.ChunkedArray | pa.Array) -> Mask:
    return np.array(mask, dtype=np.bool_)
