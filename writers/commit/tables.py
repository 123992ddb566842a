"""The kinds of table that there are. The next one is a module with a `Table` and its `TableCommit`, and a line here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import WincliError
from ...windowing.support.file_systems import reach
from ...windowing.support.redaction import redacted_path
from ..places import files as atomic_swap
from ..places.lock import Owner, hold_lock, lock_of
from ..places.os_errors import make_folders, output_errors
from ..places.place import MANIFEST, REJECTED, SUCCESS, Place, locate, new_token
from .contract import Content, Progress, Table
from .delta import DeltaTable
from .iceberg import IcebergTable
from .object_store import StoreTable
from .result_files import check_parts, content_of, missing_file, progress_of, put_result_files, read_manifest, token_of

# A table that is a folder on a local file system: publishing exchanges its folder with the staging folder.
#
# If the output is absent or empty, one rename publishes; else one exchange of two names. Where the system cannot
# exchange names, `FolderTable.remove_leftovers` of the next run completes a swap that a kill interrupted between two
# renames.


_LOCAL = ("file://", "local://")  # the schemes that pyarrow takes for local files


@dataclass(frozen=True, slots=True)
class FolderSwap:
    """A `TableCommit` whose staging folder becomes the folder of the output.

    ``place``: the location of the output.
    ``token``: the id of the staging folder.
    """

    place: Place
    token: str

    @property
    def staging(self) -> str:
        return self.place.beside("new", self.token)

    @property
    def data(self) -> str:
        return self.staging

    @property
    def suffix(self) -> str:
        """Nothing: no other run writes to the staging folder."""
        return ""

    def open(self) -> None:
        staging, out = Path(self.staging), Path(self.place.path)
        self.place.fs.create_dir(self.staging, recursive=False)
        if out.exists():
            staging.chmod(out.stat().st_mode & 0o7777)

    def begin(self) -> None:
        """Do nothing: readers do not see the staging folder."""

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts, write the manifest and ``_SUCCESS``, and sync the folders; the parts are on disk already."""
        check_parts(self.place, self.staging, manifest)
        root = Path(self.staging)
        with output_errors(f"{self.place.shown}/{MANIFEST}"):
            put_result_files(self.place, self.staging, manifest)
            for folder in (root / REJECTED, (root / MANIFEST).parent, root):
                if folder.is_dir():
                    atomic_swap.sync(folder)

    def publish(self) -> None:
        """Swap the staging folder in. A kill at any point leaves the old result or the new one.

        `FolderTable.remove_leftovers` deletes the old result. If this raises `OSError`, the old result is in place,
        unless only the sync of the parent folder failed.
        """
        atomic_swap.replace(Path(self.place.path), Path(self.staging), Path(self.place.beside("old", self.token)))

    def progress(self, run: str) -> Progress:
        """Return how far the result has come; between two renames it is ready, and there is no result to see."""
        return progress_of(self.place, self.staging, run)

    def recover(self, run: str) -> None:
        if self.progress(run) is Progress.READY:
            self.publish()


@dataclass(frozen=True, slots=True)
class FolderTable:
    """A `Table` that is a folder on a local file system.

    ``place``: its location.
    """

    place: Place

    @property
    def address(self) -> str:
        return self.place.path

    @staticmethod
    def takes(path: str) -> bool:
        return "://" not in path or path.startswith(_LOCAL)

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> FolderTable:
        return cls(locate(path, shown))

    def files(self, result: pa.Schema, evolve: bool) -> None:
        """Return None: the columns are those of the result."""

    def content(self) -> Content:
        return content_of(self.place, lambda: atomic_swap.is_vacant(Path(self.place.path)))

    def manifest(self) -> dict[str, Any] | None:
        return read_manifest(self.place, self.place.path)

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        return missing_file(self.place, manifest)

    def keeps_conditions(self) -> bool:
        """Return True: a lock on a file keeps runs apart."""
        return True

    def is_reachable(self) -> bool:
        return Path(self.place.parent).is_dir()

    def make_parents(self) -> list[Path]:
        """Make the folders above. Raises `OutputError`."""
        return make_folders(Path(self.place.parent), self.place.shown)

    def hold(self, owner: Owner) -> AbstractContextManager[Owner | None]:
        """Hold the lock file beside the folder; the death of a run frees it."""
        return hold_lock(lock_of(self.place), owner)

    def remove_leftovers(self) -> None:
        """Remove all folders that earlier runs left beside the output, and settle an interrupted swap.

        The swap is completed if the new result is complete, else undone.
        """
        with os.scandir(self.place.parent) as entries:
            found = [(Path(entry.path), self.place.role_of(entry.name)) for entry in entries]
        left = [(path, *role) for path, role in found if role]
        for path, role, token in left:
            if role == "old" and not Path(self.place.path).exists():
                new = Path(self.place.beside("new", token))
                (new if (new / SUCCESS).is_file() else path).rename(self.place.path)
        for path, _, _ in left:
            if path.exists():
                _remove(self.place, path)

    def commit(self, token: str) -> FolderSwap:
        return FolderSwap(self.place, token)

    def token_of(self, run: str) -> str:
        return token_of(self.place, run, self.commit)


def _remove(place: Place, folder: Path) -> None:
    """Delete a folder; the rename before that stops tasks of a cancelled run that still write to it by its name."""
    gone = Path(place.beside("gone", new_token()))
    folder.rename(gone)
    shutil.rmtree(gone)


TABLES: tuple[type[Table], ...] = (
    DeltaTable,  # also where a path leads to one, so it comes first
    FolderTable,
    IcebergTable,
    StoreTable,  # takes every other URI, so it comes last
)
"""The first that takes a path is the kind of the table there."""


def is_by_version(table: Table) -> bool:
    """Whether a table says itself which files are its own, so that others may be in their folder."""
    return isinstance(table, DeltaTable | IcebergTable)


def table_of(path: str, shown: str | None = None) -> Table:
    """Return the table at a path or URI; ``shown``: the path as the user wrote it, where ``path`` was recorded.

    Raises `ConfigError` and `OutputError` as `place.locate` does, `OutputError` also where a store does not answer.
    """
    with output_errors(redacted_path(path) if shown is None else shown):
        reach(path)  # with few tries; what follows makes many
        kind = next(kind for kind in TABLES if kind.takes(path))
    return kind.at(path, shown)


def remove_leftovers_beside(paths: Iterable[str], owner: Owner) -> None:
    """Remove what killed runs have left beside complete outputs, to which nobody writes now: a lock, a former result.

    An output that another run holds is left alone. Outputs in one folder cost one listing, where nothing is left.
    """
    left: dict[str, set[str]] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        if left.get(folder) == set():
            continue
        table = table_of(path)
        place = table.place
        if folder not in left:
            infos = place.fs.get_file_info(fs.FileSelector(place.parent, allow_not_found=True))
            left[folder] = {info.base_name for info in infos if ".wincli-" in info.base_name}
        if any(name == place.lock.rpartition("/")[2] or place.role_of(name) for name in left[folder]):
            with suppress(OSError, WincliError), table.hold(owner):
                table.remove_leftovers()
