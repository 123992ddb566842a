"""Windows over a DataFrame are those of the table, whatever the partitions, by the public DataFrame API alone."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import wincli
from support.docs_pages import DOCS, ROOT
from support.table_equality import difference, same
from wincli.windowing.dataframes.layout import Layout
from wincli.windowing.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
ROWS = 600
CALLS = ["n=count()", "sum(x)", "first(t)", "ids=collect(id)"]
WINDOWS: dict[str, dict[str, Any]] = {
    "count(7)": {},
    "delta(t, 600)": {},
    "gap(t, 100)": {"group_by": "kind"},
    "time(600)": {},
    'calendar(day, tz="Europe/Paris")': {},
    "change(kind)": {},
    "punct(kind = 'c')": {},
    "when(x > 0.9) or count(20)": {"let": "y=x - lag(x)", "having": "n > 1"},
    "gap(t, 100) or delta(t, 900)": {"let": "kk=upper(k)", "key": "kk", "where": "x > 0.2"},
    "sliding, count(3), count(1)": {"emit": "entered", "aggregates": None},
    "sliding, time(1000), time(500)": {},
    "retain 3 with unique kind": {},
    "timeInterval, intervalDuration(600)": {"event_time": "t", "order_by": "t"},
    "count(7), partitioned, partitionCount(5)": {"key": "k"},
    "punct()": {"marks": "is_end"},
}


@pytest.fixture(scope="module")
def log() -> pa.Table:
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
    return spark.createDataFrame(log).orderBy(functions.rand(seed)).repartition(3)


def in_order(table: pa.Table) -> pa.Table:
    names = [name for name in ["kk", "k", "window", "_row", "kind", "_at", "_pos"] if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_are_those_of_the_table(spark: SparkSession, log: pa.Table, window: str, keyed: bool) -> None:
    options: dict[str, Any] = {"key": "k" if keyed else [], "order_by": "t", "aggregates": CALLS, **WINDOWS[window]}
    whole = in_order(wincli.aggregate(log, window, **options))
    found = wincli.windows(shuffled(spark, log, 1), window, arrival="id", **options).toArrow()
    found = in_order(found.cast(whole.schema))
    assert same(found, whole), difference(found, whole)


def test_equal_rows_give_equal_bits_without_an_arrival(spark: SparkSession, log: pa.Table) -> None:
    log = log.set_column(2, "t", pa.array((np.arange(ROWS) // 40) * 10**6).cast(pa.timestamp("us", tz="UTC")))
    log = log.append_column("zero", pa.array(np.where(np.arange(ROWS) % 2, 0.0, -0.0)))
    calls = ["n=count()", "sum(x)", "first(zero)", "ids=collect(id)"]
    results = [
        wincli.windows(shuffled(spark, log, seed), "count(9)", key="k", order_by="t", aggregates=calls).toArrow()
        for seed in (1, 2)
    ]
    one, other = map(in_order, results)
    assert same(one, other), difference(one, other)


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


def test_the_plan_is_a_value_that_prints(spark: SparkSession, log: pa.Table) -> None:
    df = shuffled(spark, log, 1)
    found = wincli.windows(df, "punct()", key="k", order_by="t", marks="is_end", aggregates="sum(x)", plan=True)
    assert isinstance(found, Layout)
    assert str(found) == (
        "partitions: all rows in one, since marks end the windows of all keys\norder: t; ties by k, x, is_end"
    )


def test_the_page_shows_what_its_code_prints(spark: SparkSession) -> None:
    page = DOCS["dataframes"].read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    shown = "\n".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "dataframes.md", "exec"), {})
    assert [line for line in printed.getvalue().splitlines() if line] == [line for line in shown.splitlines() if line]
