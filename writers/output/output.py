"""An output folder from the first check to the swap: readers see a complete result or none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import ConfigError, OutputError
from ...windowing.support.checksum import read_object, seal, unseal
from ...windowing.support.formats import Format
from ..folders import atomic_swap, object_store
from ..folders.atomic_file import is_attempt
from ..folders.lock import Owner, hold
from ..folders.os_errors import output_errors, reason
from ..folders.place import MANIFEST, REJECTED, SUCCESS, Place, locate, new_token
from .overlap import refuse_overlap
from .sink import FileSink, check_types

Mode = Literal["error", "overwrite"]


@dataclass(slots=True)
class Output:
    """A locked output with a staging folder beside it; `open_output` makes it.

    ``place``: the location of the output.
    ``token``: the id of the staging folder.
    ``mode``: whether a result that is already there is an ``error`` or is overwritten.
    ``committed``: whether the swap has succeeded.
    ``journaled``: whether a journal names the staging folder. The folder then stays even if this run ends before
        `swap`, and the next run completes the commit from the journal.
    """

    place: Place
    token: str
    mode: Mode
    committed: bool = field(default=False, init=False)
    journaled: bool = field(default=False, init=False)

    @property
    def staging(self) -> str:
        """The path of the staging folder."""
        return self.place.beside("new", self.token)

    def sink(self, format: Format, schema: pa.Schema, reject_schema: pa.Schema) -> FileSink:
        """Return the sink with which tasks write part files of ``schema`` in ``format``; rejects are always JSON Lines.

        Dictionary columns are written with their plain value type. Raises `ConfigError` naming the column where the
        format cannot hold its type, or where two columns have one name.
        """
        check_types(format, schema)
        return FileSink(self.place.fs, self.staging, self.place.shown, format, schema, reject_schema)

    def commit(self, manifest: Mapping[str, Any]) -> None:
        """Commit the output: `prepare` it, then `swap` it in. Raises as these do."""
        self.prepare(manifest)
        self.swap()

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Do everything that comes before the swap: check the parts, write the manifest and ``_SUCCESS``, sync to disk.

        Raises `OutputError` where a part is missing or cannot be written to disk, `ConfigError` where another process
        has filled the output meanwhile. The old result is untouched in both cases.
        """
        self._check_parts([*manifest["parts"], *manifest["rejects"]])
        _refuse_content(self.place, self.mode)  # another process may have written there since `open_output`
        with output_errors(f"{self.place.shown}/{MANIFEST}"):
            self._put(MANIFEST, json.dumps(seal(manifest), indent=2, ensure_ascii=False).encode() + b"\n")
            self._put(SUCCESS, b"")
            if self.place.local:
                self._sync_folders()

    def swap(self) -> None:
        """Make the prepared staging folder the output; closing the output deletes the old result.

        On a local file system a kill at any point leaves either the old result or the new one. Raises `OutputError`
        where the swap fails; the old result is then untouched.
        """
        with output_errors(self.place.shown):
            put_in_place(self.place, self.token)
        self.committed = True

    def _check_parts(self, parts: Sequence[Mapping[str, Any]]) -> None:
        store = self.place.fs
        paths = {path.removeprefix(self.staging + "/"): path for path in object_store.files(store, self.staging)}
        there = {name for name in paths if not is_attempt(name)}
        for killed in paths.keys() - there:
            store.delete_file(paths[killed])
        recorded = {str(part["name"]) for part in parts}
        if missing := sorted(recorded - there):
            what = f"cannot write {self.place.shown}: {missing[0]} was written by a task but is not here"
            raise OutputError(f"{what}; nothing was written", "write to a folder that all workers share")
        if stray := sorted(there - recorded):
            raise OutputError(f"cannot write {self.place.shown}: no task knows of {stray[0]}; nothing was written")

    def _put(self, name: str, content: bytes) -> None:
        path = f"{self.staging}/{name}"
        self.place.fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self.place.fs.open_output_stream(path) as file:
            file.write(content)
        if self.place.local:
            atomic_swap.sync(Path(path))

    def _sync_folders(self) -> None:
        root = Path(self.staging)
        for folder in (root / REJECTED, (root / MANIFEST).parent, root):
            if folder.is_dir():
                atomic_swap.sync(folder)


@contextmanager
def open_output(path: str, mode: Mode, inputs: Sequence[str], owner: Owner) -> Iterator[Output]:
    """Lock the output folder ``path``, clean up after killed runs, and open a staging folder beside it.

    A context that ends without `Output.commit`, for any reason, leaves no trace. ``inputs``: the paths, globs or URIs
    that the run reads. Raises `ConfigError`, with nothing touched, where the output overlaps an input, is a file, is
    not empty (mode ``error``) or holds anything but a result of wincli (mode ``overwrite``), and `OutputError` where
    another run writes to it or the file system refuses.
    """
    place = locate(path)
    refuse_overlap(place, inputs)
    _refuse_content(place, mode)
    made = make_folders(Path(place.parent), place.shown) if place.local else []
    output = None
    try:
        with hold(place, owner):
            with output_errors(path):
                remove_leftovers(place)
            _refuse_content(place, mode)
            output = Output(place, new_token(), mode)
            yield from _staging_open(output)
    finally:
        if output is None or not output.committed:
            _remove_empty(made)


def _staging_open(output: Output) -> Iterator[Output]:
    try:
        with output_errors(output.place.shown):
            _make_staging(output)
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
        shown = output.place.shown
        what = f"the new result is in {shown}, but the old one" if output.committed else f"what was staged for {shown}"
        what = f"{what} cannot be deleted: {reason(error)}"
        raise OutputError(what, f"delete {error.filename or output.staging}") from error


def _close(output: Output) -> None:
    if output.committed or not output.journaled:
        remove_leftovers(output.place)


def put_in_place(place: Place, token: str) -> None:
    """Make the staging folder with id ``token`` the output. Raises `OSError`."""
    (atomic_swap.swap_in if place.local else object_store.move_in)(place, token)


def remove_leftovers(place: Place) -> None:
    """Remove what earlier runs left beside an output. The caller must hold its lock. Raises `OSError`."""
    (atomic_swap if place.local else object_store).remove_leftovers(place)


def manifest_in(place: Place, folder: str) -> dict[str, Any] | None:
    """Return the manifest in ``folder``, which is the output or a folder beside it.

    Returns None where there is no manifest, or its content or checksum is not what wincli wrote.
    """
    path = f"{folder}/{MANIFEST}"
    if place.fs.get_file_info(path).type != fs.FileType.File:
        return None
    try:
        with place.fs.open_input_stream(path) as file:
            return unseal(read_object(file.read()))
    except ValueError:
        return None


def _make_staging(output: Output) -> None:
    output.place.fs.create_dir(output.staging, recursive=False)
    out = Path(output.place.path)
    if output.place.local and out.exists():
        Path(output.staging).chmod(out.stat().st_mode & 0o7777)


def make_folders(folder: Path, shown: str) -> list[Path]:
    """Make a folder and its missing parents; return the folders that were missing, innermost first.

    Raises `OutputError` that names ``shown``, after removing the folders it has made.
    """
    missing: list[Path] = []
    try:
        with output_errors(shown):
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
    except OutputError:
        _remove_empty(missing)
        raise
    return missing


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it was never made, or another run writes to it by now
            folder.rmdir()


def _refuse_content(place: Place, mode: Mode) -> None:
    """Raise `ConfigError` where the content of the output folder forbids writing to it."""
    with output_errors(place.shown):
        kind = place.fs.get_file_info(place.path).type
        if kind not in (fs.FileType.Directory, fs.FileType.NotFound):
            raise ConfigError(f"output {place.shown} is not a folder", "name a folder")
        if is_vacant(place):
            return
        ours = place.fs.get_file_info(f"{place.path}/{MANIFEST}").type == fs.FileType.File
    if not ours:
        what = f"output {place.shown} is not empty and was not written by wincli; nothing was touched"
        raise ConfigError(what, "choose another output, or empty that folder yourself")
    if mode == "error":
        what = f"output {place.shown} already holds a result; nothing was touched"
        raise ConfigError(what, "choose another output, or replace it with --mode overwrite")


def is_vacant(place: Place) -> bool:
    """Whether an output is absent or an empty folder. Raises `OSError`."""
    if place.local:
        return atomic_swap.is_vacant(Path(place.path))
    return not place.fs.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
