"""Columns of any name and type give the windows of the table, on classic Spark, Connect and Sail (``--spark``)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import pytest
from pyspark.sql import SparkSession, functions

import wincli
from support.dataframe_engines import sample
from support.table_equality import difference, same
from wincli.windowing.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
ROWS = 24
NUMBERS = list(range(ROWS))
CALLS = ["n=count()", "x=sum(x)", "ids=collect(id)"]
NAN, INFINITY = float("nan"), float("inf")
DAY = dt.datetime(1969, 12, 31, 23, 59, 50)
KEYS: dict[str, list[Any]] = {
    "string": ["a", "b", "", "é", None],
    "double": [0.0, -0.0, 1.5, NAN, None],
    "float": [0.5, -0.0, 0.0],
    "boolean": [True, False],
    "decimal(20,3)": [Decimal("1.500"), Decimal("-2.000"), Decimal("12345678901234567.123")],
    "date": [dt.date(2020, 1, 1), dt.date(1960, 5, 5)],
    "timestamp": [DAY, dt.datetime(2020, 1, 1, 1, 2, 3, 4)],
    "timestamp_ntz": [DAY, dt.datetime(2020, 1, 1, 1, 2, 3, 4)],
    "tinyint": [1, -2],
    "bigint": [2**62, -(2**63), 5],
    "binary": [b"a", b"\x00\xff"],
}
ORDERS: dict[str, list[Any]] = {
    "string": [f"{i:03d}" for i in NUMBERS],
    "float": [0.0 if i % 2 else -0.0 for i in NUMBERS],
    "double": [-INFINITY, *(i / 7 - 1 for i in NUMBERS[2:]), INFINITY],
    "boolean": [i > 12 for i in NUMBERS],
    "decimal(20,3)": [Decimal(i) / 4 - 3 for i in NUMBERS],
    "date": [dt.date(1969, 12, 20) + dt.timedelta(days=i) for i in NUMBERS],
    "timestamp": [DAY + dt.timedelta(milliseconds=700 * i) for i in NUMBERS],
    "timestamp_ntz": [DAY + dt.timedelta(milliseconds=700 * i) for i in NUMBERS],
    "bigint": [-(2**63) + 1 + i for i in NUMBERS],
    "binary": [bytes([i]) for i in NUMBERS],
}
VALUES: dict[str, list[Any]] = {
    "array<int>": [[i] for i in NUMBERS],
    "struct<a:int,b:array<string>>": [(i, ["x"]) for i in NUMBERS],
    "map<string,int>": [{"a": i} for i in NUMBERS],
    "binary": [bytes([i]) for i in NUMBERS],
    "decimal(38,2)": [Decimal(i) for i in NUMBERS],
    "timestamp": [DAY + dt.timedelta(seconds=i) for i in NUMBERS],
}
NAMES = ["a.b", "a b", "A`b", "ü", "__clock", "__code", "code", "c0", "count"]


def check(spark: SparkSession, columns: dict[str, tuple[str, list[Any]]], window: str, **options: Any) -> None:
    """Compare the windows of a DataFrame with those of its table; ``columns``: type and values by name."""
    columns = {"id": ("bigint", NUMBERS), "x": ("double", [i / 3 for i in NUMBERS]), **columns}
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, (kind, _) in columns.items())
    rows = list(zip(*(islice(cycle(values), ROWS) for _, values in columns.values()), strict=True))
    df = spark.createDataFrame(rows[::-1], schema)
    whole = wincli.aggregate(df.toArrow().sort_by("id"), window, **options)
    found = wincli.windows(df.orderBy(functions.rand(1)), window, arrival="id", **options).toArrow().cast(whole.schema)
    by = [name for name in ("n", "_at", "_pos", "window") if name in whole.column_names]
    found, whole = (table.sort_by([(name, "ascending") for name in by]) for table in (found, whole))
    assert same(found, whole), difference(found, whole)


@pytest.mark.parametrize("kind", sample(KEYS, "double", "string", "binary"))
def test_keys_have_any_type_that_has_an_order(spark: SparkSession, kind: str) -> None:
    columns = {"k": (kind, KEYS[kind]), "t": ("bigint", NUMBERS)}
    check(spark, columns, "count(3)", key="k", order_by="t", aggregates=CALLS, rejected="drop")


@pytest.mark.parametrize("key", ["k", ()])
@pytest.mark.parametrize("kind", sample(ORDERS, "double", "timestamp", "string"))
def test_order_columns_have_any_type_that_has_an_order(spark: SparkSession, kind: str, key: str) -> None:
    columns = {"k": ("string", ["a", "b"]), "t": (kind, ORDERS[kind])}
    check(spark, columns, "count(3)", key=key, order_by="t", aggregates=CALLS)


@pytest.mark.parametrize("kind", sample(VALUES, "struct<a:int,b:array<string>>", "decimal(38,2)"))
def test_rows_have_values_of_any_type(spark: SparkSession, kind: str) -> None:
    columns = {"k": ("string", ["a", "b"]), "t": ("bigint", NUMBERS), "v": (kind, VALUES[kind])}
    check(spark, columns, "count(3)", key="k", order_by="t", aggregates={"n": "count()", "v": "collect(v)"})


WITHOUT_TYPE: dict[str, dict[str, Any]] = {
    "count(3)": {"key": "k", "order_by": "t", "aggregates": {"n": "sum(v)", "m": "median(v)", "x": "max(v)"}},
    "count(4)": {"key": "v", "order_by": "t", "aggregates": {"n": "count()"}},
    "delta(v, 2)": {"key": "k", "order_by": "t", "aggregates": {"n": "count()"}},
    "time(4)": {"key": "k", "order_by": "v", "aggregates": {"n": "count()"}},
    "when(v)": {"key": "k", "order_by": "t", "aggregates": {"n": "count()"}},
}


@pytest.mark.parametrize("window", sample(WITHOUT_TYPE, "count(3)", "time(4)"))
def test_a_column_of_void_is_a_column_without_values(spark: SparkSession, window: str) -> None:
    columns = {"k": ("string", ["a", "b"]), "t": ("bigint", NUMBERS), "v": ("void", [None])}
    check(spark, columns, window, rejected="drop", **WITHOUT_TYPE[window])


@pytest.mark.parametrize("name", sample(NAMES, "A`b", "__code"))
def test_columns_have_any_name(spark: SparkSession, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    t, k = ("bigint", NUMBERS), ("string", ["a", "b"])
    check(spark, {name: k, "t": t}, "time(4)", key=name, order_by="t", aggregates={"n": "sum(id)"})
    check(spark, {"k": k, name: t}, "time(4)", key="k", order_by=name, aggregates={"n": "sum(id)"}, let="kk=upper(k)")
    options: dict[str, Any] = {"where": f"{quoted} >= 2", "rejected": "column"}
    check(spark, {"k": k, "t": t, name: t}, "time(4)", key="k", order_by="t", aggregates={"n": "sum(id)"}, **options)


def test_a_column_without_an_order_decides_no_tie(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1, {"a": 1})], "k string, t bigint, v map<string,int>")
    words = (
        "rows that tie are put in order by the columns of the window, and 'v' is map<string, int32>, which has no order"
    )
    with pytest.raises(ConfigError, match=re.escape(f"{words}; say arrival, a column that tells rows apart")):
        wincli.windows(df, "count(2)", key="k", order_by="t", aggregates="collect(v)")
    assert wincli.windows(df, "count(2)", key="k", order_by="t").count() == 1


@pytest.mark.parametrize("key", ["k", ()])
def test_zeros_of_both_signs_tie_and_are_put_in_one_order(spark: SparkSession, key: str) -> None:
    df = spark.createDataFrame([("a", 1, 0.0), ("a", 1, -0.0)] * 8, "k string, t bigint, x double")
    found = [
        wincli.windows(df.orderBy(functions.rand(seed)), "count(9)", key=key, order_by="t", aggregates="x=collect(x)")
        for seed in range(4)
    ]
    assert len({repr(each.toArrow()["x"].to_pylist()) for each in found}) == 1


def test_two_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2)], "a bigint, b bigint").toDF("a", "a")
    with pytest.raises(ConfigError, match="the DataFrame has two columns 'a'; rename one of them, as with toDF"):
        wincli.windows(df, "count(2)", order_by="a")
