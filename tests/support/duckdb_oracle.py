"""What DuckDB says of an expression, row by row where the whole column is an error."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.types as t

from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.nodes import Node, canonical
from wincli.windowing.expressions.syntax import parse_expression

FAILED = object()
"""Stands for a row for which an expression fails."""


def compare(text: str, rows: pa.Table) -> str:
    """Compare the product with DuckDB: ``same``, ``both refuse``, or what differs."""
    try:
        theirs = answers(text, rows)
        ours = _ours(text, rows)
    except (OverflowError, ValueError):
        return "same, as far as Python has such times"
    if isinstance(ours, str) or theirs is None:
        values = [FAILED] if isinstance(ours, str) else ours[0]
        both = all(each is FAILED for each in [*values, *([] if theirs is None else theirs[0])])
        return "both refuse" if both else f"one refuses: {ours}; DuckDB: {theirs}"
    if not _same_type(ours[1], theirs[1]):
        return f"types: {ours[1]} and {theirs[1]}"
    # DuckDB rounds on the way from decimals to floats of 32 bits, and has functions of its own for logarithms
    tolerance = 1e-6 if re.search(r"FLOAT|\bg\b", text) else 1e-12
    differing = [row for row, (a, b) in enumerate(zip(ours[0], theirs[0], strict=True)) if not _same(a, b, tolerance)]
    if all(ours[0][row] is FAILED and _has_failing_part(text, rows.slice(row, 1)) for row in differing):
        return "same"
    return f"values: {_shown(ours[0])} and {_shown(theirs[0])}"


def _ours(text: str, rows: pa.Table) -> tuple[list[Any], pa.DataType] | str:
    """The values of an expression in the product and their type; a text where it is refused."""
    try:
        bound = bind(parse_expression(text), rows.schema)
    except SpecError as error:
        return error.what
    found = bound.evaluate(rows)
    values = found.values.to_pylist()
    if found.failures is not None:
        values = [FAILED if failed else value for failed, value in zip(found.failures, values, strict=True)]
    return values, bound.type


def _has_failing_part(text: str, row: pa.Table) -> bool:
    """Whether a part that the row takes fails in DuckDB by itself: it may leave parts out that cannot matter."""
    waiting = [parse_expression(text).root]
    while waiting:
        node = waiting.pop()
        found = answers(canonical(node), row) if node.operands else None
        if found is not None and found[0] == [FAILED]:
            return True
        waiting += _taken(node, row)
    return False


def _taken(node: Node, row: pa.Table) -> list[Node]:
    """The operands of a part that the row takes: of CASE and COALESCE those up to the one whose value it gets.

    DuckDB computes a condition of CASE as it computes a filter, and leaves out what AND and OR can do without.
    """
    rest, taken = list(node.operands), list[Node]()
    if node.value[:1] == ("coalesce",):
        for operand in rest:
            taken.append(operand)
            found = answers(canonical(operand), row)
            if found is not None and found[0] != [None]:
                break
        return taken
    if node.kind in {"sum", "product"} and len(rest) > 2:  # what stands before the last sign is computed by itself
        return [*rest, replace(node, value=node.value[:-1], operands=node.operands[:-1])]
    if node.kind != "case":
        return rest
    first = [rest.pop(0)] if node.value[0] else []
    default = [rest.pop()] if node.value[1] else []
    for condition, value in zip(rest[::2], rest[1::2], strict=True):
        taken.append(Node("compare", ("=",), (*first, condition)) if first else condition)
        found = answers(canonical(taken[-1]), row)
        if found is not None and found[0] == [True]:
            return [*taken, value]
    return [*taken, *default]


def answers(text: str, rows: pa.Table) -> tuple[list[Any], pa.DataType] | None:
    """The values of an expression in DuckDB and their type, `FAILED` for rows; None where it is refused."""
    connection = _connection()
    connection.register("rows_in", rows)
    connection.execute("CREATE OR REPLACE TABLE rows_of AS SELECT * FROM rows_in")
    return _answers(connection, text, rows.num_rows)


@cache
def _connection() -> Any:
    """One for all: to open another one takes longer than all that is asked of it."""
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    connection.execute("PRAGMA disable_optimizer")  # it would leave out parts whose failure is of interest
    return connection


def _answers(connection: Any, text: str, n: int) -> tuple[list[Any], pa.DataType] | None:
    try:
        described = connection.execute(f"DESCRIBE SELECT ({text}) AS x FROM rows_of").fetchall()
    except duckdb.Error:
        return None
    sql = f"SELECT ({text}) AS x FROM rows_of"
    if described[0][1] == "INTERVAL":
        sql = f"SELECT epoch({text}) AS x FROM rows_of"
    try:
        return _table(connection, sql)
    except duckdb.Error:
        pass
    values: list[Any] = []
    found_kind = pa.null()
    for row in range(n):
        try:
            one, found_kind = _table(connection, f"{sql} WHERE rowid = {row}")
            values += one
        except duckdb.Error:
            values.append(FAILED)
    return values, found_kind


def _table(connection: Any, sql: str) -> tuple[list[Any], pa.DataType]:
    table = connection.sql(sql).to_arrow_table()
    return table.column(0).to_pylist(), table.schema.field(0).type


def _same_type(ours: pa.DataType, theirs: pa.DataType) -> bool:
    if t.is_null(theirs) or t.is_duration(ours) or t.is_boolean(ours) or pa.types.is_date(ours):
        return True
    return ours == theirs


def _same(ours: Any, theirs: Any, tolerance: float) -> bool:
    is_span = hasattr(ours, "total_seconds")
    if is_span and isinstance(theirs, float):
        ours = ours.total_seconds()
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=1e-7 if is_span else 0.0)
    if isinstance(ours, str) and isinstance(theirs, str):
        return ours == theirs.replace("-nan", "nan")  # a NaN with a sign has the same text here
    return ours is theirs or (ours is not FAILED and theirs is not FAILED and bool(ours == theirs))


def _shown(values: list[Any]) -> list[Any]:
    return ["FAILED" if each is FAILED else each for each in values]
