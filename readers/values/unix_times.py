"""Instants that come as numbers since 1970-01-01 UTC, of seconds or of parts of a second: whole, decimal or as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PRECISION = 38


def from_unix(column: pa.ChunkedArray | pa.Array, kind: pa.TimestampType, digits: int) -> pa.ChunkedArray | pa.Array:
    """Return numbers as timestamps of type ``kind``, of which one unit is the last of ``digits`` behind the point.

    Exact: a float is the shortest decimal that reads back as it. Raises `pyarrow.ArrowInvalid` where a value is no
    number, has more digits than these, or does not fit 64 bits of ticks.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([from_unix(chunk, kind, digits) for chunk in column.chunks], kind)
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.string())
    return _ticks(pc.cast(column, pa.decimal128(_PRECISION, digits))).view(kind)


def _ticks(numbers: pa.Decimal128Array) -> pa.Int64Array:
    """Return the digits of decimals as int64."""
    if not len(numbers):
        return pa.array([], pa.int64())
    words = np.frombuffer(numbers.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[numbers.offset : numbers.offset + len(numbers)].T
    known = numbers.is_valid().to_numpy(zero_copy_only=False)
    if (known & (high != low >> 63)).any():
        raise pa.ArrowInvalid("beyond 64 bits")
    return pa.array(low, mask=~known)
