"""List the files of input paths: a file, a folder with everything below it, or a glob, on any pyarrow file system.

Names that begin with ``_`` or ``.`` are skipped at every level below an input path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from ...windowing.errors import InputError, few, nearest, printable
from ...windowing.support.address import Address
from ...windowing.support.checksum import read_object
from ...windowing.support.file_systems import FILE, FOLDER, LONGEST_BEGUN, file_system_of, is_begun, reach
from ...windowing.support.formats import SUFFIXES
from ...windowing.support.redaction import redacted_path
from ...windowing.support.store_errors import store_trouble
from ...windowing.support.value_table import ValueTable, text_column, value_table
from ...windowing.tables.address import TableVersion, folder_path, split_path, table_version
from .file import Located, input_errors
from .walk import (
    LEADS_NOWHERE,
    MANIFEST,
    NOT_ALLOWED,
    ListedFile,
    Spot,
    check_values,
    entries,
    entry_at,
    is_hidden,
    iso_time,
    matching,
    spot_at,
    walk,
)

# Outputs in a store to which a run writes its first result: parts are there, and a manifest that says so.


def without_begun(spots: ValueTable[Spot]) -> ValueTable[Spot]:
    """Return the files of an input but those of outputs that hold no result yet. Raises `InputError`."""
    manifests = spots.take(np.flatnonzero(are_manifests(spots)))
    begun: tuple[str, ...] = ()
    for spot in manifests:
        if spot.entry.size > LONGEST_BEGUN:  # only few are so short that they are read
            continue
        with input_errors(spot.place.shown), spot.place.open_stream() as file:
            text = file.read()
        with suppress(ValueError):
            begun += (spot.place.path.removesuffix(MANIFEST),) if is_begun(read_object(text)) else ()
    if not begun:
        return spots
    paths = spots.column("place").texts("path")
    return spots.take(np.array([at for at, path in enumerate(paths) if not path.startswith(begun)], np.int64))


def are_manifests(spots: ValueTable[Spot]) -> npt.NDArray[np.bool_]:
    """Return which files are manifests of results, bool (N,)."""
    found: npt.NDArray[np.bool_] = pc.ends_with(spots.column("below"), MANIFEST).to_numpy(zero_copy_only=False)
    return found


# Tables as inputs: the files of one version, with their partitions as folders, and the manifests of results in them.
#
# A result of wincli in a table has files ``part-00000-TOKEN.parquet``, and ``_wincli/manifest-TOKEN.json`` in the
# folder of its partition. A table reads as results only if each of its files is one of a manifest: what other
# programs have added or rewritten has no order of windows.


_TOKEN = re.compile(r"-([0-9a-f]{12})\.parquet$")


def files_of(path: str, table: TableVersion) -> list[ListedFile]:
    """Return the data files of a table, relative to the path that was given."""
    named = {name for name, _ in split_path(path).values}
    found = []
    for file in table.files:
        rest = folder_path(value for value in file.folders or file.values if value[0] not in named)
        name = file.path.rpartition("/")[2]
        place = Located(table.fs, file.path, file.shown, file.size, columns=table.columns)
        found.append(ListedFile(place, file.size, file.mtime, f"{rest}/{name}" if rest else name))
    return found


def manifests_of(path: str, table: TableVersion) -> list[ListedFile]:
    """Return the manifests of all results in a table, relative to the path; none where a file is of no result."""
    at = split_path(path)
    tokens: dict[str, str] = {}
    for file in table.files:
        found = _TOKEN.search(file.path)
        if found is None:
            return []
        tokens.setdefault(found[1], file.path)
    places: dict[str, list[str]] = {}
    for token, part in tokens.items():  # in the folder of a part, or one above it
        folders = [part.rpartition("/")[0]]
        while folders[-1] != table.root and folders[-1].startswith(f"{table.root}/"):
            folders.append(folders[-1].rpartition("/")[0])
        places[token] = [f"{folder}/{MANIFEST.removesuffix('.json')}-{token}.json" for folder in folders]
    infos = table.fs.get_file_info([path for paths in places.values() for path in paths])
    there = {info.path: info for info in infos if info.type == fs.FileType.File}
    chosen = {token: next((path for path in paths if path in there), None) for token, paths in places.items()}
    if None in chosen.values():
        return []
    inner = f"{table.root}/{at.below}" if at.below else table.root
    manifests = []
    for info in (there[path] for path in filter(None, chosen.values())):
        folder = info.path.rpartition("/_wincli/")[0]
        below = f"{folder.removeprefix(inner).lstrip('/')}/{MANIFEST}".lstrip("/")
        shown = f"{table.shown}{folder.removeprefix(table.root)}/{MANIFEST}"
        place = Located(table.fs, info.path, shown)
        manifests.append(ListedFile(place, info.size, iso_time(info.mtime_ns), below))
    return manifests


T = TypeVar("T")
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of all input paths.

    ``files``: the data files, sorted by path.
    ``manifests``: the manifests of results, sorted by path.
    ``skipped``: the unreadable paths that were skipped, each with its reason.
    ``tables``: the versions of tables among the paths, whose columns are those of their files.
    """

    files: ValueTable[ListedFile]
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
    # The name of a data file need not be looked at for a table.
    others = [path for path in paths if PurePosixPath(path.lower()).suffix not in SUFFIXES]
    tables = {path: table for path in others if (table := table_version(path, version))}
    odd: dict[str, str] = {}
    found = (_good_spots(path, skip_unreadable, odd) for path in paths if path not in tables)
    good = value_table(Spot, chain.from_iterable(found))
    of_bases = {base: table for base in bases if (good or tables) and (table := table_version(base, version))}
    every = (*tables.values(), *of_bases.values())
    roots = [Located(at.fs, at.root, at.shown) if (at := of_bases.get(base)) else _root(base) for base in bases]
    # The path of each file of a table as it would be if each partition were a folder.
    virtual = {file.path: f"{table.root}/{file.below}" for table in every for file in table.files}
    spots = without_begun(_distinct_files(good))
    if good and not spots:
        what = f"{printable(redacted_path(paths[0]))} holds no result yet: a run writes there, or has ended on the way"
        raise NoFilesError(what, "wait for it, or run it again")
    is_manifest = are_manifests(spots)
    listed = []
    for each in (~is_manifest, is_manifest):
        some = spots if each.all() else spots.take(np.flatnonzero(each))
        entry = some.column("entry")
        times = text_column(map(iso_time, entry.column("mtime_ns").to_pylist()))
        columns = (some.column("place"), entry.column("size"), times, some.column("below"))
        listed.append(ValueTable(ListedFile, columns))
    files, manifests = listed
    for path, table in tables.items():
        if not table.files:
            what = f"{printable(path)} has no rows in version {table.version} of the table"
            raise NoFilesError(what, "name another version or partition")
        files = value_table(ListedFile, chain(files, files_of(path, table)))
        manifests = value_table(ListedFile, chain(manifests, manifests_of(path, table)))
    return Listing(
        _relative_to_bases(_by_path(files), roots, virtual),
        tuple(_relative_to_bases(_by_path(manifests), roots, virtual)),
        (*odd.values(),),
        every,
    )


def _by_path(files: ValueTable[ListedFile]) -> ValueTable[ListedFile]:
    return _sorted(files, [files.column("place").column("path")])


def _sorted(table: ValueTable[T], keys: Sequence[pa.Array]) -> ValueTable[T]:
    """Return a table sorted by columns; equals stay in their order. UTF-8 sorts as the texts do."""
    places = np.arange(len(table))
    columns = {str(at): key for at, key in enumerate(keys)} | {"": pa.array(places)}
    order = pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns]).to_numpy().astype(np.int64)
    return table if np.array_equal(order, places) else table.take(order)


def _good_spots(path: str, skip_unreadable: bool, odd: dict[str, str]) -> Iterator[Spot]:
    """Yield the files under a path; add to ``odd`` what was skipped."""
    good = 0
    for spot in _under(path):
        why = None if spot.entry.kind == FILE else spot.entry.kind
        if why is None and skip_unreadable and not spot.may_be_read():  # one that would only be skipped is checked, too
            why = NOT_ALLOWED
        if why is None:
            good += 1
            yield spot
        else:
            odd[spot.place.path] = f"{spot.place.shown} ({why})"
    if odd and not skip_unreadable:
        raise _unreadable(list(odd.values()))
    if not good and odd:
        raise NoFilesError(
            f"{printable(path)} holds no files that can be read: {few([*odd.values()])}", "check the path"
        )
    if not good:
        raise NoFilesError(f"{printable(path)} holds no files", "names that begin with _ or . are skipped")


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
        raise InputError(f"{root.shown} is {spot.entry.kind}", "name a folder, or write {date} in the path of files")
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


def _unreadable(odd: Sequence[str]) -> InputError:
    return InputError(f"{few(odd)} cannot be read", "remove such things, or skip them with --skip-unreadable")


def _distinct_files(spots: ValueTable[Spot]) -> ValueTable[Spot]:
    """Return each real file once, under its own path if the input contains that, else under a link.

    Raises `InputError` for a file with two hard links: the rows of one file must not count twice by accident.
    """
    paths = spots.column("place").column("path")
    spots = _sorted(spots, [spots.column("by_link"), pc.not_equal(paths, spots.column("real")), paths])
    addresses, systems = spots.column("real"), spots.column("place").column("fs")
    if not all(isinstance(system, fs.LocalFileSystem) for system in systems.distinct):
        heads = ["" if isinstance(system, fs.LocalFileSystem) else f"{system.type_name}:" for system in systems]
        addresses = text_column(head + real for head, real in zip(heads, spots.texts("real"), strict=True))
    codes = addresses.dictionary_encode().indices.to_numpy()
    firsts = np.unique(codes, return_index=True)[1]
    if len(firsts) < len(codes):
        for at in np.delete(np.arange(len(codes)), firsts):
            first, spot = spots[int(firsts[codes[at]])], spots[int(at)]
            if first.place.path != spot.place.path:
                check_values(first, spot)
        spots = spots.take(np.sort(firsts))
    known = spots.column("entry").column("node").drop_null()
    nodes: dict[object, Spot] = {}
    for spot in () if pc.count_distinct(known).as_py() == len(known) else spots:
        entry = spot.entry
        if entry.node is None or not entry.size:
            continue
        first = nodes.setdefault((entry.node, entry.size, entry.mtime_ns), spot)
        if first is not spot:
            names = f"{first.place.shown} and {spot.place.shown}"
            what = f"{names} are one file (a hard link), whose rows would count twice"
            raise InputError(what, "name one of them, or make the other a copy")
    return spots


def _relative_to_bases(
    files: ValueTable[ListedFile], bases: Sequence[Located], virtual: Mapping[str, str]
) -> ValueTable[ListedFile]:
    """Return files relative to the bases that hold them. ``virtual``: by path, where a file seems to be."""

    def relative(found: ListedFile) -> ListedFile:
        path = virtual.get(found.place.path, found.place.path)
        for base in bases:
            head = f"{base.path.rstrip('/')}/"
            if path.startswith(head) and base.fs.equals(found.place.fs):
                return replace(found, below=path.removeprefix(head))
        return found

    return value_table(ListedFile, map(relative, files)) if bases else files


def _under(path: str) -> Iterator[Spot]:
    if _MAGIC.search(path) and not Address.of(path).is_path:  # a wildcard is no part of an address
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
    try:
        reach(path)
    except (OSError, ValueError) as error:
        trouble = store_trouble(str(error))
        words, do = (trouble.words, trouble.do) if trouble else (str(error).splitlines()[0], "check the address")
        raise InputError(f"{redacted_path(path)} cannot be read: {words}", do) from error


def _root(path: str) -> Located:
    """Return the location of a path; a path without a scheme is local. Raises `InputError` for a bad path or URI."""
    if "\0" in path:
        raise InputError(f"{path} is no path: it has a character NUL", "write the path without it")
    try:
        filesystem, inner = file_system_of(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is no address that can be read: {error}", "use a path, file:// or s3://") from error
    return Located(filesystem, inner, printable(path) if Address.of(path).is_path else redacted_path(path))


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
