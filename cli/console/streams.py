"""Standard streams that survive a reader that goes away or a file that is closed.

Messages on stderr may be lost, and the run goes on without them. Data on stdout may not: a reader that closes the pipe
has read enough, and the command ends with an exit code for that; any other failure to write is an error.

Texts of both are escaped here once more, whoever prints them, such as the parser of the command line, a warning of
Python or a library: of control characters only ends of lines pass, and to a terminal wincli's own colours.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TextIO

import typer

from ...windowing.errors import UNSAFE, ConfigError, OutputError, shown, shown_lines
from ...windowing.support.redaction import redacted

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
        try:
            os.fstat(number)
        except OSError:  # it is closed
            os.open(os.devnull, way)  # gets the least free number
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _guarded(1, sys.stdout, _lost_data)
    sys.stderr = _guarded(2, sys.stderr, _lost_words)


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


# Texts for stdout, as `cli.console.messages` has those for stderr. Data, such as rows of CSV, goes to its bytes.


_UNSAFE = re.compile(f"(?!\n)[{UNSAFE}]")


def clean(text: str) -> str:
    """Return a text of data or of a user as one line of what is printed: without secrets, and safe on a terminal."""
    return redacted(shown(text))


def say(*lines: str) -> None:
    """Print lines, at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def json_text(value: Any, indent: int | None = None, *, is_ascii: bool = True) -> str:
    """Return a value as JSON in which a terminal finds nothing but text; what is no JSON value is its text."""
    text = json.dumps(value, default=str, indent=indent, ensure_ascii=is_ascii)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# Lines for a person on stdout: through ``$PAGER`` where they are more than the terminal shows at once.


_NO_PAGER = ("", "cat")
_LESS = "less -RS"
"""Colours are shown, and lines are not folded: tables stay tables."""


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def terminal_width() -> int | None:
    """Return how many characters a line on stdout has room for; None where stdout is no terminal."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def has_colour() -> bool:
    """Whether stdout takes colours: it is a terminal, and not a dumb one, and ``NO_COLOR`` is not set."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """Return a text in bold, where stdout takes colours."""
    return typer.style(text, bold=True) if has_colour() else text


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to stdout as they come: through ``$PAGER``, if stdout is a terminal with fewer lines.

    Raises `ConfigError` where there is no such program.
    """
    ended: Iterator[str] = (f"{line}\n" for line in lines)
    named = os.environ.get("PAGER")  # no program where the user wants none, or there is none
    pager = _LESS if named is None and shutil.which("less") else named or ""
    if pager.strip() not in _NO_PAGER and is_terminal():
        height = shutil.get_terminal_size().lines
        first = list(islice(ended, height))
        ended = chain(first, ended)
        if len(first) == height:
            _page(shlex.split(pager), ended)
            return
    while lot := "".join(islice(ended, 1000)):  # to write one by one takes longer than to make them
        sys.stdout.write(lot)


def _page(command: Sequence[str], lines: Iterator[str]) -> None:
    sys.stdout.flush()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"PAGER: {command[0]} cannot be started", "set PAGER=cat, or to a program") from error
    with suppress(BrokenPipeError), pager:  # the user may have seen enough before the end
        assert pager.stdin is not None
        for line in lines:
            pager.stdin.write(plain_text(line, has_colours=True))
