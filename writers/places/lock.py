"""Locks: only one run at a time may write to an output or a state."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyarrow import fs

from ...windowing.errors import OutputError
from ...windowing.support.file_systems import read_file
from .os_errors import output_errors
from .place import Place

_LONGEST = 1 << 12  # bytes of a lock file, far more than it has
_MOST_PROCESSES = 1 << 31  # a process id is a number of 32 bits
_NO_FILE = {errno.ELOOP, errno.EISDIR, errno.ENXIO}  # a link, a folder, a socket
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


@dataclass(frozen=True, slots=True)
class Owner:
    """The run that holds a lock: its process, its machine, and when it started, ISO 8601."""

    pid: int
    host: str
    started: str

    def to_json(self) -> bytes:
        """Return the content of a lock file."""
        return json.dumps(asdict(self)).encode()

    def describe(self, now: str) -> str:
        """Describe the run for messages, with its age at ``now`` (ISO 8601) if that is at least a minute."""
        since = age(self.started, now)
        return f"process {self.pid} on {self.host}, started {self.started}" + (f", {since}" if since else "")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file.

    ``shown``: the output or state that it guards, for messages.
    ``instead``: what the user can do while another run holds the lock.
    """

    fs: fs.FileSystem
    path: str
    shown: str
    instead: str


def lock_of(place: Place) -> Lock:
    """Return the lock of an output."""
    return Lock(place.fs, place.lock, place.shown, "choose another output")


def hold_lock(lock: Lock, owner: Owner) -> AbstractContextManager[Owner | None]:
    """Return a context that holds a lock on a local file system and removes it at its end.

    The context value is the owner of a lock that this run took over from a dead run, or None. The lock is a file held
    with ``flock``, so the death of a run frees it; on a file system without ``flock`` it is a marker, as `hold_marker`
    says. Raises `OutputError` naming the process, machine, start time and age of the run that holds the lock, and where
    something else has the name of the lock, such as a link to a file of somebody: a lock is written into.
    """
    with output_errors(lock.shown):
        fd = _acquire(lock)
    if fd is None:
        raise _busy(lock, owner, read_owner(lock.path))
    return _flocked(lock, owner, fd) if fd >= 0 else hold_marker(lock, owner)


def _acquire(lock: Lock) -> int | None:
    """Return a file descriptor that holds the lock, None if another run holds it, -1 if there is no ``flock``."""
    while True:
        try:
            fd = os.open(lock.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _no_lock(lock) from None
            raise
        is_held = False
        try:
            at = os.fstat(fd)
            if not stat.S_ISREG(at.st_mode) or at.st_nlink > 1:
                raise _no_lock(lock)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The former owner may have unlinked the file between our open and our flock. The lock would then be on a
            # file that no other run can open, so open the path again.
            is_held = _is_at(fd, lock.path)
            if is_held:
                return fd
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return -1
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        finally:
            if not is_held:
                os.close(fd)


def _no_lock(lock: Lock) -> OutputError:
    what = f"{lock.path} has the name of the lock of {lock.shown} and is no lock; nothing was written"
    return OutputError(what, f"move it away, or {lock.instead}")


@contextmanager
def _flocked(lock: Lock, owner: Owner, fd: int) -> Iterator[Owner | None]:
    try:
        with output_errors(lock.shown):
            former = _parse(os.pread(fd, _LONGEST, 0))
            os.ftruncate(fd, 0)
            os.pwrite(fd, owner.to_json(), 0)
        yield former
    finally:
        if _is_at(fd, lock.path):
            Path(
                lock.path
            ).unlink()  # while it is locked: a run that waits in `_acquire` then sees that the file is gone
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), Path(path).lstat())
    except FileNotFoundError:
        return False


@contextmanager
def hold_marker(lock: Lock, owner: Owner) -> Iterator[Owner | None]:
    """Hold a lock on a file system without ``flock``, such as a store, in a context whose value is as in `hold_lock`.

    The lock is a marker file that is checked and then written: two runs that start at the same instant may both get
    it. A run takes over the marker of a dead process of the same machine; the user must delete any other by hand.
    Raises `OutputError` as `hold_lock` does.
    """
    with output_errors(lock.shown):
        former = _read_marker(lock)
        if former and not is_dead(former, owner.host):
            raise busy(lock.shown, owner, former, f"delete {lock.path} if that run is dead")
        with lock.fs.open_output_stream(lock.path) as file:
            file.write(owner.to_json())
        if (now := _read_marker(lock)) != owner:
            raise _busy(lock, owner, now)
    try:
        yield former
    finally:
        if _read_marker(lock) == owner:
            lock.fs.delete_file(lock.path)


def _read_marker(lock: Lock) -> Owner | None:
    if lock.fs.get_file_info(lock.path).size is None:
        return None
    with lock.fs.open_input_stream(lock.path) as file:
        text = file.read()
    owner = _parse(text)
    if text and owner is None:  # `_acquire` leaves an empty file where there is no ``flock``
        what = f"the lock {lock.path} does not say which run holds it; nothing was written"
        raise OutputError(what, f"delete it if no run is writing to {lock.shown}")
    return owner


def read_owner(path: str) -> Owner | None:
    """Return the run that is named in a local lock file, alive or dead; None where no run is."""
    try:
        return _parse(read_file(path))
    except OSError:
        return None


def _parse(text: bytes) -> Owner | None:
    try:
        content = json.loads(text)
        owner = Owner(int(content["pid"]), str(content["host"]), str(content["started"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # damaged, or empty in the instant after the lock is taken and before the owner is written
    return owner if 0 < owner.pid < _MOST_PROCESSES else None


def is_dead(owner: Owner, host: str) -> bool:
    """Whether ``owner`` is a run of the machine ``host`` that has ended; false for runs of other machines."""
    if owner.host != host:
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def age(started: str, now: str) -> str | None:
    """Return the time from ``started`` to ``now``, such as ``3 h 12 min ago``.

    Both are ISO 8601. Returns None for less than a minute, and where one of them is no time.
    """
    try:
        minutes = (dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(started)) // dt.timedelta(minutes=1)
    except (ValueError, TypeError):  # not ISO 8601, or only one of them has a zone
        return None
    if minutes < 1:
        return None
    units = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    return " ".join([f"{count} {unit}" for count, unit in units if count][:2]) + " ago"


def busy(shown: str, owner: Owner, held: Owner | None, do: str) -> OutputError:
    """Return the error for a run that may not begin, because the run ``held`` writes to an output or a state."""
    who = f" ({held.describe(owner.started)})" if held else ""
    return OutputError(f"another run is writing to {shown}{who}; nothing was written", do)


def _busy(lock: Lock, owner: Owner, held: Owner | None) -> OutputError:
    return busy(lock.shown, owner, held, f"wait for it to end, or {lock.instead}")
