"""Where runs write: a folder, or a store, looked at and put back from outside, with nothing of wincli."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Objects = Mapping[str, bytes]
"""What is there, by name."""


class Lake(Protocol):
    """A place with objects; `support.s3_server.S3Bucket` and `support.emulators.Container` are some, too."""

    @property
    def name(self) -> str:
        """A name without slashes, unlike those of other places."""

    @property
    def uri(self) -> str:
        """How runs name it; no slash at its end."""

    def objects(self) -> dict[str, bytes]: ...

    def get(self, name: str) -> bytes | None: ...

    def open_uploads(self) -> list[str]:
        """Uploads that were begun, and neither completed nor aborted: they cost money and no list shows them."""

    def put(self, name: str, content: bytes) -> None: ...

    def delete(self, name: str) -> None: ...

    def abort_uploads(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of this machine."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def uri(self) -> str:
        return str(self.path)

    def objects(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.path)): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}

    def get(self, name: str) -> bytes | None:
        path = self.path / name
        return path.read_bytes() if path.is_file() else None

    def open_uploads(self) -> list[str]:
        return []

    def put(self, name: str, content: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def delete(self, name: str) -> None:
        path = self.path / name
        path.unlink()
        while not any((path := path.parent).iterdir()) and path != self.path:
            path.rmdir()

    def abort_uploads(self) -> None: ...


def restore(lake: Lake, wanted: Objects, but: str) -> None:
    """Make a place hold certain objects and no others; those below ``but`` are not touched, nor is when they came."""
    lake.abort_uploads()
    there = {name: content for name, content in lake.objects().items() if not name.startswith(but)}
    for name in there.keys() - wanted.keys():
        lake.delete(name)
    for name, content in wanted.items():
        if there.get(name) != content and not name.startswith(but):
            lake.put(name, content)
