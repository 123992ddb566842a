"""One version of a table as readers see it: its columns, and its data files in order of arrival (semantics 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from .address import Values, folder_path


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table.

    ``path``: its path in the file system of the table.
    ``shown``: its path as the user would write it.
    ``size``: its size in bytes.
    ``rows``: its number of rows; None where the table does not say.
    ``mtime``: when it was added, ISO 8601 in UTC; None where it is unknown.
    ``values``: the partition columns, whose values its rows have in common; the file need not hold them.
    ``folders``: the same as the folders of the file write them, where these are folders of partitions; else empty.
    """

    path: str
    shown: str
    size: int
    rows: int | None
    mtime: str | None
    values: Values
    folders: Values = ()

    @property
    def below(self) -> str:
        """Its path relative to the table, as if each partition were a folder, whatever the folder of the file is."""
        name = self.path.rpartition("/")[2]
        return f"{folder_path(self.folders or self.values)}/{name}" if self.values else name


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table, or of a partition of it.

    ``title``: the kind of the table, for messages.
    ``shown``: the table as the user wrote it.
    ``fs``: its file system.
    ``root``: its path in that.
    ``version``: the version, as the kind counts them.
    ``schema``: its columns, those of partitions among them.
    ``partitions``: the names of its partition columns.
    ``files``: its data files, by path: rows arrive by file, and by row within a file.
    ``columns``: the columns that files have, with the field ids by which the table knows them; None where it knows
        them by name.
    """

    title: str
    shown: str
    fs: fs.FileSystem
    root: str
    version: str
    schema: pa.Schema
    partitions: tuple[str, ...]
    files: tuple[TableFile, ...]
    columns: pa.Schema | None = None

    def where(self, values: Values) -> TableVersion:
        """Return the files whose partition columns have these values; those of another column have none."""
        wanted = dict(values)
        kept = [file for file in self.files if wanted.items() <= dict(file.values).items()]
        order = [*wanted, *(name for name in self.partitions if name not in wanted)]
        return replace(self, files=tuple(_in_order(file, order) for file in kept))

    @property
    def in_files(self) -> pa.Schema:
        """The columns that files have: all but those of partitions."""
        return pa.schema([field for field in self.schema if field.name not in self.partitions])

    def folders(self) -> tuple[str, ...]:
        """Return the sorted names ``NAME=VALUE`` of its partitions, of each partition column."""
        return tuple(sorted({folder_path([value]) for file in self.files for value in file.values}))


def _in_order(file: TableFile, names: list[str]) -> TableFile:
    return replace(file, values=_sorted(file.values, names), folders=_sorted(file.folders, names))


def _sorted(values: Values, names: list[str]) -> Values:
    found = dict(values)
    return tuple((name, found[name]) for name in names if name in found)


class TableKind(Protocol):
    """A kind of table: Delta, Iceberg. Its methods import its library."""

    @property
    def name(self) -> str:
        """Its name in options."""

    @property
    def title(self) -> str:
        """Its name in messages."""

    def takes(self, path: str) -> bool:
        """Whether a path or URI names a table of this kind, or a partition of one, that is there or may be made."""

    def at_version(self, path: str, version: str | None = None) -> TableVersion:
        """Return a version of the table at a path, or of the partition that the path names; None: the newest.

        ``version``: a number, or a time in ISO 8601, which is UTC where it has no zone. Raises `InputError` where there
        is no such table or version, or where it cannot be read rightly; `ConfigError` where its library is missing.
        """
