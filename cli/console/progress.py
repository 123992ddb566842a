"""Progress of the tasks: a bar on a terminal, plain lines elsewhere, lines of JSON, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ...windowing.errors import shown
from ...windowing.spark.boot import Progress
from ...windowing.support.amounts import in_short, span
from .messages import Messages
from .streams import controls

# The pace of a phase: rows done, rows a second, and the time left, from the tasks that are complete.


class Stopwatch:
    """Measures the pace of each phase from the moment at which it is first seen."""

    def __init__(self) -> None:
        self._label, self._began, self._done_before = "", time.monotonic(), 0

    def pace(self, seen: Progress) -> tuple[int | None, float | None, float | None]:
        """Return the rows that are done, rows a second, and the seconds left, as if all tasks were of equal size.

        None: the number of all rows is not known; the last two also while no task has ended in this phase.
        """
        now = time.monotonic()
        if seen.label != self._label:
            self._label, self._began, self._done_before = seen.label, now, seen.done
        rows = seen.rows * seen.done // seen.total if seen.rows and seen.total else None
        done, seconds = seen.done - self._done_before, now - self._began
        if done <= 0 or seconds <= 0:
            return rows, None, None
        rate = None if rows is None else seen.rows * done / seen.total / seconds
        return rows, rate, seconds / done * (seen.total - seen.done)


# The phases of a run in words, from the labels of its tasks.


_WORDS: Mapping[str, str] = {
    "combine": "scanning long keys",
    "compare states": "comparing the state with the one before",
    "cores": "asking the cluster for its cores",
    "count": "scanning long keys",
    "follow": "scanning long keys",
    "latest rows": "looking for rows ahead of their time",
    "late rows": "looking for late rows",
    "ordered pass": "following the watermark",
    "read types": "finding the types of text columns",
    "rejects": "writing rejected rows",
    "sample": "sampling rows",
    "scan": "scanning windows",
    "send code": "sending code to the cluster",
    "watermark": "following the watermark",
}
_EXCHANGE = "exchange and scan"


def phase_of(seen: Progress) -> str:
    """Return the phase of a run in words, after the unit and the stage that its label begins with."""
    head, sign, label = seen.label.rpartition(": ")
    verb, _, name = label.partition(" ")
    if label == _EXCHANGE:
        words = "sorting rows" if seen.stage < seen.stages else "scanning windows"
    elif verb in ("enrich", "write"):
        words = f"{'looking up' if verb == 'enrich' else 'writing'} {name}"
    else:
        words = _WORDS.get(label, label)
    return f"{head}{sign}{words}"


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
        yield lambda _: None
    elif mode == "json":
        yield _lines(_SECONDS_BETWEEN_OBJECTS, messages.progress)
    elif mode == "auto" and sys.stderr.isatty() and not messages.as_json:
        with _bar() as progress:
            yield progress
    else:
        yield _lines(_SECONDS_BETWEEN_LINES, messages.note)


def _lines(apart: float, write: Callable[..., None]) -> Show:
    """Return what writes a line every few seconds, and only if something has changed: a short job writes none."""
    last, written, stopwatch = time.monotonic(), None, Stopwatch()

    def show(seen: Progress) -> None:
        nonlocal last, written
        rows, rate, left = stopwatch.pace(seen)
        now, what = time.monotonic(), (seen.label, seen.done, seen.total)
        if what == written or now - last < apart:
            return
        last, written = now, what
        words = [f"{phase_of(seen)}: {seen.done} of {seen.total} tasks"]
        words += [] if rows is None else [f"about {rows:,} of {seen.rows:,} rows"]
        words += [] if rate is None else [f"{round(rate):,} rows/s"]
        words += [] if left is None else [f"about {span(left)} left"]
        write(
            ", ".join(words),
            phase=seen.label,
            done=seen.done,
            total=seen.total,
            rows=rows,
            rows_total=seen.rows or None,
            rows_per_second=None if rate is None else round(rate),
            seconds_left=None if left is None else round(left, 1),
        )

    return show


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
        stopwatch = Stopwatch()

        def show(seen: Progress) -> None:
            rows, rate, left = stopwatch.pace(seen)  # in few characters
            words = [] if rows is None else [f"{in_short(rows)} of {in_short(seen.rows)} rows"]
            words += [] if rate is None else [f"{in_short(round(rate))}/s"]
            words += [] if left is None else [f"{span(left)} left"]
            phase = shown(phase_of(seen))
            bar.update(task, description=phase, completed=seen.done, total=seen.total, pace=", ".join(words))

        yield show
