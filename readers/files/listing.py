"""List the files of input paths: a file, a folder with everything below it, or a glob, on any pyarrow file system.

Names that begin with ``_`` or ``.`` are skipped at every level below an input path.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import InputError, printable
from ...windowing.support.addresses.file_systems import file_system_of, reach
from ...windowing.support.addresses.redaction import redacted_path
from ...windowing.support.suggest import few, nearest
from ...windowing.tables.kinds import table_version
from ...windowing.tables.table_version import TableVersion
from .begun import without_begun
from .entries import FILE, FOLDER, LEADS_NOWHERE, NOT_ALLOWED, entries, entry_at
from .file import Located, store_errors
from .listed import ListedFile
from .table_files import files_of, is_data_file, manifests_of, root_of, virtual_paths
from .walk import MANIFEST, Spot, check_values, is_hidden, matching, spot_at, walk

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of all input paths.

    ``files``: the data files, sorted by path.
    ``manifests``: the manifests of results, sorted by path.
    ``skipped``: the unreadable paths that were skipped, each with its reason.
    ``tables``: the versions of tables among the paths, whose columns are those of their files.
    """

    files: tuple[ListedFile, ...]
    manifests: tuple[ListedFile, ...]
    skipped: tuple[str, ...] = ()
    tables: tuple[TableVersion, ...] = ()


class NoFilesError(InputError):
    """An input path that does not exist, or that holds no files."""


def list_files(
    paths: Sequence[str], bases: Sequence[str] = (), *, skip_unreadable: bool = False, version: str | None = None
) -> Listing:
    """List all files of ``paths``, each real file once.

    ``bases``: folders to which ``below`` of the files under them is relative, whichever path found the files.
    ``skip_unreadable``: whether to skip paths that are no files or lack read permission, instead of raising.
    ``version``: that of tables among the paths, a number or a time; None: the newest.
    Raises `NoFilesError` for a path that does not exist or holds neither files nor a manifest, and `InputError` for an
    unreadable path and for a file with two names that are not links.
    """
    for path in paths:
        _reach(path)
    tables = {path: table for path in paths if not is_data_file(path) and (table := table_version(path, version))}
    good, odd = _spots([path for path in paths if path not in tables], skip_unreadable)
    of_bases = {base: table for base in bases if (good or tables) and (table := table_version(base, version))}
    roots = [root_of(of_bases[base]) if base in of_bases else _root(base) for base in bases]
    virtual = virtual_paths([*tables.values(), *of_bases.values()])
    spots = without_begun(_distinct_files(good))
    if good and not spots:
        what = f"{printable(redacted_path(paths[0]))} holds no result yet: a run writes there, or has ended on the way"
        raise NoFilesError(what, "wait for it, or run it again")
    files = [_listed_file(spot) for spot in spots if not _is_manifest(spot)]
    manifests = [_listed_file(spot) for spot in spots if _is_manifest(spot)]
    for path, table in tables.items():
        if not table.files:
            what = f"{printable(path)} has no rows in version {table.version} of the table"
            raise NoFilesError(what, "name another version or partition")
        files += files_of(path, table)
        manifests += manifests_of(path, table)
    return Listing(
        tuple(_relative_to_base(file, roots, virtual) for file in _by_path(files)),
        tuple(_relative_to_base(file, roots, virtual) for file in _by_path(manifests)),
        (*odd.values(),),
        (*tables.values(), *of_bases.values()),
    )


def _by_path(files: Sequence[ListedFile]) -> list[ListedFile]:
    return sorted(files, key=lambda file: file.place.path)


def _spots(paths: Sequence[str], skip_unreadable: bool) -> tuple[list[Spot], dict[str, str]]:
    """Return the files under paths, and by path what was skipped, with its reason."""
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
        if len(good) == before and odd:
            raise NoFilesError(
                f"{printable(path)} holds no files that can be read: {few([*odd.values()])}", "check the path"
            )
        if len(good) == before:
            raise NoFilesError(f"{printable(path)} holds no files", "names that begin with _ or . are skipped")
    return good, odd


def list_folders(path: str, *, skip_unreadable: bool = False, version: str | None = None) -> tuple[str, ...]:
    """Return the sorted names of the folders directly in a folder, or of the partitions of a table.

    Raises `InputError` where ``path`` is no folder, for two names ``NAME=VALUE`` of one folder, and, without
    ``skip_unreadable``, for broken links and folders without permission.
    """
    _reach(path)
    if table := table_version(path, version):
        return table.folders()
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


def is_result(folder: str) -> bool:
    """Whether a folder holds a result of wincli itself. Raises `InputError`."""
    _reach(folder)
    root = _root(folder)
    return entry_at(replace(root, path=f"{root.path}/{MANIFEST}")) is not None


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


def _relative_to_base(found: ListedFile, bases: Sequence[Located], virtual: Mapping[str, str]) -> ListedFile:
    """Return a file relative to a base that holds it. ``virtual``: as `virtual_paths` returns them."""
    path = virtual.get(found.place.path, found.place.path)
    for base in bases:
        head = f"{base.path.rstrip('/')}/"
        if path.startswith(head) and base.fs.equals(found.place.fs):
            return replace(found, below=path.removeprefix(head))
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


def _reach(path: str) -> None:
    """Raise `InputError` where the store of a path does not answer; success is remembered."""
    with store_errors(redacted_path(path)):
        reach(path)


def _root(path: str) -> Located:
    """Return the location of a path; a path without a scheme is local. Raises `InputError` for a bad URI."""
    if "://" not in path:
        absolute = os.path.abspath(path).replace(os.sep, "/")  # noqa: PTH100 - Path.resolve would follow links
        return Located(fs.LocalFileSystem(), absolute, printable(path))
    try:
        filesystem, inner = file_system_of(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is no address that can be read: {error}", "use a path, file:// or s3://") from error
    return Located(filesystem, inner.rstrip("/") or inner, redacted_path(path))


def _listed_file(spot: Spot) -> ListedFile:
    return ListedFile(spot.place, spot.entry.size, spot.entry.mtime, spot.below)


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
