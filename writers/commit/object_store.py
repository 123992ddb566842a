"""A table that is a folder in an object store, where folders cannot be renamed and no write is conditional.

Files are moved one by one, so publishing is not atomic. ``_SUCCESS`` is deleted first and moved last: without it
readers know that the result is not complete. The manifest is moved first, so that the next run with ``--mode
overwrite`` recognises the folder as a result of wincli.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from ..folders.files import is_file, list_files
from ..folders.lock import Owner, hold_marker, lock_of
from ..folders.os_errors import output_errors
from ..folders.place import MANIFEST, SUCCESS, Place, locate
from .contract import Content, Progress
from .result_files import (
    check_parts,
    content_of,
    has_manifest_of,
    missing_file,
    progress_of,
    put_result_files,
    read_manifest,
    token_of,
)

_MOVES_AT_ONCE = 16  # a move within a store is a request that only waits for the answer


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A `TableCommit` whose files move from the staging folder to the folder of the output.

    ``place``: the location of the output.
    ``token``: the id of the staging folder.
    """

    place: Place
    token: str

    @property
    def staging(self) -> str:
        """The staging folder beside the output."""
        return self.place.beside("new", self.token)

    def open(self) -> None:
        """Make the staging folder."""
        self.place.fs.create_dir(self.staging, recursive=False)

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts, and write the manifest and ``_SUCCESS``."""
        check_parts(self.place, self.staging, manifest)
        with output_errors(f"{self.place.shown}/{MANIFEST}"):
            put_result_files(self.place, self.staging, manifest)

    def publish(self) -> None:
        """Replace the files of the output by those of the staging folder."""
        store, staging, out = self.place.fs, self.staging, self.place.path
        names = [path.removeprefix(staging + "/") for path in list_files(store, staging)]
        _delete(store, [f"{out}/{SUCCESS}"])
        _delete(store, [path for path in list_files(store, out) if not path.endswith("/" + MANIFEST)])
        _move(store, staging, out, [MANIFEST])
        _move(store, staging, out, [name for name in names if name not in (MANIFEST, SUCCESS)])
        _move(store, staging, out, [SUCCESS])

    def progress(self, run: str) -> Progress:
        """Return how far the result has come; from the manifest on, which is moved first, it is partial."""
        whole = progress_of(self.place, self.staging, run)
        return Progress.PARTIAL if whole is Progress.GONE and self._is_half_moved(run) else whole

    def recover(self, run: str) -> None:
        """Replace the files of the output, or move the files that an interrupted publication has not moved."""
        progress = self.progress(run)
        if progress is Progress.PARTIAL:
            self._move_rest()
        elif progress is Progress.READY:
            self.publish()

    def _is_half_moved(self, run: str) -> bool:
        left = is_file(self.place.fs, f"{self.staging}/{SUCCESS}")
        return left and has_manifest_of(self.place, self.place.path, run)

    def _move_rest(self) -> None:
        left = list_files(self.place.fs, self.staging)
        for path in sorted(left, key=lambda path: path.endswith(f"/{SUCCESS}")):
            target = self.place.path + path.removeprefix(self.staging)
            self.place.fs.create_dir(target.rpartition("/")[0], recursive=True)
            self.place.fs.move(path, target)


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A `Table` that is a folder in an object store.

    ``place``: its location.
    """

    place: Place

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
        return cls(locate(path, shown))

    def content(self) -> Content:
        """Return what is in the folder."""
        return content_of(self.place, self._is_vacant)

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest in the folder, also where the result is not complete."""
        return read_manifest(self.place, self.place.path)

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        """Describe the first file that is missing or has another size than the manifest says."""
        return missing_file(self.place, manifest)

    def is_reachable(self) -> bool:
        """Return True: a store has no folders that could be missing."""
        return True

    def make_parents(self) -> list[Path]:
        """Return an empty list: a store needs no folders."""
        return []

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the marker beside the folder, as `hold_marker` does."""
        return hold_marker(lock_of(self.place), owner)

    def remove_leftovers(self) -> None:
        """Remove the staging folders that killed runs left beside this output."""
        for info in self.place.fs.get_file_info(fs.FileSelector(self.place.parent, allow_not_found=True)):
            if info.type == fs.FileType.Directory and self.place.role_of(info.base_name):
                self.place.fs.delete_dir(info.path)

    def commit(self, token: str) -> ObjectStore:
        """Return the commit with a staging folder beside this one."""
        return ObjectStore(self.place, token)

    def token_of(self, run: str) -> str:
        """Return the id of the staging folder that a run has prepared and not published, or an empty text."""
        return token_of(self.place, run, self.commit)

    def _is_vacant(self) -> bool:
        return not self.place.fs.get_file_info(fs.FileSelector(self.place.path, allow_not_found=True))


def _delete(store: fs.FileSystem, paths: Iterable[str]) -> None:
    for path in paths:
        if is_file(store, path):
            store.delete_file(path)


def _move(store: fs.FileSystem, source: str, target: str, names: Iterable[str]) -> None:
    def move(name: str) -> None:
        folder = f"{target}/{name}".rpartition("/")[0]
        store.create_dir(folder, recursive=True)
        store.move(f"{source}/{name}", f"{target}/{name}")

    with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
        list(pool.map(move, names))
