"""Progress of the tasks: a bar on a terminal, plain lines elsewhere, lines of JSON, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...windowing.errors import shown
from ...windowing.spark.boot import Progress
from .messages import Messages
from .pace import Pace, Stopwatch, pace_in_short, pace_words
from .phases import phase_of
from .streams import controls

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_OBJECTS = 1.0
_WIDE = 100  # columns of a terminal that has room for all columns of a bar

Show = Callable[[Progress], None]
"""Shows how far a run is."""


@contextmanager
def show_progress(mode: str, messages: Messages) -> Iterator[Show]:
    """Yield a function that shows progress.

    ``mode``: ``auto`` (a bar if stderr is a terminal), ``plain``, ``json`` or ``none``.
    """
    if mode == "none" or messages.level < 0:
        yield _silent
    elif mode == "json":
        yield _Lines(_SECONDS_BETWEEN_OBJECTS, messages.progress)
    elif mode == "auto" and sys.stderr.isatty() and not messages.as_json:
        with _bar() as progress:
            yield progress
    else:
        yield _Lines(_SECONDS_BETWEEN_LINES, messages.note)


def _silent(_: Progress) -> None:
    return


class _Lines:
    """Writes a line every few seconds, and only if something has changed: a short job writes none."""

    def __init__(self, apart: float, write: Callable[..., None]) -> None:
        self._apart, self._write_line = apart, write
        self._last = time.monotonic()
        self._stopwatch = Stopwatch(self._last)
        self._written: tuple[str, int, int] | None = None

    def __call__(self, seen: Progress) -> None:
        now = time.monotonic()
        pace = self._stopwatch.pace(seen, now)
        what = (seen.label, seen.done, seen.total)
        if what != self._written and now - self._last >= self._apart:
            self._last, self._written = now, what
            self._write(seen, pace)

    def _write(self, seen: Progress, pace: Pace) -> None:
        left, rate = pace.seconds_left, pace.rows_per_second
        self._write_line(
            ", ".join([f"{phase_of(seen)}: {seen.done} of {seen.total} tasks", *pace_words(pace)]),
            phase=seen.label,
            done=seen.done,
            total=seen.total,
            rows=pace.rows,
            rows_total=pace.rows_total,
            rows_per_second=None if rate is None else round(rate),
            seconds_left=None if left is None else round(left, 1),
        )


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console  # noqa: PLC0415 - rich takes time to load, and --help needs none of it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    words = (TextColumn("{task.description}", markup=False), TextColumn("{task.fields[pace]}", markup=False))
    console = Console(file=controls())
    columns = (words[0], BarColumn(12), MofNCompleteColumn(), words[1], TimeElapsedColumn())
    narrow = (words[0], BarColumn(8), words[1])
    with Bar(*(columns if console.width >= _WIDE else narrow), console=console, transient=True) as bar:
        task = bar.add_task("starting Spark", total=None, pace="")
        stopwatch = Stopwatch(time.monotonic())

        def show(seen: Progress) -> None:
            pace = pace_in_short(stopwatch.pace(seen, time.monotonic()))
            bar.update(task, description=shown(phase_of(seen)), completed=seen.done, total=seen.total, pace=pace)

        yield show
