"""Calendars: every unit in one cell, where a week, a day or an hour of a calendar stands."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.browser import Browser
from support.fake_report import report
from wincli.cli.inspection.report.gather import calendar_of
from wincli.cli.inspection.report.page import page_of
from wincli.cli.inspection.results.status import Status
from wincli.conf.ranges import Kind, unit_at
from wincli.windowing.ports import Counts
from wincli.writers.state.unit_record import UnitRecord

START = {"hour": 494_000, "day": 20_600, "week": 2_900}


def unit(label: str, n: int) -> UnitRecord:
    counts = Counts(n, n - n % 3 - n % 2, 0, 0, n % 5, {"late": n % 3, "null_key": n % 2})
    told = {"job": {}, "inputs": [], "counts": asdict(counts), "rows_out": n}
    return UnitRecord.of_result(label, 0, told)


def status(kind: Kind, done: set[int], size: int) -> Status:
    found = [unit_at(START[kind] + n, kind) for n in range(size)]
    units = tuple(unit(each.label, n) for n, each in enumerate(found) if n in done)
    gaps = tuple(each for n, each in enumerate(found) if n not in done and min(done) < n < max(done))
    return Status("st", "state", units, gaps, {})


@given(st.sampled_from(["hour", "day", "week"]), st.sets(st.integers(0, 3000), min_size=1, max_size=40))
def test_every_unit_and_every_gap_is_in_one_cell(kind: Kind, done: set[int]) -> None:
    folder = status(kind, done, 3001)
    found = calendar_of(folder, kind)
    cells = found["cells"]
    assert len(cells) <= 1000
    if not found["hidden"]:
        sums = {name: sum(cell[name] for cell in cells) for name in ("done", "gaps", "rows_in", "late")}
        late = sum(n % 3 for n in done)
        assert sums == {"done": len(done), "gaps": len(folder.gaps), "rows_in": sum(done), "late": late}
    ordinals = [cell["ordinal"] for cell in cells]
    assert ordinals == [*range(ordinals[0], ordinals[0] + len(ordinals))]
    assert cells[-1]["held"] == max(done) % 5
    assert all(cell["held"] == 0 for cell in cells if not cell["done"])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from(["state", "range"]))
def test_a_unit_that_was_finished_after_a_later_one_was_run_again(
    times: list[int], what: Literal["state", "range"]
) -> None:
    folder = status("day", {*range(len(times))}, len(times))
    units = [replace(each, finished=f"2026-11-2{time}") for each, time in zip(folder.units, times, strict=True)]
    found = calendar_of(replace(folder, what=what, units=tuple(units)), "day")
    expected = [int(any(later < time for later in times[n + 1 :])) for n, time in enumerate(times)]
    assert [cell["redone"] for cell in found["cells"]] == expected
    assert found["again"] == {"state": "run again", "range": "written after a later one"}[what]


Drawn = Callable[[Kind | None, int], list[tuple[str, float, float]]]


@pytest.fixture
def drawn(browser: Browser, tmp_path: Path) -> Drawn:
    """Draws a calendar in a browser: label, x and y of each cell, of which no two stand in one place."""
    cells = """return [...document.querySelectorAll('.units rect')].filter(e => e.querySelector('title')).map(e =>
      [e.textContent.match(/^[^:]*/)[0], parseFloat(e.getAttribute('x')), parseFloat(e.getAttribute('y'))])"""

    def draw(kind: Kind | None, size: int) -> list[tuple[str, float, float]]:
        found = calendar_of(status(kind or "day", {*range(size)}, size), kind)
        (tmp_path / "page.html").write_text(page_of(report(calendar=found)), encoding="utf-8")
        browser.open(tmp_path / "page.html")
        placed = [(label, x, y) for label, x, y in browser.run(cells)]
        assert len({(x, y) for _, x, y in placed}) == len(placed) == size
        return placed

    return draw


def test_days_stand_below_their_weekdays_hours_in_the_column_of_their_hour_and_others_have_a_cell_each(
    drawn: Drawn,
) -> None:
    for size in (30, 400):
        by_weekday: dict[int, set[float]] = {}
        for label, x, y in drawn("day", size):
            weekday = dt.date.fromisoformat(label).weekday()
            by_weekday.setdefault(weekday, set()).add(x if size == 30 else y % (7 * 14 + 8))
        assert [len(places) for places in by_weekday.values()] == [1] * 7
    by_hour: dict[str, set[float]] = {}
    for label, x, _ in drawn("hour", 100):
        by_hour.setdefault(label[-2:], set()).add(x)
    assert [len(places) for places in by_hour.values()] == [1] * 24
    columns = [min(by_hour[hour]) for hour in sorted(by_hour)]
    assert columns == sorted(set(columns))
    for kind, size in ((None, 5), (None, 130), ("week", 120)):
        drawn(kind, size)  # type: ignore[arg-type]
