"""Arrow columns as plain numbers, for distances and the clock. Sorting uses `sort_keys` instead.

- `measures`: the values of a column as int64 ticks or as floats, for distances (``delta``, ``gap``); exact;
- `Scale`: how many ticks of a type make one second, or one unit for plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .arrays import SIGN_BIT, Measures, decimal_words, view_of

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INT64_DIGITS = 18  # decimals of at most so many digits always fit int64


def is_instant(dtype: pa.DataType) -> bool:
    """Whether a type is a point in time: a timestamp or a date."""
    return pa.types.is_timestamp(dtype) or pa.types.is_date(dtype)


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
        return Scale(Fraction(_PER_SECOND[dtype.unit]))
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
