"""Parts that were written for the next stage, written once more as the output of their own asks for."""

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

_ROWS = 1 << 16  # at a time: a part may be larger than what a task should hold


def copy_part(sink: FileSink, part: Part) -> Part | None:
    """Write a Parquet part of the staging folder again with ``sink``; return None where no row is left to write.

    What a plain result leaves out is left out: the columns that the sink lacks, and mark-only rows.
    """
    filled = (table for table in _tables(sink, part) if table.num_rows)
    first = next(filled, None)
    index = int(part.name.rpartition("-")[2].removesuffix(".parquet"))
    return None if first is None else sink.write_part(index, chain([first], filled))


def _tables(sink: FileSink, part: Part) -> Iterator[pa.Table]:
    only = [] if MARK in sink.schema.names else [MARK]
    with output_errors(f"{sink.shown}/{part.name}"), sink.fs.open_input_file(f"{sink.staging}/{part.name}") as file:
        for batch in parquet.ParquetFile(file).iter_batches(_ROWS, columns=[*sink.schema.names, *only]):
            table = pa.Table.from_batches([batch])
            yield table.filter(_is_row(table[MARK])) if only else table


def _is_row(marks: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.not_equal(marks, "only"), True)
