"""Standard streams that survive a reader that goes away or a file that is closed.

Messages on stderr may be lost, and the run goes on without them. Data on stdout may not: a reader that closes the pipe
has read enough, and the command ends with an exit code for that; any other failure to write is an error.

Texts of both are escaped here once more, whoever prints them, such as the parser of the command line, a warning of
Python or a library: of control characters only ends of lines pass, and to a terminal wincli's own colours.
"""

from __future__ import annotations

import errno
import io
import os
import re
import select
import sys
from collections.abc import Callable
from typing import TextIO

from ...windowing.errors import OutputError, shown_lines

_COLOURS = re.compile(r"(\x1b\[(?:0|1|2|31|32|33|36)m)")  # `typer.style`, those of cases, the doctor, drawings
_COMPLETION = "_WINCLI_COMPLETE"
_LOST = (errno.EPIPE, errno.ECONNRESET)  # the reader has closed its end


class ReaderGoneError(Exception):
    """The reader of stdout has closed its end. It is no `OSError`, for click has an exit code of its own for those."""


def guard_streams() -> None:
    """Open the file descriptors 0, 1 and 2 where they are closed, and guard stdout and stderr.

    Call this before any other file is opened, or that file would get one of these numbers. To read or write a stream
    that was closed stays an error, but not for stderr.
    """
    for number, way in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, way)  # gets the least free number
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
    """A raw file with a given descriptor. The first write that fails calls ``lost``; later writes do nothing."""

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
            except BlockingIOError:  # another writer of the pipe has made it non-blocking
                select.select([], [self._number], [])
            except OSError as error:
                self._is_lost = True
                self._lost(error)
        return size


def plain_text(text: str, has_colours: bool) -> str:
    """Return a text with all escaped that is more than text to a terminal, but for ends of lines and own colours."""
    if not has_colours or "\x1b" not in text:
        return shown_lines(text)
    return "".join(part if at % 2 else shown_lines(part) for at, part in enumerate(_COLOURS.split(text)))


class _Words(io.TextIOWrapper):
    """A text stream in which nothing but text reaches a terminal."""

    def write(self, text: str, /) -> int:
        cells = text.split("\t") if _COMPLETION in os.environ else [text]  # shells want tabs between word and help
        super().write("\t".join(plain_text(cell, self.isatty()) for cell in cells))
        return len(text)


def controls() -> TextIO:
    """Return stderr for what moves the cursor of a terminal, such as a bar, and never for texts of data."""
    if not isinstance(sys.stderr, _Words):
        return sys.stderr
    raw = io.BufferedWriter(_Guarded(2, _lost_words))
    return io.TextIOWrapper(raw, sys.stderr.encoding, "backslashreplace", write_through=True)


def _guarded(number: int, was: io.TextIOBase | object, lost: Callable[[OSError], None]) -> io.TextIOWrapper:
    """Return a text stream in place of Python's own, in its encoding; letters that this lacks are escaped."""
    if isinstance(was, io.TextIOBase):
        was.flush()
    encoding = getattr(was, "encoding", None) or "utf-8"
    raw = io.BufferedWriter(_Guarded(number, lost))
    at_once = number == 2 or os.isatty(number)
    return _Words(raw, encoding, "backslashreplace", line_buffering=at_once, write_through=number == 2)
