"""Corrections of days on a state: together the days are one run over all but for the numbers of windows, and no day is
run again whose state before it decides the same."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.day_results import day, records, span
from support.in_process import wincli_here

DAYS = 6
LENGTH = 20
NUMBERS = {"__rows", "__begin", "__windows", "__rank", "__pos"}
"""What a state counts, for these windows without a meaning: that of the rest is in the rows."""
KEYED = ("-k", "u", "--order-by", "ts")
SESSIONS = ("-w", "gap(ts, 3)", *KEYED)
WINDOWS = [
    SESSIONS,
    ("-w", "count(2)", *KEYED),
    ("-w", "delta(ts, 4)", *KEYED),
    ("-w", "time(4)", *KEYED),
    ("-w", "when(x > 6)", *KEYED),
    ("-w", "delta(ts, 2 * previous(count(), 2)) or count(3)", *KEYED),
    ("-w", "sliding, count(3)", *KEYED),
    ("-w", "sliding, delta(ts, 5), delta(ts, 2)", *KEYED),
    ("-w", "sliding, time(5), time(2)", *KEYED),
    ("-w", "partitioned, count(3), tupleCount(4)", *KEYED),
    ("-w", "timeInterval, intervalDuration(4), creationPeriod(2)", *KEYED, "--event-time", "ts"),
    ("-w", "within 4 every 2", "--order-by", "ts"),
    ("-w", "partition by u retain 2 every 3", "--order-by", "ts", "--emit", "entered"),
]
AGGREGATES = ("-a", "n=count()", "-a", "ids=collect(id)", "-a", "s=sum(y)", "-a", "y=first(y)")


def write_day(folder: Path, n: int, rng: random.Random, mean: int = 8) -> None:
    """Write a day of rows, in its own time."""
    size = rng.randint(1, 2 * mean)
    seconds = [n * LENGTH + rng.randrange(LENGTH) for _ in range(size)]
    log = pa.table(
        {
            "ts": pa.array([second * 10**6 for second in seconds], pa.timestamp("us")),
            "u": [rng.choice("abc") for _ in range(size)],
            "id": [rng.randrange(10**6) for _ in range(size)],
            "x": [rng.randint(0, 9) for _ in range(size)],
            "y": [rng.random() for _ in range(size)],
        }
    )
    place = folder / "log" / f"dt={day(n)}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(log, place / "a.parquet")


def run(cwd: Path, *args: str) -> None:
    ran = wincli_here("run", "-q", *args, cwd=cwd)
    assert ran.code == 0, ran.err


def result(folder: Path, but: tuple[str, ...] = ("_pos", "window")) -> list[str]:
    files = [str(path) for path in folder.rglob("part-*")]
    read = ds.dataset(files, format="parquet").to_table()
    return sorted(map(repr, read.drop_columns([*but]).to_pylist()))


def left(state: Path) -> dict[str, Any]:
    """What each day has left, without numbers, and without keys of which nothing else is left."""
    found = {}
    for label, record in records(state).items():
        tables = []
        for kind in ("rows", "keys", "position", "advances"):
            files = sorted((state / label).rglob(f"{kind}*.parquet"))
            rows = [row for file in files for row in pq.read_table(file).to_pylist()]
            plain = [{name: value for name, value in row.items() if name not in NUMBERS} for row in rows]
            state_of = [{name: value for name, value in row.items() if name.startswith("__")} for row in plain]
            told = [each for each, of in zip(plain, state_of, strict=True) if kind != "keys" or any(of.values())]
            tables.append(repr(told))
        found[label] = (tables, [stage["registers"] for stage in record["stages"]])
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("asked", WINDOWS, ids=lambda asked: asked[1])
def test_corrected_days_are_one_run_and_no_day_is_run_again_that_begins_as_before(
    asked: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = () if "entered" in asked else AGGREGATES
    command = (*asked, *rows, "--state", "st", "--keep", "99", "log", "out", *span(1, DAYS))
    for n in range(1, DAYS + 1):
        write_day(tmp_path, n, rng)
    run(tmp_path, *command)
    for _ in range(3):
        before, runs = left(tmp_path / "st"), {label: one["run"] for label, one in records(tmp_path / "st").items()}
        corrected = rng.sample(range(1, DAYS + 1), rng.randint(1, 2))
        for n in corrected:
            write_day(tmp_path, n, rng, mean=rng.randint(1, 9))
        run(tmp_path, *command)
        now = left(tmp_path / "st")
        again = [n for n in range(1, DAYS + 1) if records(tmp_path / "st")[day(n)]["run"] != runs[day(n)]]
        needed = [n for n in range(1, DAYS + 1) if n in corrected or (n > 1 and before[day(n - 1)] != now[day(n - 1)])]
        assert again == needed
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        run(tmp_path, *asked, *rows, "--at-end", "hold", "--state", "st-one", "log", "one")
        shutil.rmtree(tmp_path / "st-one")
        assert result(tmp_path / "out") == result(tmp_path / "one")
    run(tmp_path, *command, "--redo")
    assert result(tmp_path / "out", ("_pos",)) == result(tmp_path / "one", ("_pos",))
