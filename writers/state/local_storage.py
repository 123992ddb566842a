"""A state in a local folder: units are folders that are put in place by exchanging names.

With an id of 12 hex digits, ``.new-ID`` is a unit that is being written, ``.old-ID`` a former unit during a swap and
``.gone-ID`` a folder that is being deleted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from ...windowing.errors import ConfigError, DamagedError
from ...windowing.support.file_systems import read_file
from ..commit.contract import Progress
from ..commit.result_files import FolderSwap, check_names, remove_beside
from ..places import atomic_files
from ..places.atomic_files import is_attempt, writing
from ..places.lock import Lock, Owner, hold_lock, read_owner
from ..places.os_errors import make_folders, output_errors, reason
from ..places.place import Place, UnitPlace
from .layout import FORGOTTEN, JOURNAL, LAST_ERROR, LOCK, MARKER, RECORD, RUNNING, note_forgotten, read_forgotten
from .stage_files import LocalStage, ParquetStateFiles, is_part
from .storage import UnitCommit
from .unit_record import UnitRecord

# The unit of a state in a local folder: its staging folder becomes the folder of the unit.


class UnitSwap(FolderSwap[UnitRecord], UnitCommit):
    """A `UnitCommit` of a local folder. A unit has its state, and so needs no lock or leftovers of its own."""

    __slots__ = ()

    def open(self) -> None:
        Path(self.staging).mkdir()

    def stage(self, name: str) -> ParquetStateFiles:
        folder, shown = Path(self.staging, name), f"{self.place.shown}/{name}"
        with output_errors(shown):
            folder.mkdir(exist_ok=True)
        return ParquetStateFiles(LocalStage(str(folder)), shown)

    def prepare(self, record: UnitRecord) -> None:
        for stage in record.stages:
            self.stage(stage.name)  # makes the folder of a stage that left nothing
            shown, folder = f"{self.place.shown}/{stage.name}", Path(self.staging, stage.name)
            with output_errors(shown):
                there = {path.name for path in folder.iterdir()}
                for name in filter(is_attempt, there):
                    (folder / name).unlink()
            recorded = {part.name for part in stage.parts}
            parts = {name for name in there if name in recorded or is_part(name)}
            check_names(shown, recorded, parts, "keep the state in a folder that all workers share")
        with output_errors(self.place.shown):
            for stage in record.stages:
                atomic_files.sync(Path(self.staging, stage.name))
            put(Path(self.staging, RECORD), record.to_json())

    def progress(self, run: str) -> Progress:
        """Return how far the unit has come; between two renames, which leave no unit to see, it is partial.

        Raises as `UnitRecord.from_json` does.
        """
        if _is_unit_of(Path(self.place.path), run):
            return Progress.PUBLISHED
        if self.former.exists():
            return Progress.PARTIAL
        return Progress.READY if _is_unit_of(Path(self.staging), run) else Progress.GONE

    def discard(self) -> None:
        remove_beside(self.place, Path(self.staging))

    def settle(self) -> None:
        self.discard()
        remove_beside(self.place, self.former)


def put(path: Path, text: str) -> None:
    """Write a file atomically, and to disk before this returns. Raises `OSError`."""
    with writing(path, half(path)) as attempt:
        attempt.unlink(missing_ok=True)  # of a killed run, a link to a file of somebody, or a FIFO, which would wait
        with attempt.open("x", encoding="utf-8") as file:
            file.write(text)
    atomic_files.sync(path.parent)


def half(path: Path) -> Path:
    """Return the temporary name under which `put` writes a file."""
    return path.with_name(f"{path.name}.half")


def _is_unit_of(folder: Path, run: str) -> bool:
    """Whether the run with the id ``run`` has written the unit in a folder. Raises as `UnitRecord.from_json` does."""
    path = folder / RECORD
    return path.exists() and UnitRecord.from_json(read_file(path), str(path)).run == run


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A `StateStorage` that is a folder on a local file system."""

    root: Path
    shown: str

    @property
    def place(self) -> Place:
        return Place(self.shown, fs.LocalFileSystem(), str(self.root))

    def place_of(self, label: str) -> UnitPlace:
        """Return the location of a unit."""
        return UnitPlace(f"{self.shown}/{label}", fs.LocalFileSystem(), str(self.root / label))

    def path_of(self, name: str) -> str:
        return str(self.root / name)

    def read(self, name: str) -> bytes | None:
        try:
            return read_file(self.root / name)
        except FileNotFoundError:
            return None

    def put(self, name: str, text: str) -> None:
        put(self.root / name, text)

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.root / name).is_file()

    def check_folder(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise ConfigError(f"the state {self.shown} is not a folder", "name a folder")

    def has_others(self) -> bool:
        return self.root.exists() and any(path.name not in _BEFORE_MARKER for path in self.root.iterdir())

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the lock file in the folder; the death of a run frees it."""
        make_folders(self.root, f"the state {self.shown}")
        lock = Lock(fs.LocalFileSystem(), self.path_of(LOCK), f"the state {self.shown}", "choose another state")
        return hold_lock(lock, owner)

    def owner(self) -> Owner | None:
        return read_owner(self.path_of(LOCK))

    def records(self) -> dict[str, UnitRecord]:
        if not self.root.is_dir():
            return {}
        forgotten = read_forgotten(self)
        folders = sorted(path for path in self.root.iterdir() if not path.name.startswith(".") and path.is_dir())
        records = (record for folder in folders if (record := _record_of(folder)))
        return {record.label: record for record in records if forgotten.get(record.label) != record.run}

    def has_data(self, record: UnitRecord) -> bool:
        return any((self.root / record.label / stage.name).is_dir() for stage in record.stages)

    def files(self, record: UnitRecord, stage: str) -> ParquetStateFiles:
        below = f"{record.label}/{stage}"
        folder = LocalStage(f"{self.root}/{below}")
        return ParquetStateFiles(folder, f"{self.shown}/{below}", record.parts_of(stage))

    def delete_data(self, record: UnitRecord) -> None:
        for stage in record.stages:
            remove_beside(self.place_of(record.label), self.root / record.label / stage.name)

    def forget(self, records: Iterable[UnitRecord]) -> None:
        gone = list(records)
        note_forgotten(self, gone)
        for record in gone:
            remove_beside(self.place_of(record.label), self.root / record.label)

    def commit(self, label: str, token: str) -> UnitSwap:
        return UnitSwap(self.place_of(label), token)

    def prepared(self) -> Mapping[str, UnitRecord | None]:
        staged = [path for path in self.root.glob(".new-*") if path.is_dir()]
        return {path.name.removeprefix(".new-"): _record_or_none(path) for path in staged}

    def copy_to(self, target: Path) -> None:
        """Link the files of all units in a new folder: they never change in place, so a second name is as good."""

        def link(source: str, target: str) -> None:
            try:
                os.link(source, target)
            except OSError:  # another file system, or one without links
                shutil.copy2(source, target)

        left_out = shutil.ignore_patterns(LOCK, JOURNAL, RUNNING, ".new-*", ".old-*", ".gone-*", "*.half")
        shutil.copytree(self.root, target, copy_function=link, ignore=left_out)

    def leftovers(self) -> Mapping[str, int]:
        if not self.root.is_dir():
            return {}
        below = {path.name: (path, *path.rglob("*")) for path in self._leftovers()}
        return {name: sum(each.stat().st_size for each in paths if each.is_file()) for name, paths in below.items()}

    def remove_leftovers(self) -> None:
        for path in list(self._leftovers()):
            if path.is_dir():
                remove_beside(self.place_of(path.name), path)
            else:
                path.unlink()

    def _leftovers(self) -> Iterator[Path]:
        halves = {half(self.root / name) for name in (MARKER, JOURNAL, RUNNING, LAST_ERROR, FORGOTTEN)}
        for path in self.root.iterdir():
            if self.place_of(path.name).role_of(path.name) or path in halves:
                yield path
        for label, run in read_forgotten(self).items():
            record = _record_or_none(self.root / label)
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


_BEFORE_MARKER = (LOCK, f"{MARKER}.half")
