"""A table with versions as an output: who holds it, and what killed runs have left beside its files."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pyarrow import fs

from ...windowing.errors import OutputError
from ...windowing.support.checksum import seal, sealed_text
from ...windowing.tables.statistics import FileStatistics
from ..places import atomic_files
from ..places.atomic_files import is_attempt, list_files, put_file
from ..places.conditional import ConditionalStore, hold_lease, is_held_by
from ..places.lock import Owner, hold_lock, lock_of
from ..places.os_errors import make_folders, output_errors
from ..places.place import MANIFEST, Place, is_local
from .contract import Progress, TableCommit
from .result_files import (
    check_names,
    first_missing,
    folders_beside,
    names_of,
    read_sealed,
    recorded_files,
    remove_beside,
)

# The files of a run that are written where they stay: parts, rejects and a manifest under names with its id.


def manifest_path(place: Place, token: str) -> str:
    """Return the path of the manifest of a result."""
    return f"{place.path}/{MANIFEST.removesuffix('.json')}-{token}.json"


def own_files(place: Place, token: str) -> list[str]:
    """Return the paths of the parts and rejects of a run, those of killed attempts among them."""
    stems = {path: path.rpartition("/")[2].removeprefix(".") for path in list_files(place.fs, place.path)}
    return [p for p, stem in stems.items() if f"-{token}." in stem and stem.startswith(("part-", "rejects-"))]


def check_run_files(place: Place, token: str, manifest: Mapping[str, Any]) -> None:
    """Delete what killed attempts of a run left, and check that its files are those of its manifest.

    Raises `OutputError` naming a file that is missing or that no task knows of.
    """
    own = {path.removeprefix(f"{place.path}/"): path for path in own_files(place, token)}
    recorded = {*names_of(manifest)}
    overtaken = own.keys() - recorded if not is_local(place.fs) else set()  # each attempt has a name of its own there
    for name in {*overtaken, *filter(is_attempt, own)}:
        place.fs.delete_file(own.pop(name))
    check_names(place.shown, recorded, own.keys(), "write to a table whose files all workers share")


# A result on its way into a table with versions: files where they stay, a description, and one commit of the table.


STATISTICS = "statistics"
"""The key of a part of a manifest for its `FileStatistics`; the commit takes these out again."""
PARTITIONS = "partitioned"
"""The key of a manifest for the schema of the columns of ``--partition-by``; the commit takes it out again."""
_HELD = "held.json"


@dataclass(frozen=True, slots=True)
class RunResult(TableCommit[Mapping[str, Any]], ABC):
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
        return self.place.beside("new", self.token)

    @property
    def data(self) -> str:
        """The folder of the files: they are written where they stay."""
        return self.place.path

    @property
    def suffix(self) -> str:
        return f"-{self.token}"

    @property
    def needs(self) -> str:
        return f"{self.staging}/{_HELD}"

    def open(self) -> None:
        self.own.add(self.token)
        now = self._now()
        for folder in (self.staging, self.data):
            if is_local(self.place.fs):
                self.place.fs.create_dir(folder, recursive=folder == self.data)
        self._put(_HELD, now)

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        parts = [{key: value for key, value in part.items() if key != STATISTICS} for part in manifest["parts"]]
        bare = {**{key: value for key, value in manifest.items() if key != PARTITIONS}, "parts": parts}
        with output_errors(self.place.shown):
            check_run_files(self.place, self.token, bare)
            held = self._held()
            if held is None:
                what = f"the run that writes {self.place.shown} has lost its staging folder; nothing was written"
                raise OutputError(what, "run it again")
            own = self._describe(manifest, {part["name"]: part[STATISTICS] for part in manifest["parts"]})
            run = manifest.get("run") or self.token
            self._put(self.DESCRIPTION, {"run": run, "held": held["held"], **own})
            put_file(self.place.fs, manifest_path(self.place, self.token), sealed_text(bare).encode())
            if is_local(self.place.fs):  # the entries of the folders; the files are on disk already
                root = Path(self.place.path)
                for folder in (root / "_wincli", root / "_rejected", Path(self.staging), root, root.parent):
                    if folder.is_dir():
                        atomic_files.sync(folder)

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
    def _standing(self, then: str | None) -> Progress:
        """Return ``PUBLISHED`` if the table's last result here is this one, ``READY`` if it still holds ``then``.

        Else ``GONE``, also where ``then`` is None: it can never be published.
        """

    def _description(self) -> dict[str, Any] | None:
        return read_sealed(self.place, f"{self.staging}/{self.DESCRIPTION}")

    def _held(self) -> dict[str, Any] | None:
        """Return what `open` has written down; None where it is gone."""
        return read_sealed(self.place, self.needs)

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        put_file(self.place.fs, f"{self.staging}/{name}", json.dumps(seal(content)).encode())


@dataclass(frozen=True, slots=True)
class VersionTable(ABC):
    """What `Table` says of tables whose versions name their files.

    ``place``: the folder of its files: that of the table, or the folder of a partition in it.
    ``owners``: this run, once it holds the lease in a store.
    ``own``: as in `RunResult`; these need no fence.
    """

    place: Place
    owners: list[Owner] = field(default_factory=list, compare=False, repr=False, kw_only=True)
    own: set[str] = field(default_factory=set, compare=False, repr=False, kw_only=True)

    TOKEN: ClassVar[re.Pattern[str]]
    """Finds the id of its run in the name of a file of a result."""

    @abstractmethod
    def commit(self, token: str) -> RunResult:
        """Return the commit of a run with an id; its staging folder is beside the folder of the files."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns that readers of the table see."""

    def is_reachable(self) -> bool:
        return not is_local(self.place.fs) or Path(self.place.parent).is_dir()

    def make_parents(self) -> list[Path]:
        return make_folders(Path(self.place.parent), self.place.shown) if is_local(self.place.fs) else []

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the lock, or in a store the lease, beside the folder of the files."""
        lock = lock_of(self.place)
        if is_local(self.place.fs):
            return hold_lock(lock, owner)
        self.owners[:] = [owner]
        return hold_lease(self._store(), self._lease, owner, lock.shown, lock.instead)

    def remove_leftovers(self) -> None:
        """Remove what earlier runs left here: their files, unless a version has them, and their descriptions."""
        if self.owners and not is_held_by(self._store(), self._lease, self.owners[0]):
            return  # another run has taken over, and what is here may be its own
        left = [*folders_beside(self.place)]
        for role, token, path in left:
            if role == "new" and not self._is_kept(token):
                result = self.commit(token)
                if not is_local(self.place.fs) and token not in self.own:  # a lock was free, so its process has ended
                    self._delete(self._existing([result.needs]))
                    result.fence()
                if is_local(self.place.fs) or token in self.own or not self._is_kept(token):
                    self._delete(self._existing([*own_files(self.place, token), manifest_path(self.place, token)]))
            if is_local(self.place.fs):
                remove_beside(self.place, Path(path))
            else:
                self._remove_staging(path)
        if left or is_local(self.place.fs):
            self._remove_empty()

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        if (files := recorded_files(manifest)) is None:
            return "has a damaged manifest"
        parts, rejects = files
        live = self._names()
        if live is not None:
            if live and not any(self.TOKEN.search(name) for name in live):
                return None  # another program has written its rows into other files: `manifest` compares their number
            if gone := [name for name, _ in parts if name not in live]:
                return f"lacks {gone[0]}"
        return first_missing(self.place, [*parts, *rejects])

    def _manifest_of(
        self, live: Mapping[str, int], last: Callable[[], str | None], is_rewritten: Callable[[], bool]
    ) -> dict[str, Any] | None:
        """Return the manifest of the one result that is there; None where others have changed what is there.

        A compaction by another program leaves other files with as many rows: these are still that result. ``live``: the
        files that are there, with their rows; ``last``: the id of the last result that was published here;
        ``is_rewritten``: whether others have done no more since than to write the same rows into other files.
        """
        tokens = {found[1] if (found := self.TOKEN.search(name)) else None for name in live}  # None: of others
        if len(tokens) == 1 and (only := tokens.pop()) is not None:
            return read_sealed(self.place, manifest_path(self.place, only))
        token = last() if live else None
        told = None if token is None else read_sealed(self.place, manifest_path(self.place, token))
        return told if told is not None and told.get("rows_out") == sum(live.values()) and is_rewritten() else None

    def token_of(self, run: str) -> str:
        tokens = (token for role, token, _ in folders_beside(self.place) if role == "new")
        return next((token for token in tokens if self.commit(token).is_ready(run)), "")

    @abstractmethod
    def _names(self) -> set[str] | None:
        """Return the names of the files that are there, in the folder of the files; None: those of the last result."""

    @abstractmethod
    def _store(self) -> ConditionalStore:
        """Return the objects of the folder above that of the files."""

    @abstractmethod
    def _is_kept(self, token: str) -> bool:
        """Whether a version of the table has, or may have, the files of a run."""

    @abstractmethod
    def _delete(self, paths: Sequence[str]) -> None:
        """Delete files."""

    @abstractmethod
    def _remove_staging(self, folder: str) -> None:
        """Delete a staging folder in a store."""

    @abstractmethod
    def _remove_empty(self) -> None:
        """Remove the folder of the files, and those below it, if there is no file in them."""

    @property
    def _lease(self) -> str:
        return self.place.lock.rpartition("/")[2]

    def _existing(self, paths: list[str]) -> list[str]:
        return [info.path for info in self.place.fs.get_file_info(paths) if info.type == fs.FileType.File]
