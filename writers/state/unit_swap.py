"""The unit of a state as a table of its own: its staging folder becomes the folder of the unit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...windowing.errors import OutputError
from ..commit.contract import Progress
from ..folders import atomic_swap
from ..folders.atomic_file import is_attempt
from ..folders.os_errors import output_errors
from .layout import RECORD, former, put, staged
from .stage_files import is_part
from .unit_record import StageRecord, UnitRecord


@dataclass(frozen=True, slots=True)
class UnitSwap:
    """A `TableCommit` of a unit. A unit has its state, and so needs no lock or leftovers of its own.

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
        return str(staged(self.root, self.token))

    def open(self) -> None:
        """Make the staging folder."""
        Path(self.staging).mkdir()

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, write the record, and sync everything to disk.

        Raises `OutputError` where a part is missing, unknown, or cannot be written to disk; nothing is committed then.
        """
        for stage in record.stages:
            self._check_parts(stage)
        with output_errors(f"{self.shown}/{self.label}"):
            for stage in record.stages:
                atomic_swap.sync(Path(self.staging, stage.name))
            put(Path(self.staging, RECORD), record.to_json())

    def publish(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label."""
        former_unit = former(self.root, self.token)
        atomic_swap.replace(self.root / self.label, Path(self.staging), former_unit)

    def progress(self, run: str) -> Progress:
        """Return how far the unit has come; between two renames, which leave no unit to see, it is partial.

        Raises as `UnitRecord.from_json` does.
        """
        if _is_unit_of(self.root / self.label, run):
            return Progress.PUBLISHED
        if former(self.root, self.token).exists():
            return Progress.PARTIAL
        return Progress.READY if _is_unit_of(Path(self.staging), run) else Progress.GONE

    def recover(self, run: str) -> None:
        """Put the unit into the state, if that is what is left to do."""
        if self.progress(run) in (Progress.READY, Progress.PARTIAL):
            self.publish()

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


def _is_unit_of(folder: Path, run: str) -> bool:
    """Whether the run with the id ``run`` has written the unit in a folder. Raises as `UnitRecord.from_json` does."""
    path = folder / RECORD
    return path.exists() and UnitRecord.from_json(path.read_bytes(), str(path)).run == run
