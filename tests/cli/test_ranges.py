"""Ranges of days of a job of two stages on Spark: corrections, damage, and units at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from support.day_results import as_one, day, in_order, records, span
from support.processes import Ran, manifest

Run = Callable[..., Ran]
DAYS = 4
ROWS = 600
SMALL = ("--split-size", "8KiB", "--slice-size", "12KiB")
MANY = ("job.yaml", "--state", "st", *SMALL)
VISITS: dict[str, Any] = {
    **{"name": "visits", "window": "gap(ts, 10m)", "key": "user", "order_by": "ts"},
    "agg": ["n=count()", "total=sum(x)"],
}
MOVES: dict[str, Any] = {
    **{"name": "moves", "window": "sliding, count(5), count(3)", "key": "user"},
    "agg": ["n=sum(n)", "mean(total)"],
}


@pytest.fixture(autouse=True)
def _days(tmp_path: Path) -> None:
    """Days of a random log, and jobs: over each day, over all at once, and into other folders."""
    random = np.random.default_rng(4)
    for n in range(1, DAYS + 1):
        at = (np.sort(random.integers(0, 86_400, ROWS)) + (n - 1) * 86_400) * 1_000_000
        users = [f"user {k}" for k in random.integers(0, 12, ROWS)]
        log = pa.table({"ts": pa.array(at, pa.timestamp("us")), "user": users, "x": random.normal(0, 1e6, ROWS)})
        folder = tmp_path / "log" / f"dt={day(n)}"
        folder.mkdir(parents=True)
        pq.write_table(log, folder / "a.parquet", row_group_size=90)
    for name, given, first, last in (
        ("job", "log", "visits", "out"),
        ("whole", "log/*", "one", "whole"),
        ("beside", "log", "own", "beside"),
    ):
        job = {"input": given, "output": last, "stages": [{**VISITS, "output": first}, MOVES]}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(job))


def check_is_one_run(folder: Path, run: Run) -> None:
    """The days together are one run over all."""
    assert run("whole.yaml", "--state", "st-one").code == 0
    units = list(records(folder / "st").values())
    for some, one in (("visits", "one"), ("out", "whole")):
        found = as_one(in_order([folder / some / f"dt={day(n)}" for n in range(1, DAYS + 1)]), units)
        assert found.num_rows > 200
        assert found.equals(in_order([folder / one]))
    held = [stage["counts"]["held"] for stage in units[-1]["stages"]]
    assert held == [manifest(folder / name)["counts"]["held"] for name in ("one", "whole")]


def change(path: Path) -> None:
    """Give the last rows of a day other values."""
    log = pq.read_table(path)
    x = log["x"].to_numpy().copy()
    x[-25:] += 1.0
    pq.write_table(log.set_column(2, "x", pa.array(x)), path, row_group_size=90)


def test_backfill_gives_the_result_of_one_run_and_a_correction_ends_where_nothing_changes(
    run: Run, spark_run: Run, tmp_path: Path
) -> None:
    first = spark_run(*MANY, *span(1, DAYS))
    assert first.code == 0, first.err
    assert len(manifest(tmp_path / "visits" / f"dt={day(1)}")["parts"]) > 1
    seen = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/dt=*/*") if path.parts[-3] != "log"}
    change(tmp_path / "log" / f"dt={day(2)}" / "a.parquet")
    ran = spark_run(*MANY, *span(2, 2))
    assert ran.notes[-1] == f"the correction reached {day(3)}; {day(4)} stays as it was"
    touched = {path.parts[-2] for path in seen if path.stat().st_mtime_ns != seen[path]}
    assert touched == {f"dt={day(n)}" for n in (2, 3)}
    check_is_one_run(tmp_path, run)


def test_units_at_the_same_time_give_the_parts_of_one_after_the_other(run: Run, spark_run: Run, tmp_path: Path) -> None:
    assert run("job.yaml", *SMALL, *span(1, 2)).code == 0
    ran = spark_run("beside.yaml", *SMALL, *span(1, 2), "--jobs", "2")
    assert ran.code == 0, ran.err
    for places in (("visits", "own"), ("out", "beside")):
        one, other = (
            {path.relative_to(tmp_path / place): path.read_bytes() for path in (tmp_path / place).rglob("part-*")}
            for place in places
        )
        assert len(one) > 2
        assert one == other
