"""Columns of every type: an expression over them is refused when it is bound, or computed; it never raises for rows."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal

import pyarrow as pa
import pytest

from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.syntax import parse_expression

COLUMNS = {
    "large_text": pa.array(["a", None, "5"], pa.large_string()), "view": pa.array(["a", None, "5"], pa.string_view()),
    "bytes": pa.array([b"a", None, b"\xff"]),
    "date64": pa.array([date(2020, 1, 1), None, date(1900, 1, 1)], pa.date64()),
    "clock": pa.array([time(1), None, time(2)]), "span": pa.array([1, None, 2**60], pa.duration("s")),
    "half": pa.array([1.5, None, 2.0], pa.float16()), "most": pa.array([1, None, 2**64 - 1], pa.uint64()),
    "wide": pa.array([Decimal("1.5"), None, Decimal(10) ** 50], pa.decimal256(60, 1)),
    "long": pa.array([Decimal("1.5"), None, Decimal(10) ** 36], pa.decimal128(38, 1)),
    "coded": pa.array([1, None, 1]).dictionary_encode(), "lists": pa.array([[{"x": 1}], None, []]),
    "pairs": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())), "none": pa.nulls(3),
    "seconds": pa.array([0, None, 2**62], pa.timestamp("s")),
    "nanos": pa.array([0, None, 2**63 - 1], pa.timestamp("ns")),
    "utc": pa.array([0, None, 2**61], pa.timestamp("ms", "UTC")), "zone": pa.array([0, None, 5], pa.timestamp("us",
    "+02:00")),
    "last_day": pa.array([0, None, 2**31 - 1], pa.int32()).cast(pa.date32()), "int": pa.array([1, None, 2**63 - 1]),
    "float": pa.array([1e308, None, float("nan")]), "fixed": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
}  # fmt: skip
ROWS = pa.table(COLUMNS)
ONE = [
    "{a}", "-{a}", "NOT {a}", "{a} IS NULL", "{a}[1]", "{a}.x", "lower({a})", "abs({a})", "round({a}, 1)", "floor({a})",
    "sqrt({a})", "date_trunc('month', {a})", "extract(week from {a})", "epoch({a})", "{a} + 5m", "{a} + 1 month",
    "{a} - 1",
    "{a} * 1.5", "{a} / 3", "{a} % 3", "{a} = '1'", "{a} LIKE 'a%'", "strptime({a}, '%Y')", "{a} + 5ns",
    *(f"CAST({{a}} AS {kind})" for kind in ["TINYINT", "UBIGINT", "DOUBLE", "DECIMAL(3, 1)", "DECIMAL(38, 10)",
    "BOOLEAN"]),
    *(f"CAST({{a}} AS {kind})" for kind in ["VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_NS",
    "TIMESTAMPTZ"]),
]  # fmt: skip
TWO = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} % {b}", "{a} < {b}", "{a} || {b}", "{a} IN ({b}, 1)",
"coalesce({a}, {b})",
       "CASE WHEN {a} IS NULL THEN {a} ELSE {b} END", "nullif({a}, {b})", "{a} IS DISTINCT FROM {b}"]  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
def test_expression_over_columns_of_any_types(column: str) -> None:
    pairs = [text.format(a=f'"{column}"', b=f'"{other}"') for other in COLUMNS for text in TWO]
    for text in [*(text.format(a=f'"{column}"') for text in ONE), *pairs]:
        try:
            bound = bind(parse_expression(text), ROWS.schema)
        except SpecError:
            continue
        found = bound.evaluate(ROWS)
        assert isinstance(found.values, pa.Array), text
        assert (found.values.type, len(found.values)) == (bound.type, 3), text
        assert len(found.details) == (0 if found.failures is None else found.failures.sum()), text
