"""Paths to files: a file, a folder with all below it, a glob, on any filesystem that pyarrow knows.

Names that begin with ``_`` or ``.`` are passed over at every level below a given path.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import pyarrow as pa
from pyarrow import fs

from readers.files import Located, naming
from windowing.errors import InputError
from windowing.names import nearest

MANIFEST = "_wincli/manifest.json"
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """A listed file: its size in bytes, its time (ISO 8601, UTC), and ``below``.

    ``below`` is its path under the base it is in, else under the given folder, or under the part of a glob before the
    first wildcard.
    """

    place: Located
    size: int
    mtime: str | None
    below: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What stands under the given paths, sorted by path: data files, and the manifests of results."""

    files: tuple[Found, ...]
    manifests: tuple[Found, ...]


class NoFilesError(InputError):
    """A path that is not there, or that holds no files."""


def list_files(paths: Sequence[str], bases: Sequence[str] = ()) -> Listing:
    """List all files of ``paths``, each once. Raises `NoFilesError` for a path that is not there or holds nothing.

    ``bases``: folders from which on names of folders count for the files below them, whatever path they were given by.
    """
    files: dict[str, Found] = {}
    manifests: dict[str, Found] = {}
    roots = [_root(base) for base in bases]
    for path in paths:
        data = 0
        for found in (_based(found, roots) for found in _under(path)):
            is_manifest = found.below.endswith(MANIFEST)
            (manifests if is_manifest else files).setdefault(found.place.path, found)
            data += not is_manifest
        if not data:
            raise NoFilesError(f"{path} holds no files", "names that begin with _ or . are passed over")
    return Listing(_by_path(files), _by_path(manifests))


def list_folders(path: str) -> tuple[str, ...]:
    """Return the names of the folders right below a folder, sorted. Raises `InputError` where it is none."""
    root = _root(path)
    kind = _info(root).type
    if kind == fs.FileType.NotFound:
        raise _missing(path, root)
    if kind != fs.FileType.Directory:
        raise InputError(f"{path} is a file", "name a folder")
    with naming(path):
        names = [info.base_name for info in _children(root) if info.type == fs.FileType.Directory]
    return tuple(name for name in names if _is_kept(name))


def _based(found: Found, bases: Sequence[Located]) -> Found:
    for base in bases:
        head = f"{base.path.rstrip('/')}/"
        if found.place.path.startswith(head) and base.fs.equals(found.place.fs):
            return replace(found, below=found.place.path.removeprefix(head))
    return found


def _by_path(found: dict[str, Found]) -> tuple[Found, ...]:
    return tuple(found[path] for path in sorted(found))


def _under(path: str) -> Iterator[Found]:
    """Yield the files under a path or glob."""
    if _MAGIC.search(path) and "://" in path:  # a wildcard is no part of an address
        yield from _matching(path)
        return
    root = _root(path)
    info = _info(root)
    if info.type != fs.FileType.NotFound:
        yield from _expand(root, info, "")
    elif _MAGIC.search(path):
        yield from _matching(path)
    else:
        raise _missing(path, root)


def _root(path: str) -> Located:
    """Return where a path is; a path without a scheme is local."""
    if "://" not in path:
        absolute = os.path.abspath(path).replace(os.sep, "/")  # noqa: PTH100 - Path.resolve would follow links
        return Located(fs.LocalFileSystem(), absolute, path)
    try:
        filesystem, inner = fs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is no address that can be read: {error}", "use a path, file:// or s3://") from error
    return Located(filesystem, inner.rstrip("/") or inner, path)


def _info(place: Located) -> fs.FileInfo:
    with naming(place.shown):
        return place.fs.get_file_info(place.path)


def _expand(root: Located, info: fs.FileInfo, below: str) -> Iterator[Found]:
    """Yield the file itself, or the data files and manifests below the folder."""
    if info.type == fs.FileType.File:
        yield _found(root, info, below or info.base_name)
        return
    with naming(root.shown):
        infos = root.fs.get_file_info(fs.FileSelector(root.path, recursive=True))
    for file in infos:
        relative = file.path[len(root.path) :].lstrip("/")
        if file.type == fs.FileType.File and _is_kept(relative):
            place = Located(root.fs, file.path, f"{root.shown.rstrip('/')}/{relative}")
            yield _found(place, file, f"{below}/{relative}" if below else relative)


def _is_kept(relative: str) -> bool:
    names = relative.removesuffix(MANIFEST).split("/")
    return not any(name.startswith(("_", ".")) for name in names)


def _found(place: Located, info: fs.FileInfo, below: str) -> Found:
    mtime = info.mtime.isoformat() if info.mtime is not None else None
    return Found(place, info.size or 0, mtime, below)


def _matching(pattern: str) -> Iterator[Found]:
    """Yield the files that a glob matches, name by name; a folder that matches stands for all below it."""
    magic = _MAGIC.search(pattern)
    start = pattern.rfind("/", 0, magic.start() if magic else 0) + 1
    base = pattern[:start]
    root = _root(base or ".")
    root = Located(root.fs, root.path, base)
    found = [file for match in _glob(root, pattern[start:].split("/"), "") for file in _expand(*match)]
    if not found:
        raise NoFilesError(f"nothing matches {pattern}", "check the folder; * stops at /, ** does not")
    yield from found


def _glob(root: Located, names: Sequence[str], below: str) -> Iterator[tuple[Located, fs.FileInfo, str]]:
    """Yield the places that match ``names`` below ``root``, each with its path below the fixed part."""
    if not names:
        yield root, _info(root), below
        return
    name, rest = names[0], names[1:]
    if name == "**":
        yield from _glob(root, rest, below)
    for info in _children(root):
        if not _matches(info, name, is_last=not rest):
            continue
        shown = f"{root.shown.rstrip('/')}/{info.base_name}" if root.shown else info.base_name
        child = Located(root.fs, info.path, shown)
        yield from _glob(
            child, names if name == "**" else rest, f"{below}/{info.base_name}" if below else info.base_name
        )


def _matches(info: fs.FileInfo, name: str, *, is_last: bool) -> bool:
    if info.base_name.startswith(("_", ".")) and not name.startswith(info.base_name[0]):
        return False
    if info.type != fs.FileType.Directory and (name == "**" or not is_last):
        return False
    return name == "**" or fnmatchcase(info.base_name, name)


def _children(root: Located) -> list[fs.FileInfo]:
    selector = fs.FileSelector(root.path, recursive=False, allow_not_found=True)
    return sorted(root.fs.get_file_info(selector), key=lambda info: info.path)


def _missing(path: str, root: Located) -> NoFilesError:
    folder, _, name = root.path.rstrip("/").rpartition("/")
    parent = Located(root.fs, folder or "/", "")
    siblings = [info.base_name for info in _children(parent)] if _info(parent).type == fs.FileType.Directory else []
    near = nearest(name, siblings)
    head = path.rstrip("/").rpartition("/")[0]
    hint = "check the path" if near is None else f"did you mean {f'{head}/{near}' if head else near}?"
    return NoFilesError(f"there is no file or folder {path}", hint)
