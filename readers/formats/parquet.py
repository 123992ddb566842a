"""Read Parquet: the driver reads all footers, and a split is one or more adjacent row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...windowing.errors import InputError
from ...windowing.ports import Split
from ..files.file import Located, has_changed, input_errors
from ..files.listing import ListedFile
from ..schema.types import Int64s, plain
from ..values.casts import convert
from .split_rows import ReadRequest, Reject, SplitRows, TypeErrors, drop_type_errors, first_detail
from .text_splits import TextPlan

_THREADS = 8
_SHORT = 1 << 16  # bytes: a column of so few is read as a dictionary, whatever it holds


@dataclass(frozen=True, slots=True)
class Footer:
    """The metadata in the footer of a file.

    ``schema``: the columns in their plain types.
    ``groups``: the rows and the uncompressed bytes of each row group.
    """

    schema: pa.Schema
    groups: tuple[tuple[int, int], ...]


def plan_parquet(files: Sequence[ListedFile], split_bytes: int) -> TextPlan:
    """Read all footers and divide the files into splits.

    Raises `InputError` naming the first file that is not complete Parquet, or has two columns of one name.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = list(pool.map(lambda file: _footer(file.place), files))
    splits: list[Split] = []
    base = 0
    for index, footer in enumerate(footers):
        splits += _splits(footer, index, len(splits), base, split_bytes)
        base += sum(rows for rows, _ in footer.groups)
    shared: dict[pa.Schema, pa.Schema] = {}
    return TextPlan(tuple(splits), tuple(shared.setdefault(f.schema, f.schema) for f in footers))


def _footer(place: Located) -> Footer:
    with input_errors(place.shown, " as Parquet"), _open(place) as file:
        groups = tuple(
            (group.num_rows, group.total_byte_size)
            for group in map(file.metadata.row_group, range(file.num_row_groups))
        )
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{place.shown} has two columns named {twice!r}", "give each a name of its own")
        return Footer(file_schema(file), groups)


def file_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file in their plain types."""
    return pa.schema([(field.name, plain(field.type)) for field in file.schema_arrow])


@contextmanager
def _open(place: Located) -> Iterator[pq.ParquetFile]:
    with place.open_file() as source:
        yield _parquet(place, source)


def _parquet(
    place: Located, source: pa.NativeFile, dictionary: Sequence[str] = (), footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=footer,
        read_dictionary=list(dictionary) or None,
        pre_buffer=not place.is_local,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",  # in nanoseconds the year 9999 of old files would overflow
    )


def _splits(footer: Footer, file: int, index: int, base: int, split_bytes: int) -> list[Split]:
    """Divide one file: adjacent row groups form one split as long as that has at most ``split_bytes``.

    ``index``: of the first split among all files. ``base``: the arrival position of the file's first row.
    """
    runs: list[list[int]] = []
    size = 0
    for group, (_, nbytes) in enumerate(footer.groups):
        if not runs or size + nbytes > split_bytes:
            runs.append([])
            size = 0
        runs[-1].append(group)
        size += nbytes
    first, splits = 0, []
    for at, run in enumerate(runs or [[]]):
        rows = sum(footer.groups[group][0] for group in run)
        nbytes = sum(footer.groups[group][1] for group in run)
        is_last = at + 1 >= len(runs)
        splits.append(Split(index + at, file, base + first, rows, nbytes, is_last, (first, *run)))
        first += rows
    return splits


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """The `FormatReader` of Parquet; ``place`` of a split is its first row in the file, then its row groups.

    A text column that is to be dictionary encoded stays plain if the file stores it plain: then few values repeat.
    """

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        """Read columns of a split; a row with a value that does not convert to its type becomes a reject."""
        rows = np.arange(split.rows, dtype=np.int64)
        want = request.types
        if not want:
            return SplitRows(pa.table({}), rows)
        groups, texts = list(split.place[1:]), [name for name in request.dictionary if name in want]
        with input_errors(place.shown, " as Parquet"), _open_for(place, groups, texts) as file:
            raw = file.read_row_groups(groups, columns=list(want), use_threads=False)
        if len(raw) != split.rows:
            raise has_changed(place.shown)
        columns, type_errors = {}, []
        for name, kind in want.items():
            encoded = name in texts and pa.types.is_dictionary(raw[name].type)
            if encoded and plain(raw[name].type) == kind.type:
                columns[name] = raw[name]
                continue
            column = _plain_column(raw[name])
            columns[name], mask = convert(column, kind)
            if mask is not None:
                type_errors.append(TypeErrors(name, kind, column, mask))
        table, bad = drop_type_errors(pa.table(columns), type_errors)
        if bad is None:
            return SplitRows(table, rows)
        first = split.place[0] + 1
        rejects = tuple(
            Reject(int(at), first + int(at), first_detail(type_errors, int(at)), None) for at in np.flatnonzero(bad)
        )
        return SplitRows(table, rows[~bad], rejects)

    def row_groups(self, place: Located, split: Split) -> list[Split]:
        """Return each row group of a split as a split of its own."""
        with input_errors(place.shown, " as Parquet"), _open(place) as file:
            counts = [file.metadata.row_group(group).num_rows for group in split.place[1:]]
        befores = [0, *accumulate(counts)]
        return [
            replace(
                split,
                base=split.base + before,
                rows=rows,
                nbytes=split.nbytes * rows // max(1, split.rows),
                ends_file=split.ends_file and group == split.place[-1],
                place=(split.place[0] + before, group),
            )
            for group, rows, before in zip(split.place[1:], counts, befores, strict=False)
        ]

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:  # noqa: ARG002
        """Return the 1-based rows in the file of rows of a split; ``offsets``: of the rows in the split, int64."""
        return offsets + split.place[0] + 1


@contextmanager
def _open_for(place: Located, groups: Sequence[int], texts: Sequence[str]) -> Iterator[pq.ParquetFile]:
    """Open a file to read some row groups; the ``texts`` that are stored with a dictionary are read as dictionaries."""
    with place.open_file() as source:
        file = _parquet(place, source)
        repeating = [name for name in texts if _repeats(file.metadata, groups, name)]
        yield _parquet(place, source, repeating, file.metadata) if repeating else file


def _repeats(footer: pq.FileMetaData, groups: Sequence[int], name: str) -> bool:
    """Whether a text column takes less than half of the bytes of its values as plain text.

    Nearly all values are then stored as dictionary codes, so reading them as a dictionary needs no hashing.
    """
    paths = [footer.schema.column(at).path for at in range(footer.num_columns)]
    if name not in paths:
        return True
    stored = texts = 0
    for group in groups:
        chunk = footer.row_group(group).column(paths.index(name))
        if chunk.physical_type != "BYTE_ARRAY" or not chunk.is_stats_set or not chunk.statistics.has_min_max:
            return True
        stored += chunk.total_uncompressed_size
        texts += chunk.num_values * (4 + (len(chunk.statistics.min_raw) + len(chunk.statistics.max_raw)) // 2)
    return stored < max(_SHORT, texts // 2)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = plain(column.type)
    return column if column.type == kind else column.cast(kind)
