"""Lines for a person on stdout: through ``$PAGER`` where they are more than the terminal shows at once."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice

import typer

from ...windowing.errors import ConfigError
from .streams import plain_text

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
    pager, several = _pager(), iter(lines)
    if pager is not None and is_terminal():
        height = shutil.get_terminal_size().lines
        first = list(islice(several, height))
        if len(first) == height:
            _page(pager, _end_lines(chain(first, several)))
            return
        several = iter(first)
    for lot in _join_lines(_end_lines(several)):
        sys.stdout.write(lot)


def _pager() -> list[str] | None:
    """Return the command of the pager; None where the user wants none, or there is none."""
    named = os.environ.get("PAGER")
    if named is None:
        return shlex.split(_LESS) if shutil.which("less") else None
    return None if named.strip() in _NO_PAGER else shlex.split(named)


def _page(command: Sequence[str], lines: Iterator[str]) -> None:
    """Send lines to a pager as it reads them, and wait until its user has left it."""
    sys.stdout.flush()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"PAGER: {command[0]} cannot be started", "set PAGER=cat, or to a program") from error
    with suppress(BrokenPipeError), pager:  # the user may have seen enough before the end
        assert pager.stdin is not None
        for line in lines:
            pager.stdin.write(plain_text(line, has_colours=True))


def _end_lines(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def _join_lines(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines a thousand at a time: to write one by one takes longer than to make them."""
    while lot := "".join(islice(lines, 1000)):
        yield lot
