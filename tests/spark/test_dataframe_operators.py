"""Operators over a DataFrame are those over its table, on classic Spark, Spark Connect and Sail (``--spark``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

import wincli
from support.table_equality import check_windows
from wincli.windowing.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
MOVES = "wincli.conf.examples.latest_moves:LatestMoves"
ROWS = 300


@pytest.fixture(scope="module")
def ticks() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({
        "id": np.arange(ROWS),
        "k": [f"u{i}" for i in rng.integers(0, 6, ROWS)],
        "t": np.sort(rng.integers(0, 4_000, ROWS)),
        "symbol": [*rng.choice(list("abc"), ROWS)],
        "price": rng.normal(0, 1, ROWS).cumsum(),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("window", "key"), [("time(100)", "k"), ("count(7)", ()), ("sliding, time(300), time(50)", "k")]
)
def test_an_operator_gets_the_panes_of_the_table(spark: SparkSession, ticks: pa.Table, window: str, key: str) -> None:
    options: dict[str, Any] = {"key": key, "order_by": "t", "operator": MOVES}
    df = spark.createDataFrame(ticks.to_pylist()).orderBy(functions.rand(1))
    check_windows(
        wincli.windows(df, window, arrival="id", **options).toArrow(), wincli.aggregate(ticks, window, **options)
    )


def test_a_module_that_tasks_lack_is_named(
    spark: SparkSession, ticks: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import wincli\n\nclass Last(wincli.Operator):\n    output = {'n': int}\n"
    (tmp_path / "only_here.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    df = spark.createDataFrame(ticks.select(["k", "t"]).to_pylist())
    with pytest.raises(ConfigError, match="cannot import module 'no_such_module': ModuleNotFoundError"):
        wincli.windows(df, "count(2)", order_by="t", operator="no_such_module:Last")
    windows = wincli.windows(df, "count(2)", key="k", order_by="t", operator="only_here:Last")
    monkeypatch.undo()
    sys.modules.pop("only_here")
    words = "--operator only_here:Last: cannot import module 'only_here': ModuleNotFoundError"
    with pytest.raises(ConfigError, match=words), wincli.unwrap_errors():
        windows.collect()
