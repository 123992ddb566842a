"""Spark SQL answers a case: one query, in a local session of its own."""

from __future__ import annotations

import os
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession

from wincli.conformance.kit import Answer, Case
from wincli.windowing.language import row_policies as rows

from .query import Dialect, Query
from .sql import run

_LIST = "transform(array_sort(collect_list(struct(_n, {0} AS v)){{FILTER}}), each -> each.v)"


class SparkSql(Dialect):
    """Spark's SQL."""

    quote = "`"
    filled = "last_value({0}, true)"
    functions: ClassVar = {
        **Dialect.functions, "skew_pop": "skewness({0})", "kurtosis_pop": "kurtosis({0})", "median": "median({0})",
        "quantile/2": "percentile({0}, {1})", "arg_min": "min_by({0}, {1})", "arg_max": "max_by({0}, {1})",
        "bool_and": "bool_and({0})", "bool_or": "bool_or({0})", "mode": "mode({0})", "slope": "regr_slope({0}, {1})",
    }  # fmt: skip
    ordered: ClassVar = {
        "first": "min_by({0}, _n)", "last": "max_by({0}, _n)", "collect": _LIST,
        "collect_distinct": "collect_set({0})",
        "nth": f"try_element_at({_LIST}, {{1}} + CASE WHEN {{1}} < 0 THEN 0 ELSE 1 END)",
        "string_join": "listagg({0}, {1}) WITHIN GROUP (ORDER BY _n)",
    }  # fmt: skip
    frames: ClassVar = {**Dialect.frames, "first": "first_value({0}, true)", "last": "last_value({0}, true)"}
    notes: ClassVar = {
        "collect_distinct": "a set has no order", "mode": "of equally frequent values any",
        "arg_min": "of rows with the same extreme any", "arg_max": "of rows with the same extreme any",
    }  # fmt: skip
    float_notes: ClassVar = {
        "min": "NaN is the largest number", "max": "NaN is the largest number",
        "median": "NaN is a number among others",
        "sum": "a sum of doubles rounds at each step", "count_distinct": "the two zeros are distinct",
    }  # fmt: skip

    def micros(self, column: str) -> str:
        return f"unix_micros({column})"

    def instant(self, micros: str, is_zoned: bool) -> str:
        return f"timestamp_micros(CAST({micros} AS BIGINT))"

    def unnest(self, low: str, high: str) -> str:
        return f"explode(CASE WHEN {low} <= {high} THEN sequence({low}, {high}) ELSE array() END)"

    def local(self, column: str, zone: str, is_zoned: bool) -> str:
        return f"from_utc_timestamp({column}, '{zone}')" if is_zoned else column

    def from_local(self, value: str, zone: str, is_zoned: bool) -> str:
        return f"to_utc_timestamp({value}, '{zone}')" if is_zoned else f"({value})"

    def hop(self, query: Query, length: Fraction, period: Fraction, offset: Fraction) -> str | None:
        """``window``: the engine's own grids, which have no holes."""
        if period > length:
            return None
        clock = query.asked.clock
        sizes = ", ".join(f"'{int(each * 1_000_000)} microseconds'" for each in (length, period, offset % period))
        query.part("parts", f"SELECT *, window({self.time(query, clock)}, {sizes}) AS _w FROM rows_")
        bounds = {f"window_{side}": self.back(query, clock, f"_w.{side}") for side in ("start", "end")}
        if query.case.spec.get("emit") == "rows":
            return query.shown("parts")
        return query.grouped("parts", ["_w"], bounds)

    def session(self, query: Query, policy: rows.Gap) -> str | None:
        """``session_window``, over the clock."""
        if (policy.attribute,) != query.asked.order or query.asked.group_by:
            return None
        query.note = query.note or "a session with a pause of 0 holds nothing"
        gap = f"'{int(policy.amount * 1_000_000)} microseconds'"
        window = f"session_window({self.time(query, policy.attribute)}, {gap})"
        clock = query.q(policy.attribute)
        told = [*query.key, *query.aggregates(), f"min({clock}) AS window_start", f"max({clock}) AS window_end"]
        return f"SELECT {', '.join(told)} FROM rows_ GROUP BY {', '.join([*query.key, window])}"

    def time(self, query: Query, column: str) -> str:
        """A clock as a timestamp: numbers count seconds."""
        quoted = query.q(column)
        return quoted if query.asked.is_time(column) else f"timestamp_micros(CAST({quoted} * 1000000 AS BIGINT))"

    def back(self, query: Query, column: str, instant: str) -> str:
        return instant if query.asked.is_time(column) else f"unix_micros({instant}) / 1000000"


def answer(case: Case) -> Answer:
    """The rows of the answer. Raises `CannotSayError`."""
    return run(case, SparkSql(), _execute)


@cache
def _session() -> SparkSession:
    os.environ["TZ"] = "UTC"
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false", "spark.log.level": "ERROR", "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1", "spark.sql.execution.arrow.pyspark.enabled": "true",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[1]").appName("conformance")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _execute(case: Case, text: str) -> tuple[list[str], list[Any]]:
    spark = _session()
    is_zoned = any("UTC" in kind for kind in case.given.columns.values())
    for name, given in {"log": case.given, **case.tables}.items():
        table = given.table()
        table = table.append_column("_arrival", pa.array(range(table.num_rows), pa.int64()))
        fields = [f.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        spark.createDataFrame(table.cast(pa.schema(fields))).createOrReplaceTempView(name)
    found = spark.sql(text).toArrow()
    if not is_zoned:
        fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in found.schema]
        found = found.cast(pa.schema(fields))
    rows_ = found.to_pylist()
    return found.column_names, [list(row.values()) for row in rows_]
