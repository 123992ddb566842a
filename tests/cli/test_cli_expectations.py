"""Expectations on Spark: over an exchange, nothing is committed where one does not hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.processes import Ran, manifest


def test_rows_are_checked_by_the_tasks_that_write_them(spark_run: Callable[..., Ran], tmp_path: Path) -> None:
    rows = {"ts": list(range(5000)), "user": [n % 7 for n in range(5000)], "x": [n % 100 for n in range(5000)]}
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "log" / "a.parquet", row_group_size=500)
    asked = ("-w", "count(5)", "-k", "user", "-a", "top=max(x)", "--order-by", "ts")
    cut = ("--slice-size", "8KiB", "--split-size", "4KiB")
    bad = spark_run(*asked, *cut, "--expect", "all(top < 99)", "log", "out")
    assert bad.code == 4, bad.err
    assert "the expectation all(top < 99) does not hold: 50 of 1,0" in bad.err
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    good = ("--expect", "all(top < 100)", "--expect", "first_at = 0 and last_at = 4999", "--expect", "warn: late > 0")
    ran = spark_run(*asked, *cut, *good, "log", "out")
    assert ran.code == 0, ran.err
    assert [one["holds"] for one in manifest(tmp_path / "out")["expectations"]] == [True, True, False]
