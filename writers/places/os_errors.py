"""Turn an `OSError` of a failed write into a one-line message for the user, with a remedy."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...windowing.errors import OutputError
from ...windowing.support.store_errors import store_trouble

_REMEDIES = {
    errno.ENOSPC: "free some space there, or write to another disk",
    errno.EDQUOT: "free some of the quota, or write to another disk",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), or write to another disk",
    errno.EACCES: "get the right to write there, or write to another folder",
    errno.EPERM: "get the right to write there, or write to another folder",
    errno.EROFS: "write to a disk that is not mounted read-only",
    errno.ENOTDIR: "write to another path, or move that file away",
    errno.ENAMETOOLONG: "choose a shorter name for the output",
    errno.EXDEV: "write to a folder that can be renamed (not a mount point or an image layer)",
}
_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is too large for this system",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the disk is read-only",
    errno.ENOENT: "the folder is not there any more",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the disk reported an error",
}


@contextmanager
def output_errors(shown: str) -> Iterator[None]:
    """Turn an `OSError` of the body into an `OutputError` that names ``shown``, the path as the user knows it.

    Use it only before the swap, because the message says that nothing was written.
    """
    try:
        yield
    except OSError as error:
        what = f"cannot write {shown}: {reason(error)}; nothing was written"
        raise OutputError(what, remedy(error)) from error


def reason(error: OSError) -> str:
    """Return one line that says in plain words why a write failed."""
    if error.errno in _WORDS:
        return _WORDS[error.errno]
    text = error.strerror or str(error) or type(error).__name__
    trouble = None if error.errno else store_trouble(text)
    return trouble.words if trouble else text.splitlines()[0].split(". Detail:")[0]


def remedy(error: OSError) -> str | None:
    """Return what the user can do about a write that has failed; None where that is not known."""
    trouble = None if error.errno else store_trouble(str(error))
    return trouble.do if trouble else _REMEDIES.get(error.errno or 0)


# Make the folders above an output or of a state, and take them back where nothing came of it.


def make_folders(folder: Path, shown: str) -> list[Path]:
    """Make a folder and its missing parents; return the folders that were missing, innermost first.

    Raises `OutputError` that names ``shown``, after removing the folders it has made.
    """
    missing: list[Path] = []
    try:
        with output_errors(shown):
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
    except OutputError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty; innermost first."""
    for folder in folders:
        with suppress(OSError):  # it was never made, or another run writes to it by now
            folder.rmdir()


# Paths and globs of a local file system as texts: which one holds another. Nothing heavy is imported.


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
    todo, seen = deque(globbed("/".join(names[:at]) or "/")), set[str]()
    while todo:
        folder = todo.popleft()
        real = os.path.realpath(folder)
        if real in seen or not Path(real).is_dir():
            continue
        seen.add(real)
        yield from globbed("/".join((glob.escape(folder), *rest)))
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
