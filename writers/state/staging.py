"""The staging folder of a unit in a state, which no reader sees before the commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..commit.contract import TableCommit
from ..folders.os_errors import output_errors
from .layout import check_name
from .stage_files import ParquetStateFiles
from .unit_record import UnitRecord, WrittenOutput
from .unit_swap import UnitSwap


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
    def table_commit(self) -> TableCommit[UnitRecord]:
        """The unit on its way into the state."""
        return UnitSwap(self.root, self.shown, self.label, self.token)

    @property
    def folder(self) -> Path:
        """The staging folder of the unit."""
        return Path(self.table_commit.staging)

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
            self.stage(stage.name)  # makes the folder of a stage that left nothing
        self.table_commit.prepare(record)

    def publish(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label. Raises `OutputError`."""
        with output_errors(f"{self.shown}/{self.label}"):
            self.table_commit.publish()
