"""``--distinct`` by the command line: what runs say of duplicates, nights that are one run, and rows that came late."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.day_results import day, put_day, rows_but, span
from support.in_process import done
from support.processes import manifest, table

LOG = """ts,user,id
2026-11-01T10:00:00,ann,1
2026-11-01T10:00:30,ann,1
2026-11-01T10:01:00,bob,1
2026-11-01T10:01:00,ann,1
2026-11-01T10:01:01,ann,1
2026-11-01T10:02:00,ann,
2026-11-01T10:02:00,ann,
"""
ASKED = (
    "--window",
    "count(1)",
    "--key",
    "user",
    "--order-by",
    "ts",
    "--distinct",
    "id within 1m",
    "-a",
    "at=first(ts)",
)


def run(folder: Path, *words: str) -> str:
    (folder / "log.csv").write_text(LOG)
    return done(folder, "run", *words, "log.csv", "out").err


def test_a_run_counts_the_rows_that_it_leaves_out(tmp_path: Path) -> None:
    said = run(tmp_path, *ASKED)
    assert "7 rows in, 5 windows out, 0 rejected, 2 filtered (2 duplicates)" in said
    counts = manifest(tmp_path / "out")["counts"]
    assert (counts["windowed"], counts["filtered"], counts["duplicates"]) == (5, 2, 2)
    assert [row["at"].second for row in table(tmp_path / "out").to_pylist() if row["user"] == "ann"] == [0, 1, 0, 0]


def test_a_run_without_the_option_says_nothing_of_duplicates(tmp_path: Path) -> None:
    run(tmp_path, "--window", "count(1)")
    assert "duplicates" not in manifest(tmp_path / "out")["counts"]


def test_why_and_plan_say_which_rows_are_left_out(tmp_path: Path) -> None:
    run(tmp_path, *ASKED)
    said = done(tmp_path, "why", "out", "--only", "user=ann", "--window", "9").out
    assert "6 rows of this key in the input" in said
    assert "2 left out by --distinct" in said
    said = done(tmp_path, "plan", *ASKED, "log.csv", "out2").out
    assert "A row with the id of one that was let through, at most 1 min before, is left out." in " ".join(said.split())
    found = done(tmp_path, "why", "out", "--only", "user=ann", "--window", "1").out
    assert "log.csv:6" in found


def test_a_job_file_has_the_key_and_the_same_time_in_another_unit_is_the_same_job(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    job = "input: log.csv\noutput: out\nwindow: count(1)\norder_by: ts\ndistinct: user, id within 1m\n"
    (tmp_path / "job.yaml").write_text(job)
    done(tmp_path, "run", "job.yaml")
    first = manifest(tmp_path / "out")["counts"]
    assert first["duplicates"] == 2
    assert "column 'id' is there twice" in done(tmp_path, "run", "job.yaml", "--distinct", "id, id", code=2).err


def test_a_state_needs_a_bound(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    asked = ("--window", "count(1)", "--order-by", "ts", "--distinct", "user, id", "--state", "st")
    said = done(tmp_path, "run", *asked, "log.csv", "out", code=2).err
    assert "a state would keep every user and id for ever" in said
    assert 'say how long: --distinct "user, id within 1d"' in said


def test_a_state_is_of_one_request(tmp_path: Path) -> None:
    put_day(tmp_path, 1, pa.table({"ts": pa.array([0], pa.timestamp("us")), "id": [1]}))
    asked = ("--window", "count(1)", "--order-by", "ts", "--state", "st", "--distinct")
    done(tmp_path, "run", *asked, "id within 1m", f"log/dt={day(1)}", "out/1")
    done(tmp_path, "run", *asked, "id within 60", f"log/dt={day(1)}", "out/1")
    put_day(tmp_path, 2, pa.table({"ts": pa.array([1], pa.timestamp("us")), "id": [1]}))
    said = done(tmp_path, "run", *asked, "id within 2m", f"log/dt={day(2)}", "out/2", code=2).err
    assert "its distinct is id within 60, not id within 120" in said


NIGHTS = 5


def night(number: int, rng: random.Random, first: int) -> pa.Table:
    """Rows of which some repeat others, and some belong to nights before."""
    size = rng.randint(3, 10)
    back = [rng.randint(0, 20) if rng.random() < 0.3 else 0 for _ in range(size)]
    at = [max(0, number * 10 + rng.randint(0, 9) - each) * 10**6 for each in back]
    return pa.table(
        {
            "ts": pa.array(at, pa.timestamp("us")),
            "u": [rng.choice("ab") for _ in range(size)],
            "x": [rng.choice([1, 2, 3, None]) for _ in range(size)],
            "id": range(first, first + size),
        }
    )


@pytest.mark.parametrize("late", ["redo", "reject"])
@pytest.mark.parametrize("distinct", ["x within 7", "x count 2", "x, u within 12 count 5"])
@pytest.mark.parametrize("window", ["count(2)", "time(4)", "sliding, time(9), time(3)"])
def test_nights_are_one_run(window: str, distinct: str, late: str, tmp_path: Path) -> None:
    """With late rows, which are decided again; or where none is late."""
    rng, first, asked = random.Random(f"{window} {distinct}"), 0, ("-w", window, "-k", "u", "--order-by", "ts")
    asked += ("--distinct", distinct, "-a", "ids=collect(id)", "-a", "back=collect(lag(id))")
    for number in range(1, NIGHTS + 1):
        rows = night(number, rng, first)
        if late == "reject":
            least = number * 10 * 10**6
            rows = rows.filter(pa.compute.greater_equal(rows["ts"].cast(pa.int64()), least))
        put_day(tmp_path, number, rows)
        first += rows.num_rows
    for number in range(1, NIGHTS + 1):
        end = ("--at-end", "flush") if number == NIGHTS else ()
        done(tmp_path, "run", *asked, "--state", "st", "--late", late, "log", "out", *span(number, number), *end)
    done(tmp_path, "run", *asked, "log", "whole")
    assert rows_but(tmp_path / "out", "_pos", "window") == rows_but(tmp_path / "whole", "_pos", "window")
    assert duplicates(tmp_path / "out") == manifest(tmp_path / "whole")["counts"]["duplicates"] > 0


def duplicates(folder: Path) -> Any:
    return sum(manifest(unit)["counts"]["duplicates"] for unit in folder.iterdir() if unit.name.startswith("dt="))
