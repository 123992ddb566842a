"""Windows over a DataFrame use the public DataFrame API alone, are lazy, and say what is wrong before anything runs."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

import wincli
from support.dataframe_engines import CALLS, ROWS, dataframe_log, sample, shuffled
from support.docs_pages import DOCS, ROOT
from support.table_equality import check_windows
from wincli.windowing.dataframes.layout import Layout
from wincli.windowing.errors import ConfigError

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:all rows go through one partition"),
]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return dataframe_log()


def guarded(found: Any) -> property:
    """A property that modules of this project may not ask for; Spark itself asks for it on the classic way."""

    def get(self: Any) -> Any:
        caller = sys._getframe(1).f_globals["__name__"]
        assert not caller.startswith("wincli"), f"{caller} asks for a part that Spark Connect does not have"
        return found.__get__(self)

    return property(get)


def test_nothing_is_asked_for_that_spark_connect_does_not_have(spark: SparkSession, log: pa.Table) -> None:
    df = shuffled(spark, log, 1)
    with ExitStack() as stack:
        for owner, name in ((type(df), "rdd"), (SparkSession, "sparkContext")):
            stack.enter_context(patch.object(owner, name, guarded(getattr(owner, name))))
        windows = df.transform(wincli.windowed("time(600)", key="k", order_by="t"))
        assert windows.count() > 0
    for path in sorted((ROOT / "windowing" / "dataframes").glob("*.py")):
        assert not re.findall(r"\._j\w+|\.rdd\b|sparkContext|repartitionById", path.read_text(encoding="utf-8")), path


def test_mistakes_are_errors_before_anything_runs(spark: SparkSession, log: pa.Table) -> None:
    df = shuffled(spark, log, 1)
    with pytest.raises(ConfigError, match="rows of a DataFrame have no order of their own"):
        wincli.windows(df, "count(3)", key="k")
    with pytest.raises(ConfigError, match=re.escape("arrival: there is no column 'ids'; did you mean 'id'?")):
        wincli.windows(df, "count(3)", key="k", order_by="t", arrival="ids")
    with pytest.raises(ConfigError, match="a DataFrame has no _file"):
        wincli.windows(df, "count(3)", order_by="t", let="f=_file", aggregates="first(f)")
    with pytest.raises(ConfigError, match="a DataFrame has no _arrival"):
        wincli.windows(df, "count(3)", order_by="t", where="_arrival > 3")


def test_one_partition_for_all_keys_is_worth_a_warning(spark: SparkSession, log: pa.Table) -> None:
    df, words = (
        shuffled(spark, log, 1),
        "all rows go through one partition, since there is one watermark for all keys; ",
    )
    with pytest.warns(wincli.PartitionWarning, match=words) as caught:
        wincli.windows(df, "timeInterval, intervalDuration(60)", key="k", order_by="t", event_time="t")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", wincli.PartitionWarning)
        wincli.windows(df, "count(3)", order_by="t")
        wincli.windows(df, "time(60)", key="k", order_by="t")
        wincli.windows(df, "punct()", key="k", order_by="t", marks="is_end", plan=True)


def test_the_plan_is_a_value_that_prints(spark: SparkSession, log: pa.Table) -> None:
    df = shuffled(spark, log, 1)
    found = wincli.windows(df, "punct()", key="k", order_by="t", marks="is_end", aggregates="sum(x)", plan=True)
    assert isinstance(found, Layout)
    assert str(found) == (
        "partitions: all rows in one, since marks end the windows of all keys\norder: t; ties by k, x, is_end"
    )


def test_the_page_shows_what_its_code_prints(spark: SparkSession) -> None:
    page = DOCS["python"].read_text(encoding="utf-8").partition("\n## Spark DataFrames\n")[2]
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    shown = "\n".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "python.md", "exec"), {})
    assert [line for line in printed.getvalue().splitlines() if line] == [line for line in shown.splitlines() if line]


CHAINS: dict[str, list[dict[str, Any]]] = {
    "rollup": [
        {"window": "time(600)", "key": "k", "order_by": "t", "group_by": "kind", "aggregates": ["x=sum(x)"]},
        {"window": "punct()", "key": "k", "aggregates": ["x=sum(x)", "kinds=collect(kind)"]},
        {"window": "punct()", "aggregates": ["xs=collect(x)"]},
    ],
    "sessions": [
        {"window": "gap(t, 100)", "key": "k", "order_by": "t", "aggregates": ["x=sum(x)", "t=first(t)"]},
        {"window": "count(4)", "key": "k", "aggregates": ["x=mean(x)", "t=last(t)"], "where": "x > 0.3"},
        {"window": "delta(t, 900)", "order_by": "t", "aggregates": ["n=count()", "x=sum(x)"]},
    ],
    "marks": [
        {"window": "punct()", "order_by": "t", "marks": "is_end", "aggregates": ["x=sum(x)"]},
        {"window": "punct()", "aggregates": ["xs=collect(x)"], "where": "x > 3", "let": "y=x * 2"},
    ],
    "event time": [
        {"window": "timeInterval, intervalDuration(600)", "key": "k", "order_by": "t", "event_time": "t",
         "aggregates": ["x=sum(x)", "t=last(t)"]},
        {"window": "timeInterval, intervalDuration(3000)", "event_time": "t", "aggregates": ["x=sum(x)"], "lag": 9000},
        {"window": "sliding, count(3), count(1)", "emit": "rows"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("chain", sample(CHAINS, "rollup", "event time"))
def test_a_chain_is_that_of_the_tables(spark: SparkSession, log: pa.Table, chain: str) -> None:
    whole, found = log, shuffled(spark, log, 1)
    for stage in CHAINS[chain]:
        whole = wincli.aggregate(whole, **stage)
        found = wincli.windows(found, **stage, arrival="id" if stage is CHAINS[chain][0] else None)
        found = found.orderBy(functions.rand(3)).repartition(3)
    check_windows(found.toArrow(), whole)


def test_rows_that_a_condition_leaves_out_have_marks(spark: SparkSession, log: pa.Table) -> None:
    options = {"order_by": "t", "where": "not is_end and x > 0.2", "marks": "m", "let": "m=is_end"}
    found = wincli.windows(shuffled(spark, log, 1), "punct()", arrival="id", **options, aggregates=CALLS).toArrow()
    check_windows(found, wincli.aggregate(log, "punct()", **options, aggregates=CALLS))


LAG = {"aggregates": ["count()", "sum(cast(lag(word) as int))"]}
REJECTING: dict[str, dict[str, Any]] = {
    "key": {"window": "count(3)", "key": "k"},
    "where": {"window": "time(600)", "key": "k", "where": "cast(kind as int) is null or x > 0.5"},
    "let and where": {"window": "count(5)", "key": "kk", "let": ["kk=k", "n=cast(word as int)"], "where": "n > 0"},
    "lag": {"window": "count(3)", "key": "k", **LAG},
    "lag of all": {"window": "count(3)", **LAG},
    "marks": {"window": "punct()", "marks": "is_end", "where": "cast(word as int) > 2"},
}


@pytest.mark.parametrize("name", sample(REJECTING, "let and where", "lag of all"))
def test_rejected_rows_are_those_of_the_table(spark: SparkSession, log: pa.Table, name: str) -> None:
    rng = np.random.default_rng(3)
    words = pa.array(rng.choice(["1", "2", "3", "x"], ROWS, p=[0.3, 0.3, 0.3, 0.1]))
    keys = pa.array(log["k"].to_pylist(), mask=rng.random(ROWS) < 0.03)
    log = log.set_column(1, "k", keys).append_column("word", words)
    options = {"order_by": "t", "aggregates": CALLS, **REJECTING[name]}
    whole = wincli.aggregate(log, **options, rejected="column")
    df = shuffled(spark, log, 1)
    found = wincli.windows(df, **options, arrival="id", rejected="column").toArrow().cast(whole.schema)
    for table in (whole, found):
        assert table["_rejected"].null_count < len(table)
    one, other = (table.filter(table["_rejected"].is_null()) for table in (found, whole))
    check_windows(one, other)
    dropped = wincli.windows(df, **options, arrival="id", rejected="drop").toArrow()
    check_windows(dropped, other.drop_columns(["_rejected"]))
    one, other = (
        sorted(table["_rejected"].drop_null().to_pylist(), key=lambda each: each["row"]["id"])
        for table in (found, whole)
    )
    assert one == other
