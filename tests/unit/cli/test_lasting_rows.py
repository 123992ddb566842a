"""Rows that last on the command line: what stops a run, and jobs of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.in_process import done, wincli_here
from support.processes import manifest, table

CALLS = """began,ended,agent,cost
2026-11-04T09:10:00,2026-11-04T09:40:00,ann,3
2026-11-04T09:30:00,2026-11-04T11:30:00,bob,12
2026-11-04T09:40:00,,ann,3
2026-11-04T10:20:00,2026-11-04T10:10:00,ann,1
2026-11-04T10:50:00,2026-11-04T11:20:00,ann,3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calls.csv").write_text(CALLS)
    return tmp_path


@pytest.mark.parametrize(
    ("window", "count"), [("time(5m)", "7,590,396"), ("cron('* * * * *')", "100,001"), ("calendar(day)", "2,445,017")]
)
def test_a_row_over_too_many_windows_is_named_by_file_and_line(folder: Path, window: str, count: str) -> None:
    end = "9000-01-01T00:00:00" if "day" in window else "2099-01-01T00:00:00"
    (folder / "calls.csv").write_text(CALLS + f"2026-11-04T11:00:00,{end},bob,3\n")
    ran = wincli_here("run", "-w", window, "--order-by", "began", "--ends", "ended", "calls.csv", "out", cwd=folder)
    assert ran.code == 4
    assert f"calls.csv, line 7: lasts until {end[:4]}-01-01 00:00:00" in ran.err
    assert f", over {count}" in ran.err
    assert "the most is 100,000; leave such rows out with --where" in ran.err
    assert not (folder / "out").exists()


def test_rejects_and_the_account_count_each_row_once(folder: Path) -> None:
    done(folder, "run", "-w", "time(1h)", "--order-by", "began", "--ends", "ended", "calls.csv", "out")
    counts = manifest(folder / "out")["counts"]
    assert counts["rejected"] == {"null_attribute": 1, "inverted_interval": 1}
    assert (counts["rows_in"], counts["windowed"]) == (5, 3)
    assert table(folder / "out")["count"].to_pylist() == [2, 2, 2]


def test_a_stage_behind_reads_how_much_of_each_row_was_inside(folder: Path) -> None:
    (folder / "job.yaml").write_text(
        "input: calls.csv\noutput: out\nstages:\n"
        "- {name: hours, window: time(1h), order_by: began, ends: ended, emit: rows}\n"
        "- {name: agents, window: punct(), key: agent, agg: ['spent=sum(_overlap)', 'parts=sum(_share)']}\n"
    )
    done(folder, "run", "job.yaml")
    rows = {row["agent"]: row["spent"] for row in table(folder / "out").to_pylist() if row["agent"] and row["spent"]}
    assert set(rows) == {"ann", "bob"}
