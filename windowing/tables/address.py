"""Paths of tables: ``delta+PATH`` or a plain path, with the partition as names ``NAME=VALUE`` at the end.

``in/day=2026-11-01`` is the part of the table ``in`` whose partition column ``day`` is ``2026-11-01``: as a folder of
that name would be.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from ..errors import ConfigError, shown
from ..support.redaction import redacted_path

_HIVE = {ord(letter): f"%{ord(letter):02X}" for letter in "\x7f\"#%'*/:=?\\{[]^" + "".join(map(chr, range(32)))}
_NULL = "__HIVE_DEFAULT_PARTITION__"

Values = tuple[tuple[str, "str | None"], ...]
"""Names and values of partition columns, as texts; None for null."""


@dataclass(frozen=True, slots=True)
class TablePath:
    """A path that names a table, or a partition of one.

    ``root``: the path or URI of the table.
    ``below``: the end of the path that names a partition, ``NAME=VALUE/..``; empty for the whole table.
    """

    root: str
    below: str

    @property
    def values(self) -> Values:
        return tuple(map(_value, self.below.split("/"))) if self.below else ()


def split_path(path: str) -> TablePath:
    """Divide a path into that of a table and the names ``NAME=VALUE`` at its end."""
    root, below = path.rstrip("/") or path, ""
    while True:
        head, _, name = root.rpartition("/")
        if not head or name.find("=") < 1:
            return TablePath(root, below)
        root, below = head, f"{name}/{below}" if below else name


def partition_path(path: str) -> TablePath:
    """Divide the address of a table as `split_path` does.

    Raises `ConfigError` where a name or a value of its partition is no plain one: it would lead out of the table, or to
    another partition than readers take it for.
    """
    if "\0" in path:
        raise ConfigError(f"{redacted_path(path)} is no path: it has a character NUL", "write the path without it")
    found = split_path(path)
    names = [name for name, _ in found.values]
    for folder, (name, value) in zip(found.below.split("/"), found.values, strict=False):
        if leads_elsewhere(name) or leads_elsewhere(value or "") or names.count(name) > 1:
            why = "is named twice" if names.count(name) > 1 else "is no name of a partition"
            raise ConfigError(f"{redacted_path(path)}: {folder} {why}", "write each partition once, as day=2026-11-02")
    return found


def leads_elsewhere(name: str) -> bool:
    """Whether a name has characters that no path should have, or is a way to the folder above."""
    return shown(name) != name or any(part in (".", "..") for part in re.split(r"[/\\]", name))


def folder_name(name: str, value: str | None) -> str:
    """Return the folder that a value of a partition column has, as Hive and Spark name it.

    Null and the empty text have the same one, since Hive has no name for the empty text.
    """
    return f"{escaped(name)}={escaped(value) if value else _NULL}"


def escaped(text: str) -> str:
    """Return a text as part of a folder name; characters that Hive escapes become ``%`` and two hex digits."""
    return text.translate(_HIVE)


def folder_path(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the folders of values of partition columns, the outermost first."""
    return "/".join(folder_name(*each) for each in values)


def _value(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value in ("", _NULL) else unquote(value)


# One version of a table as readers see it: its columns, and its data files in order of arrival (semantics 1).


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table.

    ``path``: its path in the file system of the table.
    ``shown``: its path as the user would write it.
    ``size``: in bytes.
    ``rows``: None where the table does not say.
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
        name = self.path.rpartition("/")[2]
        return f"{folder_path(self.folders or self.values)}/{name}" if self.values else name


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table, or of a partition of it.

    ``title``: the kind of the table, for messages.
    ``shown``: the table as the user wrote it.
    ``root``: its path in its file system.
    ``version``: as the kind counts them.
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

        def in_order(values: Values) -> Values:
            found = dict(values)
            return tuple((name, found[name]) for name in order if name in found)

        ordered = (replace(each, values=in_order(each.values), folders=in_order(each.folders)) for each in kept)
        return replace(self, files=tuple(ordered))

    @property
    def in_files(self) -> pa.Schema:
        """The columns that files have: all but those of partitions."""
        return pa.schema([field for field in self.schema if field.name not in self.partitions])

    def folders(self) -> tuple[str, ...]:
        """Return the sorted names ``NAME=VALUE`` of its partitions, of each partition column."""
        return tuple(sorted({folder_path([value]) for file in self.files for value in file.values}))


def is_date(text: str | None) -> bool:
    """Whether a value of a partition is written as a date, such as ``2026-11-02``."""
    try:
        return text is not None and dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def version_time(text: str, what: str, do: str) -> dt.datetime:
    """Return the time that names a version of a table, ISO 8601, UTC where it has no zone. Raises `ConfigError`.

    ``what``: what a text of another form does not name. ``do``: what to name.
    """
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} names {what}", f"name {do}") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


# The kinds of table that there are. The next one is a module with these two functions, and its name here.


_MODULES = ("delta", "iceberg")
"""Modules of this package: ``takes(path)`` says whether a path or URI names a table of the kind, or a partition of one,
that is there or may be made; ``at_version`` is `table_version` for such a path. Libraries are imported in functions."""


def table_version(path: str, version: str | None = None) -> TableVersion | None:
    """Return a version of the table at a path, or of the partition that the path names; None where it is no table.

    ``version``: a number, or a time in ISO 8601, which is UTC where it has no zone; None: the newest. Raises
    `InputError` where there is no such table or version, or where it cannot be read rightly; `ConfigError` where its
    library is missing.
    """
    for name in _MODULES:
        module: Any = import_module(f"{__package__}.{name}")
        if module.takes(path):
            found: TableVersion = module.at_version(path, version)
            return found
    return None
