"""Replace an output by its finished staging folder on a local file system, atomically.

If the output is absent or empty, one rename does it; else one exchange of two names (Linux). Where the system cannot
exchange names, the old result is renamed first, and `remove_leftovers` of the next run completes a swap that a kill
interrupted.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

from .place import SUCCESS, Place, new_token

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def swap_in(place: Place, token: str) -> None:
    """Make the staging folder with id ``token`` the output; `remove_leftovers` deletes the old result later.

    The staging folder must be complete and on disk. If this raises `OSError`, the old result is still in place.
    """
    replace(Path(place.path), Path(place.beside("new", token)), Path(place.beside("old", token)))


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


def remove_leftovers(place: Place) -> None:
    """Complete an interrupted swap, and remove all folders that earlier runs left beside this output.

    The caller must hold the lock of the output. An interrupted swap is completed if the new result is complete, else
    undone. Raises `OSError` where something cannot be removed.
    """
    left = _leftovers(place)
    for path, role, token in left:
        if role == "old" and not Path(place.path).exists():
            new = Path(place.beside("new", token))
            (new if (new / SUCCESS).is_file() else path).rename(place.path)
    for path, _, _ in left:
        if path.exists():
            _remove(place, path)


def _leftovers(place: Place) -> list[tuple[Path, str, str]]:
    with os.scandir(place.parent) as entries:
        found = [(Path(entry.path), place.role_of(entry.name)) for entry in entries]
    return [(path, *role) for path, role in found if role]


def _remove(place: Place, folder: Path) -> None:
    """Delete a folder; the rename before that stops tasks of a cancelled run that still write to it by its name."""
    gone = Path(place.beside("gone", new_token()))
    folder.rename(gone)
    shutil.rmtree(gone)


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
