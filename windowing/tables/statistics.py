"""What the footer of a Parquet file says of its columns, as a task finds it and a table format records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One leaf column of a Parquet file.

    ``path``: its path in the schema of the file, such as ``items.list.element``.
    ``nbytes``: its compressed size.
    ``values``: how many it has, nulls among them.
    ``nulls``: None where the file does not say.
    ``least``, ``greatest``: bounds of its values, of the Python type that Arrow has for them, NaN left out; None where
        the file does not say or there is no value.
    """

    path: str
    nbytes: int
    values: int
    nulls: int | None
    least: Any
    greatest: Any


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """A Parquet file.

    ``offsets``: where its row groups begin, in bytes.
    """

    columns: tuple[ColumnStatistics, ...]
    offsets: tuple[int, ...]


def statistics_of(footer: parquet.FileMetaData) -> FileStatistics:
    """Return the statistics of a file, over all of its row groups."""
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    columns = tuple(_column([group.column(at) for group in groups]) for at in range(footer.num_columns) if groups)
    firsts = [group.column(0) for group in groups if group.num_columns]
    begins = [
        (each.data_page_offset, each.dictionary_page_offset if each.has_dictionary_page else None) for each in firsts
    ]
    return FileStatistics(columns, tuple(min(at for at in each if at is not None) for each in begins))


def _column(chunks: list[parquet.ColumnChunkMetaData]) -> ColumnStatistics:
    found = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    counts = [each.null_count if each is not None and each.has_null_count else None for each in found]
    nulls = None if None in counts else sum(count for count in counts if count is not None)
    least, greatest = _bounds(chunks)
    return ColumnStatistics(
        chunks[0].path_in_schema,
        sum(chunk.total_compressed_size for chunk in chunks),
        sum(chunk.num_values for chunk in chunks),
        nulls,
        least,
        greatest,
    )


def _bounds(chunks: list[parquet.ColumnChunkMetaData]) -> tuple[Any, Any]:
    """Return the bounds of a column; none where a row group with values has none."""
    leasts, greatests = [], []
    for chunk in chunks:
        known = chunk.statistics if chunk.is_stats_set else None
        if known is not None and known.has_null_count and known.null_count == chunk.num_values:
            continue
        if known is None or not known.has_min_max:
            return None, None
        try:
            leasts.append(known.min)
            greatests.append(known.max)
        except (pa.ArrowNotImplementedError, OverflowError, ValueError):  # a type, or a date, that Python has not
            return None, None
    return (min(leasts), max(greatests)) if leasts else (None, None)
