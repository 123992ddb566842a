"""The errors that a user can cause, by the kind of thing that went wrong.

A message says what happened and where; ``do`` says what to do about it. The command line chooses the exit code and the
words before the message (``cli/console/messages.py``); a library user catches `WincliError`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

UNSAFE = (
    r"\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL and C1
    r"\u2028\u2029"  # ends of lines and paragraphs
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of the text around it
    r"\ud800-\udfff"  # halves of pairs, which no encoding takes
)
"""What is more than text to a terminal, as a set of a regular expression."""
_HALF = re.compile("[\ud800-\udfff]")
_ONE = re.compile(f"[{UNSAFE}]")
_WORDS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_MOST = 160  # characters of a source that a message shows
_BYTES = range(0xDC80, 0xDD00)  # bytes of a file name that is no text, as Python keeps them

NO_TYPE_YET = "no row has a value there: give the column of the input that it comes from a type with --schema NAME:TYPE"
"""What to do about a column of type null where what is written must have a type."""


class WincliError(Exception):
    """Base class of all errors with a message for the user.

    ``what``: what happened and where, one line.
    ``do``: what to do about it, or None.

    The text of the error escapes everything quoted from paths and data (`shown`), so that only wincli itself adds line
    ends to it.
    """

    def __init__(self, what: str, do: str | None = None) -> None:
        super().__init__(what, do)
        self.what = what
        self.do = do

    def __str__(self) -> str:
        return shown(f"{self.what}; {self.do}" if self.do else self.what)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, stop)`` of characters of a source text.

    ``start``: the first character, from 0.
    ``stop``: the character after the last.
    """

    start: int
    stop: int


class SpecError(WincliError):
    """A window spec, an aggregate or a schema text with a syntax error.

    ``source``: the whole text; of a long one the message shows what is around the span.
    ``span``: the characters at fault, which the message marks with a caret line.
    """

    def __init__(self, what: str, source: str, span: Span, do: str | None = None) -> None:
        super().__init__(what, do)
        self.source = source
        self.span = span

    def __str__(self) -> str:
        source, span = _around(self.source, self.span)
        before, at = shown(source[: span.start]), shown(source[span.start : span.stop])
        caret = " " * len(before) + "^" * max(1, len(at))
        return f"{super().__str__()}\n  {shown(source)}\n  {caret}"


@contextmanager
def naming_option(label: str) -> Iterator[None]:
    """Begin the message of each `SpecError` of the body with its option: the text that it shows may be of several.

    ``label``: ``--where``, or ``--let total``.
    """
    try:
        yield
    except SpecError as error:
        error.what = f"{label}: {error.what}"
        raise


def _around(source: str, span: Span) -> tuple[str, Span]:
    if len(source) <= _MOST:
        return source, span
    start = max(0, min(span.start - _MOST // 2, len(source) - _MOST))
    stop = start + _MOST
    before, after = "..." if start else "", "..." if stop < len(source) else ""
    shift = len(before) - start
    return f"{before}{source[start:stop]}{after}", Span(span.start + shift, min(span.stop, stop) + shift)


class ConfigError(WincliError):
    """Options, columns or types that cannot be combined: the user must request something else."""


class MistakesError(ConfigError):
    """Several mistakes in one job.

    ``errors``: the mistakes; the message lists them below its first line, each on lines of its own.
    """

    def __init__(self, what: str, do: str | None = None, errors: Sequence[WincliError] = ()) -> None:
        super().__init__(what, do)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        below = "".join(f"\n{error}" for error in self.errors).replace("\n", "\n  ")
        return super().__str__() + below


class ClockError(ConfigError):
    """A window needs a time or a number, and there is none.

    ``column``: the column named for it, which is neither; None where no column is named and none is a time.
    """

    def __init__(self, what: str, do: str | None = None, column: str | None = None) -> None:
        super().__init__(what, do)
        self.column = column


class InputError(WincliError):
    """An input that is missing or cannot be read."""


class DamagedError(InputError):
    """A file that wincli has written is damaged: it is missing, truncated, or has other content."""


class OutputError(WincliError):
    """An output that cannot be written. An earlier output at the same place is still there, unchanged."""


class DataError(WincliError):
    """Data that breaks the contract, such as an overflow, or more rejects than allowed."""


class SparkError(WincliError):
    """Java is missing, or Spark failed for a reason that is not the user's data."""


class PartitionWarning(UserWarning):
    """All rows of a DataFrame go through one partition, though they have keys: its tasks do not run side by side."""


def shown(text: str) -> str:
    """Return a text with unsafe characters escaped as in Python, and bytes of file names as bytes: ``\\xff``.

    The function does not change a text that it has returned before.
    """
    return _ONE.sub(_escape, text)


def install_extra(extra: str) -> str:
    """Return what to do where a package of an extra is missing; on no index, wincli is installed from its folder."""
    return f"in the folder of wincli, run: pip install '.[{extra}]'"


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


# Names in messages: suggestions for misspelt names ("did you mean"), and short lists of many names.


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to ``word``, or None if none is similar.

    Case is ignored: ``nearest("Amout", ["amount", "ts"]) == "amount"``.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest choice, else a list of the choices."""
    known = list(choices)
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(known) if known else "there are none"


def short(text: str, most: int = 60) -> str:
    """Return a text for a message, cut to at most ``most`` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def few(names: Sequence[str], most: int = 3) -> str:
    """Return names in one line: the first ``most``, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
