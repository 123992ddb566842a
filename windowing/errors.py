"""Every error a user can cause, by what kind of thing went wrong.

A message says what happened and where; ``do`` says what to do about it. Which exit code and which
words go before it belong to the command line (``cli/console/messages.py``); a library user catches `WincliError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_UNSAFE = (
    r"\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL and C1
    r"\u2028\u2029"  # ends of lines and paragraphs
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of the text around it
    r"\ud800-\udfff"  # halves of pairs, which no encoding takes
)
_HALF = re.compile("[\ud800-\udfff]")
_ONE = re.compile(f"[{_UNSAFE}]")
_WORDS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_BYTES = range(0xDC80, 0xDD00)  # bytes of a file name that is no text, as Python keeps them


class WincliError(Exception):
    """Base of all errors with a message for the user.

    ``what`` is one line: what happened and where. ``do`` is what to do about it, or None. As text, what they quote of
    paths and data is escaped (`shown`): the only line ends in it are of our own making.
    """

    def __init__(self, what: str, do: str | None = None) -> None:
        super().__init__(what, do)
        self.what = what
        self.do = do

    def __str__(self) -> str:
        return shown(f"{self.what}; {self.do}" if self.do else self.what)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, stop)`` of characters of a source text."""

    start: int
    stop: int


class SpecError(WincliError):
    """A window spec, an aggregate or a schema text that does not read.

    Keeps the ``source`` text and the ``span`` at fault, so that a caret line can be drawn under it.
    """

    def __init__(self, what: str, source: str, span: Span, do: str | None = None) -> None:
        super().__init__(what, do)
        self.source = source
        self.span = span

    def __str__(self) -> str:
        before, at = shown(self.source[: self.span.start]), shown(self.source[self.span.start : self.span.stop])
        caret = " " * len(before) + "^" * max(1, len(at))
        return f"{super().__str__()}\n  {shown(self.source)}\n  {caret}"


class ConfigError(WincliError):
    """Options, columns or types that do not go together: the user must ask for something else."""


class MistakesError(ConfigError):
    """Several mistakes of one job: ``errors`` are told below, each on lines of its own."""

    def __init__(self, what: str, do: str | None = None, errors: Sequence[WincliError] = ()) -> None:
        super().__init__(what, do)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        below = "".join(f"\n{error}" for error in self.errors).replace("\n", "\n  ")
        return super().__str__() + below


class ClockError(ConfigError):
    """A window that needs a time or a number where there is none.

    ``column``: the one named for it, which is neither; None where none is named and none is a time.
    """

    def __init__(self, what: str, do: str | None = None, column: str | None = None) -> None:
        super().__init__(what, do)
        self.column = column


class InputError(WincliError):
    """An input that is missing or cannot be read."""


class DamagedError(InputError):
    """A file of wincli's own that is no longer what was written: it is gone, cut, or has other content."""


class OutputError(WincliError):
    """An output that cannot be written. Whatever stood there before still stands."""


class DataError(WincliError):
    """Data that breaks the contract: an overflow, or more rejects than allowed."""


class SparkError(WincliError):
    """Java is missing, or Spark failed for a reason that is not the user's data."""


def shown(text: str) -> str:
    """Return a text with all that is not to be shown escaped as in Python, bytes of file names as such: ``\\xff``.

    A text that is shown already stays as it is.
    """
    return _ONE.sub(_escape, text)


def printable(path: str) -> str:
    r"""Return the name of a file with bytes that are no UTF-8 as ``\xe9``; any other name as it is."""
    return path if path.isascii() else _HALF.sub(_escape, path)


def shown_lines(text: str) -> str:
    """Return several lines, each as `shown` shows it."""
    return "\n".join(map(shown, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _WORDS:
        return _WORDS[found[0]]
    if code in _BYTES:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
