"""A result opens as a plain table in Spark, pandas, DuckDB and Polars, and holds what the rules say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import chispa
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import wincli
from references import tumbling as reference
from support.in_process import wincli_here
from support.processes import Ran

ROWS = 3_000
COLUMNS = ["user", "window", "window_start", "window_end", "closed_by", "n", "total", "high", "ids"]
STREAM = ["_at", "_pos", "_mark"]
SCHEMA = t.StructType(
    [
        t.StructField("user", t.StringType()),
        t.StructField("window", t.LongType()),
        t.StructField("window_start", t.TimestampNTZType()),
        t.StructField("window_end", t.TimestampNTZType()),
        t.StructField("closed_by", t.StringType()),
        t.StructField("n", t.LongType()),
        t.StructField("total", t.LongType()),
        t.StructField("high", t.DoubleType()),
        t.StructField("ids", t.ArrayType(t.LongType())),
    ]
)


PANES = "timeInterval, intervalDuration(60), creationPeriod(45), discardAge(30)"
KINDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "sliding": (
        ["-w", "sliding, time(5m), count(4)", "--order-by", "ts", "-a", "total=sum(n)", "-a", "mean=mean(x)"],
        {"window": "sliding, time(5m), count(4)", "order_by": "ts", "aggregates": ["total=sum(n)", "mean=mean(x)"]},
    ),
    "panes": (
        ["-w", PANES, "--lag", "10", "-a", "total=sum(n)", "-a", "ids=collect(id)"],
        {"window": PANES, "lag": 10, "aggregates": ["total=sum(n)", "ids=collect(id)"]},
    ),
    "rows": (
        ["-w", "delta(ts, 60)", "--emit", "rows", "--sort-by", "x desc"],
        {"window": "delta(ts, 60)", "emit": "rows", "sort_by": ["x desc"]},
    ),
}
"""Windows of other kinds over the same log: as the command line says it, and as the library does."""


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """Rows out of order, with ties, nulls in the key and in the order, in three files' worth."""
    random = np.random.default_rng(11)
    seconds = np.sort(random.integers(0, 20_000, ROWS)) + random.integers(-40, 40, ROWS)
    stamps: list[Any] = [None if i % 97 == 0 else int(s) * 1_000_000 for i, s in enumerate(seconds)]
    users = [None if i % 89 == 0 else f"user {k}" for i, k in enumerate(random.integers(0, 12, ROWS))]
    return pa.table(
        {
            "id": np.arange(ROWS),
            "ts": pa.array(stamps, pa.timestamp("us")),
            "user": pa.array(users, pa.string()),
            "n": random.integers(-1000, 1000, ROWS),
            "x": random.normal(0, 1, ROWS),
        }
    )


@pytest.fixture(scope="module")
def folder(log: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log, its windows in ``out`` cut in many parts, and the same in ``plain``."""
    home = tmp_path_factory.mktemp("results")
    (home / "log").mkdir()
    for i in range(3):
        pq.write_table(log.slice(i * ROWS // 3, ROWS // 3), home / "log" / f"{i}.parquet", row_group_size=250)
    cut = ["--split-size", "24KiB", "--slice-size", "48KiB", "log"]
    args = ["run", "-q", "-w", "delta(ts, 60)", "-k", "user", "-a", "n=count()"]
    args += ["-a", "total=sum(n)", "-a", "high=max(x)", "-a", "ids=collect(id)", *cut]
    forms = [["csv", "--output-format", "csv"], ["jsonl", "--output-format", "jsonl"]]
    asked = [[*args, *more] for more in (["out"], ["plain", "--plain"], *forms)]
    asked += [["run", "-q", "-k", "user", *words, *cut, name] for name, (words, _) in KINDS.items()]
    for command in asked:
        assert wincli_here(*command, cwd=home) == Ran(0, "", "")
    return home


@pytest.fixture(scope="module")
def expected(log: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of the result by the reference: row at a time, from the rules."""
    rows = reference.read(log)
    kept = {pos: row for pos, row in rows.items() if row["ts"] is not None and row["user"] is not None}
    policy = reference.Delta("ts", Fraction(60), pa.timestamp("us"))
    panes = reference.tumbling(kept, policy, key=["user"], order=["ts"]).panes
    stamps = log["ts"].to_pylist()
    return [
        (
            pane.key[0],
            pane.number,
            stamps[pane.rows[0]],
            stamps[pane.rows[-1]],
            pane.closed_by,
            len(pane.rows),
            sum(rows[pos]["n"] for pos in pane.rows),
            max(rows[pos]["x"] for pos in pane.rows),
            [rows[pos]["id"] for pos in pane.rows],
        )
        for pane in panes
        if pane.key is not None
    ]


def same(got: DataFrame, want: DataFrame) -> None:
    chispa.assert_df_equality(got, want, ignore_nullable=True, ignore_row_order=True)


def test_spark_reads_what_the_rules_say(spark: SparkSession, folder: Path, expected: list[Any]) -> None:
    want = spark.createDataFrame(expected, SCHEMA)
    got = spark.read.parquet(str(folder / "out"))
    assert got.columns == [*COLUMNS, *STREAM]
    same(got.select(*COLUMNS), want)
    same(spark.read.parquet(str(folder / "plain")), want)
    assert got.where("_mark = 'window'").count() == got.count() > 200


@pytest.mark.parametrize("name", KINDS)
def test_spark_reads_results_of_other_kinds_as_the_library_does(
    spark: SparkSession, folder: Path, log: pa.Table, tmp_path: Path, name: str
) -> None:
    result = wincli.aggregate(log, key=["user"], rejected="drop", **KINDS[name][1])
    pq.write_table(result, tmp_path / "want.parquet")
    got = spark.read.parquet(str(folder / name))
    assert got.columns == result.column_names
    assert got.count() > 500
    same(got, spark.read.parquet(str(tmp_path / "want.parquet")))


def test_spark_finds_late_panes_and_the_rows_that_came_too_late(spark: SparkSession, folder: Path) -> None:
    out = spark.read.parquet(str(folder / "panes"))
    timings = {(row["timing"], row["closed_by"]) for row in out.select("timing", "closed_by").distinct().collect()}
    assert timings >= {("on_time", "watermark"), ("late", "late")}
    twice = out.groupBy("user", "window_start").agg(f.count("*").alias("n"), f.max("index").alias("last"))
    assert twice.where("n > 1").count() > 0
    assert twice.where("n != last + 1").count() == 0
    rejects = spark.read.json(str(folder / "panes/_rejected/*.ndjson"))
    late = rejects.where("reason = 'late'").select("row.id")
    assert late.count() > 0
    same(late.join(out.select(f.explode("ids").alias("id")), "id"), late.limit(0))


def test_spark_reads_the_text_formats_too(spark: SparkSession, folder: Path) -> None:
    names = ["user", "window", "closed_by", "n", "total", "high"]
    want = spark.read.parquet(str(folder / "out")).select(*names)
    same(spark.read.csv(str(folder / "csv"), header=True, inferSchema=True).select(*names).to(want.schema), want)
    same(spark.read.json(str(folder / "jsonl"), schema=want.schema), want)


def test_pandas_duckdb_and_polars_open_it_as_it_is(folder: Path, expected: list[Any]) -> None:
    import duckdb
    import pandas
    import polars

    columns, count = [*COLUMNS, *STREAM], len(expected)
    total = sum(row[6] for row in expected)
    read = pandas.read_parquet(folder / "out")
    assert (list(read.columns), len(read), int(read["total"].sum())) == (columns, count, total)
    frame = polars.read_parquet(folder / "out" / "*.parquet")
    assert (frame.columns, frame.height, frame["total"].sum()) == (columns, count, total)
    duck = duckdb.sql(f"SELECT * FROM '{folder}/out/*.parquet'")
    assert (duck.columns, len(duck)) == (columns, count)
    for name in ("csv", "jsonl"):
        text = duckdb.sql(f"SELECT * FROM '{folder}/{name}/*.{name}'")
        assert (text.columns, len(text)) == (columns, count)
    assert list(pandas.concat(map(pandas.read_csv, (folder / "csv").glob("*.csv"))).columns) == columns
