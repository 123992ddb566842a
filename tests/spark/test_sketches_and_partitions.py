"""Spark SQL reads what wincli leaves: it merges sketches with its own, and finds the values of folders."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.in_process import wincli_here

ROWS = 2_000
ODD = ["a/b", "..", "x y", "é", "c:d=%20", "line\nend", "q'\"\\", "{[]}^|<>", "#*?\x7f\x01", "A", "~", "", None]
HASHED = {"i": "i", "s": "s", "b": "b", "d": "unix_date(d)", "t": "unix_micros(t)"}
"""Columns, and what of them `hll_sketch_agg` of Spark takes."""


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def done(place: Path, *args: str) -> None:
    ran = wincli_here("run", "-q", *args, cwd=place)
    assert ran.code == 0, ran.err


@pytest.fixture(scope="module")
def sketches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of groups with a few, some and many values, and the sketches of each group."""
    place = tmp_path_factory.mktemp("sketches")
    random = np.random.default_rng(3)
    numbers = random.integers(-(2**40), 2**40, ROWS)
    day = dt.date(2026, 11, 1)
    pq.write_table(
        pa.table({
            "g": ["few"] * 5 + ["some"] * 200 + ["many"] * (ROWS - 205),
            "i": numbers,
            "s": [f"user {n} é" for n in numbers],
            "b": [int(n).to_bytes(8, "big", signed=True) * 3 for n in numbers],
            "d": [day + dt.timedelta(days=int(n) % 3000) for n in numbers],
            "t": pa.array(numbers, pa.timestamp("us", "UTC")),
            "x": random.normal(0, 1, ROWS),
        }),
        place / "log.parquet",
    )  # fmt: skip
    calls = [f"hll_{name}=hll_sketch({name})" for name in HASHED] + ["kll_i=kll_sketch(i)", "kll_x=kll_sketch(x)"]
    calls += [f"n_{name}=approx_count_distinct({name})" for name in HASHED]
    calls += ["q_i=approx_quantile(i, 0.9)", "q_x=approx_quantile(x, 0.9)"]
    aggregates = [word for call in calls for word in ("--agg", call)]
    done(place, "--window", "count(100000)", "--key", "g", *aggregates, "log.parquet", "out")
    return place


def test_spark_merges_sketches_of_different_values_with_its_own(sql: SparkSession, sketches: Path) -> None:
    """Its own sketch of the same values, merged with ours, is its own sketch: all values are hashed alike."""
    sql.read.parquet(str(sketches / "log.parquet")).createOrReplaceTempView("log")
    sql.read.parquet(str(sketches / "out")).createOrReplaceTempView("out")
    own = ", ".join(f"hll_sketch_agg({value}) as own_{name}" for name, value in HASHED.items())
    checks = ", ".join(
        f"hll_sketch_estimate(hll_union(hll_{name}, own_{name})) = "
        f"hll_sketch_estimate(hll_union(own_{name}, own_{name})) "
        f"and abs(hll_sketch_estimate(hll_{name}) - n_{name}) = 0 as same_{name}"
        for name in HASHED
    )
    rows = sql.sql(f"select {checks} from out join (select g, {own} from log group by g) using (g)").collect()
    assert [row.asDict() for row in rows] == [{f"same_{name}": True for name in HASHED}] * 3
    (whole,) = sql.sql("select hll_sketch_estimate(hll_union_agg(hll_i)), count(distinct i) from out, log").collect()
    assert abs(whole[0] - whole[1]) < 0.05 * whole[1]


def test_spark_merges_sketches_of_distributions_and_finds_the_same_quantiles(sql: SparkSession, sketches: Path) -> None:
    sql.read.parquet(str(sketches / "out")).createOrReplaceTempView("out")
    found = sql.sql(
        "select kll_sketch_get_quantile_bigint(kll_i, 0.9D) = q_i, kll_sketch_get_quantile_double(kll_x, 0.9D) = q_x "
        "from out"
    ).collect()
    assert [tuple(row) for row in found] == [(True, True)] * 3
    (merged,) = sql.sql(
        "select kll_sketch_get_n_bigint(kll_merge_agg_bigint(kll_i)), "
        "kll_sketch_get_n_double(kll_merge_agg_double(kll_x)), "
        "kll_sketch_get_quantile_double(kll_merge_agg_double(kll_x), 0.5D) from out"
    ).collect()
    assert tuple(merged)[:2] == (ROWS, ROWS)
    assert abs(merged[2]) < 0.1
    (mixed,) = sql.sql(
        "select kll_sketch_get_n_double(kll_sketch_merge_double(kll_merge_agg_double(kll_x), any_value(own))) "
        "from out, "
        f"(select kll_sketch_agg_double(x) as own from parquet.`{sketches}/log.parquet`)"
    ).collect()
    assert mixed[0] == 2 * ROWS


def test_sketches_of_spark_are_read_by_datasketches_and_merged_with_ours(sql: SparkSession, sketches: Path) -> None:
    (own,) = sql.sql(
        "select hll_sketch_agg(s) as hll, hll_sketch_estimate(hll_sketch_agg(s)) as n, kll_sketch_agg_double(x) as kll "
        f"from parquet.`{sketches}/log.parquet`"
    ).collect()
    theirs = datasketches.hll_sketch.deserialize(bytes(own.hll))
    assert round(theirs.get_estimate()) == own.n
    alone, both = datasketches.hll_union(12), datasketches.hll_union(12)
    ours = pq.read_table(sketches / "out", columns=["hll_s", "kll_x"])
    for sketch in (theirs, theirs):
        alone.update(sketch)
    for data in (bytes(own.hll), *ours["hll_s"].to_pylist()):
        both.update(datasketches.hll_sketch.deserialize(data))
    assert both.get_estimate() == alone.get_estimate()
    merged = datasketches.kll_doubles_sketch.deserialize(bytes(own.kll))
    for data in ours["kll_x"].to_pylist():
        merged.merge(datasketches.kll_doubles_sketch.deserialize(data))
    assert merged.n == 2 * ROWS


def test_folders_are_named_as_spark_names_them_and_read_back(sql: SparkSession, tmp_path: Path) -> None:
    """The same rows, written by Spark with ``partitionBy``, stand in folders of the same names."""
    size = len(ODD) * 3
    floats = [0.5, -0.0, 1e10, 1.25e-7, float("nan"), 12345.678]
    times = [dt.datetime(2026, 11, 1, n % 3, 0, 0, 250_000 * (n % 2)) for n in range(size)]
    log = pa.table({
        "user": [ODD[n % len(ODD)] for n in range(size)],
        "day": [dt.date(2026, 11, 1 + n % 2) for n in range(size)],
        "at": pa.array(times, pa.timestamp("us", "UTC")),
        "x": [floats[n % len(floats)] for n in range(size)],
        "money": pa.array([Decimal(n % 4) / 1000 for n in range(size)], pa.decimal128(9, 3)),
        "flag": [n % 2 == 0 for n in range(size)],
        "n": range(size),
    })  # fmt: skip
    pq.write_table(log, tmp_path / "log.parquet")
    columns = ["user", "day", "at", "x", "money", "flag"]
    rows = ("--window", "count(1)", "--emit", "rows", "--plain")
    done(tmp_path, *rows, "--partition-by", ",".join(columns), "log.parquet", "out")
    sql.read.parquet(str(tmp_path / "log.parquet")).write.partitionBy(*columns).parquet(str(tmp_path / "spark"))
    ours, theirs = (
        {str(path.parent.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("part-*")}
        for name in ("out", "spark")
    )
    assert ours == theirs
    done(tmp_path, *rows, "--partition-by", "day,user", "log.parquet", "days")
    found = sql.read.parquet(str(tmp_path / "days")).select("user", "day", "n").collect()
    wanted = zip(*(log[name].to_pylist() for name in ("user", "day", "n")), strict=True)
    assert sorted(map(tuple, found), key=str) == sorted(((user or None, day, n) for user, day, n in wanted), key=str)
