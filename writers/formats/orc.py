"""Encode ORC parts: compressed stripes, which the next reader takes one by one.

Measured on one core, 3 M rows of 11 columns (string key, six int64 or timestamp, two doubles, two labels):

    compression  dictionaries of text  write s   MB
    none         no                     1.67    145
    none         yes                    1.07    102
    snappy       yes                    1.40     87
    lz4          yes                    1.05    102
    zstd         yes                    1.21     71   <- taken
    zlib         yes                    2.90     67

ORC has one type of timestamps, in nanoseconds, with or without zone, and dates. It has no unsigned integers, times of
day, durations or decimals of more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from ...windowing.errors import DataError
from .encoder import Encoder, Write, join_tables, plain

_STRIPE = 64 << 20  # bytes in memory: the smallest split that the next stage can read
_COMPRESSION = "zstd"
_DICTIONARY = 0.8  # of all values: text with fewer distinct ones is stored with a dictionary
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INSTEAD = "write Parquet with --output-format parquet"


@contextmanager
def begin(schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> Iterator[Write]:
    """Write tables to ``file`` in order; readers see the plain form of ``schema``, with times in nanoseconds.

    Raises `DataError` for a timestamp that readers would not read as that time.
    """
    target = pa.schema(
        [field.with_type(pa.date32() if pa.types.is_date64(field.type) else field.type) for field in plain(schema)]
    )
    with orc.ORCWriter(
        file, compression=_COMPRESSION, stripe_size=_STRIPE, dictionary_key_size_threshold=_DICTIONARY
    ) as writer:
        writer.write(target.empty_table())  # a file without rows has columns, too

        def write(table: pa.Table) -> None:
            stored = table.cast(target)
            for name, column in zip(target.names, stored.columns, strict=True):
                _check_times(column, name)
            writer.write(stored)

        yield write


def _check_times(column: pa.ChunkedArray, name: str) -> None:
    """Raise `DataError` naming a column with a time that is not read back as the same time.

    Arrow reads ORC in nanoseconds. It writes a time before 1970 with a negative fraction of a second, which Spark and
    Hive, for two, do not read.
    """
    for chunk in column.chunks:
        for times in _timestamps(chunk):
            per_second = _PER_SECOND[times.type.unit]
            ticks = times.cast(pa.int64()).drop_null().to_numpy(zero_copy_only=False)
            limit = (2**63 - 1) // (10**9 // per_second)
            if ((ticks > limit) | (ticks < -limit)).any():
                what = f"column {name!r} holds a timestamp outside 1677-09-21 to 2262-04-11, which is not read from ORC"
                raise DataError(what, _INSTEAD)
            if (ticks[ticks < 0] % per_second).any():
                what = f"column {name!r} holds a timestamp before 1970 with a fraction of a second"
                raise DataError(f"{what}, which many readers of ORC cannot read", _INSTEAD)


def _timestamps(array: pa.Array) -> Iterator[pa.Array]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        yield array
    elif pa.types.is_map(kind):
        yield from _timestamps(array.keys)
        yield from _timestamps(array.items)
    elif pa.types.is_struct(kind):
        for values in array.flatten():
            yield from _timestamps(values)
    elif pa.types.is_nested(kind):
        yield from _timestamps(pc.list_flatten(array))


def _read(part: Path) -> tuple[pa.Schema, Iterator[pa.Table]]:
    file = orc.ORCFile(str(part))
    return file.schema, (pa.Table.from_batches([file.read_stripe(at)]) for at in range(file.nstripes))


ENCODER = Encoder(begin, join_tables(begin, _read))
