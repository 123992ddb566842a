"""Windows over a DataFrame use the public DataFrame API alone, are lazy, and say what is wrong before anything runs."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import wincli
from support.dataframe_engines import dataframe_log, shuffled
from support.docs_pages import DOCS, ROOT
from wincli.windowing.dataframes.layout import Layout
from wincli.windowing.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")


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
