"""Casts from text that Arrow lacks, for the text forms in which results of wincli have these types.

Binary is hexadecimal, a duration is a count of its unit, a time of day is ``10:00:01.5``, lists and structs are JSON.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    for matches, function in (
        (pa.types.is_duration, _duration),
        (pa.types.is_time, _time),
        (pa.types.is_binary, _binary),
        (pa.types.is_nested, _nested),
    ):
        if matches(kind):
            return function
    return None


def _duration(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    return pc.cast(pc.cast(texts, pa.int64()), kind)


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
    from ..text.json_lines import parse_lines  # noqa: PLC0415 - only where there is JSON

    if not len(texts):
        return pa.array([], kind)
    lines = pc.binary_join_element_wise('{"v":', pc.fill_null(texts, "null"), "}\n", "")
    ends = np.frombuffer(lines.buffers()[1], np.int32)
    data = lines.buffers()[2][: int(ends[len(lines)])]
    table = parse_lines(data, {"v": kind}, others=False)
    if len(table) != len(texts):
        raise pa.ArrowInvalid("not one value of JSON each")
    return table["v"].combine_chunks()
