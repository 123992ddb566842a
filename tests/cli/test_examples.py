"""The example jobs, each as somebody would run it, on small inputs made here."""

from __future__ import annotations

import csv
import datetime as dt
import shutil
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import pytest

from support.places import ROOT
from support.processes import Ran, manifest, rows, write

Run = Callable[..., Ran]
MIDNIGHT = dt.datetime(2026, 11, 1)


@pytest.fixture(autouse=True)
def _jobs(tmp_path: Path) -> None:
    for path in (ROOT / "conf" / "examples").glob("*.yaml"):
        shutil.copy(path, tmp_path)


def at(minutes: float) -> dt.datetime:
    return MIDNIGHT + dt.timedelta(minutes=minutes)


def log(folder: Path, head: str, lines: Sequence[tuple[object, ...]]) -> None:
    """Write one CSV; times as ISO texts."""
    text = [",".join(one.isoformat() if isinstance(one, dt.datetime) else str(one) for one in line) for line in lines]
    write(folder, a__csv="\n".join([head, *text]) + "\n")


# Sessions night by night

EVENTS = {
    "2026-11-01": [(at(600), "ann", 1, "/a"), (at(1430), "ann", 2, "/b"), (at(1435), "bob", 3, "/c")],
    "2026-11-02": [(at(1445), "ann", 4, "/d"), (at(1461), "ann", 5, "/e"), (at(2879), "bob", 6, "/f")],
    "2026-11-03": [(at(2885), "bob", 7, "/g")],
}


def test_daily_incremental_sessions_are_those_of_one_run(run: Run, tmp_path: Path) -> None:
    for day, lines in EVENTS.items():
        log(tmp_path / "events" / f"dt={day}", "ts,user,amount,page", lines)
    assert run("-q", "nightly_sessions.yaml", "--start", "2026-11-01", "--end", "2026-11-04").code == 0
    columns = ("user", "window", "window_start", "window_end", "events", "spent", "first_page", "last_page")
    nights = {day: rows(tmp_path / "sessions" / f"dt={day}", *columns) for day in EVENTS}
    assert nights == {
        "2026-11-01": [("ann", 0, at(600), at(600), 1, 1, "/a", "/a")],
        "2026-11-02": [
            ("ann", 1, at(1430), at(1445), 2, 6, "/b", "/d"),
            ("bob", 0, at(1435), at(1435), 1, 3, "/c", "/c"),
        ],
        "2026-11-03": [],
    }
    held = [manifest(tmp_path / "sessions" / f"dt={day}")["counts"]["held"] for day in EVENTS]
    assert held == [2, 2, 3]  # the last: ann from /e on, bob with /f and /g

    again = run("nightly_sessions.yaml", "--start", "2026-11-01", "--end", "2026-11-04", "--exit-code-noop", "9")
    assert again.code == 9

    whole = run("-q", "nightly_sessions.yaml", "events/*", "whole", "--state", "state/whole", "--at-end", "flush")
    assert whole.code == 0
    open_at_the_end = [
        ("ann", 2, at(1461), at(1461), 1, 5, "/e", "/e"),
        ("bob", 1, at(2879), at(2885), 2, 13, "/f", "/g"),
    ]
    assert rows(tmp_path / "whole", *columns) == sorted([*chain(*nights.values()), *open_at_the_end])


# Funnels night by night


def test_funnels_of_days_are_those_of_one_run(run: Run, tmp_path: Path) -> None:
    """Ann pays behind the half hour; bob's funnel goes on past midnight; cid is open when the days end."""
    visits = {
        "2026-11-01": [
            (at(600), "ann", "product"), (at(610), "ann", "help"), (at(620), "ann", "cart"), (at(630), "ann", "paid"),
            (at(1430), "bob", "product"), (at(1435), "bob", "cart"),
        ],
        "2026-11-02": [(at(1445), "bob", "paid"), (at(2875), "cid", "product")],
        "2026-11-03": [(at(2885), "cid", "cart")],
    }  # fmt: skip
    for day, lines in visits.items():
        log(tmp_path / "events" / f"dt={day}", "ts,user,page", lines)
    assert run("-q", "checkout.yaml", "--start", "2026-11-01", "--end", "2026-11-04").code == 0
    columns = ("user", "steps", "see", "cart", "pay", "closed_by")
    days = {day: rows(tmp_path / "funnels" / f"dt={day}", *columns) for day in visits}
    assert days == {
        "2026-11-01": [("ann", 2, at(600), at(620), None, "within")],
        "2026-11-02": [("bob", 3, at(1430), at(1435), at(1445), "match")],
        "2026-11-03": [],
    }
    whole = run("-q", "checkout.yaml", "events/*", "whole", "--state", "state/whole", "--at-end", "flush")
    assert whole.code == 0
    open_at_the_end = [("cid", 2, at(2875), at(2885), None, "end")]
    assert rows(tmp_path / "whole", *columns) == sorted([*chain(*days.values()), *open_at_the_end])


# What the cases of the other jobs leave out: the forms in which they publish, and what they drop


def test_peaks_are_windows_of_windows(run: Run, tmp_path: Path) -> None:
    """A request every ten seconds, but every second for the fourth lot of 100; after five lots, half a one."""
    moments, now = [], MIDNIGHT
    for number in range(550):
        now += dt.timedelta(seconds=1 if 300 <= number < 400 else 10)
        moments.append(now)
    log(tmp_path / "requests", "ts,latency", [(moment, number % 97) for number, moment in enumerate(moments)])
    assert run("-q", "peaks.yaml").code == 0
    lots = rows(tmp_path / "lots", "window", "began", "took", "closed_by")
    assert lots == [(n, moments[100 * n], moments[100 * n + 99] - moments[100 * n], "count") for n in range(5)]
    first, _ = rows(tmp_path / "peaks", "window_start", "lots", "shortest", "peak_at", "slowest")
    assert first == (MIDNIGHT, 4, dt.timedelta(seconds=99), moments[300], 96)
    assert manifest(tmp_path / "lots")["counts"]["dropped_at_end"] == 50


def test_rollup_writes_a_stage_for_a_spreadsheet(run: Run, tmp_path: Path) -> None:
    """A reading a minute of each sensor for 40 minutes, of 1 to 4 kWh; c begins in the 20th."""
    sensors = [("north", "n1", "a"), ("north", "n1", "b"), ("north", "n2", "c"), ("south", "s1", "d")]
    lines = [
        (at(minute), *sensor, number)
        for minute in range(40)
        for number, sensor in enumerate(sensors, 1)
        if sensor[2] != "c" or minute >= 20
    ]
    log(tmp_path / "readings", "ts,region,site,sensor,kwh", lines)
    assert run("-q", "rollup.yaml").code == 0
    assert len(rows(tmp_path / "sensors", "sensor")) == 11
    assert sorted(rows(tmp_path / "sites", "site", "window", "sensors", "readings", "kwh"))[:4] == [
        ("n1", 0, 2, 30, 45), ("n1", 1, 2, 30, 45), ("n1", 2, 2, 20, 30), ("n2", 1, 1, 10, 30),
    ]  # fmt: skip
    with (tmp_path / "regions" / "part-00000.csv").open() as file:
        regions = list(csv.DictReader(file))
    names = ("region", "window", "readings", "kwh", "best_site")
    assert sorted(" ".join(row[name] for name in names) for row in regions) == [
        *("north 0 30 45 n1", "north 1 40 75 n1", "north 2 30 60 n1"),
        *("south 0 15 60 s1", "south 1 15 60 s1", "south 2 10 40 s1"),
    ]
    assert not {"_at", "_pos", "_mark"} & set(regions[0])
