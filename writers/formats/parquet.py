"""Encode Parquet parts that are fast to write, small, and readable by every Parquet reader.

Measured on one core, 3 M rows of 11 columns (string key, six int64 or timestamp, two doubles, two labels):

    encoding of integers    compression  write s   MB
    PLAIN                   none           0.21   192
    PLAIN                   snappy         0.40   114
    PLAIN                   lz4            0.39   121
    PLAIN                   zstd           0.52    93
    DELTA_BINARY_PACKED     none           0.24    93
    DELTA_BINARY_PACKED     snappy         0.30    71   <- taken
    DELTA_BINARY_PACKED     lz4            0.30    71
    DELTA_BINARY_PACKED     zstd           0.41    63

Window numbers, bounds and positions rise, so their differences are small. snappy is as good as lz4, and more programs
read it. Casting dictionaries to strings, so that the writer hashes the strings again, takes 0.34 s.

Floats, a million on one core: prices with two decimals (30,000 distinct values), and values that never repeat:

    encoding of floats    compression   ms   bytes a value, prices    ms   bytes a value, others
    PLAIN                 none           5                     8.0     5                     8.0
    PLAIN                 snappy        21                     4.7     6                     8.0   <- others
    dictionary            snappy        22                     2.0    19                     8.3   <- prices
    BYTE_STREAM_SPLIT     snappy         7                     7.1

Where a float stands in several neighbouring rows, as in windows that show the same rows, snappy finds it in plain pages
as well as a dictionary does, and faster: prices of a hop of five windows take 10 ms and 1.8 bytes plain, 12 ms and 1.8
bytes with a dictionary.

A column with a dictionary takes 6 ms a million in steps of 8,192 rows, and 11 ms in Arrow's own of 1,024: of each step
it finds the different values once more, for its statistics. Without statistics it takes half of that; so labels such as
`closed_by`, of which each row group has all, are written without: a million windows of 13 columns take 80 ms, not 87.

arro3 0.9 (parquet-rs) was measured and not taken: the same million windows of 11 columns in the same encodings take 107
ms and 19.5 MB, and 73 ms and 19.5 MB here. It is as fast with integers and floats, and slower with dictionaries.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ...windowing.columns.arrays import Mask, combined, view_of
from ...windowing.planning.result_schema import LABELS
from ...windowing.support.jit import kernel
from ...windowing.tables.statistics import FileStatistics, statistics_of
from .encoder import Encoder, Write, is_bytes, is_integral, join_tables, plain

ROW_GROUP = 1 << 20  # rows: the smallest split that the next stage can read
_STEP = 1 << 13  # rows that are encoded at once; a page, which has whole steps, gets no longer than these of wide texts
_COMPRESSION = "snappy"
_SAMPLED = (
    4096  # values; with 130,000 distinct floats 1 in 64 of these repeats, and a dictionary of 1 MB holds them all
)


@contextmanager
def begin(schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> Iterator[Write]:
    """Write tables to ``file`` in order; readers see the plain form of ``schema``.

    Timestamps keep unit and zone, except that seconds become milliseconds: Parquet has no seconds.
    """
    with _File(plain(schema), file, _COMPRESSION, _repeats).writing() as write:
        yield write


@contextmanager
def begin_intermediate(schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> Iterator[Write]:
    """Write tables as `begin` does, but uncompressed and with plain floats.

    The file is read once, soon, and then deleted.
    """
    written = _File(plain(schema), file, "none", lambda column: is_bytes(column.type) and _repeats(column))
    with written.writing() as write:
        yield write


@contextmanager
def begin_for_table(
    columns: pa.Schema, file: IO[bytes] | pa.NativeFile, found: list[FileStatistics]
) -> Iterator[Write]:
    """Write tables as `begin` does, with the field ids in the metadata of ``columns``; append their statistics."""
    written = _File(columns, file, _COMPRESSION, _repeats)
    with written.writing() as write:
        yield write
    assert written.writer is not None
    found.append(statistics_of(written.writer.writer.metadata))


@dataclasses.dataclass(slots=True)
class _File:
    """A Parquet file, whose form its first table decides.

    ``target``: the columns that readers see.
    ``file``: where it is written.
    ``compression``: of its pages.
    ``may_be_codes``: decides from the first table whether a text or float column gets a dictionary. Text columns that
        are dictionaries in the first table are always written with one.
    ``writer``: the writer of Arrow, once there is a table.
    """

    target: pa.Schema
    file: IO[bytes] | pa.NativeFile
    compression: str
    may_be_codes: Callable[[pa.ChunkedArray], bool]
    writer: parquet.ParquetWriter | None = dataclasses.field(default=None, init=False)

    @contextmanager
    def writing(self) -> Iterator[Write]:
        """Take tables until the context ends."""
        with ExitStack() as stack:

            def write(table: pa.Table) -> None:
                conform = _conform(table.unify_dictionaries(), self.target)
                if self.writer is None:
                    self.writer = stack.enter_context(self._open(conform))
                else:
                    columns = [
                        column.dictionary_encode() if pa.types.is_dictionary(field.type) else column.cast(field.type)
                        for column, field in zip(conform.columns, self.writer.schema, strict=True)
                    ]
                    conform = pa.table(
                        [c.cast(f.type) for c, f in zip(columns, self.writer.schema, strict=True)],
                        schema=self.writer.schema,
                    )
                _write(self.writer, conform)

            yield write
            if self.writer is None:
                write(self.target.empty_table())

    def _open(self, first: pa.Table) -> parquet.ParquetWriter:
        has_nested = any(pa.types.is_nested(kind) for kind in self.target.types)  # these would be named leaf by leaf
        writer = parquet.ParquetWriter(
            self.file,
            first.schema,
            compression=self.compression,
            use_dictionary=[field.name for field in first.schema if self._has_dictionary(first, field)],
            column_encoding={field.name: "DELTA_BINARY_PACKED" for field in self.target if is_integral(field.type)},
            write_statistics=has_nested or [name for name in self.target.names if name not in LABELS],
            store_schema=False,
            write_batch_size=_STEP,
        )
        # By default the writer stores the schema with dictionaries, and readers would return dictionary columns.
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(self.target.serialize())})
        return writer

    def _has_dictionary(self, first: pa.Table, field: pa.Field) -> bool:
        if pa.types.is_dictionary(field.type):
            return True
        column = first.column(field.name)
        may_have = is_bytes(field.type) or (pa.types.is_floating(field.type) and not _stays(column))
        return may_have and self.may_be_codes(column)


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether many of the evenly spaced sample values of a column repeat, so that a dictionary can hold all values."""
    sample = column.take(pa.array(_sampled_places(len(column))))
    return len(sample.unique()) <= len(sample) * 63 // 64


def _stays(column: pa.ChunkedArray) -> bool:
    places = _sampled_places(len(column) - 1)
    same = pc.equal(column.take(pa.array(places)), column.take(pa.array(places + 1)))
    return 4 * (pc.sum(same).as_py() or 0) >= 3 * max(1, len(places))


def _sampled_places(size: int) -> npt.NDArray[np.int64]:
    return np.arange(0, size, max(1, size // _SAMPLED))


def _write(writer: parquet.ParquetWriter, table: pa.Table) -> None:
    for start in range(0, table.num_rows, ROW_GROUP):
        # A row group whose dictionaries hold used values, each once: the writer stores whole dictionaries
        group = table.slice(start, ROW_GROUP)
        for at, field in enumerate(group.schema):
            if pa.types.is_dictionary(field.type):
                group = group.set_column(at, field, with_used_values(combined(group.column(at))))
        writer.write_table(group, row_group_size=ROW_GROUP)


def _conform(table: pa.Table, target: pa.Schema) -> pa.Table:
    columns = []
    for column, kind in zip(table.columns, target.types, strict=True):
        is_alike = pa.types.is_dictionary(column.type) and column.type.value_type == kind and is_bytes(kind)
        has_null = is_alike and any(chunk.dictionary.null_count for chunk in column.chunks)
        columns.append(column if is_alike and not has_null else column.cast(kind))
    return pa.table(
        columns, schema=pa.schema([field.with_type(c.type) for field, c in zip(target, columns, strict=True)])
    )


def _read(part: Path) -> tuple[pa.Schema, Iterator[pa.Table]]:
    return parquet.read_schema(part), _tables(part)


def _tables(part: Path) -> Iterator[pa.Table]:
    with parquet.ParquetFile(part) as file:
        for batch in file.iter_batches(ROW_GROUP):
            yield pa.Table.from_batches([batch])


# Arrow writes deeper nesting than it can read.
ENCODER = Encoder(begin, join_tables(begin, _read), lambda written: parquet.read_schema(pa.BufferReader(written)))


# Dictionaries with the values that a column uses, each once.


def with_used_values(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose dictionary has only the values that occur in it, each once, in their order.

    The columns of a key with several columns come with a dictionary of one value a key. Arrow makes room for each value
    of a dictionary and writes only different ones: behind them came bytes of memory that nobody had written.
    """
    kind = column.type.index_type.to_pandas_dtype()
    used = np.zeros(len(column.dictionary), np.bool_)
    _mark(view_of(column.indices.drop_null(), kind), used)
    values = column.dictionary if used.all() else column.dictionary.filter(pa.array(used))
    once = values.dictionary_encode()
    if len(once.dictionary) == len(column.dictionary):
        return column
    places = np.zeros(len(used), kind)
    places[used] = once.indices.to_numpy()
    if column.indices.null_count:
        indices = pa.array(places).take(column.indices)
    else:
        indices = pa.array(_moved(view_of(column.indices, kind), places))
    return pa.DictionaryArray.from_arrays(indices, once.dictionary, safe=False)


@kernel
def _mark(codes: npt.NDArray[Any], used: Mask) -> None:
    """Mark codes; to assign by an array of indices takes numpy ten times as long. Each code is below ``used.size``."""
    for code in codes:
        used[code] = True


@kernel
def _moved(codes: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found = np.empty_like(codes)
    for i in range(codes.size):
        found[i] = places[codes[i]]
    return found
