"""Put a finished staging folder in the place of the output on a local file system, all at once.

Where the output is absent or empty that is one rename; where it is not, one exchange of two names (Linux).
Without exchange the old result steps aside first, and `tidy` of the next run completes what a kill in between left.
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
    """Make the staging folder with id ``token`` the output; the old result, if any, is left for `tidy`.

    The staging folder is complete and on disk. Raises `OSError` with the old result still in place.
    """
    replace(Path(place.path), Path(place.beside("new", token)), Path(place.beside("old", token)))


def replace(out: Path, new: Path, old: Path) -> None:
    """Make the folder ``new`` stand at ``out``; what stood there is afterwards at ``new``, or else at ``old``.

    All three are in one file system. Raises `OSError` with ``out`` as it was, but where its folder cannot be synced.
    """
    if is_vacant(out):
        new.rename(out)
    elif not exchange(new, out):
        _swap_in_two_steps(new, out, old)
    sync(out.parent)


def is_vacant(out: Path) -> bool:
    """Whether nothing is lost by renaming a folder onto ``out``: it is absent or an empty folder."""
    try:
        with os.scandir(out) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, or return False, nothing done, where the system or the file system cannot."""
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
    """Complete a half-done swap and remove everything that runs of this output left beside it.

    Only for who holds the lock. A swap killed halfway goes forward where the new result is complete, else back.
    Raises `OSError` where something cannot be removed.
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
    """Delete a folder in which tasks of a cancelled run may still be writing: under a new name they lose it."""
    gone = Path(place.beside("gone", new_token()))
    folder.rename(gone)
    shutil.rmtree(gone)


def sync(path: Path) -> None:
    """Have a file or folder on disk before going on, as far as its file system can tell."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)
