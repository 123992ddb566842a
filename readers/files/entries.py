"""Directory entries, on a local file system or in an object store: files, folders and other kinds.

Local names are as Python returns them: a byte that is not UTF-8 is a lone surrogate.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyarrow import fs

from ...windowing.errors import printable
from ...windowing.support.addresses.file_systems import FILE, FOLDER, kind_of_mode
from .file import Located, input_errors, version_of

LEADS_NOWHERE = "a link that leads nowhere"
NOT_ALLOWED = "permission denied"

_TYPES = {fs.FileType.File: FILE, fs.FileType.Directory: FOLDER}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    ``name``: the name, without its folder.
    ``kind``: `FILE`, `FOLDER`, `LEADS_NOWHERE`, `NOT_ALLOWED`, or words for another kind, such as ``a FIFO``.
    ``size``: the size in bytes.
    ``mtime_ns``: the modification time in ns since the epoch; None where it is unknown.
    ``node``: device and inode, equal for all hard links to one file; None where these are unknown, as in a store.
    ``is_link``: whether the name is a symbolic link. The other attributes then describe the target.
    """

    name: str
    kind: str
    size: int = 0
    mtime_ns: int | None = None
    node: str | None = None
    is_link: bool = False

    @property
    def mtime(self) -> str | None:
        """The modification time, ISO 8601 in UTC; None where it is unknown."""
        return iso_time(self.mtime_ns)


def iso_time(mtime_ns: int | None) -> str | None:
    """Return a modification time in ns since the epoch as ISO 8601 in UTC; None where it is unknown."""
    return None if mtime_ns is None else datetime.fromtimestamp(mtime_ns / 1e9, UTC).isoformat()


def entry_at(place: Located) -> Entry | None:
    """Return the entry at a path, with links followed; None where there is none. Raises `InputError`."""
    name = place.path.rpartition("/")[2]
    with input_errors(place.shown):
        if not place.is_local:
            info = place.fs.get_file_info(place.path)
            return None if info.type == fs.FileType.NotFound else _of_store(info)
        try:
            return _of_stat(name, Path(place.path).stat(), is_link=False)
        except FileNotFoundError:
            return Entry(name, LEADS_NOWHERE, is_link=True) if os.path.lexists(place.path) else None
        except OSError as error:
            if isinstance(error, PermissionError) or not Path(place.path).is_symlink():
                raise
            return Entry(name, LEADS_NOWHERE, is_link=True)


def entries(place: Located) -> list[Entry]:
    """Return the entries of a folder, not of the folders below it, sorted by name. Raises `InputError`."""
    with input_errors(place.shown):
        if not place.is_local:
            selector = fs.FileSelector(place.path, recursive=False, allow_not_found=True)
            found = [_of_store(info) for info in place.fs.get_file_info(selector)]
        else:
            found = list(_scanned(place))
    return sorted(found, key=lambda entry: entry.name)


def all_below(place: Located) -> Iterator[tuple[str, Entry]]:
    """Yield all entries at any depth below a folder of a store, with their relative paths. Raises `InputError`."""
    with input_errors(place.shown):
        infos = place.fs.get_file_info(fs.FileSelector(place.path, recursive=True))
    for info in infos:
        yield info.path[len(place.path) :].lstrip("/"), _of_store(info)


def _scanned(place: Located) -> Iterator[Entry]:
    with os.scandir(place.path) as scan:
        for found in scan:
            try:
                yield _of_name(found)
            except OSError:
                with input_errors(f"{place.shown.rstrip('/')}/{printable(found.name)}"):
                    raise


def _of_name(found: os.DirEntry[str]) -> Entry:
    is_link = found.is_symlink()
    try:
        return _of_stat(found.name, found.stat(), is_link=is_link)
    except PermissionError:
        return Entry(found.name, NOT_ALLOWED, is_link=is_link)
    except OSError:
        if not is_link:
            raise
        return Entry(found.name, LEADS_NOWHERE, is_link=True)


def _of_stat(name: str, known: os.stat_result, *, is_link: bool) -> Entry:
    node = f"{known.st_dev}:{known.st_ino}" if known.st_ino else None
    return Entry(name, kind_of_mode(known.st_mode), known.st_size, known.st_mtime_ns, node, is_link)


def _of_store(info: fs.FileInfo) -> Entry:
    size, mtime_ns = version_of(info)
    return Entry(info.base_name, _TYPES.get(info.type, "neither a file nor a folder"), size, mtime_ns)
