"""An output folder from the first check to the swap: seen whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import fs

from windowing.errors import ConfigError, OutputError
from writers import remote, swap
from writers.faults import reason, writing
from writers.lock import Owner, hold
from writers.overlap import refuse_overlap
from writers.place import MANIFEST, REJECTED, SUCCESS, Place, locate, new_token
from writers.sink import FileSink, Format, check_types, is_attempt

Mode = Literal["error", "overwrite"]


@dataclass(slots=True)
class Output:
    """A locked output with a staging folder beside it; made by `open_output`."""

    place: Place
    token: str
    mode: Mode
    committed: bool = field(default=False, init=False)

    @property
    def staging(self) -> str:
        """Path of the staging folder."""
        return self.place.beside("new", self.token)

    def sink(self, format: Format, schema: pa.Schema, reject_schema: pa.Schema) -> FileSink:
        """Return what tasks write part files of ``schema`` with: parts in ``format``, rejects always Parquet.

        Columns of a dictionary type come out as their plain value type. Raises `ConfigError` naming the
        column where the format cannot hold a type, or where two columns have one name.
        """
        check_types(format, schema)
        check_types("parquet", reject_schema)
        return FileSink(self.place.fs, self.staging, self.place.shown, format, schema, reject_schema)

    def commit(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts against the manifest, write manifest and ``_SUCCESS``, and make all of it the output.

        On a local file system a kill at any point leaves the old result or the new one. Raises `OutputError`, the
        old result untouched, where a part is missing or the swap fails.
        """
        self._check_parts([*manifest["parts"], *manifest["rejects"]])
        _refuse_content(self.place, self.mode)  # it may have been filled meanwhile
        shown = self.place.shown
        with writing(f"{shown}/{MANIFEST}"):
            self._put(MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n")
            self._put(SUCCESS, b"")
        with writing(shown):
            if self.place.local:
                self._sync_folders()
                swap.swap_in(self.place, self.token)
            else:
                remote.move_in(self.place, self.token)
        self.committed = True
        try:
            _tidy(self.place)
        except OSError as error:
            what = f"the new result is in {shown}, but the old one cannot be deleted: {reason(error)}"
            raise OutputError(what, f"delete {error.filename or self.staging}") from error

    def _check_parts(self, parts: Sequence[Mapping[str, Any]]) -> None:
        store = self.place.fs
        paths = {path.removeprefix(self.staging + "/"): path for path in remote.files(store, self.staging)}
        there = {name for name in paths if not is_attempt(name)}
        for killed in paths.keys() - there:
            store.delete_file(paths[killed])
        told = {str(part["name"]) for part in parts}
        if missing := sorted(told - there):
            what = f"cannot write {self.place.shown}: {missing[0]} was written by a task but is not here"
            raise OutputError(f"{what}; nothing was written", "write to a folder that all workers share")
        if stray := sorted(there - told):
            raise OutputError(f"cannot write {self.place.shown}: no task knows of {stray[0]}; nothing was written")

    def _put(self, name: str, content: bytes) -> None:
        path = f"{self.staging}/{name}"
        self.place.fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self.place.fs.open_output_stream(path) as file:
            file.write(content)
        if self.place.local:
            swap.sync(Path(path))

    def _sync_folders(self) -> None:
        root = Path(self.staging)
        for folder in (root / REJECTED, (root / MANIFEST).parent, root):
            if folder.is_dir():
                swap.sync(folder)


@contextmanager
def open_output(path: str, mode: Mode, inputs: Sequence[str], owner: Owner) -> Iterator[Output]:
    """Lock the output folder ``path``, clean up after killed runs, and open a staging folder beside it.

    Left without `Output.commit`, for whatever reason, it leaves no trace. Inputs are the paths, folders, globs or
    URIs that are read. Raises `ConfigError`, nothing touched, where the output overlaps an input, is a file, is not
    empty (mode ``error``) or holds something else than a result of wincli (mode ``overwrite``), and `OutputError`
    where another run writes to it or the file system refuses.
    """
    place = locate(path)
    refuse_overlap(place, inputs)
    _refuse_content(place, mode)
    made = _make_parents(place)
    output = None
    try:
        with hold(place, owner):
            with writing(path):
                _tidy(place)
            _refuse_content(place, mode)
            output = Output(place, new_token(), mode)
            yield from _staged(output)
    finally:
        if output is None or not output.committed:
            _remove_empty(made)


def _staged(output: Output) -> Iterator[Output]:
    try:
        with writing(output.place.shown):
            _make_staging(output)
        yield output
    except BaseException as error:
        try:
            _tidy(output.place)
        except OSError as left:  # what went wrong first is what the user has to know
            error.add_note(f"could not remove {output.staging}: {reason(left)}")
        raise
    if not output.committed:
        with writing(output.place.shown):
            _tidy(output.place)


def _tidy(place: Place) -> None:
    (swap if place.local else remote).tidy(place)


def _make_staging(output: Output) -> None:
    output.place.fs.create_dir(output.staging, recursive=False)
    out = Path(output.place.path)
    if output.place.local and out.exists():
        Path(output.staging).chmod(out.stat().st_mode & 0o7777)


def _make_parents(place: Place) -> list[Path]:
    """Create the folders above the output that are not there; return them, innermost first."""
    if not place.local:
        return []
    parent = Path(place.parent)
    missing: list[Path] = []
    try:
        with writing(place.shown):
            missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
            parent.mkdir(parents=True, exist_ok=True)
    except OutputError:
        _remove_empty(missing)
        raise
    return missing


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it was not made after all, or another run works in it by now
            folder.rmdir()


def _refuse_content(place: Place, mode: Mode) -> None:
    """Raise `ConfigError` where the output must not be written to because of what is in it."""
    with writing(place.shown):
        kind = place.fs.get_file_info(place.path).type
        if kind not in (fs.FileType.Directory, fs.FileType.NotFound):
            raise ConfigError(f"output {place.shown} is not a folder", "name a folder")
        if _vacant(place):
            return
        ours = place.fs.get_file_info(f"{place.path}/{MANIFEST}").type == fs.FileType.File
    if not ours:
        what = f"output {place.shown} is not empty and was not written by wincli; nothing was touched"
        raise ConfigError(what, "choose another output, or empty that folder yourself")
    if mode == "error":
        what = f"output {place.shown} already holds a result; nothing was touched"
        raise ConfigError(what, "choose another output, or replace it with --mode overwrite")


def _vacant(place: Place) -> bool:
    if place.local:
        return swap.is_vacant(Path(place.path))
    return not place.fs.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
