"""Windows of history go on live: with those of the stream they are the windows of one run over all rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import wincli
from support.table_equality import check_windows
from wincli.conf.examples.live_windows import live_windows

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
ROWS, HISTORY = 400, 160
NEEDS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(autouse=True)
def _settings(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in NEEDS}
    for name, value in NEEDS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """Rows of 7 users in order; u6 comes only live, and u5 no more."""
    rng = np.random.default_rng(11)
    seconds = np.sort(rng.integers(0, 5000, ROWS))
    users = rng.integers(0, 6, ROWS)
    users[HISTORY:] = np.where(users[HISTORY:] == 5, 6, users[HISTORY:])
    return pa.table({
        "ts": pa.array(seconds * 10**6).cast(pa.timestamp("us", tz="UTC")),
        "user": [f"u{i}" for i in users],
        "amount": rng.random(ROWS),
    })  # fmt: skip


def arrive(log: pa.Table, folder: Path, files: int) -> None:
    """Write rows as files of a source that come one after another."""
    folder.mkdir()
    cuts = np.linspace(0, len(log), files + 1).astype(int)
    for number, (low, high) in enumerate(pairwise(cuts)):
        path = folder / f"{number}.parquet"
        pq.write_table(log.slice(low, high - low), path)
        os.utime(path, (number, number))  # a file source takes files by their time


def stream_windows(
    spark: SparkSession, folder: Path, rows: pa.Schema, state: pa.Table, job: dict[str, Any]
) -> pa.Table:
    """Return all windows that the stream has completed so far, of the files that are there."""
    schema = spark.createDataFrame(rows.empty_table()).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    out = live_windows(stream, state, **job).writeStream.format("parquet")
    out = out.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
    query = out.trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.read.parquet(str(folder / "out")).toArrow()


def run_history(spark: SparkSession, rows: pa.Table, job: dict[str, Any], by: str) -> tuple[pa.Table, DataFrame]:
    """Return the windows of history, and the state that it leaves, by the library or over a DataFrame."""
    if by == "library":
        windows, state = wincli.aggregate(rows, **job, state="new", plain=True)
        return windows, spark.createDataFrame(state)
    windows, state = wincli.windows(spark.createDataFrame(rows), **job, state="new", plain=True)
    return windows.toArrow(), state


@pytest.mark.parametrize(("window", "by"), [("delta(ts, 60)", "frame"), ("gap(ts, 90) or count(9)", "library")])
def test_windows_of_history_and_of_the_stream_are_those_of_one_run(
    spark: SparkSession, log: pa.Table, tmp_path: Path, window: str, by: str
) -> None:
    aggregates = ["n=count()", "spent=sum(amount)", "first(ts)"]
    job: dict[str, Any] = {"window": window, "key": "user", "order_by": "ts", "aggregates": aggregates}
    history, state = run_history(spark, log.slice(0, HISTORY), job, by)
    arrive(log.slice(HISTORY, 160), tmp_path / "in", 2)
    some = stream_windows(spark, tmp_path, log.schema, state, job)
    late = log.slice(0, 3)  # these sort before what came: they are left out
    more = pa.concat_tables([late, log.slice(HISTORY + 160)])
    pq.write_table(more, tmp_path / "in" / "9.parquet")
    live = stream_windows(spark, tmp_path, log.schema, state, job)  # goes on from its checkpoint
    whole = wincli.aggregate(log, **job, plain=True, at_end="drop")
    assert 10 < len(some) < len(live)
    check_windows(pa.concat_tables([part.cast(whole.schema) for part in (history, live)]), whole)
