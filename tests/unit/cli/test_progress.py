"""Progress off a terminal: rows, an estimate of the time left, and a line only where something has changed."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from support.places import ROOT
from wincli.cli.console import progress
from wincli.cli.console.messages import Messages
from wincli.cli.console.progress import phase_of, show_progress
from wincli.windowing.spark.boot import Progress
from wincli.windowing.support.amounts import in_short, span


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


def lines_of(clock: Clock, seen: list[tuple[float, Progress]]) -> list[str]:
    """The lines of a run whose progress is seen at these seconds."""
    stream, clock.now = io.StringIO(), 100.0
    with show_progress("plain", Messages(0, False, stream)) as show:
        for second, each in seen:
            clock.now = 100.0 + second
            show(each)
    return [line.removeprefix("wincli: note: ") for line in stream.getvalue().splitlines()]


def scan(done: int, rows: int = 8_000_000) -> Progress:
    return Progress("scan", done, 8, 1, 1, rows)


def test_progress_lines_show_rows_and_the_remaining_time(clock: Clock) -> None:
    assert lines_of(clock, [(0, scan(0)), (2, scan(1)), (10, scan(2)), (30, scan(6))]) == [
        "scanning windows: 2 of 8 tasks, about 2,000,000 of 8,000,000 rows, 200,000 rows/s, about 30 s left",
        "scanning windows: 6 of 8 tasks, about 6,000,000 of 8,000,000 rows, 200,000 rows/s, about 10 s left",
    ]


def test_a_line_that_would_say_the_same_is_not_printed(clock: Clock) -> None:
    seen = [(float(second), scan(0)) for second in range(0, 60)] + [(61.0, scan(1))]
    assert lines_of(clock, seen) == [
        "scanning windows: 0 of 8 tasks, about 0 of 8,000,000 rows",
        "scanning windows: 1 of 8 tasks, about 1,000,000 of 8,000,000 rows, 16,393 rows/s, about 7 min 7 s left",
    ]


def test_lines_are_seconds_apart_and_a_short_job_has_none(clock: Clock) -> None:
    assert len(lines_of(clock, [(second / 10, scan(second // 20)) for second in range(0, 160)])) == 3
    assert lines_of(clock, [(0, scan(0)), (2, scan(4)), (4.9, scan(8))]) == []
    assert len(lines_of(clock, [(0, scan(0)), (5, scan(4))])) == 1


def test_time_left_is_of_the_phase_and_rows_may_be_unknown(clock: Clock) -> None:
    seen = [(0, scan(0)), (50, Progress("read types", 0, 4, 1, 1)), (60, Progress("read types", 1, 4, 1, 1))]
    finding = "finding the types of text columns"
    assert lines_of(clock, seen) == [f"{finding}: 0 of 4 tasks", f"{finding}: 1 of 4 tasks, about 30 s left"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


# Phases in words


@pytest.mark.parametrize(
    ("label", "stage", "words"),
    [
        ("exchange and scan", 1, "sorting rows"),
        ("exchange and scan", 2, "scanning windows"),
        ("2026-11-02: stage sites: scan", 2, "2026-11-02: stage sites: scanning windows"),
        ("2026-11-02: read types", 2, "2026-11-02: finding the types of text columns"),
        ("write csv", 2, "writing csv"),
        ("enrich prices", 1, "looking up prices"),
        ("something new", 2, "something new"),
    ],
)
def test_phases_in_words(label: str, stage: int, words: str) -> None:
    assert phase_of(Progress(label, 1, 4, stage, 2)) == words


def test_every_label_of_the_engine_has_words() -> None:
    """Labels stand in the code as the first argument of what runs tasks."""
    texts = [path.read_text() for top in ("cli", "readers", "windowing") for path in (ROOT / top).rglob("*.py")]
    labels = {label for text in texts for label in re.findall(r'executor\.(?:map|shuffle)\(\s*"([^"]+)"', text)}
    assert {"scan", "exchange and scan", "read types", "sample"} <= labels
    assert {label for label in labels if phase_of(Progress(label, 0, 1, 1, 2)) == label} == set()


# Other forms


def test_lines_of_json_are_a_second_apart_whatever_the_form_of_messages(clock: Clock) -> None:
    stream = io.StringIO()
    with show_progress("json", Messages(0, False, stream)) as show:
        for second, done in ((0, 0), (0.5, 1), (1.5, 2), (2, 3), (3, 4)):
            clock.now = 100.0 + second
            show(Progress("2026-11-02: scan", done, 8, 1, 1, 8_000_000))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["done"] for line in lines] == [2, 4]
    assert lines[0] == {
        "level": "progress",
        "message": "2026-11-02: scanning windows: 2 of 8 tasks, about 2,000,000 of 8,000,000 rows, 1,333,333 rows/s, "
        "about 4 s left",
        "phase": "2026-11-02: scan",
        "done": 2,
        "total": 8,
        "rows": 2_000_000,
        "rows_total": 8_000_000,
        "rows_per_second": 1_333_333,
        "seconds_left": 4.5,
    }


@pytest.mark.parametrize("mode", ["auto", "plain", "json", "none"])
def test_a_quiet_run_shows_no_progress(mode: str, clock: Clock) -> None:
    stream = io.StringIO()
    with show_progress(mode, Messages(-1, False, stream)) as show:
        clock.now += 60
        show(scan(4))
    assert stream.getvalue() == ""


class Terminal(io.StringIO):
    """Stands in for a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_phase_rows_pace_and_time_left_and_labels_as_they_are(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """A label is no markup, and steers no terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    written = []
    for label in ("exchange and scan", "a\x1b]0;title\x07[red]\nb"):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with show_progress("auto", Messages()) as show:
            for second, done in ((0, 0), (10, 20)):
                clock.now = 100.0 + second
                show(Progress(label, done, 60, 1, 2, 100_000_000))
        written.append(terminal.getvalue())
    lines = re.sub(r"\x1b\[[\d;?]*\w", "", written[0]).replace("\r", "\n").splitlines()
    last = [line for line in lines if line.strip()][-1]
    assert re.match(r"sorting rows \S+ +20/60 33 M of 100 M rows, 3\.3 M/s, 20 s left 0:00:\d\d", last), last
    assert r"a\x1b]0;title\x07[red]\nb" in written[1]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0 k"), (41_999, "41 k"), (3_330_000, "3.3 M"), (10**11, "100 G")],
)
def test_numbers_in_short(count: int, text: str) -> None:
    assert in_short(count) == text
