"""Temporary folders of a run: held by a lock while it lives, removed by the next run where it was killed.

A folder has a file that its run holds with ``flock``. The system lets go of it when the run dies, however it dies, and
whatever numbers processes have in the container that it ran in. Who gets the lock of a folder may remove it. Where no
lock tells, on a file system without any or of another machine that may not see ours, a folder stays.
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
"""The file that a run holds: which machine it runs on is written in it."""

WORKERS = "workers.lock"
"""The file that workers on this machine hold for as long as they live (`windowing.spark.workers.daemon`)."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_UNSIGNED = 3600.0  # seconds after which an empty folder is not one that is just being made


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A folder of this process's; ``lock``: the descriptor that holds it."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder; what somebody still writes into stays, as a folder of a run that may be gone."""
        with contextlib.suppress(OSError), _opened(str(self.path)) as folder:
            _empty(folder)
            shutil.rmtree(self.path)

    def release(self) -> None:
        """Let go of what is left of it."""
        with contextlib.suppress(OSError):
            os.close(self.lock)


def new_folder(parent: str | None = None) -> LockedFolder:
    """A new temporary folder that only this user can enter, held by this process. Raises `OSError`."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(path / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        if _is_taken(lock) and _is_at(lock, path / OWNER):
            os.write(lock, json.dumps(_machine()).encode())
            return LockedFolder(path, lock)
        os.close(lock)  # somebody who sweeps was faster


def remove_leftovers(parents: Iterable[str | None]) -> None:
    """Remove the temporary folders of this user's runs that are gone; what cannot be removed stays."""
    for parent in dict.fromkeys(parent or tempfile.gettempdir() for parent in parents):
        with contextlib.suppress(OSError), _opened(parent) as folder:
            for name in [name for name in os.listdir(folder) if name.startswith(PREFIX)]:  # noqa: PTH208 - of a number
                with contextlib.suppress(OSError):
                    _sweep(name, folder)


def _sweep(name: str, parent: int) -> None:
    """Remove one folder below ``parent`` where it is ours and its run is gone. Links are never followed."""
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
    """Remove a folder that is empty: its run died in the instant before it could sign it, or is in it."""
    if time.time() - found.st_mtime > _UNSIGNED:
        os.rmdir(name, dir_fd=parent)


def _empty(folder: int) -> None:
    """Remove all in a folder but what says whose it is, which goes last: or what is left could not be told. Raises
    `OSError`.
    """
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != OWNER]
    for name, is_folder in found:
        if is_folder:
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _is_left(folder: int) -> bool:
    """Whether no worker writes into a folder any more: they may outlive a killed run for some milliseconds."""
    try:
        with _locked(WORKERS, folder):
            return True
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False


@contextlib.contextmanager
def _opened(path: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder that is no link. Raises `OSError`."""
    way = os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if parent is not None else 0)
    folder = os.open(path, way, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _locked(name: str, folder: int) -> Iterator[int]:
    """Hold a file of a folder that is no link. Raises `BlockingIOError` where somebody else does, else `OSError`."""
    lock = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise OSError(f"{name} is no file")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    finally:
        os.close(lock)


def _is_taken(lock: int) -> bool:
    """Take a lock. Where the file system has none, nobody else gets it either, and so nobody removes the folder."""
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
    """This machine since it was started, and its name: containers on it have the first in common."""
    boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
    return {"boot": boot, "host": socket.gethostname()}


def _is_of_this_machine(signed: bytes) -> bool:
    """Whether a folder was signed here, be it before the last start: only then does a free lock say that a run is gone.

    One that is not signed yet is that of a run killed before it could.
    """
    if not signed:
        return True
    here = _machine()
    try:
        told = dict(json.loads(signed))
    except (ValueError, TypeError):
        return False
    return bool(here["boot"] and told.get("boot") == here["boot"]) or told.get("host") == here["host"]
