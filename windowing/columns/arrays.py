"""Array types that all of ``windowing`` uses, and zero-copy views of Arrow columns as numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DataError
from ..support.column_types import PER_SECOND

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Measures = npt.NDArray[Any]  # int64 ticks, float64 or float32
ClockValue = int | float


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one contiguous array. Raises `DataError` if the column holds more than 2 GiB of text."""
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


def take_or_null(column: pa.Array | pa.ChunkedArray, rows: Ints) -> pa.Array:
    """Return the values of a column in the given rows, null where that is -1."""
    missing = rows < 0
    return combined(column).take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def without_dictionaries(table: pa.Table) -> pa.Table:
    """Return a table whose columns are one array each, and no dictionaries."""
    return pa.table([combined(decoded(column)) for column in table.columns], names=table.column_names)


def view_of(column: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """Zero-copy view of a fixed width column's values, nulls included. It is always read-only, even if Arrow's buffer
    is not: a kernel is compiled for one of the two, and kernels are warmed on columns that were not read from a block.
    """
    buffer = column.buffers()[1]
    empty = buffer is None or len(column) == 0
    values = np.empty(0, dtype) if empty else np.frombuffer(buffer, dtype)[column.offset : column.offset + len(column)]
    values.flags.writeable = False
    return values


SIGN_BIT = np.uint64(1 << 63)


def decimal_words(column: pa.Array) -> Ints:
    """Unscaled values of a decimal column as pairs (low word, high word), int64 (n, 2)."""
    wide = column if pa.types.is_decimal128(column.type) else column.cast(pa.decimal128(38, column.type.scale))
    pairs = view_of(wide, np.dtype((np.int64, 2)))
    return pairs.reshape(-1, 2)


def latest_clock(clocks: Iterable[ClockValue | None]) -> ClockValue | None:
    """Return the latest of several clocks; None where none has begun."""
    return max((clock for clock in clocks if clock is not None), default=None)


def spread(first: Ints, counts: Ints) -> Ints:
    """Return runs of numbers, one after the other: ``counts`` from each of ``first`` on. It may be ``first`` itself."""
    if (counts == 1).all():
        return first
    ends = np.cumsum(counts)
    return np.repeat(first - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


# Arrow columns as plain numbers, for distances and the clock. Sorting uses `sort_keys` instead.
#
# - `measures`: the values of a column as int64 ticks or as floats, for distances (``delta``, ``gap``); exact;
# - `Scale`: how many ticks of a type make one second, or one unit for plain numbers.


INT64_DIGITS = 18  # decimals of at most so many digits always fit int64


def is_instant(dtype: pa.DataType) -> bool:
    """Whether a type is a point in time: a timestamp or a date."""
    return pa.types.is_timestamp(dtype) or pa.types.is_date(dtype)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers: whole ones, floats or decimals of any size."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_measurable(dtype: pa.DataType) -> bool:
    """Whether distances of values of a type fit 64 bit or are floats, as ``delta`` and ``gap`` need."""
    types = pa.types
    return bool(
        types.is_integer(dtype)
        or types.is_floating(dtype)
        or (types.is_decimal(dtype) and not types.is_decimal256(dtype))
        or types.is_temporal(dtype)
    ) and not types.is_interval(dtype)


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit of a column's ticks. A plain number counts as seconds (semantics section 1, *clock*).

    ``per_second``: how many ticks make one second; None for floats, which have no ticks.
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
        return Scale(Fraction(PER_SECOND[dtype.unit]))
    return Scale(Fraction(1))


def measure_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of measures of a column: float64, or int64."""
    return pa.float64() if scale_of(dtype).per_second is None else pa.int64()


def measures(column: pa.Array) -> Measures:
    """Return values as ticks (int64) or as floats in their own precision, of shape (n,).

    Unsigned 64 bit values are shifted down by 2**63, which keeps order and differences. Values at nulls, and at places
    where `overflows` is true, are arbitrary. Of floats, -0.0 and NaN stay.
    """
    dtype = column.type
    types = pa.types
    if types.is_null(dtype):
        return np.zeros(len(column), np.int64)
    if types.is_floating(dtype):
        wide = column.cast(pa.float32()) if types.is_float16(dtype) else column
        return view_of(wide, np.float32 if types.is_float32(wide.type) else np.float64)
    if types.is_decimal(dtype):
        return np.ascontiguousarray(decimal_words(column)[:, 0])
    if types.is_uint64(dtype):
        return (view_of(column, np.uint64) ^ SIGN_BIT).view(np.int64)
    if types.is_date32(dtype) or types.is_time32(dtype):
        return view_of(column, np.int32).astype(np.int64)
    return view_of(column.cast(pa.int64()) if types.is_integer(dtype) else column, np.int64)


def overflows(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which decimals do not fit 64 bit ticks (reason ``type_overflow``), (n,), or None if all fit."""
    if not pa.types.is_decimal(column.type) or column.type.precision <= INT64_DIGITS:
        return None
    pairs = decimal_words(column)
    over = pairs[:, 1] != (pairs[:, 0] >> 63)
    return over if bool(over.any()) else None


def has_nan(column: pa.Array) -> bool:
    """Whether a column holds a NaN."""
    return pa.types.is_floating(column.type) and bool(np.isnan(measures(column)).any())


# Boolean columns as masks, in three-valued logic: null is not true (semantics section 12).


def is_condition(dtype: pa.DataType) -> bool:
    """Whether a column of a type may be a condition: booleans, and what has no type yet, since it has no value."""
    return bool(pa.types.is_boolean(dtype) or pa.types.is_null(dtype))


def truth(rows: pa.Table | pa.RecordBatch, name: str) -> Mask:
    """Return for which rows a column is true, bool (n,)."""
    return is_true(combined(rows.column(name)))


def is_true(values: pa.Array) -> Mask:
    """Return where a condition is true, bool (n,): null is not true."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.bool_)
    values = values.fill_null(False) if values.null_count else values
    return np.array(values.to_numpy(zero_copy_only=False), np.bool_)


# Scalars of Arrow as texts, also those that have no value in Python.


def plain_text(value: Any) -> str:
    """Return a scalar of Arrow as text; bytes as hexadecimal digits."""
    try:
        found = value.as_py()
    except (ValueError, OverflowError, pa.ArrowException):  # nanoseconds without pandas, years beyond 9999
        return str(value)
    return found.hex() if isinstance(found, bytes) else str(found)


# Amounts that rows say, in the unit of the values that they are compared with (semantics section 13).


_MOST = 2**64 - 1


def is_amount(dtype: pa.DataType) -> bool:
    """Whether values of a type may be amounts: numbers, of which decimals have up to 18 digits, and durations."""
    types = pa.types
    if types.is_decimal(dtype):
        return bool(types.is_decimal128(dtype) and dtype.precision <= 18)
    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_duration(dtype) or types.is_null(dtype))


def is_negative(amounts: pa.Array) -> Mask:
    """Return which amounts are below 0, bool (n,); arbitrary at nulls."""
    if pa.types.is_unsigned_integer(amounts.type):
        return np.zeros(len(amounts), np.bool_)
    return np.asarray(measures(amounts) < 0)


def amounts_in(dtype: pa.DataType, amounts: pa.Array) -> Any:
    """Return amounts in the unit of a column of type ``dtype``, (n,): uint64 ticks, rounded down, or float64.

    A plain number is seconds, where that is a time. A float amount
    is multiplied as a float. An amount beyond 64 bits becomes the largest, which no distance exceeds. Amounts must
    hold no null and nothing negative.
    """
    numbers, unit = measures(amounts), scale_of(amounts.type).per_second
    if pa.types.is_uint64(amounts.type):
        numbers = numbers.view(np.uint64) ^ np.uint64(2**63)
    per_second = scale_of(dtype).per_second
    if per_second is None:
        return np.asarray(numbers / float(unit or 1), np.float64)
    if unit is None:
        with np.errstate(invalid="ignore", over="ignore"):
            ticks = np.floor(numbers.astype(np.float64) * float(per_second))
        return np.where(ticks >= 2.0**64, np.uint64(_MOST), np.minimum(ticks, 2.0**64 - 2048).astype(np.uint64))
    ratio = per_second / unit
    most = (_MOST // ratio.numerator) if ratio.numerator > 1 else _MOST
    exact = numbers.astype(np.uint64)
    far = exact > np.uint64(most)
    ticks = np.where(far, np.uint64(0), exact) * np.uint64(ratio.numerator) // np.uint64(ratio.denominator)
    return np.where(far, np.uint64(_MOST), ticks)
