"""Windows that ask for the window before, as commands: night after night with a state they are those of one run."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, rows, write

Run = Callable[..., Ran]
WINDOW = "delta(ts, 2 * previous(mean(latency), 30))"


def write_nights(folder: Path) -> None:
    """Three nights of three users, an hour each, in two files each; latencies of seconds, some null."""
    some, row, start = random.Random(7), 0, dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    for night in range(3):
        (folder / str(night)).mkdir(parents=True)
        for half in range(2):
            times = sorted(some.randrange(1800) for _ in range(200))
            columns = {
                "id": list(range(row, row + 200)),
                "ts": [start + dt.timedelta(days=night, seconds=1800 * half + each) for each in times],
                "user": some.choices(["ann", "bob", "cyd"], k=200),
                "latency": some.choices([5.0, 20.0, 60.25, 0.1, None], k=200),
            }
            pq.write_table(pa.table(columns), folder / str(night) / f"{half}.parquet")
            row += 200


def windows(folder: Path, names: list[str]) -> list[str]:
    """What came out, without where each row arrived: a night counts its files from the first."""
    files = sorted(str(path) for path in folder.rglob("part-*"))
    table = ds.dataset(files, format="parquet").to_table()
    return sorted(map(repr, table.filter(pa.compute.equal(table["_mark"], "window")).select(names).to_pylist()))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (("-a", "ids=collect(id)", "-a", "mean(latency)"), ["ids", "mean_latency"]),
        (("--emit", "rows"), ["id", "latency"]),
    ],
)
def test_three_nights_are_one_run(run: Run, tmp_path: Path, asked: tuple[str, ...], shown: list[str]) -> None:
    write_nights(tmp_path / "log")
    job = ("-w", WINDOW, "-k", "user", "--order-by", "ts", *asked)
    for night in range(3):
        end = ("--at-end", "flush") if night == 2 else ()
        assert run(*job, "--state", "state", *end, f"log/{night}", f"nights/{night}").code == 0
    assert run(*job, "log", "whole").code == 0
    names = ["user", "window", "window_start", "window_end", "closed_by", *shown]
    found = windows(tmp_path / "nights", names)
    assert found == windows(tmp_path / "whole", names)
    assert len(found) > 100


def test_a_row_whose_amount_is_negative_is_among_the_rejects(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv="ts,n\n0,5\n1,5\n2,0\n9,5\n10,2\n11,5\n")
    asked = ("-w", "gap(ts, n - previous(count(), 1) - 1)", "--order-by", "ts", "-a", "ids=collect(ts)")
    ran = run(*asked, "log.csv", "out")
    assert ran.code == 0
    assert rows(tmp_path / "out", "ids") == [[0, 1], [9, 11]]
    (file,) = (tmp_path / "out/_rejected").glob("*.ndjson")
    rejected = file.read_text().splitlines()
    assert [(row["reason"], row["row"]["ts"]) for row in map(json.loads, rejected)] == [
        ("negative_amount", 2),
        ("negative_amount", 10),
    ]
