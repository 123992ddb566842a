"""An expression over a column without any value, which has no type yet, gives what one over typed nulls gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.columns_without_type import WITHOUT_TYPE, nulls
from wincli.windowing.errors import SpecError
from wincli.windowing.expressions.binding import BoundExpression, bind, bind_condition
from wincli.windowing.expressions.syntax import parse_expression

TIME, SPAN = pa.timestamp("us"), pa.duration("us")
STRUCT = pa.struct([("pid", pa.int64()), ("at", pa.struct([("ms", pa.int64())]))])
OTHERS = {
    "v": pa.array([1, None]), "f": pa.array([0.5, None]), "s": pa.array(["a", None]), "ts": pa.array([0, None], TIME),
    "day": pa.array([0, None], pa.int32()).cast(pa.date32()), "took": pa.array([5, None], SPAN),
    "tags": pa.array([[1], None], pa.list_(pa.int64())),
}  # fmt: skip
NUMBERS = [
    "x + 1", "1 - x", "x * v", "x / v", "v % x", "-x", "+x", "x + x", "x * 1.5", "f / x", "x + NULL", "abs(x)",
    "round(x)", "round(x, 2)", "floor(x)", "ceil(x)", "sqrt(x)", "ln(x)", "exp(x)", "power(x, 2)", "power(v, x)",
    "x > 1", "1 < x", "x = v", "x <> f", "x IS DISTINCT FROM v", "x IS NOT DISTINCT FROM v", "x = x", "x IN (1, 2)",
    "v IN (1, x)", "x NOT IN (1, v)", "x BETWEEN 1 AND 2", "v BETWEEN x AND 5", "x BETWEEN v AND x", "x IS NULL",
    "x IS NOT NULL", "CAST(x AS int)", "CAST(x AS varchar)", "CAST(x AS decimal(10, 2))", "TRY_CAST(x AS boolean)",
    "COALESCE(x, 1)", "COALESCE(x, v)", "COALESCE(x, x) + 1", "NULLIF(x, 1)", "NULLIF(v, x)", "NOT x", "x AND true",
    "x OR v > 1", "CASE WHEN x > 1 THEN 1 ELSE 2 END", "CASE WHEN v = 1 THEN x ELSE v END", "CASE x WHEN 1 THEN 2 END",
    "CASE v WHEN x THEN 1 ELSE 2 END", "CASE WHEN v = 1 THEN x END", "x || 'a'", "concat(x, 'a')",
]  # fmt: skip
TEXTS = [
    "lower(x)", "upper(x)", "trim(x)", "ltrim(x, 'a')", "length(x)", "substr(x, 1, 2)", "replace(x, 'a', 'b')",
    "split_part(x, ',', 1)", "concat(x, s)", "x || s", "regexp_matches(x, 'a')", "regexp_extract(x, 'a')",
    "x LIKE 'a%'", "x NOT ILIKE 'a%'", "x = 'a'", "x > 'a'", "s < x", "x IN ('a', 'b')", "x BETWEEN 'a' AND s",
    "COALESCE(x, s)", "NULLIF(x, 'a')", "CASE x WHEN 'a' THEN 1 END", "strptime(x, '%Y-%m-%d')",
    "CAST(x AS timestamp)", "CASE WHEN v = 1 THEN x ELSE s END",
]  # fmt: skip
TIMES = [
    "date_trunc('day', x)", "extract(year from x)", "extract(epoch from x)", "epoch(x)", "x - ts", "ts - x", "x - x",
    "x + INTERVAL '5' MINUTE", "x - 5m", "5m + x", "x + INTERVAL '1' MONTH", "x - day", "day - x", "epoch(ts - x)",
    "x - TIMESTAMP '2020-01-01'", "x > ts", "x > DATE '2020-01-01'", "ts - x > 5m", "x + 5m > ts", "x BETWEEN ts AND x",
    "COALESCE(x, ts) - ts", "local_date(x, 'Asia/Tokyo')", "timezone('Asia/Tokyo', x)",
]  # fmt: skip
SPANS = ["ts + x", "x + ts", "day + x", "ts - x", "x + 5m", "5m - x", "x * 2", "x / 2", "-x", "x > 5m", "took + x"]
FACTORS = ["5m * x", "x * took", "took / x"]
NESTED = ["x.pid", "x['pid']", "x.pid + 1", "x.at.ms > 1", "x.pid IS NULL"]
LISTS = ["x[1]", "x[v]", "x[1] + 1", "x[1] IS NULL"]
CASES = [
    *((text, pa.float64()) for text in NUMBERS), *((text, pa.string()) for text in TEXTS),
    *((text, TIME) for text in TIMES), *((text, SPAN) for text in SPANS), *((text, pa.float64()) for text in FACTORS),
    *((text, STRUCT) for text in NESTED), *((text, pa.list_(pa.int64())) for text in LISTS),
    ("tags[x]", pa.int64()),
]  # fmt: skip


def bound(text: str, kind: pa.DataType) -> BoundExpression:
    return bind(parse_expression(text), log(kind).schema)


def log(kind: pa.DataType) -> pa.Table:
    return pa.table({**OTHERS, "x": nulls(2, kind)})


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
@pytest.mark.parametrize(("text", "typed"), CASES)
def test_a_column_without_type_is_of_any_type(text: str, typed: pa.DataType, kind: pa.DataType) -> None:
    found, wanted = (bound(text, each).evaluate(log(each)) for each in (kind, typed))
    assert found.values.to_pylist() == wanted.values.to_pylist()
    assert found.failures is None
    assert found.values.type == bound(text, kind).type


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("x", pa.null()), ("-x", pa.null()), ("x - x", pa.null()), ("ts - x", pa.null()), ("x.pid", pa.null()),
        ("x[1]", pa.null()), ("COALESCE(x, x)", pa.null()), ("x + 1", pa.float64()), ("x * v", pa.float64()),
        ("x / 2", pa.float64()), ("abs(x)", pa.float64()), ("x || 'a'", pa.string()), ("x > 1", pa.bool_()),
        ("COALESCE(x, v)", pa.int64()), ("NULL", pa.int32()), ("NULL + 1", pa.int32()),
    ],
)  # fmt: skip
def test_type_is_the_widest_number_beside_a_number_and_unknown_where_nothing_says_it(
    text: str, dtype: pa.DataType
) -> None:
    assert bound(text, pa.null()).type == dtype


@pytest.mark.parametrize("text", ["x", "NOT x", "x OR x", "COALESCE(x, x)", "x.ok", "CASE WHEN v = 1 THEN x END"])
def test_a_condition_without_type_is_true_for_no_row(text: str) -> None:
    condition = bind_condition(parse_expression(text), log(pa.null()).schema)
    assert condition.type == pa.bool_()
    assert condition.evaluate(log(pa.null())).values.to_pylist() == [None, None]


@pytest.mark.parametrize("text", ["x + s", "ts * x", "lower(v)", "ts + ts"])
def test_what_no_type_would_fit_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        bound(text, pa.null())
