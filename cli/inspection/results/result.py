"""One result as a table: its columns and types, and its rows in order, of which only the needed ones are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ....readers.files.listing import list_files
from ....readers.files.result_folders import read_manifest
from ....readers.files.walk import MANIFEST, ListedFile
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....readers.source import FileSource
from ....windowing.errors import DamagedError, InputError
from ....windowing.expressions.syntax import Expression
from ....windowing.local_executor import LocalExecutor
from ....windowing.rows.projection import Projection, RowExpressions, make_projection, project, stored_condition
from ....writers.places.place import REJECTED


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that wincli wrote: those of a result, or its rejects. ``source``: their files, opened as an input is."""

    source: FileSource

    @property
    def schema(self) -> pa.Schema:
        return self.source.schema

    def tables(self, columns: Sequence[str] | None = None, where: Expression | None = None) -> Iterator[pa.Table]:
        """Yield the rows in their order, about a row group at a time.

        ``columns``: the columns to yield; None: all. ``where``: a condition (semantics section 11); null is not true.
        Row groups that hold no such row, as the statistics of the file say, are not read.
        Raises `ConfigError` or `SpecError` for a condition that does not fit, `InputError` where a file cannot be read.
        """
        names = self.schema.names if columns is None else columns
        projection = make_projection(self.schema, RowExpressions((), where))
        condition = stored_condition(projection)
        for split in self.source.splits:
            for found in [split] if condition is None else self.source.parts_with(split, condition):
                for part in self.source.parts_of(found):
                    yield kept_rows(projection, self.source.read(part, projection.needs(names)).rows, names)


def kept_rows(projection: Projection, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of the rows for which the condition of a projection is true."""
    found, kept, _ = project(projection, rows, names)
    return found if kept is None else found.filter(pa.array(kept))


@dataclass(frozen=True)  # without slots, for what is read once
class ResultFolder:
    """A result. Its manifest is read, and its files are opened, when they are asked for.

    ``shown``: the folder, as the user wrote it.
    ``file``: its manifest, as it was listed.
    """

    shown: str
    file: ListedFile = field(repr=False)

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What its run recorded (docs/results.md). Raises `DamagedError` where the file is no manifest."""
        try:
            return read_manifest(self.file.place)
        except ValueError as error:
            raise self.no_manifest() from error

    @cached_property
    def rows(self) -> StoredRows:
        """Its rows. Raises `DamagedError` where its files are not those of its manifest."""
        return open_rows(self.shown)

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def is_single(self) -> bool:
        """Whether it is all that is at its path; else it is one of several, as those of a range."""
        return self.file.below == MANIFEST

    @property
    def folder(self) -> str:
        """Its folder, as messages write it."""
        return self.file.place.shown.removesuffix(MANIFEST).rstrip("/") or "."

    @property
    def label(self) -> str:
        """The label of its unit where the folder is named ``NAME=LABEL``, else the folder's name."""
        name = self.file.place.shown.removesuffix(MANIFEST).rstrip("/").rpartition("/")[2]
        return unquote(name.rpartition("=")[2])

    def no_manifest(self) -> DamagedError:
        """Return the error for a file that is no manifest."""
        return DamagedError(f"{self.file.place.shown} is no manifest of wincli", "write the result again")


def results_at_path(
    path: str,
    lacks: str = "is no state and no result of wincli",
    do: str = "name the folder of --state, or of an output",
) -> list[ResultFolder]:
    """Return the results at a path, by the order of their folders.

    Raises `InputError`, in the words ``lacks`` and ``do``, where there is none.
    """
    manifests = list_files([path], skip_unreadable=True).manifests
    if not manifests:
        raise InputError(f"{path} {lacks}", do)
    below = [each.below.removesuffix(MANIFEST).rstrip("/") for each in manifests]
    names = [f"{path.rstrip('/')}/{name}" if name else path for name in below]
    return list(map(ResultFolder, names, manifests))


def open_result_folder(path: str) -> ResultFolder:
    """Open the result in the folder ``path``.

    Raises `InputError` where there is no such result, `DamagedError` where its files are not those of its manifest.
    """
    manifests = list_files([path], skip_unreadable=True).manifests
    found = next((each for each in manifests if each.below == MANIFEST), None)
    if found is None:
        do = "it holds several results; name one of them" if manifests else "name the folder that a run wrote"
        raise InputError(f"{path} is no result of wincli", do)
    return opened(ResultFolder(path, found))


def opened(result: ResultFolder) -> ResultFolder:
    """Return a result whose manifest was read, and whose files are open. Raises as these do."""
    for name in ("manifest", "rows"):
        getattr(result, name)
    return result


def rejects_of(result: ResultFolder) -> StoredRows | None:
    """Return the rows that the run rejected; None where there are none."""
    if not result.manifest["rejects"]:
        return None
    place = result.file.place
    if place.path.endswith(MANIFEST):
        return open_rows(f"{result.shown.rstrip('/')}/{REJECTED}")
    names = [part["name"] for part in result.manifest["rejects"] if part["name"].startswith(f"{REJECTED}/")]
    above = place.path.rpartition("_wincli/")[0]
    head = above if place.is_local else f"{place.fs.type_name}://{above}"
    return open_rows(*(f"{head}{name}" for name in names))  # former results have theirs beside these


def open_rows(*paths: str) -> StoredRows:
    """Open the files of a folder, or files. Raises `InputError` where they cannot be read."""
    return StoredRows(open_source(paths, ReadOptions(), LocalExecutor()))
