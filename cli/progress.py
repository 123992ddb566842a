"""Progress of the tasks: a bar on a terminal, plain lines elsewhere, nothing where nobody wants it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cli.messages import Messages

_SECONDS_BETWEEN_LINES = 5.0


class Progress(Protocol):
    """Is told how far a phase has come."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """``done`` of ``total`` tasks of ``phase`` have ended."""
        ...


@contextmanager
def show_progress(mode: str, messages: Messages) -> Iterator[Progress]:
    """Yield what to call with progress. ``mode``: ``auto`` (a bar if stderr is a terminal), ``plain`` or ``none``."""
    if mode == "none" or messages.level < 0:
        yield _silent
    elif mode == "auto" and sys.stderr.isatty() and not messages.as_json:
        with _bar() as progress:
            yield progress
    else:
        yield _lines(messages)


def _silent(phase: str, done: int, total: int) -> None:  # noqa: ARG001 - the shape of Progress
    return


def _lines(messages: Messages) -> Progress:
    """A line every few seconds: a job that is done sooner prints none."""
    last = time.monotonic()

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal last
        if total and time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            messages.note(f"{phase}: {done} of {total} tasks", phase=phase, done=done, total=total)

    return tell


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console  # noqa: PLC0415 - rich takes time to load, and --help needs none of it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(phase: str, done: int, total: int) -> None:
            bar.update(task, description=phase, completed=done, total=total or None)

        yield tell
