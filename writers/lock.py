"""One run at a time for one output."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from windowing.errors import OutputError
from writers.faults import writing
from writers.place import Place

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


def hold(place: Place, owner: Owner) -> AbstractContextManager[None]:
    """Hold the output for as long as the context lasts; the lock is gone at its end.

    On a local file system the lock is a file held with ``flock``: a killed run frees it by dying.
    Elsewhere, and where the file system has no ``flock``, it is a mark: an object that is checked and then
    written, so two runs that start within the same instant may both get it; the mark of a dead process of the
    same machine is taken over, any other has to be deleted by hand.
    Raises `OutputError` naming the process, machine and start time of the run that holds it.
    """
    if not place.local:
        return _marked(place, owner)
    with writing(place.shown):
        fd = _acquire(place.lock)
    if fd is None:
        raise _busy(place, _read_local(place.lock))
    return _flocked(place, owner, fd) if fd >= 0 else _marked(place, owner)


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
def _flocked(place: Place, owner: Owner, fd: int) -> Iterator[None]:
    try:
        with writing(place.shown):
            os.ftruncate(fd, 0)
            os.pwrite(fd, owner.to_json(), 0)
        yield
    finally:
        if _is_at(fd, place.lock):
            Path(place.lock).unlink()  # while it is locked: whoever has it open finds it gone in `_acquire`
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), Path(path).stat())
    except FileNotFoundError:
        return False


@contextmanager
def _marked(place: Place, owner: Owner) -> Iterator[None]:
    with writing(place.shown):
        before = _read_mark(place)
        if before and not _dead(before, owner.host):
            raise _busy(place, before, f"delete {place.lock} if that run is dead")
        with place.fs.open_output_stream(place.lock) as file:
            file.write(owner.to_json())
        if _read_mark(place) != asdict(owner):
            raise _busy(place, _read_mark(place))
    try:
        yield
    finally:
        if _read_mark(place) == asdict(owner):
            place.fs.delete_file(place.lock)


def _read_mark(place: Place) -> dict[str, object]:
    if place.fs.get_file_info(place.lock).size is None:
        return {}
    with place.fs.open_input_stream(place.lock) as file:
        return _parse(file.read())


def _read_local(path: str) -> dict[str, object]:
    try:
        return _parse(Path(path).read_bytes())
    except FileNotFoundError:  # the other run ended meanwhile
        return {}


def _parse(text: bytes) -> dict[str, object]:
    try:
        return dict(json.loads(text))
    except ValueError:  # empty for the instant between taking the lock and signing it
        return {}


def _dead(held: dict[str, object], host: str) -> bool:
    if held.get("host") != host or not isinstance(held.get("pid"), int):
        return False
    try:
        os.kill(int(str(held["pid"])), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _busy(
    place: Place, held: dict[str, object], do: str = "wait for it to end, or choose another output"
) -> OutputError:
    who = f" (process {held['pid']} on {held['host']}, started {held['started']})" if held else ""
    return OutputError(f"another run is writing to {place.shown}{who}; nothing was written", do)
