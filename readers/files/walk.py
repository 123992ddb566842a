"""Walk a folder or a glob, and visit each real folder once, however many links lead to it.

Links are followed only after all names that are no links. So a file in the input is found under its own path, and a
link to it adds nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote

from pyarrow import fs

from ...windowing.errors import InputError, printable
from ...windowing.support.file_systems import FILE, FOLDER, kind_of_mode
from .file import Located, input_errors, version_of

# Directory entries, on a local file system or in an object store: files, folders and other kinds.
#
# Local names are as Python returns them: a byte that is not UTF-8 is a lone surrogate.


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
            found = []
            with os.scandir(place.path) as scan:
                for each in scan:
                    is_link = each.is_symlink()
                    try:
                        found.append(_of_stat(each.name, each.stat(), is_link=is_link))
                    except PermissionError:
                        found.append(Entry(each.name, NOT_ALLOWED, is_link=is_link))
                    except OSError:
                        if not is_link:
                            with input_errors(f"{place.shown.rstrip('/')}/{printable(each.name)}"):
                                raise
                        found.append(Entry(each.name, LEADS_NOWHERE, is_link=True))
    return sorted(found, key=lambda entry: entry.name)


def all_below(place: Located) -> Iterator[tuple[str, Entry]]:
    """Yield all entries at any depth below a folder of a store, with their relative paths. Raises `InputError`."""
    with input_errors(place.shown):
        infos = place.fs.get_file_info(fs.FileSelector(place.path, recursive=True))
    for info in infos:
        yield info.path[len(place.path) :].lstrip("/"), _of_store(info)


def _of_stat(name: str, known: os.stat_result, *, is_link: bool) -> Entry:
    node = f"{known.st_dev}:{known.st_ino}" if known.st_ino else None
    return Entry(name, kind_of_mode(known.st_mode), known.st_size, known.st_mtime_ns, node, is_link)


def _of_store(info: fs.FileInfo) -> Entry:
    size, mtime_ns = version_of(info)
    return Entry(info.base_name, _TYPES.get(info.type, "neither a file nor a folder"), size, mtime_ns)


# Partition values in folder names of the form ``key=value``.


_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(below: str) -> dict[str, str | None]:
    """Return the decoded ``key=value`` folders of a relative file path; the null marker of Hive gives None.

    The last name of the path is the file itself and is ignored.
    """
    values: dict[str, str | None] = {}
    for name in below.split("/")[:-1]:
        key, equals, value = name.partition("=")
        if equals and key:
            values[unquote(key)] = None if value == _NULL else unquote(value)
    return values


MANIFEST = "_wincli/manifest.json"
_LOG = "_delta_log"
_TABLE = "a Delta table, to be read by its own path"
_EFFECTIVE = os.access in os.supports_effective_ids
_Rest = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A path of the walk and its entry.

    ``place``: the location, as the walk has reached it.
    ``real``: the path with all links resolved.
    ``below``: the path relative to the input path, or to the part of a glob before the first wildcard.
    ``by_link``: whether the relative path contains a link.
    """

    place: Located
    entry: Entry
    real: str
    below: str
    by_link: bool = False

    def child(self, entry: Entry) -> Spot:
        """Return the spot of an entry of this folder."""
        above, name = self.place, printable(entry.name)
        path = f"{above.path.rstrip('/')}/{entry.name}"
        shown = f"{above.shown.rstrip('/')}/{name}" if above.shown else name
        leads = entry.is_link and entry.kind in (FILE, FOLDER)
        real = os.path.realpath(path) if leads else f"{self.real.rstrip('/')}/{entry.name}"
        below = f"{self.below}/{name}" if self.below else name
        place = Located(above.fs, path, shown, entry.size, entry.mtime_ns)
        return Spot(place, entry, real, below, self.by_link or entry.is_link)

    def as_kind(self, kind: str) -> Spot:
        """Return the same spot with another kind of entry."""
        return replace(self, entry=replace(self.entry, kind=kind))

    def may_be_read(self) -> bool:
        """Whether the permissions allow reading; always true in a store, where only a read shows it."""
        need = os.R_OK | (os.X_OK if self.entry.kind == FOLDER else 0)
        return not self.place.is_local or os.access(self.place.path, need, effective_ids=_EFFECTIVE)


@dataclass(slots=True)
class _Queue:
    """The queue of a walk: spots to visit, each with the rest of the pattern to match below it.

    ``own``: spots that are no links; the walk takes these first.
    ``links``: spots that are links.
    ``seen``: the first spot for each real path and rest of a pattern.
    """

    own: deque[tuple[Spot, _Rest]] = field(default_factory=deque)
    links: deque[tuple[Spot, _Rest]] = field(default_factory=deque)
    seen: dict[tuple[str, _Rest], Spot] = field(default_factory=dict)

    def add(self, spot: Spot, rest: _Rest = ()) -> None:
        (self.links if spot.entry.is_link else self.own).append((spot, rest))

    def __iter__(self) -> Iterator[tuple[Spot, _Rest]]:
        while self.own or self.links:
            spot, rest = (self.own or self.links).popleft()
            first = self.seen.setdefault((spot.real, rest), spot)
            if first is spot:
                yield spot, rest
            else:
                check_values(first, spot)


def spot_at(place: Located) -> Spot | None:
    """Return the spot of an input path; None where nothing exists there. Raises `InputError`."""
    entry = entry_at(place)
    if entry is None:
        return None
    real = os.path.realpath(place.path) if place.is_local else place.path
    return Spot(replace(place, size=entry.size, mtime_ns=entry.mtime_ns), entry, real, "")


def walk(root: Spot) -> Iterator[Spot]:
    """Yield a file itself, or everything below a folder that is neither a folder nor hidden.

    Manifests of results are the only hidden files that are yielded. A folder without read permission is yielded as
    `NOT_ALLOWED`, and a Delta table as one thing: its folder has files of former versions, too.
    """
    if root.entry.kind != FOLDER:
        yield root
    elif root.place.is_local:
        queue = _Queue()
        queue.add(root)
        for folder, _ in queue:
            yield from _folder(folder, queue)
    else:
        found = list(all_below(root.place))
        tables = {below.rpartition(_LOG)[0] for below, _ in found if below.rpartition("/")[2] == _LOG}
        tables |= {below.partition(f"{_LOG}/")[0] for below, _ in found if f"/{_LOG}/" in f"/{below}"}
        for table in sorted(tables):
            yield root.child(Entry(table.rstrip("/"), _TABLE)) if table else root.as_kind(_TABLE)
        for below, entry in found:
            if below.startswith(tuple(tables)):
                continue
            hidden = any(map(is_hidden, below.removesuffix(MANIFEST).split("/")))
            if entry.kind != FOLDER and not hidden:
                yield root.child(replace(entry, name=below))


def _folder(folder: Spot, queue: _Queue) -> Iterator[Spot]:
    if not folder.may_be_read():
        yield folder.as_kind(NOT_ALLOWED)
        return
    found = entries(folder.place)
    if any(entry.name == _LOG and entry.kind == FOLDER for entry in found):
        yield folder.as_kind(_TABLE)
        return
    for entry in found:
        if entry.name == "_wincli":
            place = Located(folder.place.fs, f"{folder.place.path}/{MANIFEST}", folder.place.shown)
            # A FIFO, for one, is not passed over: its result would be read as files of others.
            if (manifest := entry_at(place)) is not None:
                yield folder.child(replace(manifest, name=MANIFEST))
        elif is_hidden(entry.name):
            continue
        elif entry.kind == FOLDER:
            queue.add(folder.child(entry))
        else:
            yield folder.child(entry)


def is_hidden(name: str) -> bool:
    """Whether listings skip a name: it begins with ``_`` or ``.``."""
    return name.startswith(("_", "."))


def matching(root: Spot, pattern: str) -> Iterator[Spot]:
    """Yield what a glob matches below a folder, each real file and folder once.

    A path that may be a folder with matches but cannot be read is yielded, too, so that the caller can report it.
    """
    queue = _Queue()
    queue.add(root, tuple(pattern.split("/")))
    for spot, rest in queue:
        if not rest:
            yield spot
        elif spot.entry.kind == FOLDER and spot.may_be_read():
            name = rest[0]
            if name == "**":
                queue.add(spot, rest[1:])
            for entry in entries(spot.place):
                if _matches(entry, name, is_last=len(rest) == 1):
                    queue.add(spot.child(entry), rest if name == "**" else rest[1:])
        else:
            yield spot.as_kind(NOT_ALLOWED) if spot.entry.kind == FOLDER else spot


def _matches(entry: Entry, name: str, *, is_last: bool) -> bool:
    if is_hidden(entry.name) and not name.startswith(entry.name[0]):
        return False
    may_be_folder = entry.kind in (FOLDER, LEADS_NOWHERE, NOT_ALLOWED)
    if not may_be_folder and (name == "**" or not is_last):
        return False
    return name == "**" or fnmatchcase(entry.name, name)


def check_values(first: Spot, again: Spot) -> None:
    """Raise `InputError` where two paths of one file or folder have ``NAME=VALUE`` folders of different values."""
    is_loop = again.below.startswith(f"{first.below}/") or not first.below
    values = [folder_values(spot.below + "/" * (spot.entry.kind == FOLDER)) for spot in (first, again)]
    if values[1] and values[0] != values[1] and not is_loop:
        kind = "folder" if first.entry.kind == FOLDER else "file"
        what = f"{first.place.shown} and {again.place.shown} are one {kind}, and their folders give it other values"
        raise InputError(what, "take one of them away, or copy what it leads to")


# A file of the input, as the listing found it.


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the input.

    ``size``: its size in bytes.
    ``mtime``: its modification time, ISO 8601 in UTC; None where it is unknown.
    ``below``: its path relative to a base, else to the folder that was given, else to the part of a glob before the
        first wildcard.
    """

    place: Located
    size: int
    mtime: str | None
    below: str

    @property
    def folder(self) -> str:
        return self.place.path.rpartition("_wincli/")[0]
