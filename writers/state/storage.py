"""The contract of the place where a state is kept.

A unit goes into a state as a result goes into a table (`writers.commit.contract`): its files are written where no
reader sees them, and `UnitCommit.publish` is the one step after which they are the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ..commit.contract import TableCommit
from ..places.lock import Owner
from ..places.place import Place
from .stage_files import ParquetStateFiles
from .unit_record import UnitRecord


class UnitCommit(TableCommit[UnitRecord], Protocol):
    """One run of a unit on its way into a state. Any process can make it anew from the label and the id of the run."""

    def stage(self, name: str) -> ParquetStateFiles:
        """Return the files of one stage, for tasks to write; make their folder where there are folders.

        Raises `OutputError`.
        """

    def discard(self) -> None:
        """Delete the files of a run that is not published. Raises `OSError`."""

    def settle(self) -> None:
        """Delete what a publication has left of the former unit and of the staging. Raises `OSError`."""


class StateStorage(Protocol):
    """The place where one state is kept; `storage_of` makes it. Methods that say no other raise `OSError`.

    Documents are small files, each of which is read and replaced as a whole.
    """

    def path_of(self, name: str) -> str:
        """Return the whole path of a document, for messages."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a document, None where it does not exist.

        Raises `NotADirectoryError` where a folder of its path is a file.
        """

    def put(self, name: str, text: str) -> None:
        """Write a document atomically and durably."""

    def delete(self, name: str) -> None:
        """Delete a document, if it exists."""

    @property
    def shown(self) -> str:
        """The state as the user wrote it, without its secrets."""

    @property
    def place(self) -> Place:
        """The folder of the state."""

    def check_folder(self) -> None:
        """Raise `ConfigError` where the path of the state is that of a file."""

    def has(self, name: str) -> bool:
        """Whether there is a document."""

    def has_others(self) -> bool:
        """Whether there is anything that was not there before a state had its marker."""

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the state against other runs; the context value is the dead run that it was taken from, or None.

        Makes its folder. Raises `OutputError` where another run holds it.
        """

    def owner(self) -> Owner | None:
        """Return the run that is named in the lock, alive or dead; None where no run is."""

    def records(self) -> dict[str, UnitRecord]:
        """Return the records of all finished units by label; none where there is no state.

        Raises `DamagedError` where one cannot be read, `ConfigError` for one of a newer wincli.
        """

    def has_data(self, record: UnitRecord) -> bool:
        """Whether the window state of a unit is still there; only the last units keep it, all stages of them."""

    def files(self, record: UnitRecord, stage: str) -> ParquetStateFiles:
        """Return the files of one stage of a finished unit, for reading."""

    def delete_data(self, record: UnitRecord) -> None:
        """Delete the window state of a unit; its record stays."""

    def forget(self, records: Iterable[UnitRecord]) -> None:
        """Take units out of the state, all of them in one step, then delete their files.

        The caller must hold the state, and there must be no journal. A kill leaves all of these units or none. Raises
        `DamagedError` where the document of forgotten units is damaged.
        """

    def commit(self, label: str, token: str) -> UnitCommit:
        """Return the commit of a unit by the run with the id ``token``, new or of an earlier run."""

    def prepared(self) -> Mapping[str, UnitRecord | None]:
        """Return what units are staged: id of the run to the record there, None where it is missing or damaged."""

    def copy_to(self, target: Path) -> None:
        """Copy all finished units to a new local folder, which is a state then."""

    def leftovers(self) -> Mapping[str, int]:
        """Return what killed runs left: name to bytes. That of a run which is at work is among them."""

    def remove_leftovers(self) -> None:
        """Delete what killed runs left. The caller must hold the state, and there must be no journal."""
