"""Refuse an output that overlaps an input, another output or another result.

A run must not read what it writes, and who reads a result must not read another one with it.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import posixpath
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path

from pyarrow import fs

from ...windowing.errors import ConfigError, InputError, OutputError
from ...windowing.tables.iceberg.address import is_address
from ..commit.tables import table_of
from ..folders.os_errors import reason
from ..folders.place import MANIFEST, Place, is_local, resolve

_REMEDY = "choose an output folder apart from the inputs"
_DEEPEST = 8
_MOST = 100
_REMEDY_EACH = "give each stage an output folder of its own"


def refuse_overlap(out: Place, inputs: Sequence[str]) -> None:
    """Raise `ConfigError` naming both where ``out`` is equal to, inside or around one of ``inputs``.

    Inputs are files, folders or globs (``*``, ``?``, ``[..]``, ``**``), as paths or URIs. The output is inside a glob
    if the glob matches the output or a folder that contains it; ``**`` contains everything below the folder before it.
    The output is around a glob if it contains the part before the first wildcard or, on a local file system, any match.
    Raises `InputError` where the file system of an input cannot be reached.
    """
    for text in inputs:
        try:
            system, path = _resolve_input(text)
        except OutputError as error:  # of a catalog
            raise InputError(error.what, error.do) from error
        except OSError as error:
            raise InputError(f"cannot reach the input {text}: {reason(error)}") from error
        if not _is_same(system, out.fs):
            continue
        if path == out.path:
            raise ConfigError(f"output {out.shown} is the input {text} itself", _REMEDY)
        if _holds(path, out.path):
            raise ConfigError(f"output {out.shown} is inside the input {text}", _REMEDY)
        if _within(_fixed(path), out.path) or any(_within(os.path.realpath(p), out.path) for p in _matches(out, path)):
            raise ConfigError(f"output {out.shown} contains the input {text}", _REMEDY)


def refuse_each_other(outputs: Sequence[str]) -> None:
    """Raise `ConfigError` naming two outputs of a job that are one folder, or of which one is inside the other."""
    for one, other in permutations([table_of(path).place for path in outputs], 2):
        if not _is_same(one.fs, other.fs):
            continue
        if one.path == other.path:
            raise ConfigError(f"{one.shown} and {other.shown} are the same output, of two stages", _REMEDY_EACH)
        if _within(one.path, other.path):
            raise ConfigError(f"output {one.shown} is inside output {other.shown}", _REMEDY_EACH)


def refuse_inside_result(out: Place) -> None:
    """Raise `ConfigError` where a folder above an output holds a result: who reads that would read both.

    So units of a range never get beside the parts of a plain result. What a user may not look at above an output is not
    looked at.
    """
    names = out.path.split("/")
    above = ["/".join(names[:depth]) for depth in range(len(names) - 1, 0, -1)]
    with suppress(OSError):
        for folder, info in zip(above, out.fs.get_file_info([f"{each}/{MANIFEST}" for each in above]), strict=True):
            if info.type == fs.FileType.File:
                below = out.path.removeprefix(folder)
                shown = out.shown.removesuffix(below) if out.shown.endswith(below) else folder
                what = f"output {out.shown} is inside {shown}, which holds a result of its own: who reads {shown} would"
                raise ConfigError(
                    f"{what} read both; nothing was touched", f"choose another output, or move {shown} away"
                )


def result_below(out: Place) -> str | None:
    """Return the path, relative to an output, of a folder in it that holds a result; None where none is found.

    Units of a range are such folders, as deep as ``{date}`` puts them. Of each level at most a hundred folders are
    looked at, and only the first is descended into, so that a large folder costs no more than a small one.
    """
    folder = out.path
    for _ in range(_DEEPEST):
        infos = out.fs.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        inner = sorted(info.path for info in infos if info.type == fs.FileType.Directory)
        inner = [path for path in inner if not path.rpartition("/")[2].startswith(("_", "."))][:_MOST]
        if not inner:
            return None
        found = out.fs.get_file_info([posixpath.dirname(f"{path}/{MANIFEST}") for path in inner])
        for path, info in zip(inner, found, strict=True):
            if info.type == fs.FileType.Directory:  # in a table by version its manifest has another name
                return path.removeprefix(f"{out.path}/")
        folder = inner[0]
    return None


def are_nested(one: Place, other: Place) -> bool:
    """Whether two places are one folder, or one is inside the other."""
    return _is_same(one.fs, other.fs) and (_within(one.path, other.path) or _within(other.path, one.path))


def _is_same(one: fs.FileSystem, other: fs.FileSystem) -> bool:
    return type(one) is type(other) and bool(one.equals(other))


def _resolve_input(text: str) -> tuple[fs.FileSystem, str]:
    if is_address(text):
        place = table_of(text).place
        return place.fs, place.path
    if "://" in text or not _is_glob(text):
        return resolve(text)
    head = _fixed(text)
    system, base = resolve(head or ".")
    return system, posixpath.join(base, text[len(head) :].lstrip("/"))


def _is_glob(path: str) -> bool:
    return glob.has_magic(path) and not Path(path).exists()


def _fixed(path: str) -> str:
    """Return the leading folders of ``path`` before the first wildcard; all of ``path`` where there is none."""
    if not _is_glob(path):
        return path
    segments = path.split("/")
    first = next(i for i, segment in enumerate(segments) if glob.has_magic(segment))
    return "/".join(segments[:first])


def _matches(out: Place, path: str) -> Iterator[str]:
    return _globbed(path) if is_local(out.fs) and _is_glob(path) else iter(())


def _globbed(pattern: str) -> Iterator[str]:
    """Yield what a glob matches; ``**`` visits each real folder once, because links may form cycles."""
    names = pattern.split("/")
    if "**" not in names:
        yield from glob.iglob(pattern)  # noqa: PTH207 - Path.glob takes no absolute pattern
        return
    at = names.index("**")
    rest = names[at + 1 :] or ["*"]
    for folder in _folders(_globbed("/".join(names[:at]) or "/")):
        yield from _globbed("/".join((glob.escape(folder), *rest)))


def _folders(starts: Iterable[str]) -> Iterator[str]:
    """Yield folders and all folders below them that are not hidden, each real folder once."""
    todo, seen = deque(starts), set[str]()
    while todo:
        folder = todo.popleft()
        real = os.path.realpath(folder)
        if real in seen or not Path(real).is_dir():
            continue
        seen.add(real)
        yield folder
        with suppress(OSError), os.scandir(folder) as found:
            todo.extend(entry.path for entry in found if not entry.name.startswith("."))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _holds(path: str, inner: str) -> bool:
    """Whether ``path``, a folder or a glob, covers ``inner`` or a folder that ``inner`` is in."""
    if not _is_glob(path):
        return _within(inner, path)
    pattern = path.split("/")
    if "**" in pattern:  # the rest of the pattern may match in any folder below
        pattern = pattern[: pattern.index("**")]
    parts = inner.split("/")
    return len(pattern) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, pattern))
