"""How a result is divided into folders: the partition columns, checked against the columns of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import ConfigError, DataError, did_you_mean
from ...windowing.tables.address import escaped, folder_name
from ..formats.encoder import Write, is_bytes, plain
from ..formats.text import is_binary

if TYPE_CHECKING:
    from ...windowing.expressions.binding import BoundExpression
    from ...windowing.expressions.syntax import Expression


# The folders of a partitioned result: ``day=2026-11-01/kind=a%2Fb``, as `folder_name` names them.


LONGEST = 255
"""Bytes: no local file system takes a longer name of a folder."""

_FRACTION_ZEROS = r"(\.\d*?)0+$"


def can_name(kind: pa.DataType) -> bool:
    """Whether values of a type can be names of folders: no lists, structs, bytes or durations."""
    is_other = (pa.types.is_nested, is_binary, pa.types.is_duration, pa.types.is_interval)
    return not any(test(kind) for test in is_other) and not isinstance(kind, pa.BaseExtensionType)


def folders_of(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the folder of each row: int64 (n,) indices into a list of folders, each of which has a row.

    ``names``: the names of the partition columns. ``columns``: their values, (n,) each. Python runs once for each
    distinct value. Raises `DataError` for a text that is no UTF-8, or too long for the name of a folder.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    folders = [""]
    for name, column in zip(names, columns, strict=True):
        own, found = _name_of_each(name, column)
        codes, size = codes * len(found) + own, len(folders) * len(found)
        if size > 4 * len(codes) + 1024:
            pairs, codes = np.unique(codes, return_inverse=True)
        else:
            is_used = np.zeros(size, np.bool_)
            is_used[codes] = True
            pairs, codes = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]
        folders = [f"{folders[pair // len(found)]}/{found[pair % len(found)]}" for pair in pairs.tolist()]
    return codes, [folder[1:] for folder in folders]


def _name_of_each(name: str, column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # no chunk at all
        values = pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        encoded = values
    elif pa.types.is_floating(values.type):  # by bits: 0.0 and -0.0 have different texts
        bits = values.view(_BITS[values.type.bit_width]).dictionary_encode()
        encoded = pa.DictionaryArray.from_arrays(bits.indices, bits.dictionary.view(values.type))
    else:
        encoded = values.dictionary_encode()
    folders = [folder_name(name, text) for text in [*_texts(encoded.dictionary, name), None]]
    found = {folder: code for code, folder in enumerate(dict.fromkeys(folders))}
    for folder in found:
        if (length := len(folder.encode())) > LONGEST:
            what = f"a value of {name!r} would name a folder with {length:,} bytes, and a name has at most {LONGEST}"
            raise DataError(f"{what}: {folder[:40]}..", "partition by a shorter column, or by a part of this one")
    own = encoded.indices.cast(pa.int64()).fill_null(len(folders) - 1).to_numpy(zero_copy_only=False)
    return np.array([found[folder] for folder in folders], np.int64)[own], [*found]


_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _texts(values: pa.Array, name: str) -> Iterable[str | None]:
    kind = values.type
    if pa.types.is_floating(kind):
        return [None if value is None else _float_text(value, kind) for value in values.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.string()).to_pylist()
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))  # in UTC, where it has a zone
    texts = values.cast(pa.large_string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        texts = pc.replace_substring_regex(pc.replace_substring_regex(texts, _FRACTION_ZEROS, r"\1"), r"\.$", "")
    found: list[str | None] = []
    for data in texts.cast(pa.large_binary()).to_pylist():
        try:
            found.append(None if data is None else data.decode())
        except UnicodeDecodeError as error:
            what = f"a value of {name!r}, which would name a folder, is no UTF-8 text: {data!r:.80}"
            raise DataError(what, "partition by another column") from error
    return found


def _float_text(value: float, kind: pa.DataType) -> str:
    """Return a float as Java writes it: ``1.0``, ``1.5E-5``, ``Infinity``; the shortest digits that read back."""
    number: Any = np.float64(value) if kind.bit_width == 64 else np.float32(value)
    if not np.isfinite(number):
        return _ODD_FLOATS[str(number)]
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    digits, _, power = np.format_float_scientific(number, trim="0").partition("e")
    return f"{digits}E{int(power)}"


_ODD_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


_FLAG = "--partition-by"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition columns of a result; `bind_partitions` makes it.

    ``columns``: the partition columns, the outermost first, with their types.
    ``expressions``: what gives the value of each of them; None where it is a column of the result.
    ``files``: the columns of the files: those of the result without the partition columns.
    ``result``: the columns that a reader of the folders finds.
    ``most_open``: how many files a task may hold open.
    ``entries``: name and expression of each, as `bind_partitions` has them.
    """

    columns: pa.Schema
    expressions: tuple[BoundExpression | None, ...]
    files: pa.Schema
    result: pa.Schema
    most_open: int
    entries: tuple[tuple[str, Expression | None], ...] = ()

    def over(self, schema: pa.Schema) -> Partitioning:
        """Return the same partition columns over a result with other types. Raises as `bind_partitions` does."""
        found = bind_partitions(self.entries, schema, self.most_open)
        assert found is not None
        return found

    def values(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the partition columns. Raises `DataError` for a row for which an expression fails."""
        found = []
        for name, expression in zip(self.columns.names, self.expressions, strict=True):
            if expression is None:
                found.append(rows[name])
                continue
            needed = rows.select(expression.columns) if expression.columns else rows
            evaluated = expression.evaluate(needed.cast(plain(needed.schema)))
            if evaluated.failures is not None and evaluated.failures.any():
                what = f"{_FLAG} {name}={expression.text} fails for a row of the result: {evaluated.details[0]}"
                raise DataError(what, "use TRY_CAST for null instead, or another expression")
            found.append(pa.chunked_array([evaluated.values]))
        return found

    def read_back(self, rows: pa.Table, values: Sequence[pa.ChunkedArray]) -> pa.Table:
        """Return rows with the partition columns as a reader of the folders finds them: the empty text is null."""
        for name, column in zip(self.columns.names, values, strict=True):
            found = column
            values_of = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            if is_bytes(values_of.type):
                is_empty = pc.equal(pc.binary_length(values_of), 0)
                found = pc.if_else(is_empty, None, values_of) if pc.any(is_empty).as_py() else column
            at = rows.schema.get_field_index(name)
            rows = rows.append_column(name, found) if at < 0 else rows.set_column(at, name, found)
        return rows


def bind_partitions(
    columns: Sequence[tuple[str, Expression | None]], schema: pa.Schema, most_open: int
) -> Partitioning | None:
    """Return how a result of ``schema`` is divided; None without columns.

    ``columns``: name and expression of each, the outermost first; None for the column of that name.
    Raises `ConfigError` for a column that the result lacks, that is named twice, whose values cannot name folders, or
    whose name hides a folder from readers; and where no column would be left. Raises `SpecError` for an expression that
    does not fit the result.
    """
    if not columns:
        return None
    names = [name for name, _ in columns]
    fields, bound = [], []
    for at, (name, expression) in enumerate(columns):
        if name in names[:at]:
            raise ConfigError(f"{_FLAG} names {name!r} twice", "name it once")
        bound.append(_bind(name, expression, schema))
        fields.append(schema.field(name) if bound[-1] is None else pa.field(name, bound[-1].type))
        _check(fields[-1])
    files = pa.schema([field for field in schema if field.name not in names])
    if not files.names:
        raise ConfigError(f"{_FLAG} leaves no column in the files", "leave one of them out")
    added = [field for field in fields if field.name not in schema.names]
    return Partitioning(pa.schema(fields), tuple(bound), files, pa.schema([*schema, *added]), most_open, (*columns,))


def _bind(name: str, expression: Expression | None, schema: pa.Schema) -> BoundExpression | None:
    if expression is None:
        if name not in schema.names:
            what = f"{_FLAG} names {name!r}, which the result does not have"
            raise ConfigError(what, did_you_mean(name, schema.names))
        return None
    if name in schema.names:
        raise ConfigError(f"{_FLAG} {name}={expression}: the result has a column {name!r}", "give it another name")
    from ...windowing.expressions.binding import bind  # noqa: PLC0415 - few runs have an expression
    from ...windowing.expressions.lags import check_no_lag  # noqa: PLC0415

    check_no_lag(expression, f"{_FLAG} {name}={expression}")
    return bind(expression, plain(schema))


def _check(field: pa.Field) -> None:
    name = field.name
    if name.startswith(("_", ".")):
        raise ConfigError(
            f"{_FLAG} names {name!r}, and readers pass over folders whose name begins with {name[0]}",
            f"give it another name, as in NAME={name}" if name.startswith("_") else "name another column",
        )
    if not can_name(field.type):
        what = f"{_FLAG} names {name!r}, and values of type {field.type} cannot name a folder"
        raise ConfigError(what, "name a column of texts, numbers, dates or times")
    if len(escaped(name).encode()) > LONGEST // 2:
        raise ConfigError(f"{_FLAG} names {name[:40]!r}.., which is too long for a folder", "give it a shorter name")


# The files of one part of a partitioned result: rows come in any order of folders, and each folder gets one file.
#
# Rows are collected up to `BUFFER` and sorted by folder, stably. Where that is all, each folder is written and closed
# before the next. Where more rows come, the folders with most rows get files that stay open, as many as are allowed,
# and rows of all others go to a temporary file, from which each folder is written at the end. So memory is bounded by
# the buffer, and open files by the limit, for any number of folders.


BUFFER = 64 << 20
"""Bytes of rows that are collected before they are sorted by folder."""

Folders = Callable[[pa.Table], tuple[npt.NDArray[np.int64], list[str]]]
"""Returns the folder of each row, as `folders_of` does."""

OpenFile = Callable[[str], AbstractContextManager[Write]]
"""Opens the file of a folder."""


def write_folders(
    tables: Iterable[pa.Table],
    folders: Folders,
    schema: pa.Schema,
    open_file: OpenFile,
    new_spill: Callable[[], IO[bytes]],
    most_open: int,
    buffer: int = BUFFER,
) -> dict[str, int]:
    """Write the rows of all tables to one file for each folder, in their order; return the rows of each folder.

    ``schema``: the columns of the files. ``new_spill``: opens a temporary file. ``most_open``: at least 1.
    """
    with ExitStack() as stack:
        files = _Files(schema, open_file, most_open, _Spill(plain(schema), new_spill, stack))
        stack.push(files.leave)
        last: pa.Table | None = None
        for run in _runs(tables, buffer):
            if last is not None:
                files.take(_by_folder(last, folders, schema))
            last = run
        if last is not None:
            files.finish(_by_folder(last, folders, schema))
        files.write_spilled(buffer)
        return files.rows


def _runs(tables: Iterable[pa.Table], buffer: int) -> Iterator[pa.Table]:
    run: list[pa.Table] = []
    size = 0
    for table in tables:
        run.append(table)
        size += table.nbytes
        if size >= buffer:
            yield _joined(run)
            run, size = [], 0
    if run:
        yield _joined(run)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Return the rows of tables in one; a column may be dictionaries in some of them and plain in others."""
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    return pa.concat_tables([table.cast(plain(table.schema)) for table in tables])


def _by_folder(rows: pa.Table, folders: Folders, schema: pa.Schema) -> dict[str, pa.Table]:
    codes, names = folders(rows)
    rows = rows.select(schema.names).unify_dictionaries().combine_chunks()
    if len(names) == 1:
        return {names[0]: rows}
    order = np.argsort(codes.astype(np.min_scalar_type(len(names))), kind="stable")  # 16 bits are sorted by radix
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for at, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type):  # each folder would store a large one
            size = max((len(chunk.dictionary) for chunk in column.chunks), default=0)
            if size * len(names) > 4 * rows.num_rows:
                rows = rows.set_column(at, rows.schema.field(at).name, column.cast(column.type.value_type))
    ordered = rows.take(pa.array(order))
    return {name: ordered.slice(low, high - low) for name, (low, high) in zip(names, pairwise(bounds), strict=True)}


@dataclass(slots=True)
class _Files:
    """The files of a part.

    ``most_open``: how many may be open at a time.
    ``spill``: the rows of folders that have no file yet.
    ``open``: what writes to the open files, by folder, with what closes it.
    ``rows``: how many rows each folder has.
    """

    schema: pa.Schema
    open_file: OpenFile
    most_open: int
    spill: _Spill
    open: dict[str, tuple[Write, ExitStack]] = field(default_factory=dict, init=False)
    rows: dict[str, int] = field(default_factory=dict, init=False)

    def take(self, tables: dict[str, pa.Table]) -> None:
        """Write or spill rows, after which more may come."""
        for folder, table in sorted(tables.items(), key=lambda item: -item[1].num_rows):
            if folder not in self.open and folder not in self.spill.places and len(self.open) < self.most_open:
                stack = ExitStack()
                self.open[folder] = stack.enter_context(self.open_file(folder)), stack
            if folder in self.open:
                self._write(folder, table, self.open[folder][0])
            else:
                self.spill.add(folder, table)

    def finish(self, tables: dict[str, pa.Table]) -> None:
        """Write the last rows, each folder by itself; rows of folders that were spilled before are spilled, too."""
        for folder in self.open.keys() & tables.keys():
            self._write(folder, tables.pop(folder), self.open[folder][0])
        self.leave()
        for folder, table in tables.items():
            if folder in self.spill.places:
                self.spill.add(folder, table)
            else:
                with self.open_file(folder) as write:
                    self._write(folder, table, write)

    def write_spilled(self, buffer: int) -> None:
        """Write the files of the folders that were spilled, one after the other."""
        for folder in self.spill.places:
            with self.open_file(folder) as write:
                for table in _runs(self.spill.read(folder), buffer):
                    self._write(folder, table, write)

    def leave(self, *error: Any) -> None:
        """Close all open files; after an ``error``, as the exit of a context takes it, none of them is kept."""
        while self.open:
            self.open.popitem()[1][1].__exit__(*(error or (None, None, None)))

    def _write(self, folder: str, table: pa.Table, write: Write) -> None:
        self.rows[folder] = self.rows.get(folder, 0) + table.num_rows
        write(table)


@dataclass(slots=True)
class _Spill:
    """Rows in a temporary file, in batches that each belong to one folder.

    ``schema``: their columns, all plain: a file of Arrow cannot change its dictionaries.
    ``places``: the numbers of the batches of each folder.
    """

    schema: pa.Schema
    new_file: Callable[[], IO[bytes]]
    stack: ExitStack
    places: dict[str, list[int]] = field(default_factory=dict, init=False)
    file: IO[bytes] | None = field(default=None, init=False)
    writer: pa.RecordBatchFileWriter | None = field(default=None, init=False)
    reader: pa.RecordBatchFileReader | None = field(default=None, init=False)
    batches: int = field(default=0, init=False)

    def add(self, folder: str, rows: pa.Table) -> None:
        """Store rows of a folder."""
        if self.writer is None:
            self.file = self.stack.enter_context(self.new_file())
            self.writer = pa.ipc.new_file(self.file, self.schema)
        for batch in rows.cast(self.schema).to_batches():
            self.writer.write_batch(batch)
            self.places.setdefault(folder, []).append(self.batches)
            self.batches += 1

    def read(self, folder: str) -> Iterator[pa.Table]:
        """Yield the rows of a folder, in their order; nothing can be added after that."""
        if self.reader is None:
            assert self.writer is not None
            self.writer.close()
            self.reader = pa.ipc.open_file(self.file)
        for place in self.places[folder]:
            yield pa.Table.from_batches([self.reader.get_batch(place)])
