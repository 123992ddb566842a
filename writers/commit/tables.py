"""The kinds of table that there are. The next one is a module with a `Table` and its `TableCommit`, and a line here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import OutputError, WincliError
from ...windowing.support.address import Address
from ...windowing.support.checksum import read_object, sealed_text
from ...windowing.support.file_systems import begun, reach
from ...windowing.support.redaction import redacted_path
from ...windowing.tables.delta import PREFIX
from ...windowing.tables.iceberg_catalog import is_address
from ..places import atomic_files
from ..places.atomic_files import is_attempt, is_file, list_files, put_file
from ..places.conditional import (
    ConditionFailedError,
    Version,
    hold_lease,
    keeps_conditions,
    version_of,
)
from ..places.lock import Owner, hold_lock, lock_of
from ..places.os_errors import make_folders, output_errors
from ..places.place import MANIFEST, REJECTED, SUCCESS, Place, locate, refuse_others
from .contract import Content, Progress, Table, TableCommit
from .delta import DeltaTable
from .iceberg import IcebergTable
from .result_files import (
    FolderSwap,
    check_names,
    files_of,
    folders_beside,
    missing_file,
    names_of,
    read_manifest,
    remove_beside,
    token_of,
)
from .store_objects import StoreObjects, check_files, has_result, is_of_runs, parse, run_of

# A table that is a folder in an object store: one conditional put of its manifest replaces its result.
#
# Names of files are never used twice, so a file that a manifest has ceased to name stays dead, and a run that was
# paused and wakes up harms nobody. Who deletes files of other runs first fences the manifest: `remove_leftovers` says
# how.


# A result on its way into a store: parts under names of its run, and one conditional put of the manifest.
#
# Parts stand in the folder of the output from the moment they are written. Readers that follow the manifest do not
# see them before `StoreCommit.publish` has put the manifest that names them, and do not see those of the former
# result after.


_PREPARED = "manifest.json"
_UPLOADED = 5 << 20  # bytes from which a file may be uploaded in parts


@dataclass(slots=True)
class StoreCommit(TableCommit[Mapping[str, Any]]):
    """A `TableCommit` whose parts stay where tasks write them.

    ``token``: the id of the staging folder, which the names of its parts carry.
    ``base``: the version of the manifest that it replaces, known from `open` on; None: there is none.
    """

    objects: StoreObjects
    token: str
    base: Version | None = None

    @property
    def staging(self) -> str:
        return self.objects.place.beside("new", self.token)

    @property
    def data(self) -> str:
        return self.objects.place.path

    @property
    def suffix(self) -> str:
        return f"-{self.token}"

    def open(self) -> None:
        """Note which version of the manifest is to be replaced; no other may have come when this run publishes."""
        self.objects.own.add(self.token)
        self.base = version_of(self.objects.manifest.read())

    def begin(self) -> None:
        manifest = self.objects.manifest
        now = manifest.read()
        if now is None or not has_result(now.content):
            self.base = manifest.put(begun(self.token), self.base)

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts, and put the manifest beside the output, from where a journal can publish it.

        Attempts at tasks that were ended, or were not the first, leave files that the manifest does not name.
        """
        objects, shown = self.objects, self.objects.place.shown
        with output_errors(f"{shown}/{MANIFEST}"):
            there, named = objects.files(), set(files_of(manifest))
            try:
                check_files(shown, there, manifest)
            except OutputError as error:
                if version_of(objects.manifest.read()) != self.base:  # who took the output over has deleted the parts
                    raise objects.manifest.lost() from error
                raise
            objects.store.delete([objects.of_output(n) for n in there if run_of(n) == self.token and n not in named])
            objects.may_have_uploads |= any(there[name] >= _UPLOADED for name in named)
            base = None if self.base is None else asdict(self.base)
            prepared = {"base": base, "manifest": sealed_text(manifest)}
            objects.store.put(self._prepared_name, json.dumps(prepared).encode())

    def publish(self) -> None:
        """Put the manifest if nobody has put another since `open`; then delete what it has replaced.

        Raises `OutputError` where another run has published or has taken the output over.
        """
        objects = self.objects
        prepared, now = self._prepared(), objects.manifest.read()
        if prepared is None or prepared[0] != version_of(now):
            raise objects.manifest.lost()
        base, content = prepared
        objects.tried.add(self.token)
        try:
            objects.manifest.put(content, base)
        except OSError:
            if not self._is_published(content):
                raise
        with suppress(OSError):  # `StoreTable.remove_leftovers` tries again
            former = now.content if now else b""
            objects.store.put(objects.of_output(SUCCESS), b"")
            kept = set(files_of(parse(content) or {}))
            gone = [objects.of_output(name) for name in files_of(parse(former) or {}) if name not in kept]
            objects.store.delete([*gone, *objects.files_beside("new", self.token)])

    def progress(self, run: str) -> Progress:
        now = self.objects.manifest.read()
        if now is not None and (parse(now.content) or {}).get("run") == run:
            return Progress.PUBLISHED
        prepared = self._prepared()
        if prepared is None or prepared[0] != version_of(now):
            return Progress.GONE
        return Progress.READY if (parse(prepared[1]) or {}).get("run") == run else Progress.GONE

    @property
    def _prepared_name(self) -> str:
        return self.objects.beside("new", self.token, _PREPARED)

    def _prepared(self) -> tuple[Version | None, bytes] | None:
        """Return what waits to be published, None where nothing does or it is damaged.

        These are the version of the manifest that it replaces, None where there was none, and its own manifest.
        """
        found = self.objects.store.get(self._prepared_name) if self.token else None
        if found is None:
            return None
        try:
            told = read_object(found.content)
            base = None if told["base"] is None else Version(**told["base"])
            return base, str(told["manifest"]).encode()
        except (ValueError, KeyError, TypeError):
            return None

    def _is_published(self, content: bytes) -> bool:
        """Whether a put whose answer got lost has taken effect; False where the store does not say that."""
        with suppress(OSError):
            now = self.objects.manifest.read()
            return now is not None and now.content == content
        return False


_TRIES = 5


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A `Table` that is a folder in an object store."""

    objects: StoreObjects

    @property
    def place(self) -> Place:
        return self.objects.place

    @property
    def address(self) -> str:
        return self.place.shown

    @staticmethod
    def takes(path: str) -> bool:
        return not Address.of(path).is_path

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> StoreTable:
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
        names = [] if found == fs.FileType.NotFound else list_files(self.place.fs, self.place.path)
        are_of_runs = all(is_of_runs(name.removeprefix(f"{self.place.path}/")) for name in names)
        return Content.VACANT if are_of_runs else Content.OTHER

    def manifest(self) -> dict[str, Any] | None:
        return read_manifest(self.place, self.place.path)

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        return missing_file(self.place, manifest)

    def keeps_conditions(self) -> bool:
        return keeps_conditions(self.objects.store, self.place)

    def is_reachable(self) -> bool:
        return True  # a store has no folders that could be missing

    def make_parents(self) -> list[Path]:
        return []

    @contextmanager
    def hold(self, owner: Owner) -> Iterator[Owner | None]:
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
            now = self.objects.manifest.read()
            manifest = None if now is None else parse(now.content)
            if now is not None and manifest is None and has_result(now.content):
                return  # a damaged manifest does not say what is of its result
            left, foreign = self._leftovers({} if manifest is None else manifest)
            if foreign and not self.objects.manifest.is_held():
                left = [name for name in left if name not in foreign]
            elif foreign:
                try:
                    self.objects.fence(now)
                except ConditionFailedError:
                    continue
            self.objects.store.delete(left)
            self.objects.may_have_uploads |= bool(foreign)
            if self.objects.may_have_uploads and self.objects.manifest.is_held():
                self.objects.abort_uploads()
            return

    def commit(self, token: str) -> StoreCommit:
        return StoreCommit(self.objects, token)

    def token_of(self, run: str) -> str:
        return token_of(self.place, run, self.commit)

    def _leftovers(self, manifest: Mapping[str, Any]) -> tuple[list[str], set[str]]:
        """Return the names of all files to delete, and of those among them that may be of a run that still publishes.

        Writes the mark of a complete result where a run was killed before it did.
        """
        objects, there = self.objects, self.objects.files()
        if manifest and SUCCESS not in there:
            objects.store.put(objects.of_output(SUCCESS), b"")
        own = objects.own - objects.tried
        kept = {MANIFEST, SUCCESS, "", *files_of(manifest)}
        found = {objects.of_output(name): run_of(name) for name in there if name not in kept and is_of_runs(name)}
        for role, token, _ in folders_beside(self.place):
            found |= dict.fromkeys(objects.files_beside(role, token), token)
        return list(found), {name for name, run in found.items() if run not in own}


# A table that is a folder on a local file system: publishing exchanges its folder with the staging folder.
#
# If the output is absent or empty, one rename publishes; else one exchange of two names. Where the system cannot
# exchange names, `FolderTable.remove_leftovers` of the next run completes a swap that a kill interrupted between two
# renames.


class ResultSwap(FolderSwap[Mapping[str, Any]]):
    """A `FolderSwap` of an output; `FolderTable.remove_leftovers` deletes the old result."""

    __slots__ = ()

    def open(self) -> None:
        staging, out = Path(self.staging), Path(self.place.path)
        self.place.fs.create_dir(self.staging, recursive=False)
        if out.exists():
            staging.chmod(out.stat().st_mode & 0o7777)

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts, write the manifest and ``_SUCCESS``, and sync the folders; the parts are on disk already."""
        paths = {path.removeprefix(f"{self.staging}/"): path for path in list_files(self.place.fs, self.staging)}
        there = {name for name in paths if not is_attempt(name)}
        for killed in paths.keys() - there:
            self.place.fs.delete_file(paths[killed])
        check_names(self.place.shown, {*names_of(manifest)}, there, "write to a folder that all workers share")
        root = Path(self.staging)
        with output_errors(f"{self.place.shown}/{MANIFEST}"):
            put_file(self.place.fs, f"{self.staging}/{MANIFEST}", sealed_text(manifest).encode())
            put_file(self.place.fs, f"{self.staging}/{SUCCESS}", b"")
            for folder in (root / REJECTED, (root / MANIFEST).parent, root):
                if folder.is_dir():
                    atomic_files.sync(folder)

    def progress(self, run: str) -> Progress:
        """Return how far the result has come; between two renames it is ready, and there is no result to see."""
        if self._is_whole(self.place.path, run):
            return Progress.PUBLISHED
        return Progress.READY if self._is_whole(self.staging, run) else Progress.GONE

    def _is_whole(self, folder: str, run: str) -> bool:
        """Whether a folder holds the complete result of a run."""
        manifest = read_manifest(self.place, folder)
        return manifest is not None and manifest.get("run") == run and is_file(self.place.fs, f"{folder}/{SUCCESS}")


@dataclass(frozen=True, slots=True)
class FolderTable:
    """A `Table` that is a folder on a local file system."""

    place: Place

    @property
    def address(self) -> str:
        return self.place.path

    @staticmethod
    def takes(path: str) -> bool:
        return Address.of(path).is_local

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> FolderTable:
        return cls(locate(path, shown))

    def files(self, result: pa.Schema, evolve: bool) -> None:
        """Return None: the columns are those of the result."""

    def content(self) -> Content:
        system, path = self.place.fs, self.place.path
        if system.get_file_info(path).type not in (fs.FileType.Directory, fs.FileType.NotFound):
            return Content.NO_FOLDER
        if atomic_files.is_vacant(Path(path)):
            return Content.VACANT
        return Content.RESULT if is_file(system, f"{path}/{MANIFEST}") else Content.OTHER

    def manifest(self) -> dict[str, Any] | None:
        return read_manifest(self.place, self.place.path)

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        return missing_file(self.place, manifest)

    def keeps_conditions(self) -> bool:
        return True  # a lock on a file keeps runs apart

    def is_reachable(self) -> bool:
        return Path(self.place.parent).is_dir()

    def make_parents(self) -> list[Path]:
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
            remove_beside(self.place, path)

    def commit(self, token: str) -> ResultSwap:
        return ResultSwap(self.place, token)

    def token_of(self, run: str) -> str:
        return token_of(self.place, run, self.commit)


TABLES: tuple[type[Table], ...] = (
    DeltaTable,  # also where a path leads to one, so it comes first
    FolderTable,
    IcebergTable,
    StoreTable,  # takes every other URI, so it comes last
)
"""The first that takes a path is the kind of the table there."""


def is_by_version(table: Table) -> TypeGuard[DeltaTable | IcebergTable]:
    """Whether a table says itself which files are its own, so that others may be in their folder."""
    return isinstance(table, DeltaTable | IcebergTable)


def table_of(path: str, shown: str | None = None) -> Table:
    """Return the table at a path or URI; ``shown``: the path as the user wrote it, where ``path`` was recorded.

    Raises `ConfigError` and `OutputError` as `place.refuse_others` and `place.locate` do, `OutputError` also where a
    store does not answer.
    """
    if not is_address(path):
        refuse_others(path.removeprefix(PREFIX))
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
