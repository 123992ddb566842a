"""Unix times: numbers of seconds, ms, us or ns since 1970-01-01 UTC, as integers, decimals, floats or text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    return _ticks(pc.cast(column, pa.decimal128(_PRECISION, digits))).view(kind)


def _ticks(numbers: pa.Decimal128Array) -> pa.Int64Array:
    """Return the unscaled integers of decimals as int64. Raises `pyarrow.ArrowInvalid` beyond 64 bits."""
    if not len(numbers):
        return pa.array([], pa.int64())
    # A decimal128 is two little-endian words; it fits 64 bits if the high word is only the sign of the low one.
    words = np.frombuffer(numbers.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[numbers.offset : numbers.offset + len(numbers)].T
    known = numbers.is_valid().to_numpy(zero_copy_only=False)
    if (known & (high != low >> 63)).any():
        raise pa.ArrowInvalid("beyond 64 bits")
    return pa.array(low, mask=~known)
