"""The unit of a state in a store: its files are written where they stay, and the head names the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ....windowing.errors import OutputError
from ...commit.contract import Progress
from ...folders.os_errors import output_errors
from ..layout import RECORD
from ..stage_files import ParquetStateFiles, is_part
from ..stage_folder import StoreStage
from ..unit_record import StageRecord, UnitRecord
from .head import Head
from .listed_objects import ListedObjects


class UnitStore(Protocol):
    """What a unit needs of its state in a store; `store_folder.StoreFolder`."""

    uri: str
    shown: str
    objects: ListedObjects

    def head(self) -> Head:
        """Return the head."""

    def publish(self, label: str, run: str) -> None:
        """Make the files of a run the unit."""


@dataclass(frozen=True, slots=True)
class UnitPut:
    """A `UnitCommit` of a store.

    ``state``: the state.
    ``label``: the label of the unit.
    ``token``: the id of the run, which is in the names of its files.
    """

    state: UnitStore
    label: str
    token: str

    @property
    def staging(self) -> str:
        """The folder of the run, relative to the state."""
        return f"{self.label}/.{self.token}"

    @property
    def data(self) -> str:
        """The same folder: the files stay there."""
        return self.staging

    @property
    def suffix(self) -> str:
        """Nothing: the folder has the id of the run."""
        return ""

    def open(self) -> None:
        """Do nothing: a store has no folders."""

    def begin(self) -> None:
        """Do nothing: readers of a state follow its head."""

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files of one stage."""
        return ParquetStateFiles(
            StoreStage(self.state.uri, f"{self.staging}/{name}"), f"{self.state.shown}/{self.label}/{name}"
        )

    def prepare(self, record: UnitRecord) -> None:
        """Check the parts against the record, and put the record. Raises `OutputError`; nothing is committed then."""
        with output_errors(f"{self.state.shown}/{self.label}"):
            there = self.state.objects.list_own(self.staging)
            for stage in record.stages:
                self._check_parts(stage, there)
            self.state.objects.put(f"{self.staging}/{RECORD}", record.to_json().encode())

    def publish(self) -> None:
        """Let the head name this run. Raises `OutputError` where another run has taken the state."""
        self.state.publish(self.label, self.token)

    def progress(self, run: str) -> Progress:
        """Return how far the unit has come."""
        if self._is_published(run):
            return Progress.PUBLISHED
        return (
            Progress.GONE if self.state.objects.store.get(f"{self.label}/.{run}/{RECORD}") is None else Progress.READY
        )

    def recover(self, run: str) -> None:
        """Let the head name the run, if that is what is left to do."""
        if self.progress(run) is Progress.READY:
            self.publish()

    def discard(self) -> None:
        """Delete the files of this run, unless they are the unit."""
        if not self._is_published(self.token):
            self.state.objects.list_own(self.staging)
            self.state.objects.delete(self.state.objects.below(self.staging))

    def settle(self) -> None:
        """Delete the files of the run that was the unit before."""
        own = f"{self.staging}/"
        self.state.objects.delete(name for name in self.state.objects.below(self.label) if not name.startswith(own))

    def _is_published(self, run: str) -> bool:
        return self.state.head().units.get(self.label) == run

    def _check_parts(self, stage: StageRecord, there: dict[str, int]) -> None:
        """Raise `OutputError` where an object is missing, of another size, or unknown."""
        shown, folder = f"{self.state.shown}/{self.label}/{stage.name}", f"{self.staging}/{stage.name}/"
        for part in stage.parts:
            if there.get(folder + part.name) != part.nbytes:
                what = f"cannot write {shown}: {part.name} is not as its task wrote it; nothing was written"
                raise OutputError(what, "run again")
        recorded = {part.name for part in stage.parts}
        names = (name.removeprefix(folder) for name in sorted(there) if name.startswith(folder))
        if stray := next((name for name in names if is_part(name) and name not in recorded), None):
            raise OutputError(f"cannot write {shown}: no task knows of {stray}; nothing was written")
