"""An object store in a local folder, for laws that ask it thousands of times; each request may be the last, or wait."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

from wincli.writers.commit import store_objects, tables
from wincli.writers.places import place
from wincli.writers.places.conditional import ConditionFailedError, Holder, Object, Version, version_of
from wincli.writers.state import stage_files, store_storage

URI = "s3://quick/state"
_ONE = threading.Lock()


class KilledError(BaseException):
    """The process has died: none of its requests gets through any more."""


@dataclass
class QuickStore:
    """A `ConditionalStore` whose objects are files.

    ``folder``: where the objects are.
    ``before``, ``after``: called with the number of each request that changes something, from 1.
    ``is_down``: whether it does not answer.
    """

    folder: Path
    before: Callable[[int], None] = field(default=lambda _: None)
    after: Callable[[int], None] = field(default=lambda _: None)
    changes: int = 0
    is_down: bool = False

    def clear(self) -> None:
        """Delete all objects."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def names(self) -> list[str]:
        """The names of all objects, sorted."""
        return sorted(self.list())

    def get(self, name: str) -> Object | None:
        if self.is_down:
            raise OSError("the store does not answer")
        path = self.folder / name
        if not path.is_file():
            return None
        content = path.read_bytes()
        return Object(content, Version(hashlib.md5(content).hexdigest()))

    def put(self, name: str, content: bytes) -> Version:
        with self.change():
            return self._write(name, content)

    def put_if(self, name: str, content: bytes, version: Version | None) -> Version:
        with self.change(), _ONE:
            if version_of(self.get(name)) != version:
                raise ConditionFailedError(name)
            return self._write(name, content)

    def list(self, beginning: str = "") -> dict[str, int]:
        below = self.folder / beginning
        files = [path for path in below.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.stat().st_size for path in files}

    def delete(self, names: Sequence[str]) -> None:
        with self.change():
            for name in names:
                path = self.folder / name
                path.unlink(missing_ok=True)
                for above in path.relative_to(self.folder).parents[:-1]:  # a store has no empty folders
                    with suppress(OSError):
                        (self.folder / above).rmdir()

    @contextmanager
    def change(self) -> Iterator[None]:
        self.changes += 1
        number = self.changes
        self.before(number)
        yield
        self.after(number)

    def _write(self, name: str, content: bytes) -> Version:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return Version(hashlib.md5(content).hexdigest())


def bucket_files(folder: Path) -> fs.FileSystem:
    """The files below a folder as Arrow sees those of a store: a file needs no folder that is there before."""
    return fs.SubTreeFileSystem(str(folder), fs.PyFileSystem(fs.FSSpecHandler(LocalFileSystem(auto_mkdir=True))))


def use_for_outputs(folder: Path, beginning: str, monkeypatch: pytest.MonkeyPatch) -> fs.FileSystem:
    """Let outputs whose URI has this beginning be in a store, whose buckets are below a folder."""
    system, resolve = bucket_files(folder), place.resolve

    def resolved(path: str) -> tuple[fs.FileSystem, str]:
        return (system, path.removeprefix(beginning).rstrip("/")) if path.startswith(beginning) else resolve(path)

    monkeypatch.setattr(place, "resolve", resolved)
    monkeypatch.setattr(tables, "refuse_others", lambda path: None)
    monkeypatch.setattr(store_objects, "open_store", lambda uri: QuickStore(folder / uri.removeprefix(beginning)))
    return system


def use(store: QuickStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let states on `URI` be in a store."""

    def write(self: Any, name: str) -> Any:
        @contextmanager
        def writing() -> Iterator[Any]:
            with store.change():
                path = store.folder / self.below / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    yield file

        return writing()

    monkeypatch.setattr(stage_files.StoreStage, "write", write)
    monkeypatch.setattr(stage_files, "file_system_of", lambda _: (fs.LocalFileSystem(), str(store.folder)))
    monkeypatch.setattr(store_storage, "open_store", lambda _: store)
    monkeypatch.setattr(store_storage, "reach", lambda _: None)
    apart = fs.SubTreeFileSystem(str(store.folder), fs.LocalFileSystem())
    resolve = store_storage.resolve
    monkeypatch.setattr(
        store_storage, "resolve", lambda path: (apart, "quick/state") if path.startswith(URI) else resolve(path)
    )
    monkeypatch.setattr(store_storage, "refuses_stale_puts", lambda *_: True)


def never(_: int) -> None:
    """Let each request through."""


@contextmanager
def killed_at(store: QuickStore, number: int, *, is_done: bool) -> Iterator[list[int]]:
    """Let no request through from that number on that changes something; ``is_done``: the first of them has an effect.

    What is yielded has the number afterwards if the process has died of that.
    """

    def before(now: int) -> None:
        if now > number or (now == number and not is_done):
            raise KilledError

    def after(now: int) -> None:
        if now >= number:
            raise KilledError

    died: list[int] = []
    store.changes, store.before, store.after = 0, before, after
    try:
        yield died
    except KilledError:
        died.append(number)
    finally:
        store.before = store.after = never


def expire(lease: Path) -> None:
    """Time passes, and the run that holds a lease, if there is one, does not renew it."""
    if lease.exists():
        holder = Holder.parse(lease.read_bytes())
        assert holder is not None
        lease.write_bytes(Holder(holder.owner, holder.token, 0.0).to_json())
