"""Copy parts that a stage wrote for the next stage into an output of its own, in the format of that output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ...windowing.planning.result_schema import MARK
from ...windowing.ports import Part
from ..folders.os_errors import output_errors
from .sink import FileSink

_ROWS = 1 << 16  # rows that a task holds at a time: a part may not fit in memory


def copy_part(sink: FileSink, part: Part) -> tuple[Part, ...]:
    """Write a Parquet part of the staging folder again with ``sink``; write no file where there is no row to write.

    The copy leaves out what a plain result does not have: columns that the sink lacks, and mark-only rows.
    """
    filled = (table for table in _tables(sink, part) if table.num_rows)
    first = next(filled, None)
    index = sink.index_of(part.name)
    return () if first is None else sink.write_parts(index, chain([first], filled))


def _tables(sink: FileSink, part: Part) -> Iterator[pa.Table]:
    only = [] if MARK in sink.schema.names else [MARK]
    with output_errors(f"{sink.shown}/{part.name}"), sink.fs.open_input_file(f"{sink.staging}/{part.name}") as file:
        for batch in parquet.ParquetFile(file).iter_batches(_ROWS, columns=[*sink.schema.names, *only]):
            table = pa.Table.from_batches([batch])
            yield table.filter(_is_row(table[MARK])) if only else table


def _is_row(marks: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.not_equal(marks, "only"), True)
