"""The only writer to stderr: notes, errors and the closing summary, and the exit code of every error."""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from typing import Any, TextIO

from windowing.errors import (
    ConfigError,
    DataError,
    InputError,
    OutputError,
    SparkError,
    SpecError,
    WincliError,
)

OK = 0
UNEXPECTED = 1
USAGE = 2
INPUT = 3
DATA = 4
SPARK = 5
INTERRUPTED = 130
TERMINATED = 143

_EXIT_CODES: tuple[tuple[type[WincliError], int], ...] = (
    (SpecError, USAGE),
    (ConfigError, USAGE),
    (InputError, INPUT),
    (OutputError, INPUT),
    (DataError, DATA),
    (SparkError, SPARK),
)


class Stopped(BaseException):
    """SIGINT or SIGTERM arrived: ``code`` is the exit code. Not an `Exception`, as `KeyboardInterrupt` is none."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error (design section 1)."""
    if isinstance(error, Stopped):
        return error.code
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), UNEXPECTED)


@dataclass(frozen=True, slots=True)
class Messages:
    """Writes to stderr. ``level``: -1 errors only, 0 notes too, 1 details too, 2 stack traces of errors too."""

    level: int = 0
    as_json: bool = False
    stream: TextIO | None = None

    def note(self, text: str, **fields: Any) -> None:
        """Tell what was chosen or found."""
        if self.level >= 0:
            self._write("note", text, fields)

    def detail(self, text: str, **fields: Any) -> None:
        """Tell what only ``-v`` asks for."""
        if self.level >= 1:
            self._write("detail", text, fields)

    def summary(self, text: str, **fields: Any) -> None:
        """Tell what the run came to."""
        if self.level >= 0:
            self._write("summary", text, fields)

    def error(self, error: BaseException) -> None:
        """Tell an error in one line (a spec error draws its caret below); with ``-vv`` where it came from."""
        self._write("error", _text(error), {"exit_code": exit_code(error)})
        if self.level >= 2:
            traceback.print_exception(error, file=self._stream)

    @property
    def _stream(self) -> TextIO:
        return self.stream or sys.stderr

    def _write(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        if self.as_json:
            line = json.dumps({"level": kind, "message": text, **fields}, default=str)
        elif kind == "summary":
            line = f"wincli: {text}"
        else:
            line = f"wincli: {kind}: {text}"
        print(line, file=self._stream, flush=True)


def _text(error: BaseException) -> str:
    if isinstance(error, Stopped):
        return f"{'interrupted' if error.code == INTERRUPTED else 'terminated'}; nothing was written"
    if isinstance(error, WincliError):
        return str(error)
    first = (str(error).splitlines() or [""])[0]
    return f"unexpected {type(error).__name__}: {first}; run again with -vv and report what it prints"
