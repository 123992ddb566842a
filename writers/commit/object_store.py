"""A table that is a folder in an object store: one conditional put of its manifest replaces its result.

Names of files are never used twice, so a file that a manifest has ceased to name stays dead, and a run that was paused
and wakes up harms nobody. Who deletes files of other runs first fences the manifest: `remove_leftovers` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from ..folders.lock import Owner
from ..folders.place import MANIFEST, SUCCESS, Place, locate
from ..stores.conditional import ConditionFailedError
from ..stores.lease import hold_lease
from ..stores.probe import keeps_conditions
from ..stores.unconditional import UnconditionalStore
from .contract import Content
from .result_files import missing_file, read_manifest, token_of
from .store_commit import StoreCommit
from .store_objects import StoreObjects, files_of, has_result, is_of_runs, parse, run_of, strays

_TRIES = 5


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A `Table` that is a folder in an object store, or on another file system without ``flock`` and renames.

    ``objects``: what belongs to it.
    """

    objects: StoreObjects

    @property
    def place(self) -> Place:
        """Its location."""
        return self.objects.place

    @property
    def address(self) -> str:
        """The URI without its secrets."""
        return self.place.shown

    @staticmethod
    def takes(path: str) -> bool:
        """Whether this is a URI."""
        return "://" in path

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> StoreTable:
        """Return the table at a URI."""
        return cls(StoreObjects(locate(path, shown), path))

    def files(self, result: pa.Schema, evolve: bool) -> None:
        """Return None: the columns are those of the result."""

    def content(self) -> Content:
        """Return what is in the folder; files of runs that have not committed are no content."""
        try:
            with self.place.fs.open_input_stream(f"{self.place.path}/{MANIFEST}") as file:
                return Content.RESULT if has_result(file.read()) else Content.VACANT
        except FileNotFoundError:
            pass
        found = self.place.fs.get_file_info(self.place.path).type
        if found == fs.FileType.File:
            return Content.NO_FOLDER
        return Content.VACANT if found == fs.FileType.NotFound or self._is_vacant() else Content.OTHER

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest in the folder."""
        return read_manifest(self.place, self.place.path)

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        """Describe the first file that is missing or has another size than the manifest says."""
        return missing_file(self.place, manifest)

    def keeps_conditions(self) -> bool:
        """Whether the store refuses a put whose condition does not hold; tried once for each bucket."""
        if isinstance(self.objects.store, UnconditionalStore):
            return False
        return keeps_conditions(self.objects.store, self.place)

    def is_reachable(self) -> bool:
        """Return True: a store has no folders that could be missing."""
        return True

    def make_parents(self) -> list[Path]:
        """Return an empty list: a store needs no folders."""
        return []

    @contextmanager
    def hold(self, owner: Owner) -> Iterator[Owner | None]:
        """Hold the lease beside the folder, as `hold_lease` does."""
        objects, shown = self.objects, self.place.shown
        with hold_lease(objects.store, objects.lease, owner, shown, "choose another output") as former:
            objects.owner, objects.may_have_uploads = owner, former is not None
            yield former

    def remove_leftovers(self) -> None:
        """Delete all files of runs that the manifest does not name.

        Another run may have taken over the lease, and a run that was taken over may wake up and publish. So files are
        listed first, then the lease is looked at, so that no file is of a run that came later; then a fence makes the
        runs that came before unable to publish. Only then files are deleted.
        """
        for _ in range(_TRIES):
            now = self.objects.read()
            manifest = None if now is None else parse(now.content)
            if now is not None and manifest is None and has_result(now.content):
                return  # a damaged manifest does not say what is of its result
            left, foreign = self._leftovers({} if manifest is None else manifest)
            if foreign and not self.objects.is_held():
                left = [name for name in left if name not in foreign]
            elif foreign:
                try:
                    self.objects.fence(now)
                except ConditionFailedError:
                    continue
            self.objects.delete(left)
            self.objects.may_have_uploads |= bool(foreign)
            if self.objects.may_have_uploads and self.objects.is_held():
                self.objects.abort_uploads()
            return

    def commit(self, token: str) -> StoreCommit:
        """Return the commit with a staging folder beside this one."""
        return StoreCommit(self.objects, token)

    def token_of(self, run: str) -> str:
        """Return the id of the staging folder that a run has prepared and not published, or an empty text."""
        return token_of(self.place, run, self.commit)

    def _is_vacant(self) -> bool:
        infos = self.place.fs.get_file_info(fs.FileSelector(self.place.path, recursive=True, allow_not_found=True))
        files = (info.path for info in infos if info.type == fs.FileType.File)
        return all(is_of_runs(path.removeprefix(f"{self.place.path}/")) for path in files)

    def _leftovers(self, manifest: Mapping[str, Any]) -> tuple[list[str], set[str]]:
        """Return the names of all files to delete, and of those among them that may be of a run that still publishes.

        Writes the mark of a complete result where a run was killed before it did.
        """
        objects, there = self.objects, self.objects.files()
        if manifest and SUCCESS not in there:
            objects.store.put(objects.of_output(SUCCESS), b"")
        own = objects.own - objects.tried
        inside = strays(there, files_of(manifest))
        found = {objects.of_output(name): run_of(name) for name in inside}
        for role, token in objects.folders_beside():
            found |= dict.fromkeys(objects.files_beside(role, token), token)
        return list(found), {name for name, run in found.items() if run not in own}
