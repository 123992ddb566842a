"""The pace of a phase: rows done, rows a second, and the time left, from the tasks that are complete."""

from __future__ import annotations

from dataclasses import dataclass

from ...windowing.spark.boot import Progress
from .counts import span

_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


@dataclass(frozen=True, slots=True)
class Pace:
    """How far a phase is, and how fast. Rows and time left assume that all tasks are of equal size.

    ``rows``: how many rows are done; None where the number of all is not known.
    ``rows_total``: how many rows there are; None as ``rows``.
    ``rows_per_second``: rows done in a second; None while no task has ended since the phase was first seen.
    ``seconds_left``: time until all tasks are complete; None as ``rows_per_second``.
    """

    rows: int | None
    rows_total: int | None
    rows_per_second: float | None
    seconds_left: float | None


class Stopwatch:
    """Measures the pace of each phase from the moment at which it is first seen."""

    def __init__(self, now: float) -> None:
        self._label, self._began, self._done_before = "", now, 0

    def pace(self, seen: Progress, now: float) -> Pace:
        """Return the pace at a time, in seconds as ``now`` of the beginning."""
        if seen.label != self._label:
            self._label, self._began, self._done_before = seen.label, now, seen.done
        rows = seen.rows * seen.done // seen.total if seen.rows and seen.total else None
        done, seconds = seen.done - self._done_before, now - self._began
        if done <= 0 or seconds <= 0:
            return Pace(rows, seen.rows or None, None, None)
        rate = None if rows is None else seen.rows * done / seen.total / seconds
        return Pace(rows, seen.rows or None, rate, seconds / done * (seen.total - seen.done))


def pace_words(pace: Pace) -> list[str]:
    """Return a pace in words for a line of its own."""
    words = [] if pace.rows is None else [f"about {pace.rows:,} of {pace.rows_total:,} rows"]
    words += [] if pace.rows_per_second is None else [f"{round(pace.rows_per_second):,} rows/s"]
    return words + ([] if pace.seconds_left is None else [f"about {span(pace.seconds_left)} left"])


def pace_in_short(pace: Pace) -> str:
    """Return a pace in few characters, for a bar: ``31 M of 100 M rows, 4.1 M/s, 17 s left``."""
    words = []
    if pace.rows is not None and pace.rows_total is not None:
        words.append(f"{in_short(pace.rows)} of {in_short(pace.rows_total)} rows")
    words += [] if pace.rows_per_second is None else [f"{in_short(round(pace.rows_per_second))}/s"]
    words += [] if pace.seconds_left is None else [f"{span(pace.seconds_left)} left"]
    return ", ".join(words)


def in_short(count: int) -> str:
    """Return a number with two or three digits and its unit: ``940``, ``4.1 M``, ``31 M``."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count // unit} {name}"
    return str(count)
