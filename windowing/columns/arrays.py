"""Array types that all of ``windowing`` uses, and zero-copy views of Arrow columns as numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DataError

Ints = npt.NDArray[np.int64]


Mask = npt.NDArray[np.bool_]


Measures = npt.NDArray[Any]  # int64 ticks, float64 or float32


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


ClockValue = int | float


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
