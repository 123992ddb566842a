"""Paths and globs of a local file system as texts: which one holds another. Nothing heavy is imported."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def is_glob(path: str) -> bool:
    """Whether a path has a wildcard; a file with brackets in its name is no glob."""
    return glob.has_magic(path) and not os.path.exists(path)  # noqa: PTH110 - no error for a name that is too long


def fixed_part(path: str) -> str:
    """Return the leading folders of ``path`` before the first wildcard; all of ``path`` where there is none."""
    if not is_glob(path):
        return path
    segments = path.split("/")
    first = next(i for i, segment in enumerate(segments) if glob.has_magic(segment))
    return "/".join(segments[:first])


def globbed(pattern: str) -> Iterator[str]:
    """Yield what a glob matches; ``**`` visits each real folder once, because links may form cycles."""
    names = pattern.split("/")
    if "**" not in names:
        yield from glob.iglob(pattern)  # noqa: PTH207 - Path.glob takes no absolute pattern
        return
    at = names.index("**")
    rest = names[at + 1 :] or ["*"]
    for folder in _folders(globbed("/".join(names[:at]) or "/")):
        yield from globbed("/".join((glob.escape(folder), *rest)))


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


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder, or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def holds(path: str, inner: str) -> bool:
    """Whether ``path``, a folder or a glob, covers ``inner`` or a folder that ``inner`` is in."""
    if not is_glob(path):
        return is_within(inner, path)
    pattern = path.split("/")
    if "**" in pattern:  # the rest of the pattern may match in any folder below
        pattern = pattern[: pattern.index("**")]
    parts = inner.split("/")
    return len(pattern) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, pattern))
