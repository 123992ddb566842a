"""A result on its way into a table with versions: files where they stay, a description, and one commit of the table."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...windowing.errors import OutputError
from ...windowing.support.checksum import seal
from ...windowing.tables.statistics import FileStatistics
from ..folders.files import put_file
from ..folders.os_errors import output_errors
from ..folders.place import Place, has_no_folders
from .contract import Progress
from .run_files import check_run_files, manifest_path, read_sealed, sync_run_files

STATISTICS = "statistics"
"""The key of a part of a manifest for its `FileStatistics`; the commit takes these out again."""
PARTITIONS = "partitioned"
"""The key of a manifest for the schema of the columns of ``--partition-by``; the commit takes it out again."""
_HELD = "held.json"


@dataclass(frozen=True, slots=True)
class RunResult(ABC):
    """A `TableCommit` whose last step is a commit of the table itself.

    ``place``: the folder of the files: that of the table, or of its partition.
    ``token``: the id of the run.
    ``own``: the ids of the results that this process has begun, and not tried to publish.
    """

    DESCRIPTION: ClassVar[str]
    """The name of the file that says what the commit of the table will say."""

    place: Place
    token: str
    own: set[str] = field(default_factory=set, compare=False, repr=False, kw_only=True)

    @property
    def staging(self) -> str:
        """The folder beside that of the files."""
        return self.place.beside("new", self.token)

    @property
    def data(self) -> str:
        """The folder of the files: they are written where they stay."""
        return self.place.path

    @property
    def suffix(self) -> str:
        """The id of the run."""
        return f"-{self.token}"

    @property
    def needs(self) -> str:
        """The path of what the run needs to publish, and writes only when it begins."""
        return f"{self.staging}/{_HELD}"

    def open(self) -> None:
        """Make the staging, and write down there what the table holds now."""
        self.own.add(self.token)
        now = self._now()
        for folder in (self.staging, self.data):
            if not has_no_folders(self.place.fs):
                self.place.fs.create_dir(folder, recursive=folder == self.data)
        self._put(_HELD, now)

    def begin(self) -> None:  # noqa: B027 - not abstract, but complete
        """Do nothing: readers see no file that the table does not name, and recovery finds the staging of `open`."""

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the files, and write down the manifest, and what the commit of the table will say."""
        parts = [{key: value for key, value in part.items() if key != STATISTICS} for part in manifest["parts"]]
        bare = {**{key: value for key, value in manifest.items() if key != PARTITIONS}, "parts": parts}
        with output_errors(self.place.shown):
            check_run_files(self.place, self.data, self.token, bare, "write to a table whose files all workers share")
            self._put(self.DESCRIPTION, self._description_of(manifest))
            text = json.dumps(seal(bare), indent=2, ensure_ascii=False)
            put_file(self.place.fs, manifest_path(self.place, self.token), text.encode() + b"\n")
            sync_run_files(self.place, self.staging)

    def publish(self) -> None:
        """Commit to the table: whoever reads the newest version sees the result, all others what they read."""
        self.own.discard(self.token)
        description = self._description()
        if description is None or self._held() is None:  # in this order: see `fence`
            what = f"{self.place.shown}: what was prepared for it is gone; nothing was written"
            raise OutputError(what, "run it again")
        self._commit(description)

    def fence(self) -> None:
        """See to it that the run of this result, which may only be paused, cannot publish; `needs` is deleted before.

        So either the run has written its description before, and the table is fenced against that; or it finds that
        what it needs is gone.
        """
        if (description := self._description()) is not None:
            self._put_fence(description)

    def progress(self, run: str) -> Progress:
        """Return how far the result has come: the table says whether its last result here is that of this run."""
        held = self._held()
        found = self._standing(None if held is None else held["held"])
        return Progress.GONE if found is Progress.READY and not self.is_ready(run) else found

    def recover(self, run: str) -> None:
        """Commit to the table, if that is what is left to do."""
        if self.progress(run) is Progress.READY:
            self.publish()

    def is_ready(self, run: str) -> bool:
        """Whether all that the commit of a run needs is written down."""
        description = self._description()
        return description is not None and description["run"] == run

    @abstractmethod
    def _now(self) -> dict[str, Any]:
        """Return what the table holds, under ``held``, and what else the run has to remember."""

    @abstractmethod
    def _describe(self, manifest: Mapping[str, Any], statistics: Mapping[str, FileStatistics]) -> dict[str, Any]:
        """Return what the commit says, as plain JSON values; ``statistics`` of each part by its name."""

    @abstractmethod
    def _commit(self, description: Mapping[str, Any]) -> None:
        """Commit to the table what is described."""

    @abstractmethod
    def _put_fence(self, description: Mapping[str, Any]) -> None:
        """Change the version of the table and nothing else, so that what is described cannot be committed."""

    @abstractmethod
    def _standing(self, held: str | None) -> Progress:
        """Return ``PUBLISHED`` if the table's last result here is this one, ``READY`` if it still holds ``held``.

        Else ``GONE``, also where ``held`` is None.
        """

    def _description_of(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        held = self._held()
        if held is None:
            what = f"the run that writes {self.place.shown} has lost its staging folder; nothing was written"
            raise OutputError(what, "run it again")
        statistics = {part["name"]: part[STATISTICS] for part in manifest["parts"]}
        own = self._describe(manifest, statistics)
        return {"run": manifest.get("run") or self.token, "held": held["held"], **own}

    def _description(self) -> dict[str, Any] | None:
        return read_sealed(self.place, f"{self.staging}/{self.DESCRIPTION}")

    def _held(self) -> dict[str, Any] | None:
        """Return what `open` has written down; None where it is gone."""
        return read_sealed(self.place, self.needs)

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        put_file(self.place.fs, f"{self.staging}/{name}", json.dumps(seal(content)).encode())
