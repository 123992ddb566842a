"""Arrow columns as the arrays that kernels take: zero-copy where the type is 64 bit wide already.

Every function here takes a column without nulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, Mask
from ...columns.hash_kernels import Words, float_words
from ...columns.numeric import INT64_DIGITS, is_measurable, measures
from ...columns.sort_keys import sort_codes
from ..kernels.equal_entries import EqualityKeys
from ..kernels.loops import Codes, Floats, Numbers

_SIGN = np.int64(-(2**63))
_END = 2.0**63
_WHOLE = 2**53  # floats hold all whole numbers up to it


def frozen(values: npt.NDArray[Any]) -> Any:
    """Return an array as contiguous, aligned and read-only, so that kernels are compiled for one type.

    Views of Arrow buffers are read-only as well.
    """
    view = np.require(values, requirements=("C", "A")).view()
    view.flags.writeable = False
    return view


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of a column's values after decoding: dictionaries, run ends, views and small decimals."""
    types = pa.types
    if types.is_dictionary(dtype) or types.is_run_end_encoded(dtype):
        return plain_type(dtype.value_type)
    if types.is_string_view(dtype) or types.is_binary_view(dtype):
        return pa.string() if types.is_string_view(dtype) else pa.binary()
    if types.is_decimal32(dtype) or types.is_decimal64(dtype):
        return pa.decimal128(dtype.precision, dtype.scale)
    return dtype


def plain(column: pa.Array) -> pa.Array:
    """Return a column in its `plain_type`."""
    if pa.types.is_run_end_encoded(column.type):
        return plain(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, plain(column.dictionary)).dictionary_decode()
    wanted = plain_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def is_unsigned(dtype: pa.DataType) -> bool:
    """Whether the bits that `integers` returns for a type are unsigned."""
    return bool(pa.types.is_uint64(dtype))


def integers(column: pa.Array) -> Ints:
    """Return int64 of shape (n,): integers, booleans as 0 and 1, ticks; uint64 keeps its bits (`is_unsigned`)."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    words = measures(column)
    return frozen(words ^ _SIGN if is_unsigned(column.type) else words)


def floats(column: pa.Array) -> Floats:
    """Return float64 of shape (n,), the nearest to each integer, boolean, float or (up to 2**53 units) decimal."""
    if pa.types.is_decimal(column.type) and is_ticks(column.type):
        return frozen(ticks(column) / 10.0**column.type.scale)  # Arrow's own cast multiplies, and misses by a bit
    if pa.types.is_decimal(column.type):
        return frozen(measures(column.cast(pa.float64())))
    if pa.types.is_floating(column.type):
        return frozen(measures(column).astype(np.float64, copy=False))
    words = integers(column)
    return frozen((words.view(np.uint64) if is_unsigned(column.type) else words).astype(np.float64))


def halves(values: Numbers, unsigned: bool = False) -> tuple[Floats, Floats]:
    """Return 64 bit numbers exactly as sums of two floats: the nearest, and the rest, empty if all rests are 0.

    ``unsigned``: whether int64 are the bits of unsigned integers.
    """
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False), np.empty(0, np.float64)
    if not unsigned and values.size and values.min() >= -_WHOLE and values.max() <= _WHOLE:
        return values.astype(np.float64), np.empty(0, np.float64)
    words = values.view(np.uint64) if unsigned else values
    high = words.astype(np.float64)
    end = 2 * _END if unsigned else _END
    near = np.where(
        high < end, high, high - 2 * _END
    )  # 2**63 or 2**64, to which the largest integers round, wraps around
    low = (words - near.astype(words.dtype)).view(np.int64)  # and the difference wraps back, so it is exact
    return high, low.astype(np.float64) if low.any() else np.empty(0, np.float64)


def from_halves(high: Floats, low: Floats) -> tuple[Ints, Mask]:
    """Return integers given as `halves` as int64, and which of them do not fit."""
    fits = (abs(high) < _END) | ((high == _END) & (low < 0)) | ((high == -_END) & (low >= 0))
    near = np.where(high < _END, high, high - 2 * _END)
    return np.where(fits, near, 0.0).astype(np.int64) + np.where(fits, low, 0.0).astype(np.int64), ~fits


def decimal_words(column: pa.Array) -> list[Ints]:
    """Return the 64 bit words of a decimal's unscaled values, the least first; only the last is signed."""
    words = _words_of(column)
    return [frozen(words[:, i]) for i in range(words.shape[1])]


def _words_of(column: pa.Array) -> Ints:
    width = column.type.bit_width // 64
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.empty((0, width), np.int64)
    words: Ints = np.frombuffer(buffer, np.int64)[column.offset * width :][: len(column) * width].reshape(-1, width)
    return words


def exact_numbers(column: pa.Array) -> Numbers:
    """Return floats as they are, and integers, booleans and the unscaled values of decimals as words of 64 bit.

    Words have the shape (n, W): the least first, only the last signed.
    """
    if pa.types.is_floating(column.type):
        return floats(column)
    if pa.types.is_decimal(column.type):
        return _words_of(column)
    words = integers(column)
    if is_unsigned(column.type):
        words = np.stack([words, np.zeros(len(words), np.int64)], axis=1)
    return words.reshape(len(column), 2 if is_unsigned(column.type) else 1)


def scale_of(column: pa.Array) -> int:
    """Return the number of decimal places of a decimal column, 0 for any other type."""
    return int(column.type.scale) if pa.types.is_decimal(column.type) else 0


def number_halves(column: pa.Array) -> tuple[Floats, Floats]:
    """Return numbers as `halves`, decimals unscaled; for decimals of more than 64 bit the first float is NaN."""
    if pa.types.is_decimal(column.type):
        numbers: Numbers = ticks(column) if is_ticks(column.type) else np.full(len(column), np.nan)
    else:
        numbers = floats(column) if pa.types.is_floating(column.type) else integers(column)
    high, low = halves(numbers, is_unsigned(column.type))
    return frozen(high), frozen(low)


def is_ticks(dtype: pa.DataType) -> bool:
    """Whether a type's values are whole `ticks` of 64 bit."""
    if pa.types.is_decimal(dtype):
        return bool(dtype.precision <= INT64_DIGITS)
    return bool(is_measurable(dtype) and not pa.types.is_floating(dtype))


def ticks(column: pa.Array) -> Ints:
    """Return int64 of shape (n,) with the order and the differences of the values; see `is_ticks`."""
    wide = pa.types.is_decimal256(column.type)
    return frozen(measures(column.cast(pa.decimal128(INT64_DIGITS, column.type.scale)) if wide else column))


def order_keys(column: pa.Array) -> Numbers:
    """Return int64 or float64 of shape (n,) that sort like the values of any sortable type; NaN stays NaN."""
    dtype = column.type
    if pa.types.is_floating(dtype):
        return floats(column)
    if pa.types.is_boolean(dtype):
        return integers(column)
    if is_ticks(dtype):
        return ticks(column)
    return frozen(sort_codes(column.dictionary_encode())[0])


def codes(column: pa.Array) -> tuple[Codes, int]:
    """Return a code for each value, int32 (n,), and how many codes there are; -0.0 equals 0.0, NaN equals NaN."""
    if pa.types.is_floating(column.type):
        column = pa.array(float_words(_words(floats(column))))
    encoded = column.dictionary_encode()
    return frozen(encoded.indices.to_numpy()), len(encoded.dictionary)


def equality_keys(column: pa.Array) -> EqualityKeys:
    """Return what decides which values of a column are equal; -0.0 equals 0.0, NaN equals NaN."""
    dtype = column.type
    if not any(is_text(dtype) for is_text in _OF_BYTES):
        return NO_KEYS._replace(words=_words(_equality_words(column)))
    offsets, data = _bytes_of(column.cast(pa.large_binary()))
    return NO_KEYS._replace(offsets=offsets, data=data)


NO_KEYS = EqualityKeys(*(frozen(np.empty(0, kind)) for kind in (np.uint64, np.int64, np.uint8)))
"""Those of no values."""


def _equality_words(column: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_floating(column.type):
        return float_words(_words(floats(column)))
    if pa.types.is_boolean(column.type):
        return integers(column)
    return ticks(column) if is_ticks(column.type) else codes(column)[0].astype(np.int64)


_OF_BYTES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _words(values: npt.NDArray[Any]) -> Words:
    words: Words = frozen(values.view(np.uint64))
    return words


def _bytes_of(texts: pa.LargeBinaryArray) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Return where each text begins in the bytes of all, int64 (n + 1,), and these bytes."""
    _, ends, data = texts.buffers()
    if ends is None or not len(texts):
        return frozen(np.zeros(1, np.int64)), frozen(np.empty(0, np.uint8))
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return frozen(offsets), frozen(np.frombuffer(data if data is not None else b"", np.uint8))
