"""Sketches from the command line: equal bytes for equal rows, in one slice or many, in one run or in units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here

ROWS = 1_500
CALLS = ("--agg", "u=hll_sketch(who)", "--agg", "x=kll_sketch(x)", "--agg", "n=approx_count_distinct(who)")
CALLS = (*CALLS, "--agg", "q=approx_quantile(x, 0.99)", "--agg", "rows=count()")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    random = np.random.default_rng(5)
    seconds = np.sort(random.integers(0, 3 * 86_400, ROWS))
    log = pa.table({
        "ts": pa.array(seconds * 1_000_000, pa.timestamp("us")),
        "site": [f"site {n % 2}" if n % 7 else "rare" for n in range(ROWS)],
        "who": [f"user {n}" for n in random.integers(0, 900, ROWS)],
        "x": random.normal(0, 1, ROWS),
    })  # fmt: skip
    for day in (1, 2, 3):
        (tmp_path / "log" / f"dt=2026-11-0{day}").mkdir(parents=True)
        part = log.filter(pa.array((seconds >= (day - 1) * 86_400) & (seconds < day * 86_400)))
        pq.write_table(part, tmp_path / "log" / f"dt=2026-11-0{day}" / "a.parquet", row_group_size=100)
    return tmp_path


def result(place: Path, *args: str) -> list[dict[str, object]]:
    ran = wincli_here("run", "-q", *args, cwd=place)
    assert ran.code == 0, ran.err
    rows = pq.ParquetDataset(place / args[-1].removesuffix("/{date}"), partitioning=None).read().to_pylist()
    keys = ("site", "window", "window_start", "u", "x", "n", "q", "rows")
    return sorted(({key: row[key] for key in keys if key in row} for row in rows), key=repr)


@pytest.mark.parametrize("window", ["gap(ts, 9m)", "count(300)", "within 20h every 6h"])
def test_a_sketch_does_not_see_how_the_work_was_cut(place: Path, window: str) -> None:
    order = ("--order-by", "ts") if window.startswith(("count", "within")) else ()
    whole = result(place, "--window", window, "--key", "site", *order, *CALLS, "log", "whole")
    small = ("--split-size", "1KiB", "--slice-size", "2KiB")
    assert result(place, "--window", window, "--key", "site", *order, *CALLS, *small, "log", "cut") == whole
    if not window.startswith("within"):
        assert result(place, "--window", window, *order, *CALLS, *small, "log", "keyless-cut") == result(
            place, "--window", window, *order, *CALLS, "log", "keyless"
        )
    assert len({row["u"] for row in whole}) > 3


def test_units_of_a_state_give_the_sketches_of_one_run(place: Path) -> None:
    job = ("--window", "count(200)", "--key", "site", "--order-by", "ts", *CALLS)
    whole = result(place, *job, "log", "whole")
    span = ("--start", "2026-11-01", "--end", "2026-11-04", "--state", "st", "--at-end", "hold")
    units = result(place, *job, *span, "log/dt={date}", "units/{date}")
    closed = [row for row in whole if row["rows"] == 200]
    assert [row for row in units if row["rows"] == 200] == closed
    assert len(closed) > 2
