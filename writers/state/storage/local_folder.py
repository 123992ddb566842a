"""A state in a local folder: units are folders that are put in place by exchanging names.

With an id of 12 hex digits, ``.new-ID`` is a unit that is being written, ``.old-ID`` a former unit during a swap and
``.gone-ID`` a folder that is being deleted.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from ....windowing.errors import ConfigError, DamagedError
from ....windowing.support.addresses.file_systems import read_file
from ...folders.lock import Lock, Owner, hold_lock, read_owner
from ...folders.make_folders import make_folders
from ...folders.os_errors import reason
from ...folders.place import Place
from ..layout import FORGOTTEN, JOURNAL, LAST_ERROR, LOCK, MARKER, RECORD, RUNNING, put_json, read_forgotten
from ..stage_files import ParquetStateFiles
from ..unit_record import UnitRecord
from .contract import with_forgotten
from .unit_swap import UnitSwap, half, put, remove


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A `StateStorage` that is a folder on a local file system.

    ``root``: the folder, with symbolic links followed.
    ``shown``: that folder as the user wrote it.
    """

    root: Path
    shown: str

    @property
    def place(self) -> Place:
        """The folder as outputs have theirs."""
        return Place(self.shown, fs.LocalFileSystem(), str(self.root))

    def path_of(self, name: str) -> str:
        """Return the path of a document."""
        return str(self.root / name)

    def read(self, name: str) -> bytes | None:
        """Return the content of a document, or None."""
        try:
            return read_file(self.root / name)
        except FileNotFoundError:
            return None

    def put(self, name: str, text: str) -> None:
        """Write a document under another name, rename it, and sync both to disk."""
        put(self.root / name, text)

    def delete(self, name: str) -> None:
        """Delete a document, if it exists."""
        (self.root / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Whether there is a document."""
        return (self.root / name).is_file()

    def check_folder(self) -> None:
        """Raise `ConfigError` where the path is that of a file."""
        if self.root.exists() and not self.root.is_dir():
            raise ConfigError(f"the state {self.shown} is not a folder", "name a folder")

    def has_others(self) -> bool:
        """Whether there is anything but a lock and half a marker."""
        return self.root.exists() and any(path.name not in _BEFORE_MARKER for path in self.root.iterdir())

    def make(self) -> None:
        """Make the folder and those above it."""
        make_folders(self.root, f"the state {self.shown}")

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the lock file in the folder; the death of a run frees it."""
        lock = Lock(fs.LocalFileSystem(), self.path_of(LOCK), f"the state {self.shown}", "choose another state")
        return hold_lock(lock, owner)

    def owner(self) -> Owner | None:
        """Return the run that is named in the lock file."""
        return read_owner(self.path_of(LOCK))

    def records(self) -> dict[str, UnitRecord]:
        """Return the records in the visible folders, without those of units that were forgotten."""
        if not self.root.is_dir():
            return {}
        forgotten = read_forgotten(self)
        folders = sorted(path for path in self.root.iterdir() if not path.name.startswith(".") and path.is_dir())
        records = (record for folder in folders if (record := _record_of(folder)))
        return {record.label: record for record in records if forgotten.get(record.label) != record.run}

    def has_data(self, record: UnitRecord) -> bool:
        """Whether the folder of a stage is there."""
        return any((self.root / record.label / stage.name).is_dir() for stage in record.stages)

    def files(self, record: UnitRecord, stage: str) -> ParquetStateFiles:
        """Return the files in the folder of a stage."""
        below = f"{record.label}/{stage}"
        return ParquetStateFiles(f"{self.root}/{below}", f"{self.shown}/{below}", record.parts_of(stage))

    def delete_data(self, record: UnitRecord) -> None:
        """Delete the folders of the stages."""
        for stage in record.stages:
            remove(self.root, self.root / record.label / stage.name)

    def forget(self, records: Iterable[UnitRecord]) -> None:
        """Name the units in a document, from which moment no reader sees them, then delete their folders."""
        gone = list(records)
        put_json(self, FORGOTTEN, with_forgotten(read_forgotten(self), self.records().values(), gone))
        for record in gone:
            remove(self.root, self.root / record.label)

    def commit(self, label: str, token: str) -> UnitSwap:
        """Return the commit with the staging folder of a run."""
        return UnitSwap(self.root, self.shown, label, token)

    def prepared(self) -> Mapping[str, UnitRecord | None]:
        """Return the records in the staging folders."""
        staged = [path for path in self.root.glob(".new-*") if path.is_dir()]
        return {path.name.removeprefix(".new-"): _record_or_none(path) for path in staged}

    def in_place(self, label: str) -> UnitRecord | None:
        """Return the record in the folder of a unit."""
        return _record_or_none(self.root / label)

    def copy_to(self, target: Path) -> None:
        """Link the files of all units in a new folder: they never change in place, so a second name is as good."""
        left_out = shutil.ignore_patterns(LOCK, JOURNAL, RUNNING, ".new-*", ".old-*", ".gone-*", "*.half")
        shutil.copytree(self.root, target, copy_function=_link, ignore=left_out)

    def leftovers(self) -> Mapping[str, int]:
        """Return staging folders, former units, halves of documents, and folders of units that were forgotten."""
        return {path.name: _size(path) for path in self._leftovers()} if self.root.is_dir() else {}

    def remove_leftovers(self) -> None:
        """Delete what `leftovers` names."""
        for path in list(self._leftovers()):
            if path.is_dir():
                remove(self.root, path)
            else:
                path.unlink()

    def _leftovers(self) -> Iterator[Path]:
        halves = {half(self.root / name) for name in (MARKER, JOURNAL, RUNNING, LAST_ERROR, FORGOTTEN)}
        for path in self.root.iterdir():
            if re.fullmatch(r"\.(new|old|gone)-[0-9a-f]{12}", path.name) or path in halves:
                yield path
        for label, run in read_forgotten(self).items():
            record = self.in_place(label)
            if record is not None and record.run == run:
                yield self.root / label


def _record_of(folder: Path) -> UnitRecord | None:
    """Return a record, None for a unit that another run replaces while this reader, without the lock, looks."""
    path = folder / RECORD
    try:
        record = UnitRecord.from_json(read_file(path), str(path))
    except OSError as error:
        if not folder.exists():
            return None
        what = f"{folder} has no {RECORD}, and so is no unit of the state"
        if not isinstance(error, FileNotFoundError):
            what = f"{path} cannot be read: {reason(error)}"
        raise DamagedError(what, "restore that file, or move the folder away if it is not from wincli") from error
    if record.label != folder.name:
        raise DamagedError(f"{path} is the record of {record.label}", f"move {folder} out of the state")
    return record


def _record_or_none(folder: Path) -> UnitRecord | None:
    """Return the record of the unit in a folder, None where it is missing or damaged."""
    path = folder / RECORD
    try:
        return UnitRecord.from_json(read_file(path), str(path))
    except (DamagedError, OSError):
        return None


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


_BEFORE_MARKER = (LOCK, f"{MARKER}.half")
