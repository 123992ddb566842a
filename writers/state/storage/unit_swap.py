"""The unit of a state in a local folder: its staging folder becomes the folder of the unit."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ....windowing.errors import OutputError
from ....windowing.support.addresses.file_systems import read_file
from ...commit.contract import Progress
from ...folders import atomic_swap
from ...folders.atomic_file import is_attempt, writing
from ...folders.os_errors import output_errors
from ...folders.place import new_token
from ..layout import RECORD
from ..stage_files import ParquetStateFiles, is_part
from ..unit_record import StageRecord, UnitRecord


@dataclass(frozen=True, slots=True)
class UnitSwap:
    """A `UnitCommit` of a local folder. A unit has its state, and so needs no lock or leftovers of its own.

    ``root``: the folder of the state.
    ``shown``: that folder as the user wrote it.
    ``label``: the label of the unit.
    ``token``: the id of the run, which is that of the staging folder, too.
    """

    root: Path
    shown: str
    label: str
    token: str

    @property
    def staging(self) -> str:
        """The staging folder in the state."""
        return str(self.root / f".new-{self.token}")

    @property
    def data(self) -> str:
        """The staging folder."""
        return self.staging

    @property
    def suffix(self) -> str:
        """Nothing: no other run writes to the staging folder."""
        return ""

    def open(self) -> None:
        """Make the staging folder."""
        Path(self.staging).mkdir()

    def begin(self) -> None:
        """Do nothing: readers do not see the staging folder."""

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files in a folder below the staging folder, which is made."""
        folder, shown = Path(self.staging, name), f"{self.shown}/{self.label}/{name}"
        with output_errors(shown):
            folder.mkdir(exist_ok=True)
        return ParquetStateFiles(str(folder), shown)

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, write the record, and sync everything to disk.

        Raises `OutputError` where a part is missing, unknown, or cannot be written to disk; nothing is committed then.
        """
        for stage in record.stages:
            self.stage(stage.name)  # makes the folder of a stage that left nothing
            self._check_parts(stage)
        with output_errors(f"{self.shown}/{self.label}"):
            for stage in record.stages:
                atomic_swap.sync(Path(self.staging, stage.name))
            put(Path(self.staging, RECORD), record.to_json())

    def publish(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label."""
        atomic_swap.replace(self.root / self.label, Path(self.staging), self._former)

    def progress(self, run: str) -> Progress:
        """Return how far the unit has come; between two renames, which leave no unit to see, it is partial.

        Raises as `UnitRecord.from_json` does.
        """
        if _is_unit_of(self.root / self.label, run):
            return Progress.PUBLISHED
        if self._former.exists():
            return Progress.PARTIAL
        return Progress.READY if _is_unit_of(Path(self.staging), run) else Progress.GONE

    def recover(self, run: str) -> None:
        """Put the unit into the state, if that is what is left to do."""
        if self.progress(run) in (Progress.READY, Progress.PARTIAL):
            self.publish()

    def discard(self) -> None:
        """Delete the staging folder."""
        remove(self.root, Path(self.staging))

    def settle(self) -> None:
        """Delete the former unit, which is in the staging folder, or beside it."""
        self.discard()
        remove(self.root, self._former)

    @property
    def _former(self) -> Path:
        """The folder to which a swap without exchange renames the unit that it replaces."""
        return self.root / f".old-{self.token}"

    def _check_parts(self, stage: StageRecord) -> None:
        shown, folder = f"{self.shown}/{self.label}/{stage.name}", Path(self.staging, stage.name)
        with output_errors(shown):
            there = {path.name for path in folder.iterdir()}
            for name in filter(is_attempt, there):
                (folder / name).unlink()
        recorded = {part.name for part in stage.parts}
        if missing := sorted(recorded - there):
            what = f"cannot write {shown}: {missing[0]} was written by a task but is not here; nothing was written"
            raise OutputError(what, "keep the state in a folder that all workers share")
        if stray := sorted(filter(is_part, there - recorded)):
            raise OutputError(f"cannot write {shown}: no task knows of {stray[0]}; nothing was written")


def put(path: Path, text: str) -> None:
    """Write a file atomically, and to disk before this returns. Raises `OSError`."""
    with writing(path, half(path)) as attempt:
        attempt.unlink(missing_ok=True)  # of a killed run, a link to a file of somebody, or a FIFO, which would wait
        with attempt.open("x", encoding="utf-8") as file:
            file.write(text)
    atomic_swap.sync(path.parent)


def half(path: Path) -> Path:
    """Return the temporary name under which `put` writes a file."""
    return path.with_name(f"{path.name}.half")


def remove(root: Path, path: Path) -> None:
    """Delete a folder of the state atomically, if it exists.

    The rename before that stops tasks of a killed run that still write to the folder by its name.
    """
    if path.exists():
        gone = root / f".gone-{new_token()}"
        path.rename(gone)
        shutil.rmtree(gone)


def _is_unit_of(folder: Path, run: str) -> bool:
    """Whether the run with the id ``run`` has written the unit in a folder. Raises as `UnitRecord.from_json` does."""
    path = folder / RECORD
    return path.exists() and UnitRecord.from_json(read_file(path), str(path)).run == run
