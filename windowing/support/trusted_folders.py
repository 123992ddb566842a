"""Trusted folders: whether other users can write to a folder from which code is loaded.

A process that reads compiled kernels or pickles runs them as code. So a folder is used only if no one but this user and
root can write to it and to its files. A group with the same number as its user counts as private to that user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def way_in(folder: Path, may_be_shared: bool = False) -> str | None:
    """Return how other users could write to a folder or replace it; None if they cannot.

    ``may_be_shared``: whether the folder may be one like ``/tmp``, where everyone can create entries and nobody can
    change those of others. A folder that does not exist yet is safe: this process will create it.
    """
    trusted = (os.geteuid(), _ROOT)
    wanted = Path(os.path.abspath(folder))  # noqa: PTH100 - without links followed
    for path in dict.fromkeys([*_chain(wanted), *_chain(wanted.resolve())]):
        found = _state(path)
        if found is None:
            continue
        is_shared = bool(found.st_mode & stat.S_ISVTX) and (may_be_shared or path not in (wanted, wanted.resolve()))
        if why := _why_not(path, found, trusted, is_shared):
            return why
    return None


def way_in_beside(code: Path, folder: Path) -> str | None:
    """Return how a user without write access to a file of code could write to a folder beside it; None if none can."""
    home, found = code.parent.stat(), _state(folder)
    if found is None or _is_writable(home):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is a link"
    return _why_not(folder, found, (os.geteuid(), _ROOT, home.st_uid))


def planted(paths: Iterable[Path], *trusted: int) -> str | None:
    """Return a message about the first of these files that another user owns or can write to; None if there is none.

    ``trusted``: users to trust besides the user of this process and root.
    """
    for path in paths:
        found = _state(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            return f"{path} is no file"
        if found is not None and (why := _why_not(path, found, (os.geteuid(), _ROOT, *trusted))):
            return why
    return None


def _why_not(path: Path, found: os.stat_result, trusted: tuple[int, ...], is_shared: bool = False) -> str | None:
    if found.st_uid not in trusted:
        return f"{path} belongs to another user ({found.st_uid})"
    return f"others can write to {path}" if _is_writable(found) and not is_shared else None


def _chain(path: Path) -> Iterator[Path]:
    yield from reversed(path.parents)
    yield path


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:  # it does not exist, or is not accessible and so will not be used
        return None


def _is_writable(found: os.stat_result) -> bool:
    if stat.S_ISLNK(found.st_mode):
        return False
    mine = stat.S_IWGRP if found.st_gid == found.st_uid else 0
    return bool(found.st_mode & _WRITABLE & ~mine)
