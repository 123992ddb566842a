"""Whether other users can write where we are about to take code from, or to keep what we are going to read again.

Compiled kernels and pickles are code to whoever reads them. So a folder is used that only this user and root can write
to, and so are the files in it. A group with the number of its user counts as that user's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def way_in(folder: Path, may_be_shared: bool = False, user: int | None = None) -> str | None:
    """Tell how others could put something into a folder or in its place; None where they cannot.

    ``may_be_shared``: it is a folder like ``/tmp``, where all can make entries and nobody can touch another's.
    ``user``: this process's, unless given. What is not there yet is for us to make.
    """
    trusted = (os.geteuid() if user is None else user, _ROOT)
    wanted = Path(os.path.abspath(folder))  # noqa: PTH100 - without links followed
    for path in dict.fromkeys([*_chain(wanted), *_chain(wanted.resolve())]):
        found = _state(path)
        if found is None:
            continue
        if found.st_uid not in trusted:
            return f"{path} belongs to another user ({found.st_uid})"
        is_shared = bool(found.st_mode & stat.S_ISVTX) and (may_be_shared or path not in (wanted, wanted.resolve()))
        if _is_writable(found) and not is_shared:
            return f"others can write to {path}"
    return None


def way_in_beside(code: Path, folder: Path) -> str | None:
    """Tell how somebody could write to a folder beside a file of code who cannot write that; None where nobody can."""
    home, found = code.parent.stat(), _state(folder)
    if found is None or _is_writable(home):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is a link"
    if found.st_uid not in (os.geteuid(), _ROOT, home.st_uid):
        return f"{folder} belongs to another user ({found.st_uid})"
    return f"others can write to {folder}" if _is_writable(found) else None


def planted(paths: Iterable[Path], *trusted: int) -> str | None:
    """Tell which of some files others have put there or can write to; None where there is none.

    ``trusted``: users besides this process's and root.
    """
    for path in paths:
        found = _state(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            return f"{path} is no file"
        if found is not None and found.st_uid not in (os.geteuid(), _ROOT, *trusted):
            return f"{path} belongs to another user ({found.st_uid})"
        if found is not None and _is_writable(found):
            return f"others can write to {path}"
    return None


def _chain(path: Path) -> Iterator[Path]:
    """The folders that hold a path, the outermost first, then the path."""
    yield from reversed(path.parents)
    yield path


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:  # it is not there, or not for us to see, and then not for us to use
        return None


def _is_writable(found: os.stat_result) -> bool:
    """Whether more than its owner can write it. What a link's own rights say means nothing."""
    if stat.S_ISLNK(found.st_mode):
        return False
    mine = stat.S_IWGRP if found.st_gid == found.st_uid else 0
    return bool(found.st_mode & _WRITABLE & ~mine)
