"""Windows over a column without any value, which has no type yet: the rows and rejects of a column of typed nulls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wincli
from support.columns_without_type import WITHOUT_TYPE, nulls
from wincli.windowing.errors import ClockError, ConfigError

FLOAT, BOOL, TIME, TEXT = pa.float64(), pa.bool_(), pa.timestamp("us"), pa.string()
ATTRIBUTES: list[tuple[str, pa.DataType]] = [
    ("delta(x, 2)", FLOAT), ("gap(x, 2)", FLOAT), ("delta(x, 4h)", FLOAT), ("gap(x, 30m)", FLOAT),
    ("delta(ts, x)", FLOAT), ("gap(ts, x)", FLOAT), ("count(x)", pa.int64()), ("delta(v, v - x)", FLOAT),
    ("change(x)", FLOAT), ("change(x, k)", TEXT), ("gap(x, 2) or count(3)", FLOAT), ("count(2) or delta(x, 2)", FLOAT),
    ("reaches(sum(x), 3)", FLOAT), ("reaches(count(x), 3)", FLOAT), ("reaches(min(x), 3)", FLOAT),
    ("reaches(max(x), 3)", FLOAT), ("reaches(range(x), 3)", FLOAT), ("reaches(range(x), 4h)", TIME),
    ("reaches(sum(x - lag(x)), 2)", FLOAT), ("sliding, delta(x, 2)", FLOAT), ("sliding, count(2), delta(x, 2)", FLOAT),
    ("retain 2 with unique x", FLOAT), ("partition by x retain 1", TEXT), ("partition by x within 2", TEXT),
    ("within 2 with unique x", TEXT), ("delta(ts, previous(sum(x), 2))", FLOAT),
    ("delta(ts, previous(mean(x), 2))", FLOAT), ("gap(ts, previous(range(x), 2))", FLOAT),
    ("count(previous(count(x), 2))", FLOAT), ("delta(ts, previous(first(x), x))", FLOAT),
    ("delta(ts, 2 * previous(max(x), 30) + x)", FLOAT), ("delta(ts, lag(x))", FLOAT),
]  # fmt: skip
CONDITIONS: list[tuple[str, pa.DataType]] = [
    ("when(x)", BOOL), ("while(x)", BOOL), ("from(x, until=x)", BOOL), ("from(v > 0, until=x)", BOOL),
    ("punct(x)", BOOL), ("sliding, count(2), when(x)", BOOL), ("when(not x)", BOOL), ("when(x > 1)", FLOAT),
    ("while(x > 1 or v > 1)", FLOAT), ("when(x > lag(x))", FLOAT), ("when(lag(x) is null)", FLOAT),
    ("when(x = 'a')", TEXT), ("while(x like 'a%')", TEXT), ("when(x is null) or count(3)", FLOAT),
]  # fmt: skip
CLOCKS = [
    "count(2)", "time(2)", "calendar(day)", 'calendar(day, "Europe/Paris")', 'cron("0 19 * * *", "Europe/Paris")',
    "within 2", "within 2 every 1", "within 2 retain 1", "retain 2", "retain 2 every 2", "retain all", "change(k)",
    "partition by k within 2", "sliding, time(2)", "sliding, time(2), time(1)", "sliding, count(2), time(1)",
    "sliding, time(2), delta(v, 1)", "time(2) or count(2)", "gap(x, 2)", "when(v > 1)", "punct()",
]  # fmt: skip
OPTIONS: list[tuple[dict[str, Any], pa.DataType]] = [
    ({"key": "x"}, TEXT), ({"key": ["k", "x"]}, TEXT), ({"group_by": "x"}, TEXT), ({"where": "x"}, BOOL),
    ({"where": "x > 1 or x is null"}, FLOAT), ({"emit": "rows", "sort_by": "x desc", "aggregates": None}, FLOAT),
    ({"aggregates": ["m=max(x)", "s=sum(x)"], "having": "m > s"}, FLOAT),
    ({"aggregates": ["m=max(x)", "b=bool_or(x)"], "having": "m or not b or b is null"}, BOOL),
    ({"let": ["y=x"], "aggregates": "r=string_join(y, ',')"}, TEXT),
    ({"let": ["y=x"], "aggregates": "r=bool_or(y)"}, BOOL),
    ({"let": ["age=ts - x"], "where": "age is null or age > 5m"}, TIME),
]  # fmt: skip


def log(rows: int, kind: pa.DataType) -> pa.Table:
    times = pa.array([i * 10**6 for i in range(rows)], pa.timestamp("us"))
    keys = pa.array([str(i % 2) for i in range(rows)], TEXT)
    return pa.table({"ts": times, "k": keys, "v": pa.array(range(rows), pa.int64()), "x": nulls(rows, kind)})


def check(window: str, kind: pa.DataType, typed: pa.DataType, **options: Any) -> None:
    """Compare the result, and the rejected rows with their reasons."""
    for rows in (5, 0) if kind == WITHOUT_TYPE[0] else (5,):
        given: dict[str, Any] = {"rejected": "column", "aggregates": ["n=count()", "s=sum(v)"], **options}
        found, wanted = (wincli.aggregate(log(rows, each), window, **given) for each in (kind, typed))
        assert found.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
@pytest.mark.parametrize(("window", "typed"), [*ATTRIBUTES, *CONDITIONS])
def test_attribute_without_type_is_an_attribute_of_nulls(window: str, typed: pa.DataType, kind: pa.DataType) -> None:
    check(window, kind, typed, key="k" if kind == WITHOUT_TYPE[0] else (), order_by="ts")


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
@pytest.mark.parametrize("window", CLOCKS)
def test_rows_without_a_type_of_their_order_are_rejected_as_those_without_an_order(
    window: str, kind: pa.DataType
) -> None:
    for order, key in (("x", "k"), (("ts", "x"), ()), (("x", "v"), "k")):
        check(window, kind, TIME, key=key, order_by=order)


@pytest.mark.parametrize("options", [{}, {"order_by": "x"}, {"lag": 1}, {"min_gap": 1}], ids=str)
@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
def test_event_time_without_type_rejects_each_row(kind: pa.DataType, options: dict[str, Any]) -> None:
    check("timeInterval, intervalDuration(2)", kind, TIME, key="k", event_time="x", **options)


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
@pytest.mark.parametrize(("options", "typed"), OPTIONS, ids=str)
def test_keys_groups_conditions_and_new_columns_take_a_column_without_type(
    options: dict[str, Any], typed: pa.DataType, kind: pa.DataType
) -> None:
    for window in ("count(2)", "retain 2"):
        check(window, kind, typed, order_by="ts", **options)


@pytest.mark.parametrize("kind", WITHOUT_TYPE, ids=str)
def test_marks_without_type_are_no_marks(kind: pa.DataType) -> None:
    check("punct()", kind, BOOL, order_by="ts", marks="x")


@pytest.mark.parametrize("window", ["time(2)", "within 2", "sliding, time(2)", "timeInterval, intervalDuration(2)"])
@pytest.mark.parametrize("rows", [0, 3])
def test_an_input_without_any_type_has_a_clock_without_being_told(window: str, rows: int) -> None:
    empty = pa.table({"user": pa.nulls(rows), "ts": pa.nulls(rows), "amount": pa.nulls(rows)})
    found = wincli.aggregate(empty, window, key="user", aggregates=["s=sum(amount)"], rejected="drop")
    assert (found.num_rows, found.schema.field("s").type) == (0, FLOAT)


def test_no_column_stands_for_the_time_where_another_may_hold_it() -> None:
    texts = pa.table({"at": ["2026-11-01"], "note": pa.nulls(1)})
    with pytest.raises(ClockError, match="the input has no timestamp or date column"):
        wincli.aggregate(texts, "time(2)")
    with pytest.raises(ConfigError, match="marks need a boolean column, and 'at' is string"):
        wincli.aggregate(texts, "punct()", marks="at")
