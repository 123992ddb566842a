"""Progress of the tasks: a bar on a terminal, plain lines elsewhere, nothing where nobody wants it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli.messages import Messages
from windowing.engine.session import Progress
from windowing.shown import shown

_SECONDS_BETWEEN_LINES = 5.0


Tell = Callable[[Progress], None]


@contextmanager
def show_progress(mode: str, messages: Messages) -> Iterator[Tell]:
    """Yield what to call with progress. ``mode``: ``auto`` (a bar if stderr is a terminal), ``plain`` or ``none``."""
    if mode == "none" or messages.level < 0:
        yield _silent
    elif mode == "auto" and sys.stderr.isatty() and not messages.as_json:
        with _bar() as progress:
            yield progress
    else:
        yield _lines(messages)


def _silent(_: Progress) -> None:
    return


def _lines(messages: Messages) -> Tell:
    """A line every few seconds: a job that is done sooner prints none."""
    last = time.monotonic()

    def tell(seen: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            text = f"{seen.label}: {seen.done} of {seen.total} tasks"
            messages.note(text, phase=seen.label, done=seen.done, total=seen.total)

    return tell


@contextmanager
def _bar() -> Iterator[Tell]:
    from rich.console import Console  # noqa: PLC0415 - rich takes time to load, and --help needs none of it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(seen: Progress) -> None:
            bar.update(task, description=shown(seen.label), completed=seen.done, total=seen.total)

        yield tell
