"""Temporary folders of a run: locked while it lives, and removed by a later run where it was killed.

A folder has a file that its run locks with ``flock``. The system releases the lock when the run dies, however it dies,
and whatever process numbers its container had. A process that gets the lock of a folder may remove it. Where a lock
proves nothing, on a file system without locks or of another machine that may not see ours, a folder stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PREFIX = "wincli-run-"
OWNER = "owner.lock"
"""The file that a run locks; its content says which machine the run is on."""

WORKERS = "workers.lock"
"""The file that workers on this machine lock for as long as they live (`windowing.spark.workers.daemon`)."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_UNSIGNED_AGE = 3600.0  # seconds after which an empty folder is a leftover, and not one that is just being made


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A temporary folder of this process.

    ``path``: the folder.
    ``lock``: the descriptor that holds its lock.
    """

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder. While another process writes into it, it stays as a leftover for a later run."""
        with contextlib.suppress(OSError), _opened(str(self.path)) as folder:
            _empty(folder)
            shutil.rmtree(self.path)

    def release(self) -> None:
        """Release the lock."""
        with contextlib.suppress(OSError):
            os.close(self.lock)


def new_folder(parent: str | None = None) -> LockedFolder:
    """Make a temporary folder that only this user can enter, locked by this process. Raises `OSError`."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(path / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        if _is_taken(lock) and _is_at(lock, path / OWNER):
            os.write(lock, json.dumps(_machine()).encode())
            return LockedFolder(path, lock)
        os.close(lock)  # another run that removes leftovers was faster


def remove_leftovers(parents: Iterable[str | None]) -> None:
    """Remove the temporary folders of this user's runs that are gone. Folders that cannot be removed stay."""
    for parent in dict.fromkeys(parent or tempfile.gettempdir() for parent in parents):
        with contextlib.suppress(OSError), _opened(parent) as folder:
            for name in [name for name in os.listdir(folder) if name.startswith(PREFIX)]:  # noqa: PTH208 - of a number
                with contextlib.suppress(OSError):
                    _sweep(name, folder)


def _sweep(name: str, parent: int) -> None:
    """Remove one folder below ``parent`` if it is ours and its run is gone. Links are never followed."""
    with _opened(name, parent) as folder:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            return
        if not os.listdir(folder):  # noqa: PTH208 - of a number
            _remove_unsigned(name, parent, found)
            return
        with _locked(OWNER, folder) as owner:
            if _is_of_this_machine(os.pread(owner, 4096, 0)) and _is_left(folder):
                _empty(folder)
                shutil.rmtree(name, dir_fd=parent)


def _remove_unsigned(name: str, parent: int, found: os.stat_result) -> None:
    """Remove an old empty folder. A young one may belong to a run that is about to write its owner file."""
    if time.time() - found.st_mtime > _UNSIGNED_AGE:
        os.rmdir(name, dir_fd=parent)


def _empty(folder: int) -> None:
    """Remove all in a folder but the owner file, which must go last: it says whose the rest is. Raises `OSError`."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != OWNER]
    for name, is_folder in found:
        if is_folder:
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _is_left(folder: int) -> bool:
    """Whether no worker writes into a folder any more: workers may outlive a killed run for some milliseconds."""
    try:
        with _locked(WORKERS, folder):
            return True
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False


@contextlib.contextmanager
def _opened(path: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder that is not a link. Raises `OSError`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if parent is not None else 0)
    folder = os.open(path, flags, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _locked(name: str, folder: int) -> Iterator[int]:
    """Lock a file of a folder, which must not be a link.

    Raises `BlockingIOError` where another process holds the lock, else `OSError`.
    """
    lock = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise OSError(f"{name} is no file")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    finally:
        os.close(lock)


def _is_taken(lock: int) -> bool:
    """Take a lock. On a file system without locks nobody else gets it either, so nobody removes the folder."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _is_at(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except OSError:
        return False


def _machine() -> dict[str, str]:
    """Return what identifies this machine: the id of its boot, which containers share, and its host name."""
    boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
    return {"boot": boot, "host": socket.gethostname()}


def _is_of_this_machine(signed: bytes) -> bool:
    """Whether a folder's owner file was written on this machine, even before a reboot.

    Only then does a free lock prove that a run is gone. An empty owner file is that of a run killed before it wrote it.
    """
    if not signed:
        return True
    machine = _machine()
    try:
        owner = dict(json.loads(signed))
    except (ValueError, TypeError, RecursionError):
        return False
    return bool(machine["boot"] and owner.get("boot") == machine["boot"]) or owner.get("host") == machine["host"]
