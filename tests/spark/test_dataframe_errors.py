"""Errors of rows reach the user as `WincliError`, on classic Spark, Spark Connect and Sail (``--spark``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

import wincli
from wincli.windowing.errors import DataError, SpecError, WincliError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
ROWS = [("a", 1, 1.0), ("a", None, 2.0), ("b", 3, 3.0)]
NULL = "1 rows have no place in the window: row 2 is null_order; mend them, or say rejected='column' or 'drop'"
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a row without a place": ({"key": "k", "order_by": "t"}, "is null_order; mend them, or say"),
    "before rows are moved": ({"key": "k", "order_by": "t", "where": "cast(k as int) > 3"}, "'a' is no INTEGER"),
    "in a scan": ({"order_by": "x", "let": "y=cast(lag(k) as int)", "aggregates": "sum(y)"}, "'a' is no INTEGER"),
    "of an aggregate": ({"order_by": "x", "aggregates": "sum(big)"}, "sum(big) does not fit int64 in window 0"),
}
ACTIONS: dict[str, Callable[[DataFrame, Path], object]] = {
    "collect": lambda df, _: df.collect(),
    "toArrow": lambda df, _: df.toArrow(),
    "write": lambda df, path: df.write.parquet(str(path / "out")),
    "count": lambda df, _: df.select(functions.count("window")).collect(),
}


@pytest.fixture
def log(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame(ROWS, "k string, t long, x double").coalesce(1)
    return rows.withColumn("big", functions.lit(2**62).cast("long"))


@pytest.mark.parametrize(
    ("case", "action"), [*((case, "collect") for case in CASES), *(("in a scan", action) for action in [*ACTIONS][1:])]
)
def test_an_error_of_rows_is_that_of_the_library(log: DataFrame, tmp_path: Path, case: str, action: str) -> None:
    options, words = CASES[case]
    windows = wincli.windows(log, "count(5)", **options)
    with pytest.raises(DataError, match=re.escape(words)) as caught, wincli.unwrap_errors():
        ACTIONS[action](windows, tmp_path)
    assert isinstance(caught.value.__context__, PySparkException)
    if options["order_by"] == "x":
        with pytest.raises(WincliError) as alone:
            wincli.aggregate(log.toArrow(), "count(5)", **options)
        assert type(caught.value) is type(alone.value)
        assert (str(caught.value), caught.value.what) == (str(alone.value), alone.value.what)


@pytest.mark.parametrize("key", ["k", ()])
def test_a_row_without_an_arrival_is_an_error(log: DataFrame, key: str) -> None:
    rows = log.withColumn("place", functions.expr("CASE WHEN x > 1.5 THEN cast(x AS smallint) END"))
    with pytest.raises(DataError, match="1 rows have no place; give each row a number"), wincli.unwrap_errors():
        wincli.windows(rows, "count(5)", key=key, order_by="x", arrival="place").collect()


def test_an_error_of_a_chain_comes_through_its_stages(log: DataFrame) -> None:
    first = wincli.windows(log, "count(2)", key="k", order_by="t", let="n=k", where="cast(n as int) > 3")
    second = wincli.windows(first, "punct()", aggregates="sum(count)", where="count > 0")
    with pytest.raises(DataError, match="'a' is no INTEGER"), wincli.unwrap_errors():
        second.collect()


def test_the_exception_of_spark_has_the_words(log: DataFrame) -> None:
    with pytest.raises(PySparkException, match="is null_order; mend them, or say") as caught:
        wincli.windows(log, "count(5)", order_by="t").collect()
    found = wincli.find_error(caught.value)
    assert isinstance(found, DataError)
    assert str(found) == NULL


def test_other_errors_pass_as_they_are(spark: SparkSession, log: DataFrame) -> None:
    with pytest.raises(PySparkException) as caught, wincli.unwrap_errors():
        spark.sql("SELECT no_such_column").collect()
    assert wincli.find_error(caught.value) is None
    with pytest.raises(SpecError) as mistake, wincli.unwrap_errors():
        wincli.windows(log, "count(", order_by="t")
    assert wincli.find_error(mistake.value) is mistake.value


def test_a_function_may_be_decorated(log: DataFrame) -> None:
    @wincli.unwrap_errors()
    def run() -> int:
        return len(wincli.windows(log, "count(5)", order_by="t").collect())

    with pytest.raises(DataError):
        run()
    with wincli.unwrap_errors():
        assert len(wincli.windows(log, "count(5)", order_by="x").collect()) == 1
