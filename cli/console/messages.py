"""The only writer to stderr: notes, errors and the closing summary, and the exit code of every error.

Texts are escaped so that none can begin a line of its own or control a terminal, and secrets are masked
(`windowing.support.redaction`).
"""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import dataclass, replace
from typing import Any, TextIO

from ...windowing.errors import (
    ConfigError,
    DataError,
    InputError,
    OutputError,
    SparkError,
    SpecError,
    WincliError,
    shown,
    shown_lines,
)
from ...windowing.support.redaction import without
from ...windowing.support.store_errors import StoreTrouble, store_trouble
from .streams import json_text

OK = 0
UNEXPECTED = 1
USAGE = 2
INPUT = 3
DATA = 4
SPARK = 5
HUNG_UP = 129
INTERRUPTED = 130
QUIT = 131
CLOSED = 141
TERMINATED = 143

_STOPPED = {HUNG_UP: "hung up", INTERRUPTED: "interrupted", QUIT: "quit", TERMINATED: "terminated"}

_EXIT_CODES: tuple[tuple[type[WincliError], int], ...] = (
    (SpecError, USAGE),
    (ConfigError, USAGE),
    (InputError, INPUT),
    (OutputError, INPUT),
    (DataError, DATA),
    (SparkError, SPARK),
)


class Stopped(BaseException):
    """A signal to stop has arrived. It is no `Exception`, like `KeyboardInterrupt`.

    ``kept``: the units that were done before it, and stay; None: nothing was written.
    """

    def __init__(self, code: int, kept: str | None = None) -> None:
        super().__init__(code)
        self.code, self.kept = code, kept


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error."""
    if isinstance(error, Stopped):
        return error.code
    if _store_trouble(error):
        return INPUT
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), UNEXPECTED)


@dataclass(frozen=True, slots=True)
class Messages:
    """The writer to stderr.

    ``level``: -1 writes errors only, 0 notes too, 1 details too, 2 stack traces of errors too.
    ``as_json``: whether each message is a line of JSON.
    ``stream``: where messages go; None for stderr.
    ``secrets``: texts to mask wherever they occur, besides those that `redaction` knows by their form.
    """

    level: int = 0
    as_json: bool = False
    stream: TextIO | None = None
    secrets: tuple[str, ...] = ()

    def note(self, text: str, **fields: Any) -> None:
        """Write a note: something that the run has chosen or found."""
        if self.level >= 0:
            self._write("note", shown(text), fields)

    def detail(self, text: str, **fields: Any) -> None:
        """Write a detail, which only ``-v`` shows."""
        if self.level >= 1:
            self._write("detail", shown(text), fields)

    def summary(self, text: str, **fields: Any) -> None:
        if self.level >= 0:
            self._write("summary", shown(text), fields)

    def progress(self, text: str, **fields: Any) -> None:
        """Write how far the run is, as a line of JSON whatever the form of other messages."""
        if self.level >= 0:
            replace(self, as_json=True)._write("progress", shown(text), fields)

    def error(self, error: BaseException) -> None:
        """Write an error in one line (a spec error draws its caret below); with ``-vv`` its stack trace too."""
        trace = "".join(traceback.format_exception(error)) if self.level >= 2 else ""
        fields = {"exit_code": exit_code(error)} | ({"trace": trace} if trace and self.as_json else {})
        self._write("error", _text(error), fields)
        if trace and not self.as_json:
            self._print(self.clean(trace.rstrip("\n")))

    def ask(self, question: str) -> bool:
        """Ask on the terminal whether to go on, and return whether the answer is yes."""
        print(f"wincli: {shown(self.clean(question))} [y/N] ", end="", file=self.stream or sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def java(self, line: str) -> None:
        if self.as_json:
            self._write("java", shown(line), {})
        else:
            self._print(self.clean(shown(line)))

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        return without(text, self.secrets)

    def clean_values(self, value: Any) -> Any:
        """Return JSON values without secrets, and without halves of pairs, which JSON cannot hold."""
        if isinstance(value, dict):
            return {self.clean_values(key): self.clean_values(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean_values(inner) for inner in value]
        return self.clean(value).encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value

    def _write(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        text = self.clean(text)
        if self.as_json:
            self._print(json_text({"level": kind, "message": text, **self.clean_values(fields)}))
        else:
            self._print(f"wincli: {text}" if kind == "summary" else f"wincli: {kind}: {text}")

    def _print(self, text: str) -> None:
        stream = self.stream or sys.stderr
        if stream is not None:  # a process without stderr has no reader
            print(f"{shown_lines(text)}\n", end="", file=stream, flush=True)  # at once: other threads write, too


def _store_trouble(error: BaseException) -> StoreTrouble | None:
    """Return why a store refused in the middle of a run; None for any other error."""
    return store_trouble(str(error)) if isinstance(error, OSError) and not error.errno else None


def _text(error: BaseException) -> str:
    if isinstance(error, Stopped):
        if error.kept is None:
            return f"{_STOPPED[error.code]}; nothing was written"
        return f"{_STOPPED[error.code]}; done before that, and kept: {error.kept}; the same command runs the rest"
    if isinstance(error, WincliError):
        return str(error)
    if trouble := _store_trouble(error):
        where = re.search(r"key '[^']*' in bucket '[^']*'", str(error))
        return f"{trouble.words}{f' ({shown(where[0])})' if where else ''}; {trouble.do}"
    first = (str(error).splitlines() or [""])[0]
    return f"unexpected {type(error).__name__}: {shown(first)}; run again with -vv and report what it prints"
