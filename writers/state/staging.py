"""The staging of a unit in a state, which no reader sees before the commit."""

from __future__ import annotations

from dataclasses import dataclass

from ..folders.os_errors import output_errors
from .layout import check_name
from .stage_files import ParquetStateFiles
from .storage.contract import StateStorage, UnitCommit
from .unit_record import UnitRecord, WrittenOutput


@dataclass(frozen=True, slots=True)
class StateStaging:
    """A unit under way; `State.begin` makes it, and `journal.commit_together` commits it.

    ``storage``: the place of the state.
    ``label``: the label of the unit.
    ``ordinal``: the number that orders the unit among all units.
    ``token``: the id of this run, for the record and for the manifests of its outputs.
    ``outputs``: the outputs, for the record.
    ``records``: the records of the state, by label. A commit adds the new record.
    """

    storage: StateStorage
    label: str
    ordinal: int
    token: str
    outputs: tuple[WrittenOutput, ...]
    records: dict[str, UnitRecord]

    @property
    def shown(self) -> str:
        """The state as the user wrote it."""
        return self.storage.shown

    @property
    def table_commit(self) -> UnitCommit:
        """The unit on its way into the state."""
        return self.storage.commit(self.label, self.token)

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files of one stage, for tasks to write. Raises `ConfigError` where the name cannot be a folder."""
        check_name(name, "the stage")
        return self.table_commit.stage(name)

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, and make them and the record durable.

        Raises `OutputError` where a part is missing, unknown, or cannot be written to disk; nothing is committed then.
        """
        for stage in record.stages:
            check_name(stage.name, "the stage")
        self.table_commit.prepare(record)

    def publish(self) -> None:
        """Put the unit into the state; it replaces a former unit of the same label. Raises `OutputError`."""
        with output_errors(f"{self.shown}/{self.label}"):
            self.table_commit.publish()
