"""The contract of a table: how its one complete result is replaced by the next one, and what other runs may see of it.

A run holds the table, opens a `TableCommit`, writes its files into the staging of that, prepares it, and publishes it.
Readers see nothing of it before `TableCommit.publish`. The law for each implementation: wherever a run ends, and
however often its recovery is interrupted, a reader sees the result before or the result after; and a run that has lost
the table to another does not publish. Where `publish` is several steps, as where a system cannot exchange folders, a
reader may see no complete result between them; never a mix.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from ..places.lock import Owner
from ..places.place import Place

Description_contra = TypeVar("Description_contra", contravariant=True)
"""What describes a staged result: the manifest of an output, or the record of a unit."""


class Content(Enum):
    """What stands where a table is to be written.

    ``VACANT``: nothing, or an empty folder. ``RESULT``: a result of wincli, complete or not. ``OTHER``: anything else
    in a folder. ``NO_FOLDER``: a file.
    """

    VACANT = auto()
    RESULT = auto()
    OTHER = auto()
    NO_FOLDER = auto()


class Progress(Enum):
    """How far a run has come with a result of its own.

    ``GONE``: it is not prepared, or cannot be published any more. ``READY``: it is prepared, and readers see the former
    result. ``PARTIAL``: its publication has begun, and can only go on. ``PUBLISHED``: it is what readers see.
    """

    GONE = auto()
    READY = auto()
    PARTIAL = auto()
    PUBLISHED = auto()


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a result in a table that has versions, and columns of its own.

    ``columns``: their columns with the types of the table, and with its field ids in the metadata of fields.
    ``constants``: the columns that all rows of the result have one value in, as the partition of a unit.
    """

    columns: pa.Schema
    constants: Mapping[str, pa.Scalar]


def with_table_types(result: pa.Schema, there: pa.Schema) -> pa.Schema:
    """Return the columns of a result, in which those without any value, and so without a type, have that of the table.

    ``there``: the columns of the table, in the types of Arrow.
    """
    without = {field.name for field in result if pa.types.is_null(field.type)} & set(there.names)
    return pa.schema(
        [field.with_type(there.field(field.name).type) if field.name in without else field for field in result]
    )


class TableCommit(Protocol[Description_contra]):
    """One result of one run on its way into a table. Any process can make it anew from the id of its staging.

    What has a default here is so where readers see nothing of a run before `publish`, and no other run writes to its
    staging.

    ``token``: the id of its staging, which a journal records.
    """

    token: str

    @property
    def staging(self) -> str:
        """The path of the folder for files that only the run reads, in the file system of the table."""

    @property
    def data(self) -> str:
        """The path of the folder in which tasks write parts and rejects: ``staging``, or where these are to stay."""
        return self.staging

    @property
    def suffix(self) -> str:
        """What the names of parts and rejects carry, if they are written where they are to stay; else empty."""
        return ""

    def open(self) -> None:
        """Make the staging. Raises `OSError`."""

    def begin(self) -> None:
        """Say where readers look that parts will come that are no result before `publish`; called before the first.

        Raises `OSError`, or `OutputError` where another run has published since `open`.
        """
        return

    def prepare(self, description: Description_contra) -> None:
        """Check the files that were written, and make everything durable; readers see the former result.

        Raises `OutputError` where a file is missing, unknown or cannot be made durable.
        """

    def publish(self) -> None:
        """Make the prepared result the one that readers see.

        Raises `OSError`, or `OutputError` where another run has published since `open`; the former result is then
        untouched, unless `progress` says otherwise.
        """

    def progress(self, run: str) -> Progress:
        """Return how far the result of ``run`` has come; its description has that id. Raises `OSError`."""

    def recover(self, run: str) -> None:
        """Publish what a journal names, from wherever an earlier attempt stopped.

        This has no effect where the result is published or gone. Raises as `publish` does.
        """
        if self.progress(run) in (Progress.READY, Progress.PARTIAL):
            self.publish()


class Table(Protocol):
    """An output as a run and its recovery see it. `tables.table_of` makes it."""

    @property
    def place(self) -> Place:
        """Where it is."""

    @property
    def address(self) -> str:
        """The text, without secrets, from which `tables.table_of` makes this table in another process."""

    @staticmethod
    def takes(path: str) -> bool:
        """Whether a path or URI names a table of this kind; `tables.TABLES` asks in its order."""

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> Table:
        """Return the table at a path or URI; ``shown`` and what it raises: as `place.locate` has it."""

    def files(self, result: pa.Schema, evolve: bool) -> TableFiles | None:
        """Return how the files of a result are written; None for files with its columns and no others.

        ``result``: the columns of the result. ``evolve``: whether the table may get columns that it lacks. Raises
        `ConfigError` with the differences where the result does not fit.
        """

    def content(self) -> Content:
        """Return what is there now. Raises `OSError`."""

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the result that readers see, None where there is none or it is damaged."""

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        """Say what of the result that a manifest describes is gone or of another size; None where all is there.

        The text is the rest of a sentence that begins with the name of the output. Raises `OSError`.
        """

    def keeps_conditions(self) -> bool:
        """Whether two runs that commit in the same instant are surely kept apart. Raises `OSError`."""

    def is_reachable(self) -> bool:
        """Whether anything can be beside the table; where not, nothing has to be locked or removed."""

    def make_parents(self) -> list[Path]:
        """Make what has to be there before `hold`; return the folders that are new, innermost first."""

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the table against other runs; the context value is the dead run that it was taken from, or None.

        Raises `OutputError` where another run holds it.
        """

    def remove_leftovers(self) -> None:
        """Complete or undo what earlier runs left unfinished and no journal names, and remove the rest of it.

        The caller must hold the table. Raises `OSError`.
        """

    def commit(self, token: str) -> TableCommit[Mapping[str, Any]]:
        """Return the commit whose staging has an id: new, of an earlier run, or empty where that is not known."""

    def token_of(self, run: str) -> str:
        """Return the id of the staging that a run has prepared and not published yet, else an empty text."""
