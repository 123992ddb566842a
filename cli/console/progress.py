"""Progress of the tasks: a bar on a terminal, plain lines elsewhere, nothing with ``--progress none``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...windowing.errors import shown
from ...windowing.spark.boot import Progress
from .messages import Messages

_SECONDS_BETWEEN_LINES = 5.0


Show = Callable[[Progress], None]


@contextmanager
def show_progress(mode: str, messages: Messages) -> Iterator[Show]:
    """Yield a function that shows progress. ``mode``: ``auto`` (a bar if stderr is a terminal), ``plain``, ``none``."""
    if mode == "none" or messages.level < 0:
        yield _silent
    elif mode == "auto" and sys.stderr.isatty() and not messages.as_json:
        with _bar() as progress:
            yield progress
    else:
        yield _Lines(messages)


def _silent(_: Progress) -> None:
    return


class _Lines:
    """Writes a line every few seconds, and only if something has changed: a short job writes none."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._last = time.monotonic()
        self._written: tuple[str, int, int] | None = None
        self._label, self._began, self._had = "", self._last, 0

    def __call__(self, seen: Progress) -> None:
        now = time.monotonic()
        if seen.label != self._label:
            self._label, self._began, self._had = seen.label, now, seen.done
        what = (seen.label, seen.done, seen.total)
        if what != self._written and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last, self._written = now, what
            self._write(seen, _left(seen, self._had, now - self._began))

    def _write(self, seen: Progress, left: float | None) -> None:
        """Write one line. Its rows and its time left assume that all tasks are of equal size."""
        rows = seen.rows * seen.done // seen.total if seen.rows and seen.total else None
        words = [f"{seen.label}: {seen.done} of {seen.total} tasks"]
        words += [] if rows is None else [f"about {rows:,} of {seen.rows:,} rows"]
        words += [] if left is None else [f"about {_span(left)} left"]
        self._messages.note(
            ", ".join(words),
            phase=seen.label,
            done=seen.done,
            total=seen.total,
            rows=rows,
            rows_total=seen.rows or None,
            seconds_left=None if left is None else round(left, 1),
        )


def _left(seen: Progress, had: int, seconds: float) -> float | None:
    """Estimate the seconds left from the tasks since ``had`` were done, ``seconds`` ago; None while there are none."""
    done = seen.done - had
    return seconds / done * (seen.total - seen.done) if done > 0 else None


def _span(seconds: float) -> str:
    """Return a time in two units at most: ``40 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console  # noqa: PLC0415 - rich takes time to load, and --help needs none of it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(seen: Progress) -> None:
            bar.update(task, description=shown(seen.label), completed=seen.done, total=seen.total)

        yield show
