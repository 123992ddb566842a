"""Standard streams that hold whatever the other side does.

What stderr tells may get lost, a run may not: where nobody can be told, nobody is. What goes to stdout is data: a
reader who closes a pipe has read what he wanted, which an exit code tells; anything else that loses data is an error.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Callable

from ...windowing.errors import OutputError

_LOST = (errno.EPIPE, errno.ECONNRESET)  # the reader has gone


class ReaderGoneError(Exception):
    """Nobody reads stdout any more. Not an `OSError`, of which click makes an exit code of its own."""


def guard_streams() -> None:
    """Make sure that files 0, 1 and 2 are open, or the next file would be one of them, and guard stdout and stderr.

    To be called before any file is opened. Whoever reads or writes one that was closed gets an error, but for stderr.
    """
    for number, way in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, way)  # takes the least number that is free
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _guarded(1, sys.stdout, _lost_data)
    sys.stderr = _guarded(2, sys.stderr, _lost_words)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _lost_data(error: OSError) -> None:
    if error.errno in _LOST:
        raise ReaderGoneError from error
    reason = "it is closed" if error.errno == errno.EBADF else (error.strerror or str(error)).lower()
    raise OutputError(f"cannot write to stdout: {reason}", "send it where it can be written") from error


def _lost_words(_: OSError) -> None:
    return


class _Guarded(io.RawIOBase):
    """A file by its number. After the first write that fails, which ``lost`` is told of, nothing is written."""

    def __init__(self, number: int, lost: Callable[[OSError], None]) -> None:
        super().__init__()
        self._number = number
        self._lost = lost
        self._is_lost = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: object, /) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        size = len(view)
        while view and not self._is_lost:
            try:
                view = view[os.write(self._number, view) :]
            except BlockingIOError:  # a pipe that another of its writers has made so
                select.select([], [self._number], [])
            except OSError as error:
                self._is_lost = True
                self._lost(error)
        return size


def _guarded(number: int, was: io.TextIOBase | object, lost: Callable[[OSError], None]) -> io.TextIOWrapper:
    """A text stream in the place of Python's own, in its encoding; a letter that this lacks is escaped."""
    if isinstance(was, io.TextIOBase):
        was.flush()
    encoding = getattr(was, "encoding", None) or "utf-8"
    raw = io.BufferedWriter(_Guarded(number, lost))
    at_once = number == 2 or os.isatty(number)
    return io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=at_once, write_through=number == 2)
