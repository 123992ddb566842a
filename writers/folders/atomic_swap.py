"""Replace a folder by another on a local file system, atomically, and write to disk what was written.

If the folder is absent or empty, one rename does it; else one exchange of two names (Linux). Where the system cannot
exchange names, the old folder is renamed first, and the next run has to complete a swap that a kill interrupted.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def replace(out: Path, new: Path, old: Path) -> None:
    """Put the folder ``new`` at the path ``out``; the former content of ``out`` is afterwards at ``new`` or ``old``.

    All three paths are in one file system. If this raises `OSError`, ``out`` is unchanged, unless only the sync of its
    parent failed.
    """
    if is_vacant(out):
        new.rename(out)
    elif not exchange(new, out):
        _swap_in_two_steps(new, out, old)
    sync(out.parent)


def is_vacant(out: Path) -> bool:
    """Whether a rename to ``out`` loses nothing: ``out`` is absent or an empty folder."""
    try:
        with os.scandir(out) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically; return False, with nothing changed, where the system or file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _swap_in_two_steps(new: Path, out: Path, old: Path) -> None:
    out.rename(old)
    try:
        new.rename(out)
    except OSError:
        old.rename(out)
        raise


def sync(path: Path) -> None:
    """Write a file or folder to disk before returning (fsync), where its file system supports that."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)
