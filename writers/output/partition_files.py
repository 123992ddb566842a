"""The files of one part of a partitioned result: rows come in any order of folders, and each folder gets one file.

Rows are collected up to `BUFFER` and sorted by folder, stably. Where that is all, each folder is written and closed
before the next. Where more rows come, the folders with most rows get files that stay open, as many as are allowed, and
rows of all others go to a temporary file, from which each folder is written at the end. So memory is bounded by the
buffer, and open files by the limit, for any number of folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..formats.encoder import Write
from ..formats.types import plain

BUFFER = 64 << 20
"""Bytes of rows that are collected before they are sorted by folder."""

Folders = Callable[[pa.Table], tuple[npt.NDArray[np.int64], list[str]]]
"""Returns the folder of each row, as `partition_folders.folders_of` does."""

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
    """Yield all rows in their order, in tables of at least ``buffer`` bytes, but the last."""
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
    """Return the rows of each folder, in their order."""
    codes, names = folders(rows)
    rows = rows.select(schema.names).unify_dictionaries().combine_chunks()
    if len(names) == 1:
        return {names[0]: rows}
    order = np.argsort(codes.astype(np.min_scalar_type(len(names))), kind="stable")  # 16 bits are sorted by radix
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    ordered = _small_dictionaries(rows, len(names)).take(pa.array(order))
    return {name: ordered.slice(low, high - low) for name, (low, high) in zip(names, pairwise(bounds), strict=True)}


def _small_dictionaries(rows: pa.Table, folders: int) -> pa.Table:
    """Return rows with plain columns in place of large dictionaries, which each file would have to trim."""
    for at, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type):
            size = max((len(chunk.dictionary) for chunk in column.chunks), default=0)
            if size * folders > 4 * rows.num_rows:
                rows = rows.set_column(at, rows.schema.field(at).name, column.cast(column.type.value_type))
    return rows


@dataclass(slots=True)
class _Files:
    """The files of a part.

    ``schema``: their columns.
    ``open_file``: opens the file of a folder.
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
        self.close()
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

    def close(self) -> None:
        """Close all open files."""
        self.leave()

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
    ``new_file``: opens the file, once there are rows.
    ``stack``: closes it.
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
