"""Progress off a terminal: rows, an estimate of the time left, and a line only where something has changed."""

from __future__ import annotations

import io
import json

import pytest

from wincli.cli.console import progress
from wincli.cli.console.messages import Messages
from wincli.cli.console.progress import show_progress
from wincli.windowing.spark.boot import Progress


class Clock:
    """Stands in for the time."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stands = Clock()
    monkeypatch.setattr(progress, "time", stands)
    return stands


def told(clock: Clock, seen: list[tuple[float, Progress]], as_json: bool = False) -> list[str]:
    """The lines of a run whose progress is seen at these seconds."""
    stream = io.StringIO()
    with show_progress("plain", Messages(0, as_json, stream)) as show:
        for second, each in seen:
            clock.now = 100.0 + second
            show(each)
    return [line.removeprefix("wincli: note: ") for line in stream.getvalue().splitlines()]


def scan(done: int, rows: int = 8_000_000) -> Progress:
    return Progress("scan", done, 8, 1, 1, rows)


def test_progress_lines_show_rows_and_the_remaining_time(clock: Clock) -> None:
    assert told(clock, [(0, scan(0)), (2, scan(1)), (10, scan(2)), (30, scan(6))]) == [
        "scan: 2 of 8 tasks, about 2,000,000 of 8,000,000 rows, about 30 s left",
        "scan: 6 of 8 tasks, about 6,000,000 of 8,000,000 rows, about 10 s left",
    ]


def test_a_line_that_would_say_the_same_is_not_printed(clock: Clock) -> None:
    seen = [(float(second), scan(0)) for second in range(0, 60)] + [(61.0, scan(1))]
    assert told(clock, seen) == [
        "scan: 0 of 8 tasks, about 0 of 8,000,000 rows",
        "scan: 1 of 8 tasks, about 1,000,000 of 8,000,000 rows, about 7 min 7 s left",
    ]


def test_lines_are_seconds_apart(clock: Clock) -> None:
    assert len(told(clock, [(second / 10, scan(second // 20)) for second in range(0, 160)])) == 3


def test_a_short_job_prints_nothing(clock: Clock) -> None:
    assert told(clock, [(0, scan(0)), (2, scan(4)), (4.9, scan(8))]) == []


def test_time_left_is_of_the_phase_and_rows_may_be_unknown(clock: Clock) -> None:
    seen = [(0, scan(0)), (50, Progress("read types", 0, 4, 1, 1)), (60, Progress("read types", 1, 4, 1, 1))]
    assert told(clock, seen) == ["read types: 0 of 4 tasks", "read types: 1 of 4 tasks, about 30 s left"]


def test_machines_get_numbers(clock: Clock) -> None:
    (line,) = told(clock, [(0, scan(0)), (10, scan(2))], as_json=True)
    found = json.loads(line)
    assert {name: found[name] for name in ("phase", "done", "total", "rows", "rows_total", "seconds_left")} == {
        "phase": "scan", "done": 2, "total": 8, "rows": 2_000_000, "rows_total": 8_000_000, "seconds_left": 30.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_spans(seconds: float, text: str) -> None:
    assert progress._span(seconds) == text
