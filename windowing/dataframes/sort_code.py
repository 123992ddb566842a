"""One integer that sorts the rows of a partition: Spark sorts by one integer with a radix sort, and compares no text.

It is the bucket of the key and a coarse form of the first order column (`windowing.streaming.keyed_scan.CODE`). What it
leaves open, tasks decide, a bucket at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, functions

from ..streaming.keyed_scan import COARSE_BITS

_EXACT = 1 << 48
"""Measures below this are as they are; those above are told apart in steps of 2^15."""
_LAST = (1 << (COARSE_BITS - 1)) - 1
_LARGEST = (1 << 63) - 1


def sort_code(key: Sequence[Column], order: Column, dtype: pa.DataType) -> Column:
    """Return the code of each row, as `CODE` says. ``order``: the first order column, of type ``dtype``."""
    code = functions.shiftleft(_bucket(key), COARSE_BITS)
    return code + _coarse(order, dtype) if is_coarse(dtype) else code


def sort_keys(column: Column, dtype: pa.DataType) -> list[Column]:
    """Return by what a column sorts rows, nulls last: its values, then what tells equal values apart.

    Zeros of both signs are equal: some sort one before the other, and some do not tell them apart at all.
    """
    if not pa.types.is_floating(dtype):
        return [column.asc_nulls_last()]
    sign = functions.atan2(column.cast("double"), functions.lit(-1.0))
    return [(column + functions.lit(0.0)).asc_nulls_last(), sign.asc_nulls_last()]


def first_code(key: Sequence[Column]) -> Column:
    """Return a code below that of all rows of the bucket of a key, and above those of the bucket before."""
    return functions.shiftleft(_bucket(key), COARSE_BITS) - functions.lit(1 << (COARSE_BITS - 1))


def _bucket(key: Sequence[Column]) -> Column:
    """Return the bucket of a key: from -2^12 on and below 2^12, so that no code needs more than 64 bit."""
    return functions.shiftright(functions.xxhash64(*key), COARSE_BITS + 1)


def bucket_of(code: Column) -> Column:
    """Return the bucket of a code."""
    return functions.shiftright(code + functions.lit(1 << (COARSE_BITS - 1)), COARSE_BITS)


def is_coarse(dtype: pa.DataType) -> bool:
    """Whether values of a type have a coarse form, so that codes sort by it, too."""
    types = pa.types
    return bool(
        types.is_integer(dtype) or types.is_floating(dtype) or types.is_timestamp(dtype) or types.is_date32(dtype)
    )


def _coarse(order: Column, dtype: pa.DataType) -> Column:
    """Return a number above -2^49 and below 2^49 that never falls where ``order`` rises; for null the largest."""
    number = _whole_number(order, dtype)
    size = functions.abs(number)
    steps = functions.shiftright(size - functions.lit(_EXACT), 15) + functions.lit(_EXACT)
    far = functions.when(number < 0, -steps).otherwise(steps)
    code = functions.when(size < functions.lit(_EXACT), number).otherwise(far)
    return functions.coalesce(code, functions.lit(_LAST))


def _whole_number(order: Column, dtype: pa.DataType) -> Column:
    """Return a number above -2^63 that never falls where ``order`` rises."""
    if pa.types.is_timestamp(dtype):
        if dtype.tz is not None:
            return functions.unix_micros(order)
        # Seconds of local time, in no time zone: Spark gives microseconds of instants only.
        return functions.unix_timestamp(order)
    if pa.types.is_date32(dtype):
        return functions.unix_date(order).cast("bigint")
    if pa.types.is_floating(dtype):
        finite = functions.nanvl(order.cast("double"), functions.lit(0.0)) * 1024
        return _between(finite, 4e18).cast("bigint")
    return functions.greatest(order.cast("bigint"), functions.lit(-_LARGEST))


def _between(number: Column, most: float) -> Column:
    return functions.least(functions.greatest(number, functions.lit(-most)), functions.lit(most))
