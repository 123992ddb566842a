"""Expectations of runs and of units: what they see, what fails and what only warns, over any cut of the input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.processes import Ran, manifest, tree

DAY = 86_400_000_000
START = 1_793_491_200_000_000  # 2026-11-01
EXCHANGE = ("--slice-size", "1KiB", "--split-size", "512B")
ASKED = ("-w", "count(10)", "-k", "user", "-a", "top=max(latency)", "--order-by", "ts")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three days of 100 rows, ten minutes apart; a row a day has no user. Latency grows day by day."""
    for night in range(3):
        folder = tmp_path / "log" / f"dt=2026-11-0{night + 1}"
        folder.mkdir(parents=True)
        columns = {
            "ts": pa.array([START + night * DAY + n * 600_000_000 for n in range(100)], pa.timestamp("us")),
            "user": [None if n == 50 else "ab"[n % 2] for n in range(100)],
            "latency": [float(n * (night + 1)) for n in range(100)],
        }
        pq.write_table(pa.table(columns), folder / "a.parquet", row_group_size=9)
    return tmp_path


def run(folder: Path, *expect: str, more: tuple[str, ...] = (), paths: tuple[str, ...] = ("log", "out")) -> Ran:
    flags = [word for text in expect for word in ("--expect", text)]
    return wincli_here("run", *ASKED, *flags, *more, *paths, cwd=folder)


HOLDS = [
    "rows_in = 300",
    "rows_rejected = 3 and late = 0 and rejected_share = 0.01",
    "late_share = 0",
    "windows = 30 and panes_hidden = 0",
    "held = 0 and rows_filtered = 0",
    "first_at = timestamp '2026-11-01 00:00:00' and last_at = timestamp '2026-11-03 16:30:00'",
    "all(top >= 0 and user is not null)",
    "any(top = 297)",
    "any(user = 'a')",
    "all(closed_by in ('count', 'end'))",
]


@pytest.mark.parametrize("more", [(), EXCHANGE])
def test_what_holds(log: Path, more: tuple[str, ...]) -> None:
    ran = run(log, *HOLDS, more=more)
    assert ran.code == 0, ran.err
    told = manifest(log / "out")["expectations"]
    assert [one["holds"] for one in told] == [True] * len(HOLDS)
    assert told[1]["saw"] == {"rows_rejected": 3, "late": 0, "rejected_share": 0.01}
    assert told[6]["saw"] == {"rows": 30, "true": 30}
    lines = wincli_here("status", "out", cwd=log).out.splitlines()
    assert "expected: rows_in = 300 holds in 1 unit" in lines


@pytest.mark.parametrize(
    ("expect", "words", "more"),
    [
        ("rows_in > 1000", "rows_in > 1000 does not hold: rows_in is 300", ()),
        ("rejected_share < 0.01", "rejected_share < 0.01 does not hold: rejected_share is 0.01", EXCHANGE),
        ("rows_in % late = 0", "rows_in % late = 0 does not hold: rows_in is 300, late is 0", ()),
        ("all(top < 290)", "all(top < 290) does not hold: 2 of 30 rows are not so, the first: user='a', window=", ()),
        ("all(top < 290)", "all(top < 290) does not hold: 2 of 30 rows are not so, the first: user=", EXCHANGE),
        ("any(user = 'c')", "any(user = 'c') does not hold: none of 30 rows is so", EXCHANGE),
        ("seconds_since_last < 0", "seconds_since_last < 0 does not hold: seconds_since_last is ", ()),
    ],
)
def test_what_does_not_hold_commits_nothing(log: Path, expect: str, words: str, more: tuple[str, ...]) -> None:
    before = tree(log)
    ran = run(log, "rows_in > 0", expect, more=more)
    assert ran.code == 4
    assert f"the expectation {words}" in ran.err
    assert "; nothing was committed; mend the data, or change --expect" in ran.err
    assert tree(log) == before


def test_a_warning_is_a_note(log: Path) -> None:
    ran = run(log, "warn: all(top < 290)", "windows > 1")
    assert ran.code == 0
    assert any(note.startswith("the expectation all(top < 290) does not hold: 2 of 30 rows") for note in ran.notes)
    assert [(one["on_fail"], one["holds"]) for one in manifest(log / "out")["expectations"]] == [
        ("warn", False),
        ("fail", True),
    ]
    assert "expected: all(top < 290) does not hold in out" in wincli_here("status", "out", cwd=log).out


@pytest.mark.parametrize("state", [(), ("--state", "st")])
def test_units_of_a_range_are_checked_one_by_one(log: Path, state: tuple[str, ...]) -> None:
    days = ("--start", "2026-11-01", "--end", "2026-11-04", *state)
    ran = run(log, "all(top < 250)", "warn: held < 5", more=days)
    assert ran.code == 4
    assert "2026-11-03: the expectation all(top < 250) does not hold" in ran.err
    assert sorted(path.name for path in (log / "out").iterdir()) == ["dt=2026-11-01", "dt=2026-11-02"]
    where = "st" if state else "out"
    told = json.loads(wincli_here("status", where, "--json", cwd=log).out)["units"]
    assert [[one["holds"] for one in unit["expectations"]] for unit in told] == [[True, not state], [True, not state]]
    assert run(log, "all(top < 300)", more=days).code == 0
    assert len(list((log / "out").iterdir())) == 3


def test_numbers_without_an_order_have_no_span(log: Path) -> None:
    asked = ("-w", "count(10)", "-k", "user", "--order-by", "arrival", "--expect", "first_at is null")
    ran = wincli_here("run", *asked, "--expect", "seconds_since_last is null", "log", "out", cwd=log)
    assert ran.code == 0, ran.err


def test_marks_and_hidden_rows_do_not_count(log: Path) -> None:
    ran = run(log, "all(top < 100)", "panes_hidden > 0", "panes_hidden + windows = 30", more=("--having", "top < 100"))
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ("row_in > 3", "did you mean 'rows_in'?\n  row_in > 3\n  ^^^^^^"),
        ("warn: all(tip < 3)", "did you mean 'top'?"),
        ("rows_in > 'x'", "--expect"),
        ("all(rows_in > 3)", "'rows_in' is not there"),
    ],
)
def test_mistakes_end_the_run_before_it_reads(log: Path, expect: str, words: str) -> None:
    ran = run(log, expect)
    assert ran.code == 2
    assert words in ran.err
    assert not (log / "out").exists()
