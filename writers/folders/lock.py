"""One run at a time for one output, and for one state."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyarrow import fs

from ...windowing.errors import OutputError
from .os_errors import output_errors
from .place import Place

_LONGEST = 1 << 12  # bytes of a lock file, far more than it has
_MOST_PROCESSES = 1 << 31  # a process id is a number of 32 bits
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


@dataclass(frozen=True, slots=True)
class Owner:
    """The run that holds a lock: its process id, its machine, and when it started (ISO 8601)."""

    pid: int
    host: str
    started: str

    def to_json(self) -> bytes:
        """Return it as the text of a lock file."""
        return json.dumps(asdict(self)).encode()

    def describe(self, now: str) -> str:
        """Return it in words, with its age at ``now`` (ISO 8601) where that is a minute or more."""
        since = age(self.started, now)
        return f"process {self.pid} on {self.host}, started {self.started}" + (f", {since}" if since else "")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file: ``path`` in the file system ``fs``. ``shown``: what it guards; ``instead``: what else one may do."""

    fs: fs.FileSystem
    path: str
    shown: str
    instead: str


def hold(place: Place, owner: Owner) -> AbstractContextManager[Owner | None]:
    """Hold an output, as `hold_lock` holds a lock."""
    return hold_lock(Lock(place.fs, place.lock, place.shown, "choose another output"), owner)


def hold_lock(lock: Lock, owner: Owner) -> AbstractContextManager[Owner | None]:
    """Hold a lock for as long as the context lasts; it is gone at its end.

    The context gives the owner that a lock was taken over from, a run that died without letting it go, or None.
    On a local file system the lock is a file held with ``flock``: a killed run frees it by dying.
    Elsewhere, and where the file system has no ``flock``, it is a mark: an object that is checked and then
    written, so two runs that start within the same instant may both get it; the mark of a dead process of the
    same machine is taken over, any other has to be deleted by hand.
    Raises `OutputError` naming the process, machine, start time and age of the run that holds it.
    """
    if not isinstance(lock.fs, fs.LocalFileSystem):
        return _hold_mark(lock, owner)
    with output_errors(lock.shown):
        fd = _acquire(lock.path)
    if fd is None:
        raise _busy(lock, owner, read_owner(lock.path))
    return _flocked(lock, owner, fd) if fd >= 0 else _hold_mark(lock, owner)


def _acquire(path: str) -> int | None:
    """Return a descriptor that holds the lock, None where another run has it, -1 where there is no ``flock``."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in _NO_LOCKS:
                return -1
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        # The run before may have unlinked the file between our open and our flock: then we hold a lock on a file
        # that nobody else will ever open, and have to start again.
        if _is_at(fd, path):
            return fd
        os.close(fd)


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
            Path(lock.path).unlink()  # while it is locked: whoever has it open finds it gone in `_acquire`
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), Path(path).stat())
    except FileNotFoundError:
        return False


@contextmanager
def _hold_mark(lock: Lock, owner: Owner) -> Iterator[Owner | None]:
    with output_errors(lock.shown):
        former = _read_mark(lock)
        if former and not is_dead(former, owner.host):
            raise _busy(lock, owner, former, f"delete {lock.path} if that run is dead")
        with lock.fs.open_output_stream(lock.path) as file:
            file.write(owner.to_json())
        if (now := _read_mark(lock)) != owner:
            raise _busy(lock, owner, now)
    try:
        yield former
    finally:
        if _read_mark(lock) == owner:
            lock.fs.delete_file(lock.path)


def _read_mark(lock: Lock) -> Owner | None:
    if lock.fs.get_file_info(lock.path).size is None:
        return None
    with lock.fs.open_input_stream(lock.path) as file:
        text = file.read()
    owner = _parse(text)
    if text and owner is None:  # `_acquire` leaves an empty one where there is no ``flock``
        what = f"the lock {lock.path} does not say which run holds it; nothing was written"
        raise OutputError(what, f"delete it if no run is writing to {lock.shown}")
    return owner


def read_owner(path: str) -> Owner | None:
    """Return who has signed a local lock file, alive or dead; None where nobody has."""
    try:
        return _parse(Path(path).read_bytes())
    except FileNotFoundError:
        return None


def _parse(text: bytes) -> Owner | None:
    try:
        content = json.loads(text)
        owner = Owner(int(content["pid"]), str(content["host"]), str(content["started"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # empty for the instant between taking the lock and signing it, or damaged
    return owner if 0 < owner.pid < _MOST_PROCESSES else None


def is_dead(owner: Owner, host: str) -> bool:
    """Whether a run of the machine ``host`` has ended; of other machines nobody can tell, so false."""
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
    """Return how long before ``now`` a run started, such as ``3 h 12 min ago``.

    Both are ISO 8601. None within the first minute, and where the two do not tell.
    """
    try:
        minutes = (dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(started)) // dt.timedelta(minutes=1)
    except (ValueError, TypeError):  # no times at all, or one with and one without a zone
        return None
    if minutes < 1:
        return None
    units = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    return " ".join([f"{count} {unit}" for count, unit in units if count][:2]) + " ago"


def _busy(lock: Lock, owner: Owner, held: Owner | None, do: str | None = None) -> OutputError:
    who = f" ({held.describe(owner.started)})" if held else ""
    what = f"another run is writing to {lock.shown}{who}; nothing was written"
    return OutputError(what, do or f"wait for it to end, or {lock.instead}")
