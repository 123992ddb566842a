"""A job of two stages over days of a random log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.day_results import day

DAYS = 4
ROWS = 600
SMALL = ("--split-size", "8KiB", "--slice-size", "12KiB")
JOB: dict[str, Any] = {
    "input": "log",
    "output": "out",
    "stages": [
        {
            **{"name": "visits", "window": "gap(ts, 10m)", "key": "user", "order_by": "ts", "output": "visits"},
            "agg": ["n=count()", "total=sum(x)"],
        },
        {"name": "moves", "window": "sliding, count(5), count(3)", "key": "user", "agg": ["n=sum(n)", "mean(total)"]},
    ],
}


def write_log(folder: Path) -> None:
    random = np.random.default_rng(4)
    for n in range(1, DAYS + 1):
        at = (np.sort(random.integers(0, 86_400, ROWS)) + (n - 1) * 86_400) * 1_000_000
        users = [f"user {k}" for k in random.integers(0, 12, ROWS)]
        log = pa.table({"ts": pa.array(at, pa.timestamp("us")), "user": users, "x": random.normal(0, 1e6, ROWS)})
        folder.joinpath(f"dt={day(n)}").mkdir(parents=True)
        pq.write_table(log, folder / f"dt={day(n)}" / "a.parquet", row_group_size=90)
