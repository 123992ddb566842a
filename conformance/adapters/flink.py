"""Flink SQL answers a case: one query in batch mode, in a process of its own.

``FLINK_PYTHON`` is the Python of an environment with apache-flink, whose packages do not go with those of wincli;
``FLINK_ADDRESS``, if it is set, the host and port of a cluster that runs already, where jobs start sooner.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
from fractions import Fraction
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from wincli.conformance.kit import Answer, CannotSayError, Case, Rows
from wincli.windowing.language import patterns, spec
from wincli.windowing.language import row_policies as rows

from .query import Dialect, Query
from .sql import run

_TYPES = {
    "int64": "BIGINT", "float64": "DOUBLE", "string": "STRING", "bool": "BOOLEAN", "decimal": "DECIMAL(18, 2)",
    "timestamp": "TIMESTAMP(6)", "timestamp UTC": "TIMESTAMP(6)",
}  # fmt: skip
_EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"


class FlinkSql(Dialect):
    """Flink's SQL in batch mode: all rows are there."""

    quote = "`"
    weeks_begin_on_sunday = True
    instant_before = "INTERVAL '0.001' SECOND"
    time_range = "timestampdiff(SECOND, min({0}), max({0}))"
    filled = "last_value({0})"
    functions: ClassVar = {
        **Dialect.functions, "mean": "avg(CAST({0} AS DOUBLE))", "median": "percentile({0}, 0.5)",
        "quantile/2": "percentile({0}, {1})",
    }  # fmt: skip
    ordered: ClassVar = {"collect": "array_agg({0})", "string_join": "listagg({0}, {1})"}
    frames: ClassVar = {
        **Dialect.frames, "mean": "avg(CAST({0} AS DOUBLE))", "first": "first_value({0})", "last": "last_value({0})",
    }  # fmt: skip
    notes: ClassVar = {
        "change": "NaN is distinct from NaN",
        "collect": "an array has no order",
        "string_join": "a list has no order",
    }
    float_notes: ClassVar = {
        "min": "NaN is a number among others", "max": "NaN is a number among others",
        "sum": "a sum of doubles rounds at each step", "var_pop": "a variance by sums loses digits",
        "count_distinct": "the two zeros are distinct", "median": "NaN is a number among others",
    }  # fmt: skip

    def micros(self, column: str) -> str:
        fraction = f"(EXTRACT(MICROSECOND FROM {column}))"
        return f"(CAST(TIMESTAMPDIFF(SECOND, {_EPOCH}, {column}) AS BIGINT) * 1000000 + {fraction})"

    def instant(self, micros: str, is_zoned: bool) -> str:
        return f"CAST(TO_TIMESTAMP_LTZ(CAST(({micros}) / 1000 AS BIGINT), 3) AS TIMESTAMP(3))"

    def floor(self, over: str, by: str) -> str:
        return f"CAST(floor(CAST({over} AS DOUBLE) / {by}) AS BIGINT)"

    def unnest(self, low: str, high: str) -> str:
        raise CannotSayError("a series of numbers")

    def local(self, column: str, zone: str, is_zoned: bool) -> str:
        return _moved(column, "UTC", zone) if is_zoned else column

    def from_local(self, value: str, zone: str, is_zoned: bool) -> str:
        return _moved(value, zone, "UTC") if is_zoned else f"({value})"

    def null(self, kind: str) -> str:
        return f"CAST(NULL AS {_TYPES[kind]})"

    def span(self, seconds: int) -> str:
        return f"INTERVAL '{seconds // 3600}:{seconds // 60 % 60}' HOUR TO MINUTE"

    def truncated(self, unit: str, local: str) -> str:
        return f"floor({local} TO {unit.upper()})"

    def hop(self, query: Query, length: Fraction, period: Fraction, offset: Fraction) -> str | None:
        """``TUMBLE`` and ``HOP``."""
        if length == period:
            return self.grid(query, "TUMBLE", [length], offset % period)
        if length % period:
            raise CannotSayError("hops that do not divide the window")
        return self.grid(query, "HOP", [period, length], offset % period)

    def growing(self, query: Query, length: Fraction, step: Fraction) -> str:
        query.note = query.note or "at the end of the data every step up to the end of the window comes out"
        return self.grid(query, "CUMULATE", [step, length], Fraction(0))

    def grid(self, query: Query, word: str, sizes: list[Fraction], offset: Fraction) -> str:
        clock = query.asked.clock
        if any((each * 1000).denominator != 1 for each in [*sizes, offset]):
            raise CannotSayError("parts of a millisecond")
        is_time = query.asked.is_time(clock)
        column = query.q(clock)
        scaled = f"TO_TIMESTAMP_LTZ(CAST({column} * 1000 AS BIGINT), 3)"
        time = f"CAST({column if is_time else scaled} AS TIMESTAMP(3))"
        query.part("timed", f"SELECT *, {time} AS _time FROM rows_")
        spans = ", ".join(
            f"INTERVAL '{float(each):.3f}' SECOND({len(str(int(each)))}, 3)"
            for each in [*sizes, *([offset] if offset else [])]
        )
        query.part("parts", f"SELECT * FROM TABLE({word}(TABLE timed, DESCRIPTOR(_time), {spans}))")
        bounds = {}
        for name in ("window_start", "window_end"):
            bounds[name] = name if is_time else f"CAST({self.micros(name)} AS DOUBLE) / 1000000"
        if query.case.spec.get("emit") == "rows":
            return query.shown("parts")
        return query.grouped("parts", ["window_start", "window_end"], bounds)

    def pattern(self, query: Query, window: patterns.RowPattern) -> str:
        """``MATCH_RECOGNIZE``."""
        if query.case.spec.get("emit") == "rows" or window.is_funnel:
            raise CannotSayError(
                "ALL ROWS PER MATCH" if not window.is_funnel else "a step that may not come behind rows between"
            )
        _check(window.pattern)
        clock = query.asked.clock
        column = query.q(clock)
        time = column if query.asked.is_time(clock) else f"TO_TIMESTAMP_LTZ(CAST({column} * 1000 AS BIGINT), 3)"
        shown, defines = [f"CAST({time} AS TIMESTAMP(3)) AS _time"], []
        for name, condition in window.conditions:
            text = query.quoted(str(condition))
            for back in re.findall(r"\blag\([^()]*\)", text):
                text = text.replace(back, f"_lag{len(shown)}")
                shown.append(f"{back} OVER {query.over} AS _lag{len(shown)}")
            defines.append(f"{query.q(name)} AS {text}")
        query.part("timed", f"SELECT *, {', '.join(shown)} FROM rows_")
        measures = []
        for name, call in query.asked.calls.items():
            if not isinstance(call, spec.AggregateCall):
                raise CannotSayError("arithmetic of aggregates")
            (argument,) = call.arguments or (None,)
            text = str(argument) if argument is not None else query.asked.clock
            text = ".".join(query.q(each) for each in text.split("."))
            if argument is not None and str(argument) in window.symbols:
                text = f"{query.q(str(argument))}.{query.q(clock)}"
            measures.append(f"{call.function.upper()}({text}) AS {query.q(name)}")
        measures += [
            f"{side}({query.q(clock)}) AS {query.q(name)}"
            for side, name in [("FIRST", "window_start"), ("LAST", "window_end")]
        ]
        within = "" if window.within is None else f" WITHIN INTERVAL '{int(window.within)}' SECOND"
        skip = "TO NEXT ROW" if window.is_overlapping else "PAST LAST ROW"
        by = f"PARTITION BY {', '.join(query.key)} " if query.key else ""
        pattern = _pattern(window.pattern, query.q, count(1))
        return (
            f"SELECT * FROM timed MATCH_RECOGNIZE ({by}ORDER BY _time MEASURES {', '.join(measures)} "
            f"ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({pattern}){within} "
            f"DEFINE {', '.join(defines)})"
        )

    def delta(self, query: Query, policy: rows.Delta) -> str:
        raise CannotSayError("a greedy quantifier at the end of a pattern")


def _moved(value: str, zone: str, other: str) -> str:
    return f"TO_TIMESTAMP(CONVERT_TZ(DATE_FORMAT({value}, 'yyyy-MM-dd HH:mm:ss'), '{zone}', '{other}'))"


def _check(pattern: patterns.Pattern) -> None:
    """Refuse what the engine does not take: what is greedy at the end, or before what is optional."""
    parts = pattern.parts if isinstance(pattern, patterns.Concatenation) else (pattern,)
    greedy = [
        isinstance(each, patterns.Repetition) and not each.is_reluctant and each.least != each.most for each in parts
    ]
    optional = [isinstance(each, patterns.Repetition) and each.least == 0 for each in parts]
    symbols = re.findall(r"\b[A-Za-z_]\w*", str(pattern))
    if len({*symbols}) < len(symbols):
        raise CannotSayError("a symbol twice in a pattern")
    if greedy[-1]:
        raise CannotSayError("a greedy quantifier at the end of a pattern")
    if any(one and other for one, other in zip(greedy, optional[1:], strict=False)):
        raise CannotSayError("a greedy quantifier before what is optional")


def _pattern(pattern: patterns.Pattern, q: Any, rows_: Any) -> str:
    """A pattern in the words of SQL. ``rows_``: numbers for the symbols of any row, as each needs its own name."""
    match pattern:
        case patterns.Symbol(name):
            return q(name) if name else f"any_{next(rows_)}"
        case patterns.Concatenation(parts):
            return " ".join(_pattern(each, q, rows_) for each in parts)
        case patterns.Repetition(of, least, most, is_reluctant):
            if not isinstance(of, patterns.Symbol):
                raise CannotSayError("a group that is repeated")
            rounds = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
            rounds = (
                rounds or f"{{{least}}}" if least == most else rounds or f"{{{least}, {'' if most is None else most}}}"
            )
            return f"{_pattern(of, q, rows_)}{rounds}{'?' if is_reluctant else ''}"
        case patterns.FollowedBy():
            raise CannotSayError("rows between that are not in the match")
    raise CannotSayError("alternatives in a pattern")


def answer(case: Case) -> Answer:
    """The rows of the answer. Raises `CannotSayError`."""
    found = run(case, FlinkSql(), _execute)
    is_zoned = any("UTC" in kind for kind in case.given.columns.values())
    rows_ = [
        [
            f"{value}Z" if is_zoned and name in ("window_start", "window_end") else value
            for name, value in zip(found.columns, row, strict=True)
        ]
        for row in found.rows
    ]
    is_fine = any(re.search(r"\.\d{4}", str(value)) for row in case.given.rows for value in row)
    return Answer(found.columns, rows_, found.note or ("times come out in milliseconds" if is_fine else ""))


@cache
def _runner() -> subprocess.Popen[str]:
    python = os.environ.get("FLINK_PYTHON")
    if python is None:
        raise SystemExit("FLINK_PYTHON is not set: name the Python of an environment with apache-flink")
    runner = Path(__file__).with_name("flink_runner.py")
    process = subprocess.Popen(
        [python, runner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(process.terminate)
    return process


def _execute(case: Case, text: str) -> tuple[list[str], list[Any]]:
    process = _runner()
    assert process.stdin is not None
    assert process.stdout is not None
    statements = [_view(name, given) for name, given in {"log": case.given, **case.tables}.items()]
    process.stdin.write(json.dumps([*statements, text]) + "\n")
    process.stdin.flush()
    line = next(line for line in process.stdout if line.startswith("answer:"))
    told = json.loads(line.removeprefix("answer:"))
    if "error" in told:
        if "Field names must be unique" in told["error"]:
            raise CannotSayError("OVER windows inside each other of this shape: the planner fails")
        if "non-constant fields" in told["error"]:
            raise CannotSayError("a table of one row: the planner takes its order for a constant")
        causes = re.findall(r"(?:Exception|Error): (.*)", told["error"])
        raise RuntimeError(causes[-1] if causes else told["error"])
    return told["columns"], told["rows"]


def _view(name: str, given: Rows) -> str:
    """A table of values."""
    kinds = [*given.columns.values(), "int64"]
    columns = ", ".join(f"`{column}`" for column in [*given.columns, "_arrival"])
    lines = [[*row, at] for at, row in enumerate(given.rows)] or [[None] * len(kinds)]
    values = ", ".join(f"({', '.join(map(_literal, line, kinds))})" for line in lines)
    empty = "" if given.rows else " WHERE FALSE"
    return f"CREATE TEMPORARY VIEW `{name}` AS SELECT * FROM (VALUES {values}) AS t ({columns}){empty}"


def _literal(value: Any, kind: str) -> str:
    if value is None:
        text = "NULL"
    elif kind.startswith("timestamp"):
        text = "'" + value.replace("T", " ").removesuffix("Z") + "'"
    else:
        text = f"'{value}'" if isinstance(value, str) else str(value)
    return f"CAST({text} AS {_TYPES[kind]})"
