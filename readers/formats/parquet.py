"""Read Parquet: the driver reads all footers, and a split is one or more adjacent row groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...windowing.errors import InputError
from ...windowing.ports import ColumnRange, Condition, Split
from ..files.file import Located, input_errors
from .columnar import (
    Footer,
    check_counts,
    check_names,
    divide,
    plain_schema,
    plan_columnar,
    runs_of,
    typed_rows,
)
from .split_rows import FormatReader, ReadRequest, SplitRows

# The columns of a Parquet file of a table that knows columns by field ids: they may have other names in the file.


_ID = b"PARQUET:field_id"
NAMES = b"names"
"""The key of the metadata of a schema with the ids, by name, of columns in files without field ids."""


def names_in_file(file: pa.Schema, table: pa.Schema, shown: str) -> dict[str, str]:
    """Return the name in a file of each column of a table that the file has, in the order of the table.

    ``file``, ``table``: the columns with field ids in the metadata of fields. Raises `InputError` where the file has no
    field ids, and for a column whose inner fields are others than those of the table.
    """
    by_id = {_id(field): field for field in file if _id(field) is not None}
    if not by_id and file.names:
        names = json.loads((table.metadata or {}).get(NAMES, b"{}"))
        if not names:
            raise InputError(f"{shown} has no field ids, and its table says no ids for names", "rewrite that data file")
        by_id = {names[field.name]: field for field in file if field.name in names}
    found = {}
    for column in table:
        own = by_id.get(_id(column))
        if own is not None:
            if not _is_alike(own.type, column.type):
                what = f"column {column.name!r} has other inner fields in {shown} than in its table"
                raise InputError(what, "rewrite the older data files of the table")
            found[column.name] = own.name
    return found


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def _is_alike(file: pa.DataType, table: pa.DataType) -> bool:
    if not pa.types.is_nested(table):
        return not pa.types.is_nested(file)
    if pa.types.is_struct(file) != pa.types.is_struct(table) or pa.types.is_map(file) != pa.types.is_map(table):
        return False
    ours, theirs = _children(file), _children(table)
    if pa.types.is_struct(table) and [each.name for each in ours] != [each.name for each in theirs]:
        return False
    pairs = list(zip(ours, theirs, strict=False))
    return len(ours) == len(theirs) and all(
        (_id(a) is None or _id(a) == _id(b)) and _is_alike(a.type, b.type) for a, b in pairs
    )


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind):
        return [kind.field(at) for at in range(kind.num_fields)]
    return [kind.value_field] if pa.types.is_nested(kind) else []


_SHORT = 1 << 16  # bytes: a column of so few is read as a dictionary, whatever it holds


def column_names(file: IO[bytes]) -> list[str]:
    """Return the names of the columns of an open file."""
    return list(pq.read_schema(file).names)


def _footer(place: Located) -> Footer:
    with _open(place) as file:
        groups = tuple(
            (group.num_rows, group.total_byte_size)
            for group in map(file.metadata.row_group, range(file.num_row_groups))
        )
        _check_rows(place, file.metadata)
        schema = file_schema(file)
        check_names(place, schema.names)
        stored = _stored_names(place, file)
        if stored is not None:
            schema = pa.schema([schema.field(name).with_name(column) for column, name in stored.items()])
        return Footer(schema, groups)


def _check_rows(place: Located, footer: pq.FileMetaData) -> None:
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    check_counts(
        place, {"its footer names": footer.num_rows, "its row groups have": sum(group.num_rows for group in groups)}
    )
    leaves = (at for at in range(footer.num_columns) if not footer.schema.column(at).max_repetition_level)
    if (flat := next(leaves, None)) is None:  # in lists a row has any number of values
        return
    chunks = [group.column(flat) for group in groups]
    for number, (group, chunk) in enumerate(zip(groups, chunks, strict=True)):
        told = {f"row group {number} has": group.num_rows, f"its column {chunk.path_in_schema} has": chunk.num_values}
        check_counts(place, told)
    begins = [chunk.data_page_offset for chunk in chunks if chunk.num_values]
    if len({*begins}) < len(begins):
        what = f"{place.shown} is damaged: its footer names a row group twice, and so its rows"
        raise InputError(what, "get a whole copy of it, or have it written again")


def file_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file in their plain types."""
    return plain_schema(file.schema_arrow)


def _stored_names(place: Located, file: pq.ParquetFile) -> dict[str, str] | None:
    """Return the name in a file of each column that is read of it; None where these are its own columns."""
    return None if place.columns is None else names_in_file(file.schema_arrow, place.columns, place.shown)


@contextmanager
def _open(place: Located, split: Split | None = None, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a file; to read a split, those ``texts`` that are stored with a dictionary are read as dictionaries."""
    with input_errors(place.shown, " as Parquet"), place.open_file() as source:
        if split is None or split.nbytes < _SHORT:  # so is each of its columns: to open twice would cost as much
            yield _parquet(place, source, texts)
            return
        file = _parquet(place, source)
        repeating = [name for name in texts if _repeats(file.metadata, split.place[1:], name)]
        yield _parquet(place, source, repeating, file.metadata) if repeating else file


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


@dataclass(frozen=True, slots=True)
class ParquetReader(FormatReader):
    """The `FormatReader` of Parquet; ``place`` of a split is its first row in the file, then its row groups.

    A text column that is to be dictionary encoded stays plain if the file stores it plain: then few values repeat.
    """

    columnar: ClassVar[bool] = True

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        want = request.types
        if not want:
            return SplitRows(pa.table({}), np.arange(split.rows, dtype=np.int64))
        groups, texts = list(split.place[1:]), [name for name in request.dictionary if name in want]
        with _open(place, split, texts) as file:
            stored = _stored_names(place, file) or {}
            raw = file.read_row_groups(groups, columns=[stored.get(name, name) for name in want], use_threads=False)
        if stored:
            raw = raw.select([stored[name] for name in want]).rename_columns(list(want))
        check_counts(place, {"its footer names": split.rows, "its pages have": len(raw)})
        return typed_rows(raw, split, request, texts)

    def parts_of(self, place: Located, split: Split) -> Sequence[Split]:
        with _open(place) as file:
            counts = [file.metadata.row_group(group).num_rows for group in split.place[1:]]
        return divide(split, counts)

    def parts_with(
        self, place: Located, split: Split, condition: Condition, types: Mapping[str, pa.DataType]
    ) -> Sequence[Split]:
        with _open(place) as file:
            schema = file_schema(file)
            stored = _stored_names(place, file)
            known = [name for name, kind in types.items() if name in schema.names and schema.field(name).type == kind]
            if stored is not None:
                known = [name for name in known if stored.get(name) == name]
            groups = [file.metadata.row_group(group) for group in split.place[1:]]
            wanted = [not condition.is_never_true(_ranges(group, known)) for group in groups]
        parts = divide(split, [group.num_rows for group in groups])
        return runs_of([part for part, is_wanted in zip(parts, wanted, strict=False) if is_wanted])


plan_input = plan_columnar(ParquetReader(), _footer)
"""The `PlanInput` of Parquet."""


def _ranges(group: pq.RowGroupMetaData, names: Sequence[str]) -> dict[str, ColumnRange]:
    found = {}
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema in names and chunk.is_stats_set:
            stats = chunk.statistics
            low, high = (stats.min, stats.max) if stats.has_min_max else (None, None)
            nulls = stats.null_count if stats.has_null_count else None
            found[chunk.path_in_schema] = ColumnRange(low, high, nulls, group.num_rows)
    return found


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
