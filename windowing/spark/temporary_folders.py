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

CHILDREN = "children.lock"
"""The file that Java and its workers on this machine share a lock of for as long as they live."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_UNSIGNED_AGE = 3600.0  # seconds after which an empty folder is a leftover, and not one that is just being made
_PAUSE = (
    0.005  # seconds between two looks at a folder that processes of a run still use: workers end in some milliseconds
)


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A temporary folder of this process.

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


def share_lock(path: str | Path) -> int:
    """Share the lock of a file, as that of `CHILDREN`; return its descriptor.

    A process that inherits the descriptor holds the lock, too. Raises `OSError`, but not where the file system has no
    locks: there nobody removes the folder, so none is needed.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def wait_for_children(folder: Path, patience: float) -> None:
    """Wait at most ``patience`` seconds until no Java and no worker uses a folder. Raises `OSError`."""
    deadline = time.monotonic() + patience
    with _opened(str(folder)) as opened:
        while _has_children(opened) and time.monotonic() < deadline:
            time.sleep(_PAUSE)


def remove_leftovers(parents: Iterable[str | None], patience: float = 0.0) -> None:
    """Remove the temporary folders of this user's runs that are gone. Folders that cannot be removed stay.

    ``patience``: the seconds to wait for the Java of runs that are gone. It ends some seconds after its driver.
    """
    deadline = time.monotonic() + patience
    for parent in dict.fromkeys(parent or tempfile.gettempdir() for parent in parents):
        with contextlib.suppress(OSError), _opened(parent) as folder:
            for name in [name for name in os.listdir(folder) if name.startswith(PREFIX)]:  # noqa: PTH208 - of a number
                with contextlib.suppress(OSError):
                    while not _sweep(name, folder) and time.monotonic() < deadline:
                        time.sleep(_PAUSE)


def _sweep(name: str, parent: int) -> bool:
    """Remove one folder below ``parent`` if it is ours and its run is gone. Links are never followed.

    Returns whether that is all: False where the run is gone and processes of it still live.
    """
    with _opened(name, parent) as folder:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            return True
        if not os.listdir(folder):  # noqa: PTH208 - of a number
            if time.time() - found.st_mtime > _UNSIGNED_AGE:
                os.rmdir(name, dir_fd=parent)
            return True
        with _locked(OWNER, folder) as owner:
            if _is_of_this_machine(os.pread(owner, 4096, 0)):
                if _has_children(folder):
                    return False
                _empty(folder)
                shutil.rmtree(name, dir_fd=parent)
            return True


def _empty(folder: int) -> None:
    """Remove all in a folder but the owner file, which must go last: it says whose the rest is. Raises `OSError`."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != OWNER]
    for name, is_folder in found:
        if is_folder:
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _has_children(folder: int) -> bool:
    """Whether Java or a worker may still write into a folder: they outlive a killed run for some time."""
    try:
        with _locked(CHILDREN, folder):
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


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
