"""Helpers of the text formats: batches of a table, and text forms where Arrow's own are not exact or fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import DataError

_BATCH_ROWS = 1 << 16  # a dozen columns of so many rows fit the cache
_BATCH_BYTES = 1 << 26  # far below the 2 GiB of text that one array can hold
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 1 and 9999
_FIRST_SHOWN, _LAST_SHOWN = -1_096_193_779_200, 971_890_963_199  # of the years -32767 and 32767: Arrow writes no others
_INT64 = -(2**63), 2**63 - 1
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Divide a table into batches whose text fits one array; an empty table gives one empty batch."""
    width = table.nbytes // max(1, table.num_rows) + 1
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // width))
    return table.to_batches(max_chunksize=rows) or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def is_binary(kind: pa.DataType) -> bool:
    """Whether a type holds bytes that need not be text."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def content(array: pa.StringArray | pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of all values without a gap, uint8 (B,); no copy, the array owns the memory."""
    ends = _ends(array)
    return np.frombuffer(array.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]


def hexadecimal(array: pa.Array) -> pa.StringArray:
    """Return binary values as hexadecimal text, two digits for each byte."""
    values = array.cast(pa.binary())
    ends = _ends(values)
    digits = content(values).tobytes().hex().encode()
    text = pa.StringArray.from_buffers(len(values), pa.py_buffer((ends - ends[0]) * np.int32(2)), pa.py_buffer(digits))
    return pc.if_else(values.is_valid(), text, None)


def _ends(array: pa.StringArray | pa.BinaryArray) -> npt.NDArray[np.int32]:
    if not len(array):  # it may have no buffers at all
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def in_utc(array: pa.Array) -> pa.Array:
    """Return timestamps with a zone in UTC, so that their text is exact (an offset has no seconds); else the array."""
    if pa.types.is_timestamp(array.type) and array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    return array


def far_ticks(array: pa.Array) -> pa.Array | None:
    """Return the int64 ticks of dates and timestamps outside the years 1 to 9999, null for all others.

    Returns None where no value is outside.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        ticks, per_second = array.cast(pa.int64()), Fraction(_TICKS[kind.unit])
    elif pa.types.is_date32(kind):
        ticks, per_second = array.cast(pa.int32()).cast(pa.int64()), Fraction(1, 86_400)
    elif pa.types.is_date64(kind):
        ticks, per_second = array.cast(pa.int64()), Fraction(1_000)
    else:
        return None
    first = max(int(_FIRST_SECOND * per_second), _INT64[0])
    last = min(int((_LAST_SECOND + 1) * per_second) - 1, _INT64[1])
    is_far = pc.or_(pc.less(ticks, first), pc.greater(ticks, last))
    return pc.if_else(is_far, ticks, pa.scalar(None, pa.int64())) if pc.any(is_far).as_py() else None


def check_years(array: pa.Array, name: str) -> None:
    """Raise `DataError` naming the column for a date or timestamp outside the years -32767 to 32767."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        ends, second = pc.min_max(array.cast(pa.int64())), _TICKS[kind.unit]
    elif pa.types.is_date(kind):
        ends, second = pc.min_max(array.cast(pa.timestamp("s")).cast(pa.int64())), 1
    else:
        return
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and not _FIRST_SHOWN <= low // second <= high // second <= _LAST_SHOWN:
        what = f"column {name!r} holds a {kind} outside the years -32767 to 32767, which has no form as text"
        raise DataError(what, "write Parquet with --output-format parquet")
