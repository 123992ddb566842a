"""Amounts that rows say, in the unit of the values that they are compared with (semantics section 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import Mask
from .numeric import measures, scale_of

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
