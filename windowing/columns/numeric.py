"""Arrow columns as plain numbers: what sorting, distances and the clock are computed on.

Three views of a column, each exact:

- `words`: int64 in the column's sort order, for sorting and nothing else;
- `measures`: its values as int64 ticks or as floats, for distances (``delta``, ``gap``);
- `Scale`: how many ticks of a type make one second, or one unit for plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from .radix_sort import ranks, sorted_words
from .text_sort import is_text, ranked, sorted_texts

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Measures = npt.NDArray[Any]  # int64 ticks, float64 or float32

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SIGN = np.uint64(1 << 63)
_SAMPLED = 4096  # rows that tell whether hashing a column is worth its while
INT64_DIGITS = 18  # decimals of up to so many digits always fit an int64


def is_instant(dtype: pa.DataType) -> bool:
    """Whether a type is a point in time: a timestamp or a date."""
    return pa.types.is_timestamp(dtype) or pa.types.is_date(dtype)


def is_measurable(dtype: pa.DataType) -> bool:
    """Whether values of a type have a distance in 64 bit or float, so that ``delta`` and ``gap`` can use them."""
    types = pa.types
    return bool(
        types.is_integer(dtype)
        or types.is_floating(dtype)
        or (types.is_decimal(dtype) and not types.is_decimal256(dtype))
        or types.is_temporal(dtype)
    ) and not types.is_interval(dtype)


def is_sortable(dtype: pa.DataType) -> bool:
    """Whether values of a type have one order, so that they can be a key or an order column."""
    types = pa.types
    return bool(
        is_measurable(dtype)
        or types.is_boolean(dtype)
        or types.is_decimal(dtype)
        or types.is_null(dtype)
        or types.is_string(dtype)
        or types.is_large_string(dtype)
        or types.is_binary(dtype)
        or types.is_large_binary(dtype)
        or types.is_fixed_size_binary(dtype)
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """How many ticks of a column make one second; None for floats, which have no ticks.

    Plain numbers count as seconds: one unit is one second (semantics section 1, *clock*).
    """

    per_second: Fraction | None

    def floor(self, seconds: Fraction) -> int:
        """Largest whole number of ticks that is at most ``seconds``."""
        assert self.per_second is not None
        return (seconds * self.per_second).__floor__()


def scale_of(dtype: pa.DataType) -> Scale:
    """Return the scale of a measurable type."""
    types = pa.types
    if types.is_floating(dtype):
        return Scale(None)
    if types.is_date32(dtype):
        return Scale(Fraction(1, 86400))
    if types.is_date64(dtype):
        return Scale(Fraction(1000))
    if types.is_decimal(dtype):
        return Scale(Fraction(10) ** dtype.scale)
    if types.is_temporal(dtype):
        return Scale(Fraction(_PER_SECOND[dtype.unit]))
    return Scale(Fraction(1))


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one contiguous array. Raises `DataError` where that is more than 2 GiB of text."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    try:
        return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"one task holds more than 2 GiB of one text column ({error})", "use a smaller --slice-size or --split-size"
        ) from None


def measures(column: pa.Array) -> Measures:
    """Return values as ticks (int64) or as floats in their own precision, of shape (n,).

    Unsigned 64 bit values are moved down by 2**63, which keeps order and differences. What stands in null
    places, and in places that `overflows` names, is arbitrary. Floats: -0.0 stays, NaN stays.
    """
    dtype = column.type
    types = pa.types
    if types.is_null(dtype):
        return np.zeros(len(column), np.int64)
    if types.is_floating(dtype):
        wide = column.cast(pa.float32()) if types.is_float16(dtype) else column
        return _view(wide, np.float32 if types.is_float32(wide.type) else np.float64)
    if types.is_decimal(dtype):
        return np.ascontiguousarray(_decimal_words(column)[:, 0])
    if types.is_uint64(dtype):
        return (_view(column, np.uint64) ^ _SIGN).view(np.int64)
    if types.is_date32(dtype) or types.is_time32(dtype):
        return _view(column, np.int32).astype(np.int64)
    return _view(column.cast(pa.int64()) if types.is_integer(dtype) else column, np.int64)


def overflows(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return where a decimal does not fit 64 bit ticks (reason ``type_overflow``), or None where all fit."""
    if not pa.types.is_decimal(column.type) or column.type.precision <= INT64_DIGITS:
        return None
    pairs = _decimal_words(column)
    over = pairs[:, 1] != (pairs[:, 0] >> 63)
    return over if bool(over.any()) else None


def words(column: pa.Array) -> Ints:
    """Return int64 words of shape (n,) that sort as the values do; nulls last.

    Words of types that are not 64 bit numbers are ranks: they compare within this column only.
    """
    dtype = column.type
    if column.null_count:
        return _words_with_nulls(column)
    if pa.types.is_boolean(dtype):
        return _view(column.cast(pa.uint8()), np.uint8).astype(np.int64)
    if pa.types.is_floating(dtype):
        return _float_words(measures(column).astype(np.float64))
    if is_measurable(dtype) and overflows(column) is None:
        return measures(column)
    return _ranks(column)


def _words_with_nulls(column: pa.Array) -> Ints:
    """Words of a column with nulls: ticks, and the largest int64 for null where no value has it; else ranks."""
    floats = pa.types.is_floating(column.type)
    if not (floats or pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)):
        return _ranks(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    own = _float_words(measures(column).astype(np.float64)) if floats else measures(column)
    ticks = np.where(valid, own, np.iinfo(np.int64).min)
    last = np.iinfo(np.int64).max
    return _ranks(column) if ticks.max() == last else np.where(valid, ticks, last)


def has_nan(column: pa.Array) -> bool:
    """Whether a column holds a NaN."""
    return pa.types.is_floating(column.type) and bool(np.isnan(measures(column)).any())


def _view(column: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """Zero-copy view of a fixed width column's values, nulls included; read-only, whether Arrow's buffer is or not.

    Kernels are compiled for one or the other, and the plan's are warmed on a column that was not read from a blob.
    """
    buffer = column.buffers()[1]
    empty = buffer is None or len(column) == 0
    values = np.empty(0, dtype) if empty else np.frombuffer(buffer, dtype)[column.offset : column.offset + len(column)]
    values.flags.writeable = False
    return values


def _decimal_words(column: pa.Array) -> Ints:
    """Values of a decimal as pairs (low word, high word), little endian, of shape (n, 2)."""
    wide = column if pa.types.is_decimal128(column.type) else column.cast(pa.decimal128(38, column.type.scale))
    pairs = _view(wide, np.dtype((np.int64, 2)))
    return pairs.reshape(-1, 2)


def _float_words(values: npt.NDArray[np.float64]) -> Ints:
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)  # the two zeros are one value, so are NaNs
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _ranks(column: pa.Array) -> Ints:
    """Dense ranks of the values from 0, nulls after all of them."""
    codes, values = distinct(column)
    if not column.null_count:
        return codes.astype(np.int64)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, codes, len(values))


def distinct(column: pa.Array) -> tuple[npt.NDArray[Any], pa.Array]:
    """Return for each row the rank of its value, and the different values in ascending order.

    Codes in null places are arbitrary. The values come as `as_values` says, and may hold some that no row has. Where
    nearly every row has a value of its own, rows are sorted by radix; else the values are hashed first.
    """
    column = as_values(column)
    if hardly_repeats(column):
        codes, picks = ranks(*sorted_rows(column))
        return codes, column.take(pa.array(picks))
    return sorted_codes(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())


def as_values(column: pa.Array) -> pa.Array:
    """Return a column in the form in which `distinct` tells its values: small decimals as decimal128, small floats as
    float32, with one zero and one NaN; plain where it is encoded in a dictionary that is longer than its rows."""
    types = pa.types
    if types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()
    if types.is_decimal32(column.type) or types.is_decimal64(column.type):
        column = column.cast(pa.decimal128(38, column.type.scale))
    if not types.is_floating(column.type):
        return column
    wide = column.cast(pa.float32()) if types.is_float16(column.type) else column
    wide = pc.add(wide, pa.scalar(0.0, wide.type))
    return pc.if_else(pc.is_nan(wide), pa.scalar(float("nan"), wide.type), wide)  # NaNs have many bits


def hardly_repeats(column: pa.Array) -> bool:
    """Whether evenly spaced rows of a column, in the form of `as_values`, hold hardly a value twice.

    Not for nulls, few rows, and types that have no words of their own.
    """
    is_number = is_measurable(column.type)
    if column.null_count or len(column) < _SAMPLED or not (is_number or is_text(column.type)):
        return False
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _SAMPLED).astype(np.int64)))
    return len(sample.unique()) > _SAMPLED * 63 // 64 and not (is_number and overflows(column) is not None)


def sorted_rows(column: pa.Array) -> tuple[Ints, Mask]:
    """Return the stable permutation that sorts rows, and which of them, so sorted, hold another value than the last.

    For a column that `hardly_repeats`.
    """
    if is_text(column.type):
        return sorted_texts(column)
    return sorted_words(words(column).view(np.uint64) ^ _SIGN)


def sorted_codes(encoded: pa.DictionaryArray) -> tuple[Ints, pa.Array]:
    """Return a dictionary array's codes renumbered so that they sort as the values do, and the sorted values.

    Codes in null places are arbitrary. The values may hold some that no row has.
    """
    rank, values = _ranked_values(encoded.dictionary)
    indices = encoded.indices
    if indices.null_count:
        indices = indices.fill_null(len(rank))
    return np.append(rank, 0)[indices.to_numpy()], values


def _ranked_values(values: pa.Array) -> tuple[Ints, pa.Array]:
    """Where each value of a dictionary stands in ascending order, and the values in that order."""
    if is_text(values.type) and not values.null_count:
        codes, picks = ranked(values)
        return codes.astype(np.int64), values.take(pa.array(picks))
    ascending = pc.sort_indices(values)
    rank = np.empty(len(values), np.int64)
    rank[ascending.to_numpy()] = np.arange(len(values))
    return rank, values.take(ascending)
