"""List the files of input paths: a file, a folder with everything below it, or a glob, on any pyarrow file system.

Names that begin with ``_`` or ``.`` are skipped at every level below an input path.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import InputError, printable
from ...windowing.support.redaction import redacted_path
from ...windowing.support.suggest import few, nearest
from .entries import FILE, FOLDER, LEADS_NOWHERE, NOT_ALLOWED, entries
from .file import Located
from .walk import MANIFEST, Spot, check_values, is_hidden, matching, spot_at, walk

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the input.

    ``place``: where the file is.
    ``size``: its size in bytes.
    ``mtime``: its modification time, ISO 8601 in UTC; None where it is unknown.
    ``below``: its path relative to a base, else to the folder that was given, else to the part of a glob before the
        first wildcard.
    """

    place: Located
    size: int
    mtime: str | None
    below: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of all input paths.

    ``files``: the data files, sorted by path.
    ``manifests``: the manifests of results, sorted by path.
    ``skipped``: the unreadable paths that were skipped, each with its reason.
    """

    files: tuple[ListedFile, ...]
    manifests: tuple[ListedFile, ...]
    skipped: tuple[str, ...] = ()


class NoFilesError(InputError):
    """An input path that does not exist, or that holds no files."""


def list_files(paths: Sequence[str], bases: Sequence[str] = (), *, skip_unreadable: bool = False) -> Listing:
    """List all files of ``paths``, each real file once.

    ``bases``: folders to which ``below`` of the files under them is relative, whichever path found the files.
    ``skip_unreadable``: whether to skip paths that are no files or lack read permission, instead of raising.
    Raises `NoFilesError` for a path that does not exist or holds neither files nor a manifest, and `InputError` for an
    unreadable path and for a file with two names that are not links.
    """
    roots = [_root(base) for base in bases]
    good: list[Spot] = []
    odd: dict[str, str] = {}
    for path in paths:
        before = len(good)
        for spot in _under(path):
            why = _why_odd(spot, skip_unreadable)
            if why is None:
                good.append(spot)
            else:
                odd[spot.place.path] = f"{spot.place.shown} ({why})"
        if odd and not skip_unreadable:
            raise _unreadable(list(odd.values()))
        if len(good) == before:
            raise NoFilesError(f"{printable(path)} holds no files", "names that begin with _ or . are skipped")
    spots = _distinct_files(good)
    files = tuple(_relative_to_base(_listed_file(spot), roots) for spot in spots if not _is_manifest(spot))
    return Listing(
        files,
        tuple(_relative_to_base(_listed_file(spot), roots) for spot in spots if _is_manifest(spot)),
        (*odd.values(),),
    )


def list_folders(path: str, *, skip_unreadable: bool = False) -> tuple[str, ...]:
    """Return the sorted names of the folders directly in a folder.

    Raises `InputError` where ``path`` is no folder, for two names ``NAME=VALUE`` of one folder, and, without
    ``skip_unreadable``, for broken links and folders without permission.
    """
    root = _root(path)
    spot = spot_at(root)
    if spot is None:
        raise _missing(path, root)
    if spot.entry.kind != FOLDER:
        raise InputError(f"{root.shown} is {spot.entry.kind}", "name a folder")
    known = [spot.child(entry) for entry in entries(root) if not is_hidden(entry.name)]
    odd = [f"{one.place.shown} ({one.entry.kind})" for one in known if one.entry.kind in (LEADS_NOWHERE, NOT_ALLOWED)]
    if odd and not skip_unreadable:
        raise _unreadable(odd)
    folders = [one for one in known if one.entry.kind == FOLDER]
    firsts: dict[str, Spot] = {}
    for one in sorted(folders, key=lambda one: one.by_link):
        check_values(firsts.setdefault(one.real, one), one)
    return tuple(one.entry.name for one in folders)


def _why_odd(spot: Spot, skip_unreadable: bool) -> str | None:
    """Say why a path is no file, or return None; one that is to be skipped if unreadable is checked for that, too."""
    if spot.entry.kind != FILE:
        return spot.entry.kind
    return NOT_ALLOWED if skip_unreadable and not spot.may_be_read() else None


def _unreadable(odd: Sequence[str]) -> InputError:
    return InputError(f"{few(odd)} cannot be read", "remove such things, or skip them with --skip-unreadable")


def _is_manifest(spot: Spot) -> bool:
    return spot.below.endswith(MANIFEST)


def _distinct_files(spots: Iterable[Spot]) -> list[Spot]:
    """Return each real file once, sorted by path, under its own path if the input contains that, else under a link.

    Raises `InputError` for a file with two hard links: the rows of one file must not count twice by accident.
    """
    by_real: dict[str, Spot] = {}
    for spot in sorted(spots, key=lambda s: (s.by_link, s.place.path != s.real, s.place.path)):
        first = by_real.setdefault(_address(spot, spot.real), spot)
        if first.place.path != spot.place.path:
            check_values(first, spot)
    _refuse_twins(by_real)
    return sorted(by_real.values(), key=lambda s: s.place.path)


def _address(spot: Spot, path: str) -> str:
    """Return a path together with the type of its store."""
    return path if spot.place.is_local else f"{spot.place.fs.type_name}:{path}"


def _refuse_twins(by_real: Mapping[str, Spot]) -> None:
    nodes: dict[object, Spot] = {}
    for spot in by_real.values():
        entry = spot.entry
        if entry.node is None or not entry.node[1] or not entry.size:
            continue
        first = nodes.setdefault((entry.node, entry.size, entry.mtime_ns), spot)
        if first is not spot:
            what = (
                f"{first.place.shown} and {spot.place.shown} are one file (a hard link), whose rows would count twice"
            )
            raise InputError(what, "name one of them, or make the other a copy")


def _relative_to_base(found: ListedFile, bases: Sequence[Located]) -> ListedFile:
    for base in bases:
        head = f"{base.path.rstrip('/')}/"
        if found.place.path.startswith(head) and base.fs.equals(found.place.fs):
            return replace(found, below=found.place.path.removeprefix(head))
    return found


def _under(path: str) -> Iterator[Spot]:
    """Yield everything but folders under a path or glob."""
    if _MAGIC.search(path) and "://" in path:  # a wildcard is no part of an address
        yield from _match_glob(path)
        return
    root = _root(path)
    spot = spot_at(root)
    if spot is not None:
        yield from walk(spot if spot.entry.kind == FOLDER else replace(spot, below=root.path.rpartition("/")[2]))
    elif _MAGIC.search(path):
        yield from _match_glob(path)
    else:
        raise _missing(path, root)


def _root(path: str) -> Located:
    """Return the location of a path; a path without a scheme is local. Raises `InputError` for a bad URI."""
    if "://" not in path:
        absolute = os.path.abspath(path).replace(os.sep, "/")  # noqa: PTH100 - Path.resolve would follow links
        return Located(fs.LocalFileSystem(), absolute, printable(path))
    try:
        filesystem, inner = fs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is no address that can be read: {error}", "use a path, file:// or s3://") from error
    return Located(filesystem, inner.rstrip("/") or inner, redacted_path(path))


def _listed_file(spot: Spot) -> ListedFile:
    entry = spot.entry
    mtime = None if entry.mtime_ns is None else datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC).isoformat()
    return ListedFile(spot.place, entry.size, mtime, spot.below)


def _match_glob(pattern: str) -> Iterator[Spot]:
    """Yield the files that a glob matches, and all files below the folders that it matches.

    Raises `NoFilesError` where nothing matches.
    """
    magic = _MAGIC.search(pattern)
    start = pattern.rfind("/", 0, magic.start() if magic else 0) + 1
    base = pattern[:start]
    root = spot_at(replace(_root(base or "."), shown=printable(redacted_path(base))))
    found = [] if root is None else [file for spot in matching(root, pattern[start:]) for file in walk(spot)]
    if not found:
        raise NoFilesError(f"nothing matches {printable(pattern)}", "check the folder; * stops at /, ** does not")
    yield from found


def _missing(path: str, root: Located) -> NoFilesError:
    folder, _, name = root.path.rstrip("/").rpartition("/")
    parent = Located(root.fs, folder or "/", "")
    above = spot_at(parent)
    siblings = [entry.name for entry in entries(parent)] if above and above.entry.kind == FOLDER else []
    near = nearest(name, siblings)
    head = path.rstrip("/").rpartition("/")[0]
    hint = "check the path" if near is None else f"did you mean {printable(f'{head}/{near}' if head else near)}?"
    return NoFilesError(f"there is no file or folder {printable(path)}", hint)
