"""A condition that statistics rule out is true for no row, whatever the rows are (section 11)."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.expression_cases import SCHEMA, Writer, random_table
from support.strategies import examples
from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.binding import bind, bind_condition
from wincli.windowing.expressions.pruning import Bounds, bounds_of, never_true
from wincli.windowing.expressions.syntax import parse_expression


def bounds_from_parquet(rows: pa.Table) -> dict[str, Bounds]:
    """The bounds that a Parquet file has of its one row group."""
    file = io.BytesIO()
    pq.write_table(rows, file)
    group = pq.ParquetFile(file).metadata.row_group(0)
    found = {}
    for index in range(group.num_columns):
        chunk = group.column(index)
        stats = chunk.statistics
        if stats is not None and chunk.path_in_schema in rows.schema.names:
            low, high = (stats.min, stats.max) if stats.has_min_max else (None, None)
            nulls = stats.null_count if stats.has_null_count else None
            kind = rows.schema.field(chunk.path_in_schema).type
            found[chunk.path_in_schema] = bounds_of(low, high, nulls, rows.num_rows, kind)
    return found


@examples(300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), depth=st.integers(1, 3), n=st.integers(1, 4))
def test_pruned_rows_are_neither_true_nor_failed(seed: int, depth: int, n: int) -> None:
    random = Random(seed)
    rows = random_table(random, n)
    try:
        condition = bind_condition(parse_expression(Writer(random).condition(depth)), SCHEMA)
    except SpecError:
        return
    if never_true(condition, bounds_from_parquet(rows)):
        found = condition.evaluate(rows)
        assert found.failures is None
        assert not pc.any(found.values).as_py()


_TIME = datetime(2026, 1, 5, 10)
COLUMNS = pa.schema(
    [("i", pa.int64()), ("k", pa.int8()), ("f", pa.float64()), ("d", pa.decimal128(10, 2)), ("s", pa.string()),
    ("t", pa.timestamp("us")), ("z", pa.timestamp("ms", "UTC")), ("b", pa.bool_())]
)  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "i": [10, 20], "k": [1, 5], "f": [1.0, 2.0], "d": [Decimal("1.50"), Decimal("9.00")], "s": ["b", "d"],
    "t": [_TIME, _TIME.replace(day=6)], "z": [_TIME.replace(tzinfo=UTC)] * 2, "b": [False, False],
}  # fmt: skip
NEVER = [
    "i > 20", "i < 10", "i = 9", "i >= 20.5", "i IN (1, 2, 30)", "i BETWEEN 30 AND 40", "i IS NULL", "i > 1e3",
    "k > 100",
    "NOT i < 100", "f < 1", "f = 0.5", "d > 9", "d = 100", "s > 'dz'", "s = 'a'", "s IN ('x', 'a')", "b",
    "t < TIMESTAMP '2026-01-05'", "t < '2026-01-05'", "t >= DATE '2026-01-07'",
    "z > TIMESTAMPTZ '2026-02-01 00:00:00+00'",
    "i > 20 AND lower(s) = 'x'", "i > 20 OR s < 'a'", "i <> i AND i > 30", "NULL", "i = NULL",
    "local_date(t, 'America/New_York') > DATE '2026-01-07'", "timezone('Asia/Tokyo', z) < TIMESTAMP '2026-01-03'",
    "timezone('Asia/Tokyo', t) < TIMESTAMPTZ '2026-01-03 00:00:00+00'", "i > 20 AND greatest(s, 'x') = 'y'",
    "i > 20 AND hash(s) = 5",
]  # fmt: skip
PERHAPS = [
    "i > 19", "f > 5", "f >= 3", "f <> 1", "i IS NOT NULL", "s LIKE 'x%'", "b IS NOT NULL",
    "CAST(s AS INTEGER) = 5 AND FALSE",
    "i > k + 100 AND FALSE",
    "i + 1 > 100", "d < 9", "s >= 'd'", "i = 10", "NOT b", "coalesce(i, 100) > 50", "s = 'a' OR lower(s) = 'b'",
    "local_date(t, 'Asia/Tokyo') = DATE '2026-01-06'", "timezone('Asia/Tokyo', z) > TIMESTAMP '2026-01-05 18:00'",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_never"), [*((text, True) for text in NEVER), *((text, False) for text in PERHAPS)]
)
def test_condition_outside_of_the_bounds_is_never_true_and_one_that_may_hold_or_fail_is_kept(
    text: str, is_never: bool
) -> None:
    condition = bind_condition(parse_expression(text), COLUMNS)
    assert never_true(condition, bounds_from_parquet(pa.table(VALUES, COLUMNS))) == is_never
    assert not never_true(condition, {}) or text in {"NULL", "i = NULL"}  # nothing is known of columns


@pytest.mark.parametrize(
    ("text", "is_never"), [("i > 5 OR i <= 5", True), ("i IS NULL", False), ("i IS NOT NULL", True)]
)
def test_nulls_decide_what_is_null(text: str, is_never: bool) -> None:
    bounds = {"i": bounds_of(None, None, 5, 5, pa.int64())}
    assert never_true(bind(parse_expression(text), COLUMNS), bounds) == is_never


def test_nan_is_above_the_upper_bound_of_floats() -> None:
    rows = pa.table({"f": [1.0, float("nan")]})
    condition = bind(parse_expression("f > 100"), rows.schema)
    assert condition.evaluate(rows).values.to_pylist() == [False, True]
    assert not never_true(condition, bounds_from_parquet(rows))


def test_cut_texts_are_bounds_too() -> None:
    rows = pa.table({"s": ["a" * 500, "b" * 500]})
    bounds = {"s": bounds_of("a" * 16, "b" * 15 + "c", 0, 2, pa.string())}
    long = parse_expression(f"s = '{'b' * 500}'")
    assert not never_true(bind(long, rows.schema), bounds)
    assert never_true(bind(parse_expression("s = 'c'"), rows.schema), bounds)


def test_bounds_of_another_type_are_unknown() -> None:
    assert bounds_of("x", np.nan, None, 5, pa.int64()) == Bounds()
