"""A third kind of table: a store with a conditional write, where one put of a pointer is the moment of commit.

It stands in for an object store with atomic commits. Parts have names of their own run below the output, the pointer of
an output holds its manifest, and a run holds the output by a lease in that pointer. The lease may expire; who has lost
it cannot publish, because each put says which version of the pointer it replaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyarrow import fs

from wincli.windowing.errors import OutputError
from wincli.writers.commit.contract import Content, Progress
from wincli.writers.commit.result_files import check_parts
from wincli.writers.places.lock import Owner
from wincli.writers.places.place import Place

SCHEME = "mem://"


@dataclass(frozen=True)
class Pointer:
    """What the pointer of an output holds.

    ``manifest``: that of the result, None before the first.
    ``token``: the id of the staging of that result.
    ``results``: how many results there have been.
    ``lease``: the run that holds the output.
    """

    manifest: dict[str, Any] | None = None
    token: str = ""
    results: int = 0
    lease: Owner | None = None


@dataclass
class Store:
    """The store: files, and pointers that are put conditionally.

    ``is_tidy``: whether what earlier runs left is removed; else that is put off.
    """

    files: fs.FileSystem = field(default_factory=fs._MockFileSystem)
    pointers: dict[str, tuple[int, Pointer]] = field(default_factory=dict)
    is_tidy: bool = True

    def get(self, path: str) -> tuple[int, Pointer]:
        """The version of a pointer, and what it holds."""
        return self.pointers.get(path, (0, Pointer()))

    def put_if(self, path: str, version: int, pointer: Pointer) -> int | None:
        """Put a pointer if its version is still the one given; return its new version, None where it is not."""
        if self.get(path)[0] != version:
            return None
        self.pointers[path] = (version + 1, pointer)
        return version + 1

    def expire(self, path: str) -> None:
        """Time passes: nobody holds the output any more."""
        version, pointer = self.get(path)
        self.put_if(path, version, replace(pointer, lease=None))


STORE = Store()


@dataclass
class ManifestCommit:
    table: ManifestTable
    token: str

    @property
    def staging(self) -> str:
        return f"{self.table.place.path}/{self.token}"

    @property
    def data(self) -> str:
        return self.staging

    @property
    def suffix(self) -> str:
        return ""

    @property
    def _base(self) -> str:
        return f"{self.table.place.path}/_base-{self.token}"

    def open(self) -> None:
        files = self.table.place.fs
        files.create_dir(self.table.place.path, recursive=True)
        _put(files, self._base, self.table.pointer().results)
        files.create_dir(self.staging, recursive=False)

    def begin(self) -> None: ...

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        check_parts(self.table.place, self.staging, manifest)
        named = {
            kind: [{**part, "name": f"{self.token}/{part['name']}"} for part in manifest[kind]]
            for kind in ("parts", "rejects")
        }
        _put(self.table.place.fs, f"{self.staging}/manifest.json", {**manifest, **named})

    def publish(self) -> None:
        staged = self._staged()
        if staged is None or not self._is_next() or not self.table.put_held(manifest=staged, token=self.token):
            what = f"another run has written to {self.table.place.shown} since this one began; nothing was written"
            raise OutputError(what, "run again")

    def progress(self, run: str) -> Progress:
        manifest, staged = self.table.manifest(), self._staged()
        if manifest is not None and manifest.get("run") == run:
            return Progress.PUBLISHED
        is_ready = staged is not None and staged.get("run") == run and self._is_next()
        return Progress.READY if is_ready else Progress.GONE

    def recover(self, run: str) -> None:
        if self.progress(run) is Progress.READY:
            self.publish()

    def _staged(self) -> dict[str, Any] | None:
        staged = _get(self.table.place.fs, f"{self.staging}/manifest.json") if self.token else None
        return staged if isinstance(staged, dict) else None

    def _is_next(self) -> bool:
        """Whether no result has come since this one was begun."""
        return bool(_get(self.table.place.fs, self._base) == self.table.pointer().results)


@dataclass
class ManifestTable:
    """A table whose lease is known by the version of the pointer that this run put last."""

    place: Place
    version: int = -1

    @property
    def address(self) -> str:
        return self.place.shown

    @staticmethod
    def takes(path: str) -> bool:
        return path.startswith(SCHEME)

    @classmethod
    def at(cls, path: str, shown: str | None = None) -> ManifestTable:
        return cls(Place(shown or path, STORE.files, path.removeprefix(SCHEME)))

    def pointer(self) -> Pointer:
        return STORE.get(self.place.path)[1]

    def files(self, result: Any, evolve: bool) -> None:
        return None

    def content(self) -> Content:
        return Content.VACANT if self.manifest() is None else Content.RESULT

    def manifest(self) -> dict[str, Any] | None:
        return self.pointer().manifest

    def missing(self, manifest: Mapping[str, Any]) -> str | None:
        there = {file.path for file in self.place.fs.get_file_info(self._below())}
        return next((f"lacks {p['name']}" for p in manifest["parts"] if self._path(p["name"]) not in there), None)

    def keeps_conditions(self) -> bool:
        return True

    def is_reachable(self) -> bool:
        return True

    def make_parents(self) -> list[Path]:
        return []

    @contextmanager
    def hold(self, owner: Owner) -> Iterator[Owner | None]:
        version, pointer = STORE.get(self.place.path)
        held = None if pointer.lease else STORE.put_if(self.place.path, version, replace(pointer, lease=owner))
        if held is None:
            raise OutputError(f"another run is writing to {self.place.shown}; nothing was written", "wait for it")
        self.version = held
        try:
            yield None
        finally:
            self.put_held(lease=None)

    def put_held(self, **changes: Any) -> bool:
        """Change the pointer if the lease is still that of this run."""
        version, pointer = STORE.get(self.place.path)
        if version != self.version:
            return False
        results = pointer.results + ("manifest" in changes)
        held = STORE.put_if(self.place.path, version, replace(pointer, results=results, **changes))
        if held is None:
            return False
        self.version = held
        return True

    def remove_leftovers(self) -> None:
        """Remove all but the result; not if the lease is lost, for then the files of another run are there, too."""
        if not STORE.is_tidy or STORE.get(self.place.path)[0] != self.version:
            return
        kept = self._path(self.pointer().token)
        for info in self.place.fs.get_file_info(fs.FileSelector(self.place.path, allow_not_found=True)):
            if info.type == fs.FileType.File:
                self.place.fs.delete_file(info.path)
            elif info.path != kept:
                self.place.fs.delete_dir(info.path)

    def commit(self, token: str) -> ManifestCommit:
        return ManifestCommit(self, token)

    def token_of(self, run: str) -> str:
        found = self.place.fs.get_file_info(fs.FileSelector(self.place.path, allow_not_found=True))
        tokens = [info.base_name for info in found if info.type == fs.FileType.Directory]
        return next((token for token in tokens if self.commit(token).progress(run) is Progress.READY), "")

    def _path(self, name: str) -> str:
        return f"{self.place.path}/{name}"

    def _below(self) -> fs.FileSelector:
        return fs.FileSelector(self.place.path, recursive=True, allow_not_found=True)


def _put(files: fs.FileSystem, path: str, value: object) -> None:
    with files.open_output_stream(path) as file:
        file.write(json.dumps(value).encode())


def _get(files: fs.FileSystem, path: str) -> object:
    if not files.get_file_info(path).size:  # in a store, an object is there once it is closed
        return None
    with files.open_input_stream(path) as file:
        return json.loads(file.read())
