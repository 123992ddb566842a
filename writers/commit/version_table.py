"""A table with versions as an output: who holds it, and what killed runs have left beside its files."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs

from ..folders.lock import Owner, hold_lock, lock_of
from ..folders.make_folders import make_folders
from ..folders.place import Place, is_local, new_token
from ..stores.conditional import ConditionalStore
from ..stores.lease import hold_lease, holder_of
from .run_files import manifest_path, own_files
from .run_result import RunResult


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

    @abstractmethod
    def commit(self, token: str) -> RunResult:
        """Return the commit of a run with an id; its staging folder is beside the folder of the files."""

    def is_reachable(self) -> bool:
        """Whether the folder above the files exists, which has the lock and all leftovers."""
        return not is_local(self.place.fs) or Path(self.place.parent).is_dir()

    def make_parents(self) -> list[Path]:
        """Make the folders above, where there are folders. Raises `OutputError`."""
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
        if not self._is_held():
            return  # another run has taken over, and what is here may be its own
        left = [*self._leftovers()]
        for role, token, path in left:
            if role == "new" and not self._is_kept(token):
                self._undo(token)
            self._remove(path)
        if left or is_local(self.place.fs):
            self._remove_empty()

    def token_of(self, run: str) -> str:
        """Return the id of the result that a run has prepared and not published, or an empty text."""
        tokens = (token for role, token, _ in self._leftovers() if role == "new")
        return next((token for token in tokens if self.commit(token).is_ready(run)), "")

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

    def _is_held(self) -> bool:
        """Whether this run may remove what others have left."""
        if not self.owners:
            return True
        holder = holder_of(self._store(), self._lease)
        return holder is not None and holder.owner == self.owners[0]

    def _leftovers(self) -> Iterator[tuple[str, str, str]]:
        """Yield role, id and path of the folders that runs have left beside the folder of the files."""
        for info in self.place.fs.get_file_info(fs.FileSelector(self.place.parent, allow_not_found=True)):
            role = self.place.role_of(info.base_name) if info.type == fs.FileType.Directory else None
            if role:
                yield *role, info.path

    def _undo(self, token: str) -> None:
        """Delete the files of a run whose result no version has, after it cannot commit any more."""
        left = self.commit(token)
        if not is_local(self.place.fs) and token not in self.own:  # a lock was free, so its process has ended
            self._delete(self._existing([left.needs]))
            left.fence()
            if self._is_kept(token):
                return
        self._delete(self._existing([*own_files(self.place, token), manifest_path(self.place, token)]))

    def _existing(self, paths: list[str]) -> list[str]:
        return [info.path for info in self.place.fs.get_file_info(paths) if info.type == fs.FileType.File]

    def _remove(self, folder: str) -> None:
        """Delete a staging folder; where there are renames, after one that stops tasks of a cancelled run."""
        if not is_local(self.place.fs):
            self._remove_staging(folder)
            return
        gone = Path(self.place.beside("gone", new_token()))
        Path(folder).rename(gone)
        shutil.rmtree(gone)


def recorded_files(manifest: Mapping[str, Any]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]] | None:
    """Return names and bytes of the parts and of the rejects of a result; None where its manifest is damaged."""
    try:
        parts = [(str(part["name"]), int(part["bytes"])) for part in manifest["parts"]]
        return parts, [(str(part["name"]), int(part["bytes"])) for part in manifest["rejects"]]
    except (KeyError, TypeError, ValueError):
        return None
