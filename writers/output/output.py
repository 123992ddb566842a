"""An output folder from the first check to the swap: readers see a complete result or none."""

from __future__ import annotations

import base64
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import ConfigError, InputError, OutputError
from ...windowing.support.address import Address
from ...windowing.support.checksum import PLACE
from ...windowing.support.formats import INTERMEDIATE, Format
from ...windowing.tables.iceberg_catalog import is_address
from ..commit.contract import Content, Table, TableCommit
from ..commit.delta import DeltaTable
from ..commit.tables import FolderTable, table_of
from ..commit.version_table import PARTITIONS
from ..places.lock import Owner
from ..places.os_errors import fixed_part, globbed, holds, is_glob, is_within, output_errors, reason, remove_empty
from ..places.place import MANIFEST, Place, is_local, new_token, resolve
from .partitioning import Partitioning
from .sink import FileSink, check_types

# Refuse an output that overlaps an input, another output or another result.
#
# A run must not read what it writes, and who reads a result must not read another one with it.


_REMEDY = {"output": "choose an output folder apart from it", "state": "choose a state folder apart from it"}
_DEEPEST = 8
_MOST = 100
_REMEDY_EACH = "give each stage an output folder of its own"


def refuse_overlap(
    out: Place, inputs: Sequence[str], what: str = "input", role: Literal["output", "state"] = "output"
) -> None:
    """Raise `ConfigError` naming both where ``out`` is equal to, inside or around one of ``inputs``.

    ``what``: the word for one of them, such as ``enrich table``; ``role``: that for ``out``. Inputs are files, folders
    or globs (``*``, ``?``, ``[..]``, ``**``), as paths or URIs. The output is inside a glob if the glob matches the
    output or a folder that contains it; ``**`` contains everything below the folder before it.
    The output is around a glob if it contains the part before the first wildcard or, on a local file system, any match.
    Raises `InputError` where the file system of an input cannot be reached.
    """
    do = _REMEDY[role]
    for text in inputs:
        try:
            if is_address(text):
                place = table_of(text).place
                system, path = place.fs, place.path
            elif not Address.of(text).is_path or not is_glob(text):
                system, path = resolve(text)
            else:
                head = fixed_part(text)
                system, base = resolve(head or ("/" if text.startswith("/") else "."))
                path = posixpath.join(base, text[len(head) :].lstrip("/"))
        except OutputError as error:  # of a catalog
            raise InputError(error.what, error.do) from error
        except OSError as error:
            raise InputError(f"cannot reach the {what} {text}: {reason(error)}") from error
        if not _is_same(system, out.fs):
            continue
        if path == out.path:
            raise ConfigError(f"{role} {out.shown} is the {what} {text} itself", do)
        if holds(path, out.path):
            raise ConfigError(f"{role} {out.shown} is inside the {what} {text}", do)
        found = (
            os.path.realpath(match) for match in (globbed(path) if is_local(out.fs) and is_glob(path) else iter(()))
        )
        if is_within(fixed_part(path), out.path) or any(is_within(each, out.path) for each in found):
            raise ConfigError(f"{role} {out.shown} contains the {what} {text}", do)


def refuse_each_other(outputs: Sequence[str]) -> None:
    """Raise `ConfigError` naming two outputs of a job that are one folder, or of which one is inside the other."""
    groups: list[tuple[fs.FileSystem, dict[str, Place]]] = []
    for place in (table_of(path).place for path in outputs):
        there = next((group for system, group in groups if _is_same(system, place.fs)), None)
        if there is None:
            there = {}
            groups.append((place.fs, there))
        elif (other := there.get(place.path)) is not None:
            raise ConfigError(f"{other.shown} and {place.shown} are the same output, of two stages", _REMEDY_EACH)
        there[place.path] = place
    for _, there in groups:
        for path, place in there.items():
            names = path.split("/")
            above = ("/".join(names[:depth]) for depth in range(1, len(names)))
            if other := next((there[folder] for folder in above if folder in there), None):
                raise ConfigError(f"output {place.shown} is inside output {other.shown}", _REMEDY_EACH)


def refuse_inside_result(out: Place) -> None:
    """Raise `ConfigError` where a folder above an output holds a result: who reads that would read both.

    So units of a range never get beside the parts of a plain result. What a user may not look at above an output is not
    looked at.
    """
    names = out.path.split("/")
    above = ["/".join(names[:depth]) for depth in range(len(names) - 1, 0, -1)]
    with suppress(OSError):
        for folder, info in zip(above, out.fs.get_file_info([f"{each}/{MANIFEST}" for each in above]), strict=True):
            if info.type == fs.FileType.File:
                below = out.path.removeprefix(folder)
                shown = out.shown.removesuffix(below) if out.shown.endswith(below) else folder
                what = f"output {out.shown} is inside {shown}, which holds a result of its own: who reads {shown} would"
                raise ConfigError(
                    f"{what} read both; nothing was touched", f"choose another output, or move {shown} away"
                )


def result_below(out: Place) -> str | None:
    """Return the path, relative to an output, of a folder in it that holds a result; None where none is found.

    Units of a range are such folders, as deep as ``{date}`` puts them. Of each level at most a hundred folders are
    looked at, and only the first is descended into, so that a large folder costs no more than a small one.
    """
    folder = out.path
    for _ in range(_DEEPEST):
        infos = out.fs.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        inner = sorted(info.path for info in infos if info.type == fs.FileType.Directory)
        inner = [path for path in inner if not path.rpartition("/")[2].startswith(("_", "."))][:_MOST]
        if not inner:
            return None
        found = out.fs.get_file_info([posixpath.dirname(f"{path}/{MANIFEST}") for path in inner])
        for path, info in zip(inner, found, strict=True):
            if info.type == fs.FileType.Directory:  # in a table by version its manifest has another name
                return path.removeprefix(f"{out.path}/")
        folder = inner[0]
    return None


def are_nested(one: Place, other: Place) -> bool:
    """Whether two places are one folder, or one is inside the other."""
    return _is_same(one.fs, other.fs) and (is_within(one.path, other.path) or is_within(other.path, one.path))


def _is_same(one: fs.FileSystem, other: fs.FileSystem) -> bool:
    return type(one) is type(other) and bool(one.equals(other))


Mode = Literal["error", "overwrite"]


@dataclass(slots=True)
class Output:
    """A locked output with a staging folder; `open_output` makes it.

    ``table_commit``: the result of this run on its way into the table.
    ``mode``: whether a result that is already there is an ``error`` or is overwritten.
    ``evolve``: whether a table by version may get columns that it lacks.
    ``partitions``: the columns of ``--partition-by`` in a Delta table, whose types its commit has to know.
    ``committed``: whether the result is published.
    ``journaled``: whether a journal names the staging folder. The folder then stays even if this run ends before
        `publish`, and the next run completes the commit from the journal.
    """

    table: Table
    table_commit: TableCommit[Mapping[str, Any]]
    mode: Mode
    evolve: bool = False
    partitions: pa.Schema | None = field(default=None, init=False)
    committed: bool = field(default=False, init=False)
    journaled: bool = field(default=False, init=False)

    @property
    def place(self) -> Place:
        return self.table.place

    @property
    def shown(self) -> str:
        return self.place.shown

    @property
    def staging(self) -> str:
        return self.table_commit.staging

    def sink(
        self,
        format: Format,
        schema: pa.Schema,
        reject_schema: pa.Schema,
        partitioning: Partitioning | None = None,
    ) -> FileSink:
        """Return the sink with which tasks write rows of ``schema`` in ``format``; rejects are always JSON Lines.

        Dictionary columns are written with their plain value type. ``partitioning``: how rows are divided into folders.
        Raises `ConfigError` naming the column where the format cannot hold its type, or where two have one name.
        """
        check_types(format, schema if partitioning is None else partitioning.files)
        place = self.place
        sink = FileSink(place.fs, self.staging, self.shown, format, schema, reject_schema)
        staged = self.table_commit
        return replace(sink, partitioning=partitioning, data=staged.data, suffix=staged.suffix)

    def begin(self) -> None:
        """Say that parts will be written now; a run that ends before this has left no trace at any time.

        Raises `OutputError` where the store refuses or another run has published meanwhile.
        """
        with output_errors(self.shown):
            self.table_commit.begin()

    def result_sink(
        self, format: Format, schema: pa.Schema, reject_schema: pa.Schema, partitioning: Partitioning | None = None
    ) -> FileSink:
        """Return the sink for the result itself, which a table by version may want in types and columns of its own.

        Raises `ConfigError` as `sink` does, and where the result does not fit the table.
        """
        sink = self.sink(format, schema, reject_schema, partitioning)
        table = self.table
        if partitioning is not None and isinstance(table, DeltaTable):
            table = table.divided(partitioning.columns.names)
        files = table.files(schema if partitioning is None else partitioning.result, self.evolve)
        if files is None:
            return sink
        if format != INTERMEDIATE:
            raise ConfigError(f"{self.shown} is a table, whose files are Parquet", "leave --output-format out")
        if partitioning is not None and not isinstance(table, DeltaTable):
            what = f"{self.shown} is a table, which says itself by what it is partitioned"
            raise ConfigError(what, "leave --partition-by out")
        own = [name for name in schema.names if name in files.columns.names and name not in files.constants]
        stored = pa.schema([files.columns.field(name).remove_metadata() for name in own])
        if partitioning is None:
            return replace(sink, table=files, schema=stored)
        again = partitioning.over(stored)
        self.partitions = pa.schema([files.columns.field(name) for name in again.columns.names])
        return replace(sink, table=files, schema=stored, partitioning=again)

    def commit(self, manifest: Mapping[str, Any]) -> None:
        """Commit the output: `prepare` it, then `publish` it. Raises as these do."""
        self.prepare(manifest)
        self.publish()

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Do everything that comes before `publish`: check the parts, and make them and the manifest durable.

        Raises `OutputError` where a part is missing or cannot be written to disk, `ConfigError` where another process
        has filled the output meanwhile. The old result is untouched in both cases.
        """
        _refuse_content(self.table, self.mode)  # another process may have written there since `open_output`
        if self.partitions is not None:
            text = base64.b64encode(self.partitions.serialize().to_pybytes()).decode()
            manifest = {**manifest, PARTITIONS: text}
        self.table_commit.prepare({**manifest, PLACE: self.place.path})

    def publish(self) -> None:
        """Make the prepared result the output; closing the output deletes the old result.

        On a local file system a kill at any point leaves either the old result or the new one. Raises `OutputError`
        where that fails; the old result is then untouched.
        """
        with output_errors(self.shown):
            self.table_commit.publish()
        self.committed = True


def check_output(path: str, mode: Mode, inputs: Sequence[str]) -> None:
    """Raise `ConfigError` where `open_output` would refuse an output for what is there, or where it is; touch nothing.

    Raises `OutputError` where the file system refuses to say what is there.
    """
    table = table_of(path)
    refuse_overlap(table.place, inputs)
    refuse_inside_result(table.place)
    _refuse_content(table, mode)


def output_to_plan(path: str, mode: Mode, evolve: bool = False) -> Output:
    """Return an output that is neither locked nor staged: its sinks can be planned with, and nothing can be written."""
    table = table_of(path)
    return Output(table, table.commit(new_token()), mode, evolve)


@contextmanager
def open_output(
    path: str, mode: Mode, inputs: Sequence[str], owner: Owner, *, evolve: bool = False
) -> Iterator[Output]:
    """Lock the output ``path``, clean up after killed runs, and open a staging folder for it.

    A context that ends without `Output.commit`, for any reason, leaves no trace. ``inputs``: the paths, globs or URIs
    that the run reads. ``evolve``: as in `Output`. Raises `ConfigError`, with nothing touched, where the store does not
    keep apart two runs that commit in the same instant, where the output overlaps an input, is a file, is not empty
    (mode ``error``) or holds anything but a result of wincli (mode ``overwrite``), and `OutputError` where another run
    writes to it or the file system refuses.
    """
    check_output(path, mode, inputs)
    table = table_of(path)
    parents = table.make_parents()
    output = None
    try:
        with table.hold(owner):
            with output_errors(table.place.shown):
                is_safe = table.keeps_conditions()
            if not is_safe:
                what = f"output {table.place.shown} is in a store that does not compare versions"
                raise ConfigError(f"{what}, so two runs could both commit there", "write to another store")
            with output_errors(path):
                table.remove_leftovers()
            _refuse_content(table, mode)
            output = Output(table, table.commit(new_token()), mode, evolve)
            yield from _staging_open(output)
    finally:
        if output is None or not output.committed:
            remove_empty(parents)


def _staging_open(output: Output) -> Iterator[Output]:
    try:
        with output_errors(output.shown):
            output.table_commit.open()
        yield output
    except BaseException as error:
        try:
            _close(output)
        except OSError as left:  # the first error is the one that the user must see
            error.add_note(f"could not remove {output.staging}: {reason(left)}")
        raise
    try:
        _close(output)
    except OSError as error:
        shown = output.shown
        what = f"the new result is in {shown}, but the old one" if output.committed else f"what was staged for {shown}"
        what = f"{what} cannot be deleted: {reason(error)}"
        raise OutputError(what, f"delete {error.filename or output.staging}") from error


def _close(output: Output) -> None:
    if output.committed or not output.journaled:
        output.table.remove_leftovers()


def _refuse_content(table: Table, mode: Mode) -> None:
    shown = table.place.shown
    with output_errors(shown):
        content = table.content()
        # A swap of folders would delete the units of a range beside the result that it replaces.
        would_delete = content is Content.RESULT and mode == "overwrite" and isinstance(table, FolderTable)
        other = result_below(table.place) if content is Content.OTHER or would_delete else None
    if content is Content.NO_FOLDER:
        raise ConfigError(f"output {shown} is not a folder", "name a folder")
    if other is not None:
        what = f"output {shown} holds other results in its folders, such as {other}; nothing was touched"
        raise ConfigError(what, "choose another output, or say --start and --end if these are units of a range")
    if content is Content.OTHER:
        what = f"output {shown} is not empty and was not written by wincli; nothing was touched"
        raise ConfigError(what, "choose another output, or empty that folder yourself")
    if content is Content.RESULT and mode == "error":
        what = f"output {shown} already holds a result; nothing was touched"
        raise ConfigError(what, "choose another output, or replace it with --mode overwrite")
