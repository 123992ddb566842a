"""DuckDB answers a case: one query over its tables, in memory."""

from __future__ import annotations

from typing import Any, ClassVar

import duckdb

from wincli.conformance.kit import Answer, Case

from .query import Dialect, Query
from .sql import run


class DuckDb(Dialect):
    """DuckDB's SQL."""

    functions: ClassVar = {
        **Dialect.functions, "skew": "skewness({0})", "kurtosis": "kurtosis({0})",
        "kurtosis_pop": "kurtosis_pop({0})", "median": "median({0})", "quantile/2": "quantile_cont({0}, {1})",
        "mad": "mad({0})", "arg_min": "arg_min({0}, {1})", "arg_max": "arg_max({0}, {1})",
        "wavg": "weighted_avg({0}, {1})", "product": "product({0})", "bool_and": "bool_and({0})",
        "bool_or": "bool_or({0})", "mode": "mode({0})", "slope": "regr_slope({0}, {1})",
    }  # fmt: skip
    ordered: ClassVar = {
        "first": "first({0} ORDER BY _n)", "last": "last({0} ORDER BY _n)", "collect": "list({0} ORDER BY _n)",
        "collect_distinct": "list(DISTINCT {0})", "nth": "(list({0} ORDER BY _n){{FILTER}})[{1} + if({1} < 0, 0, 1)]",
        "string_join": "string_agg({0}, {1} ORDER BY _n)",
    }  # fmt: skip
    frames: ClassVar = {
        **Dialect.frames, "first": "first_value({0} IGNORE NULLS)", "last": "last_value({0} IGNORE NULLS)",
    }  # fmt: skip
    notes: ClassVar = {
        "collect_distinct": "a list of distinct values has no order", "wavg": "over weights of 0 the mean is NaN",
        "mode": "of equally frequent values any", "slope": "over one instant the slope is NaN",
    }  # fmt: skip
    float_notes: ClassVar = {
        "min": "NaN is the largest number", "max": "NaN is the largest number",
        "sum": "a sum of doubles rounds at each step", "product": "a product of doubles may overflow on the way",
    }  # fmt: skip

    def micros(self, column: str) -> str:
        return f"epoch_us({column})"

    def instant(self, micros: str, is_zoned: bool) -> str:
        plain = f"make_timestamp(CAST({micros} AS BIGINT))"
        return f"({plain} AT TIME ZONE 'UTC')" if is_zoned else plain

    def unnest(self, low: str, high: str) -> str:
        return f"unnest(generate_series({low}, {high}))"

    def local(self, column: str, zone: str, is_zoned: bool) -> str:
        return f"({column} AT TIME ZONE '{zone}')" if is_zoned else column

    def from_local(self, value: str, zone: str, is_zoned: bool) -> str:
        return f"(({value}) AT TIME ZONE '{zone}')" if is_zoned else value

    def asof(self, query: Query, window: Any) -> str:
        at, request, on, match, one, two = window
        name = request.name
        offsets = ", ".join(query.amount(each) for each in at.offsets)
        query.part("o", f"SELECT *, unnest([{offsets}]) AS {query.q(f'{name}_offset')} FROM l")
        sign = ">" if request.strict else ">="
        own = [each for each in query.columns if each.startswith(f"{name}_")]
        then = f"o.{query.q(f'{name}_offset')} + {one}"
        found = [f"{two} IS NOT NULL", *match]
        if at.within is not None:
            found.append(f"{then} - {two} <= {query.amount(at.within)}")
        shown = [query.q(each) for each in query.columns if each not in own] + [query.q(f"{name}_offset")]
        shown += [f"CASE WHEN {' AND '.join(found)} THEN {query.q(each)} END AS {query.q(each)}" for each in own]
        ons = [text.replace("l.", "o.", 1) for text in on] + [f"{then} {sign} {two}"]
        query.part(
            "pairs",
            f"SELECT {', '.join(shown)}, ({' AND '.join(found)}) AS _found "
            f"FROM o ASOF LEFT JOIN r ON {' AND '.join(ons)}",
        )
        query.note = "of rows of one time any is the newest"
        told = [query.q(each) for each in query.case.columns if each in query.columns or each == f"{name}_offset"]
        return f"SELECT {', '.join(told)} FROM pairs{'' if request.how == 'left' else ' WHERE _found'}"


def answer(case: Case) -> Answer:
    """The rows of the answer. Raises `CannotSayError`."""
    return run(case, DuckDb(), _execute)


def _execute(case: Case, text: str) -> tuple[list[str], list[Any]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for name, given in {"log": case.given, **case.tables}.items():
            connection.register(f"_{name}", given.table())
            connection.execute(f'CREATE TABLE "{name}" AS SELECT *, row_number() OVER () AS _arrival FROM "_{name}"')
        found = connection.execute(text)
        return [each[0] for each in found.description or ()], found.fetchall()
