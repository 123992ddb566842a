"""What speaks Spark's DataFrame API: classic Spark, Spark Connect and Sail; and a log for tests of DataFrames."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENGINES = ("classic", "connect", "sail")
ROWS = 600
CALLS = ["n=count()", "sum(x)", "first(t)", "ids=collect(id)"]


@contextmanager
def remote_session(engine: str) -> Iterator[SparkSession]:
    """Yield a session of an engine that is behind a server, and stop both: the session first, or Sail hangs."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    if engine == "connect":
        session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "3").getOrCreate()
        yield session
        session.stop()
        return
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    yield session
    session.stop()
    server.stop()


def dataframe_log() -> pa.Table:
    """Return a log in the order of ``t``, in which ``id`` is the arrival."""
    rng = np.random.default_rng(7)
    seconds = np.sort(rng.integers(0, 60_000, ROWS))
    return pa.table({
        "id": np.arange(ROWS),
        "k": [f"u{i}" for i in rng.integers(0, 12, ROWS)],
        "t": pa.array(seconds * 10**6).cast(pa.timestamp("us", tz="UTC")),
        "x": rng.random(ROWS),
        "kind": [*rng.choice(list("abc"), ROWS)],
        "is_end": rng.random(ROWS) < 0.02,
    })  # fmt: skip


def shuffled(spark: SparkSession, log: pa.Table, seed: int) -> DataFrame:
    """Return a log as a DataFrame with its rows in any order, in three partitions."""
    from pyspark.sql import functions

    return spark.createDataFrame(log).orderBy(functions.rand(seed)).repartition(3)


def sample(cases: Iterable[str], *names: str) -> list[Any]:
    """Return cases of which only those with these names are in scripts/test; scripts/nightly runs all."""
    return [case if case in names else pytest.param(case, marks=pytest.mark.nightly) for case in cases]
