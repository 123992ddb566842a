"""The staging folder of a unit in a state, which no reader sees before the commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...windowing.errors import OutputError
from ..folders import atomic_swap
from ..folders.atomic_file import is_attempt
from ..folders.os_errors import output_errors
from .layout import RECORD, check_name, former, put, staged
from .stage_files import ParquetStateFiles, is_part
from .unit_record import StageRecord, UnitRecord, WrittenOutput


@dataclass(frozen=True, slots=True)
class StateStaging:
    """A unit under way; `State.begin` makes it, and `journal.commit_together` commits it.

    ``root``: the folder of the state.
    ``shown``: that folder as the user wrote it.
    ``label``: the label of the unit.
    ``ordinal``: the number that orders the unit among all units.
    ``token``: the id of this run, for the record and for the manifests of its outputs.
    ``outputs``: the outputs, for the record.
    ``records``: the records of the state, by label. A commit adds the new record.
    """

    root: Path
    shown: str
    label: str
    ordinal: int
    token: str
    outputs: tuple[WrittenOutput, ...]
    records: dict[str, UnitRecord]

    @property
    def folder(self) -> Path:
        """The staging folder of the unit."""
        return staged(self.root, self.token)

    @property
    def is_in_place(self) -> bool:
        """Whether the state has this run's version of the unit."""
        return is_unit_of(self.root / self.label, self.token)

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files of one stage, for tasks to write. Raises `ConfigError` where the name cannot be a folder."""
        check_name(name, "the stage")
        folder, shown = self.folder / name, f"{self.shown}/{self.label}/{name}"
        with output_errors(shown):
            folder.mkdir(exist_ok=True)
        return ParquetStateFiles(str(folder), shown)

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, write the record, and sync everything to disk.

        Raises `OutputError` where a part is missing, unknown, or cannot be written to disk; nothing is committed then.
        """
        for stage in record.stages:
            self._check_parts(stage, Path(self.stage(stage.name).folder))
        with output_errors(f"{self.shown}/{self.label}"):
            for stage in record.stages:
                atomic_swap.sync(self.folder / stage.name)
            put(self.folder / RECORD, record.to_json())

    def swap(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label. Raises `OutputError`."""
        with output_errors(f"{self.shown}/{self.label}"):
            put_unit_in_place(self.root, self.label, self.token)

    def _check_parts(self, stage: StageRecord, folder: Path) -> None:
        shown = f"{self.shown}/{self.label}/{stage.name}"
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


def put_unit_in_place(root: Path, label: str, token: str) -> None:
    """Make the staging folder of the run ``token`` the unit ``label``. Raises `OSError`."""
    atomic_swap.replace(root / label, staged(root, token), former(root, token))


def is_unit_of(folder: Path, run: str) -> bool:
    """Whether the run with the id ``run`` has written the unit in a folder. Raises as `UnitRecord.from_json` does."""
    path = folder / RECORD
    return path.exists() and UnitRecord.from_json(path.read_bytes(), str(path)).run == run
