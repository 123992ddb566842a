"""Codes by which Spark sorts partitions: they rise with the order column, and rows of equal keys share a bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from wincli.windowing.dataframes.layout import bucket_of, first_code, is_coarse, sort_code

WORDS = sorted({sign * (2**power + more) for power in range(63) for more in (-1, 0, 1) for sign in (-1, 1)})
RISING = [0.0, 1e-300, 0.5, 0.75, 1.0, 1.7e9, 1.7e9 + 0.25, 1e18, 1e300, np.inf]
FLOATS = [*(-each for each in reversed(RISING)), *RISING]
HALF_HOURS = np.arange("2025-10-25T00:00:00", "2025-11-03T00:00:00", np.timedelta64(1800, "s"), dtype="M8[us]")
INSTANTS = [*np.array(["0001-01-01", "1883-11-18", "1969-12-31T23:59:59"], "M8[us]"), *HALF_HOURS]
INSTANTS = [*INSTANTS, np.datetime64("2300-01-01", "us"), np.datetime64("9999-12-31T23:59:59", "us")]

COLUMNS = {
    "bigint": pa.array([-(2**63), *WORDS]),
    "int": pa.array([word for word in WORDS if abs(word) < 2**31], pa.int32()),
    "double": pa.array(FLOATS),
    "float": pa.array(FLOATS, pa.float32()),
    "date": pa.array([-700_000, -1, 0, 1, 20_000, 2_900_000], pa.int32()).cast(pa.date32()),
    "timestamp_ntz": pa.array(np.array(INSTANTS)),
    "timestamp": pa.array(np.array(INSTANTS)).cast(pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_never_fall_where_values_rise(name: str, spark: SparkSession) -> None:
    column = COLUMNS[name]
    assert is_coarse(column.type)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = pa.table({"i": range(len(column)), "k": ["a"] * len(column), "t": column})
        rows = spark.createDataFrame(table, f"i long, k string, t {name}")
        code = sort_code([functions.col("k")], functions.col("t"), column.type)
        found = rows.select("i", code.alias("code"), bucket_of(code).alias("bucket")).sort("i").toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    codes = found["code"].to_numpy()
    assert (np.diff(codes) >= 0).all()
    assert len(set(codes.tolist())) > len(codes) / 2, "codes tell most values apart"
    assert len(set(found["bucket"].to_pylist())) == 1


def test_rows_without_an_order_value_or_with_nan_have_a_code(spark: SparkSession) -> None:
    rows = spark.sql("SELECT k, t FROM VALUES ('a', double('NaN')), ('b', null) AS log (k, t)")
    code = sort_code([functions.col("k")], functions.col("t"), pa.float64())
    assert rows.select(code).toArrow().column(0).null_count == 0


def test_codes_of_the_first_and_the_last_bucket_need_64_bit(spark: SparkSession) -> None:
    key, order = functions.col("id"), functions.lit(-(2**62))
    top = functions.shiftright(functions.xxhash64(key), 50)
    ids = spark.range(200_000).where((top == -(2**13)) | (top == 2**13 - 1))
    low, high = (sort_code([key], each, pa.int64()) for each in (order, functions.lit(2**62)))
    codes = ids.select(first_code([key]).alias("first"), low.alias("low"), high.alias("high")).toArrow()
    buckets = ids.select(*(bucket_of(each) for each in (first_code([key]), low, high))).toArrow()
    assert len(codes) > 5
    assert all(row["first"] < row["low"] < row["high"] for row in codes.to_pylist())
    assert all(len(set(row.values())) == 1 for row in buckets.rename_columns(["a", "b", "c"]).to_pylist())
