"""Where an output lives: a file system, a path in it, and the hidden names beside it.

Beside an output ``out`` a run keeps, all on the same file system and all hidden from readers:
``.out.wincli-lock``, and with an id of 12 hex digits ``.out.wincli-new-ID`` (staging),
``.out.wincli-old-ID`` (the former result during a swap) and ``.out.wincli-gone-ID`` (being deleted).
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import ConfigError, printable
from ...windowing.support.redaction import MASK, redacted_path, with_secrets_of
from .os_errors import output_errors

MANIFEST = "_wincli/manifest.json"
SUCCESS = "_SUCCESS"
REJECTED = "_rejected"
_LONGEST_NAME = 200  # bytes: leaves room for what is added to it within the 255 a file name may have


@dataclass(frozen=True, slots=True)
class Place:
    """A folder: ``path`` in the file system ``fs``, absolute, no slash at the end.

    ``shown``: as the user wrote it, less what is secret in it.
    """

    shown: str
    fs: fs.FileSystem
    path: str

    @property
    def local(self) -> bool:
        """Whether the file system has locks, renames and fsync."""
        return isinstance(self.fs, fs.LocalFileSystem)

    @property
    def address(self) -> str:
        """What locates it from anywhere: the absolute path, or the URI in a store, less what is secret in it."""
        return self.path if self.local else self.shown

    @property
    def parent(self) -> str:
        """The folder it is in."""
        return posixpath.dirname(self.path)

    @property
    def lock(self) -> str:
        """Path of the lock beside it."""
        return posixpath.join(self.parent, f".{self._stem}.wincli-lock")

    def beside(self, role: str, token: str) -> str:
        """Path of a hidden folder beside it; ``role`` is ``new``, ``old`` or ``gone``."""
        return posixpath.join(self.parent, f".{self._stem}.wincli-{role}-{token}")

    def role_of(self, name: str) -> tuple[str, str] | None:
        """Return role and token of a name made by `beside` for this very output, else None."""
        found = re.fullmatch(rf"\.{re.escape(self._stem)}\.wincli-(new|old|gone)-([0-9a-f]{{12}})", name)
        return (found[1], found[2]) if found else None

    @property
    def _stem(self) -> str:
        name = posixpath.basename(self.path)
        raw = os.fsencode(name)
        return name if len(raw) <= _LONGEST_NAME else hashlib.sha256(raw).hexdigest()


def new_token() -> str:
    """Return an id that no other run has."""
    return secrets.token_hex(6)


def locate(path: str) -> Place:
    """Return the place that a path or URI names, symbolic links followed.

    Raises `ConfigError` for an empty path, an unknown scheme, a file system's root and a mount point
    (they cannot be swapped), `OutputError` where the file system cannot be reached.
    """
    if not path:
        raise ConfigError("the output path is empty", "name a folder to write to")
    with output_errors(path):
        system, inner = resolve(path)
        local = isinstance(system, fs.LocalFileSystem)
        mounted = local and Path(inner).is_mount()
    if inner != printable(inner):
        what = f"output {printable(path)} is in a folder whose name is no UTF-8: {printable(inner)}"
        raise ConfigError(what, "rename that folder, or name another output")
    if mounted:
        raise ConfigError(f"output {path} is a mount point, which cannot be replaced", "name a folder inside it")
    if not local and "/" not in inner:
        raise ConfigError(f"output {path} is the root of a store", "name a folder inside it")
    return Place(redacted_path(path), system, inner)


def resolve(path: str) -> tuple[fs.FileSystem, str]:
    """Return file system and path in it of a path or URI: absolute, no slash at the end, local links followed.

    Raises `ConfigError` for an unknown scheme, `OSError` where the file system cannot be reached.
    """
    if "://" not in path:
        return fs.LocalFileSystem(), os.path.realpath(path)
    try:
        system, inner = fs.FileSystem.from_uri(path)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"cannot make sense of the path {path}", "write a local path or a URI as s3://..") from error
    if isinstance(system, fs.LocalFileSystem):
        return system, os.path.realpath(inner)
    return system, inner.rstrip("/")


def restored(path: str, named: Iterable[str]) -> str:
    """Return a recorded path with its secrets, taken from what a run names: URIs of the same place.

    Raises `ConfigError` where none of them is.
    """
    if "://" not in path or MASK not in path:
        return path
    for other in named:
        if (whole := with_secrets_of(path, other)) is not None:
            return whole
    what = f"{path} is recorded without its secrets, and this run names no path of that place"
    raise ConfigError(what, "name it as the run did that wrote this, or keep secrets in the environment")
