"""The location of an output: a file system, a path in it, and the hidden names beside it.

Beside an output ``out``, in the same file system and hidden from readers, a run keeps ``.out.wincli-lock`` and, with an
id of 12 hex digits, ``.out.wincli-new-ID`` (staging), ``.out.wincli-old-ID`` (the former result during a swap) and
``.out.wincli-gone-ID`` (being deleted).
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
from ...windowing.support.address import Address
from ...windowing.support.file_systems import file_system_of
from ...windowing.support.redaction import MASK, redacted_path, with_secrets_of
from .os_errors import output_errors

MANIFEST = "_wincli/manifest.json"
SUCCESS = "_SUCCESS"
REJECTED = "_rejected"
_LONGEST_NAME = 200  # bytes: a file name may have 255, and `Place` adds a prefix, a role and an id


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a folder.

    ``shown``: the path as the user wrote it, without its secrets.
    ``path``: the absolute path in its file system, without a slash at the end.
    """

    shown: str
    fs: fs.FileSystem
    path: str

    @property
    def parent(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def lock(self) -> str:
        return posixpath.join(self.parent, f"{self._hidden}lock")

    def beside(self, role: str, token: str) -> str:
        """Return the path of a hidden folder beside this one; ``role`` is ``new``, ``old`` or ``gone``."""
        return posixpath.join(self.parent, f"{self._hidden}{role}-{token}")

    def role_of(self, name: str) -> tuple[str, str] | None:
        """Return role and token of a name that `beside` has made for this output, else None."""
        found = re.fullmatch(rf"{re.escape(self._hidden)}(new|old|gone)-([0-9a-f]{{12}})", name)
        return (found[1], found[2]) if found else None

    @property
    def _hidden(self) -> str:
        """What all hidden names beside this folder begin with."""
        name = posixpath.basename(self.path)
        raw = os.fsencode(name)
        stem = name if len(raw) <= _LONGEST_NAME else hashlib.sha256(raw).hexdigest()
        return f".{stem}.wincli-"


class UnitPlace(Place):
    """The location of a unit in a state, whose run is alone in it: names beside it do not say the unit."""

    __slots__ = ()

    @property
    def _hidden(self) -> str:
        return "."


def is_local(system: fs.FileSystem) -> bool:
    """Whether a file system is that of this machine, with ``flock``, renames of folders and ``fsync``.

    Results and states are written to such a one, or to a store, in which a folder is the begin of names.
    """
    return isinstance(system, fs.LocalFileSystem)


def new_token() -> str:
    """Return a random id of 12 hex digits, unique to a run."""
    return secrets.token_hex(6)


def locate(path: str, shown: str | None = None) -> Place:
    """Return the place that a path or URI names, with symbolic links followed.

    ``shown``: the path as the user wrote it, where ``path`` was recorded. Raises `ConfigError` for an empty path, an
    unknown scheme, the root of a file system and a mount point (these cannot be swapped), `OutputError` where the file
    system cannot be reached.
    """
    if not path or "\0" in path:
        what = "has a character NUL" if path else "is empty"
        raise ConfigError(f"the output path {what}", "name a folder to write to")
    with output_errors(path):
        system, inner = resolve(path)
        mounted = is_local(system) and Path(inner).is_mount()
        # As /dev/stdout in a pipe is.
        is_stream = Address.of(path).is_path and Path(path).exists() and not Path(inner).exists()
    if is_stream:
        raise ConfigError(f"output {path} is not a folder", "name a folder, or - for stdout")
    if inner != printable(inner):
        what = f"output {printable(path)} is in a folder whose name is no UTF-8: {printable(inner)}"
        raise ConfigError(what, "rename that folder, or name another output")
    if mounted:
        raise ConfigError(f"output {path} is a mount point, which cannot be replaced", "name a folder inside it")
    if not is_local(system) and "/" not in inner:
        raise ConfigError(f"output {path} is the root of a store", "name a folder inside it")
    return Place(redacted_path(path) if shown is None else shown, system, inner)


def refuse_others(path: str) -> None:
    """Raise `ConfigError` where a path leads neither to this machine nor to a store that compares versions."""
    address = Address.of(path)
    if not (address.is_local or address.is_in_store):
        what = f"results are written to local folders, s3://, gs:// and abfs:// only, not to {redacted_path(path)}"
        raise ConfigError(what, "write to one of these, and copy the result")


def resolve(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI and the absolute path in it: no slash at the end, local links followed.

    Raises `ConfigError` for an unknown scheme, `OSError` where the file system cannot be reached.
    """
    if Address.of(path).is_path:
        return fs.LocalFileSystem(), os.path.realpath(path)
    try:
        system, inner = file_system_of(path)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"cannot make sense of the path {path}", "write a local path or a URI as s3://..") from error
    if is_local(system):
        return system, os.path.realpath(inner)
    return system, inner.rstrip("/")


def restored(path: str, named: Iterable[str]) -> str:
    """Return a recorded path with its secrets, which come from the URIs that this run names.

    ``named``: the paths and URIs that this run names. Raises `ConfigError` where none of them is in the same place.
    """
    if Address.of(path).is_path or MASK not in path:
        return path
    for other in named:
        if (whole := with_secrets_of(path, other)) is not None:
            return whole
    what = f"{path} is recorded without its secrets, and this run names no path of that place"
    raise ConfigError(what, "name it as the run did that wrote this, or keep secrets in the environment")
