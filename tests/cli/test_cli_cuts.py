"""However the work is cut, the rows are the same to the bit, and in the same order of keys and windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.processes import MASTER, Warm, manifest, table

ROWS = 6_000
SMALL = ("--split-size", "32KiB", "--slice-size", "40KiB")
AGGREGATES = ("sum(x)", "mean(x)", "stddev(x)", "quantile(x,0.3)", "first(id)", "last(id)", "count()")

WINDOWS = {
    "delta": ("delta(ts,60)",),
    "count": ("count(7)",),
    "time": ("time(5m)", "--empty", "row"),
    "gap": ("gap(ts,2)",),
    "punct": ("punct()",),
    "sliding": ("sliding, time(10), count(9)",),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files of a log that goes back and forth in time, with ties, in Parquet with many row groups, and in CSV."""
    folder = tmp_path_factory.mktemp("cuts")
    random = np.random.default_rng(7)
    seconds = np.cumsum(random.exponential(0.7, ROWS)) + random.normal(0, 5, ROWS)
    log = pa.table(
        {
            "id": np.arange(ROWS),
            "ts": pa.array((seconds * 10).astype("i8") * 100_000, pa.timestamp("us")),
            "user": pa.array([f"user {k}" for k in random.integers(0, 60, ROWS)]),
            "x": random.normal(0, 1e6, ROWS),
        }
    )
    for form in ("parquet", "csv"):
        (folder / form).mkdir()
    for i in range(5):
        part = log.slice(i * ROWS // 5, ROWS // 5)
        pq.write_table(part, folder / "parquet" / f"{i}.parquet", row_group_size=300)
        pc.write_csv(part, folder / "csv" / f"{i}.csv")
    return folder


def done(logs: Path, window: Sequence[str], aggregates: Sequence[str], *more: str, warm: Warm | None = None) -> None:
    """Run a window in this process, or on Spark."""
    calls = [word for text in aggregates for word in ("-a", text)]
    args = ["run", "-w", *window, *calls, "--mode", "overwrite", *more]
    ran = warm.run([*args, "--master", MASTER], logs) if warm else wincli_here(*args, cwd=logs)
    assert ran.code == 0, ran.err


def same(one: Path, other: Path) -> None:
    assert table(one).equals(table(other))
    assert manifest(one)["counts"] == manifest(other)["counts"]


@pytest.mark.parametrize("keys", [("-k", "user"), ()], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("case", WINDOWS)
def test_cuts_do_not_change_a_bit(warm: Warm, logs: Path, case: str, keys: tuple[str, ...]) -> None:
    """Whole, and in pieces of another format, in this process; in pieces on Spark."""
    window = (*WINDOWS[case], *keys)
    done(logs, window, AGGREGATES, "parquet", "whole")
    done(logs, window, AGGREGATES, *SMALL, "parquet", "cut", warm=warm)
    done(logs, window, AGGREGATES, *SMALL, "csv", "alone")
    want = table(logs / "whole")
    assert want.num_rows >= 5
    assert len(manifest(logs / "whole")["parts"]) == 1
    assert len(manifest(logs / "cut")["parts"]) > 2
    same(logs / "cut", logs / "whole")
    assert table(logs / "alone").cast(want.schema).equals(want)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_sorted_input_is_scanned_as_presorted(warm: Warm, logs: Path, kind: str) -> None:
    """A part for each chunk, rows in windows that span several of them, and one that is rejected in another."""
    log = pq.read_table(logs / "parquet").sort_by("ts")
    gone = pa.array([i == 3000 for i in range(ROWS)])
    log = log.set_column(1, "ts", pa.compute.if_else(gone, None, log["ts"]))
    source = f"order-{kind}"
    (logs / source).mkdir()
    for i in range(3):
        part = log.slice(i * ROWS // 3, ROWS // 3)
        if kind == "parquet":
            pq.write_table(part, logs / source / f"{i}.parquet", row_group_size=70)
        else:
            pc.write_csv(part, logs / source / f"{i}.csv")
    for window, parts in (("delta(ts, 60)", 3), ("gap(ts, 3)", 3), ("delta(ts, 3000)", 1)):
        done(logs, [window], AGGREGATES, source, "whole")
        done(logs, [window], AGGREGATES, *SMALL, source, "cut", warm=warm if kind == "parquet" else None)
        same(logs / "cut", logs / "whole")
        assert manifest(logs / "cut")["counts"]["rejected"] == {"null_order": 1}
        assert len(manifest(logs / "whole")["parts"]) == 1
        assert len(manifest(logs / "cut")["parts"]) >= parts


@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_partial_aggregation_changes_no_bit(warm: Warm, logs: Path, source: str) -> None:
    """Hundreds of rows a window, of which the tasks send one for each 5 minutes, or 2 seconds, that they have read."""
    aggregates = ("sum(x)", "mean(x)", "count()", "max(x)", "min(ts)")
    hop = ["timeInterval, intervalDuration(60), creationPeriod(20)", "--order-by", "ts"]
    for window in (["time(5m)", "--empty", "row"], hop, ["time(1h)", "-k", "user"]):
        done(logs, window, aggregates, source, "whole")
        done(logs, window, aggregates, *SMALL, source, "cut", warm=warm if source == "parquet" else None)
        same(logs / "cut", logs / "whole")
        assert manifest(logs / "cut")["counts"]["windowed"] == ROWS
