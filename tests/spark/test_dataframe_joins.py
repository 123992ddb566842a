"""Joins of two DataFrames are those of the tables, also where rows of both sides tie and keys are null."""

from __future__ import annotations

from typing import Any

import chispa
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import wincli
from wincli.windowing.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

ARRIVAL = ("_pos", "_tie", "_tie_2", "_tie_3", "_tie_4")
"""Columns that count arrivals: rows of a DataFrame have none."""
WINDOWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "pairs": ("around(20, 10)", {}, "q on k by t=at full"),
    "one log of all keys": ("around(2, 1)", {}, "q by t=at left"),
    "sums": ("around(20, 10)", {"aggregates": ["n=count()", "s=sum(q_m)"]}, "q on k by t=at left"),
    "as of": ("at(0, 5) within 30", {}, "q on k by t=at left"),
    "strict": ("at(0)", {"where": "v % 3 <> 0"}, "q on k by t=at left strict where (m > 3)"),
    "two windows": ("sliding, time(20) join count(2)", {}, "q on k by t=at full"),
    "one window": ("time(25)", {}, "q on k by t=at anti"),
    "union": ("count(4)", {"aggregates": ["n=count()", "s=sum(q_m)", "last(v)"]}, "q on k by t=at union"),
}


def logs() -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(4)
    left = pa.table({"t": np.sort(random.choice(150, 60, replace=False)), "v": np.arange(60)})
    right = pa.table({"at": np.sort(random.choice(150, 80, replace=False)), "m": np.arange(80)})
    names = pa.array(["a", "b", "c", None])
    return (
        left.append_column("k", names.take(pa.array(random.integers(0, 4, 60)))),
        right.append_column("k", names.take(pa.array(random.integers(0, 4, 80)))),
    )


def in_spark(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return spark.createDataFrame(rows.to_pylist(), ", ".join(f"{f.name} {_KINDS[f.type]}" for f in rows.schema))


_KINDS = {pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double", pa.int8(): "tinyint"}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_join_is_that_of_the_tables(spark: SparkSession, name: str) -> None:
    (window, options, join), (left, right) = WINDOWS[name], logs()
    if "full" not in join:
        right = right.filter(pa.compute.is_valid(right["k"]))
    if "full" not in join and "left" not in join and "anti" not in join:
        left = left.filter(pa.compute.is_valid(left["k"]))
    wanted = wincli.aggregate(left, window, order_by="t", join={join: right}, **options)
    frames = in_spark(spark, left), in_spark(spark, right)
    found = wincli.windows(frames[0], window, order_by="t", join={join: frames[1]}, **options)
    wanted = wanted.drop_columns([column for column in ARRIVAL if column in wanted.column_names])
    found = found.drop(*ARRIVAL)
    assert found.columns == wanted.column_names
    assert wanted.num_rows
    expected = spark.createDataFrame(wanted.to_pylist(), found.schema)
    chispa.assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_what_does_not_go_with_a_right_side_is_an_error(spark: SparkSession) -> None:
    left, right = (in_spark(spark, rows) for rows in logs())
    for more in ({"arrival": "v"}, {"state": "new"}):
        with pytest.raises(ConfigError, match="does not go with a DataFrame of the right"):
            wincli.windows(left, "around(1, 1)", order_by="t", join={"q on k by t=at": right}, **more)
    with pytest.raises(ConfigError, match="is a path, and a table is given"):
        wincli.windows(left, "around(1, 1)", order_by="t", join={"q=r on k by t=at": right})
    result = wincli.windows(left, "count(2)", order_by="t", aggregates=["n=count()"], key="v")
    with pytest.raises(ConfigError, match="a result in a DataFrame is no left side"):
        wincli.windows(result, "around(1, 1)", join={"q by _at=at": right})
