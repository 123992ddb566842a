"""Differences of results: exactly the windows that a brute-force comparison names, in whatever order rows come."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.cli.inspection.comparison.changes import Columns, changes_of, largest, leftovers, order_of, tally_of

SCHEMA = pa.schema({"user": pa.string(), "window": pa.int64(), "n": pa.int64(), "x": pa.float64(), "t": pa.string()})
IDENTITY = ("user", "window")
VALUES = ("n", "x", "t")
Row = tuple[Any, ...]

_ROW = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.integers(0, 3),
    st.sampled_from([None, 0, 5, -7, 2**62]),
    st.sampled_from([None, 0.0, -0.0, 1.5, 1.5000001, math.nan]),
    st.sampled_from(["x", "", None]),
)


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def _plain(row: Row) -> Row:
    return tuple(map(_value, row))


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def _found(a: list[Row], b: list[Row], waiting: int, cut: int, tolerance: float = 0.0) -> list[Any]:
    columns = Columns(IDENTITY, VALUES, SCHEMA, tolerance)
    tables = [[_table(rows[:cut]), _table(rows[cut:])] for rows in (a, b)]
    return [changes_of(columns, *pair) for pair in leftovers(*tables, (len(a), len(b)), columns, waiting)]


def _brute(a: list[Row], b: list[Row]) -> dict[tuple[str, Row], int]:
    """How many windows of each identity differ, by kind: equal rows cancel, and of the rest each takes a partner."""
    left = [Counter(map(_plain, rows)) for rows in (a, b)]
    only = [Counter((left[0] - left[1]).elements()), Counter((left[1] - left[0]).elements())]
    by_window = [Counter(row[:2] for row in rows.elements()) for rows in only]
    found = {}
    for window in by_window[0] | by_window[1]:
        in_a, in_b = by_window[0][window], by_window[1][window]
        found |= {("changed", window): min(in_a, in_b), ("only in A", window): max(0, in_a - in_b)}
        found |= {("only in B", window): max(0, in_b - in_a)}
    return {what: count for what, count in found.items() if count}


@given(
    a=st.lists(_ROW, max_size=12),
    b=st.lists(_ROW, max_size=12),
    waiting=st.sampled_from([1, 4, 1000]),
    cut=st.integers(0, 12),
)
def test_differences_are_those_of_a_brute_force_comparison(a: list[Row], b: list[Row], waiting: int, cut: int) -> None:
    listed = [each for changes in _found(a, b, waiting, cut) for each in largest(changes, "", None)]
    found = Counter((each.kind, tuple(value.as_py() for value in each.identity.values())) for each in listed)
    assert found == _brute(a, b)


@given(a=st.lists(_ROW, max_size=12), b=st.lists(_ROW, max_size=12), waiting=st.sampled_from([1, 1000]))
def test_sums_change_by_what_is_counted(a: list[Row], b: list[Row], waiting: int) -> None:
    tallies = [tally_of(changes) for changes in _found(a, b, waiting, 3)]
    assert sum(each.change["n"] for each in tallies) == sum(r[2] or 0 for r in b) - sum(r[2] or 0 for r in a)
    assert sum(each.only_in_b + each.changed for each in tallies) - sum(
        each.only_in_a + each.changed for each in tallies
    ) == len(b) - len(a)


@given(rows=st.lists(_ROW, max_size=12, unique_by=lambda row: row[:2]), data=st.data())
def test_each_changed_value_is_named_with_both(rows: list[Row], data: st.DataObject) -> None:
    changed = [data.draw(_ROW) for _ in rows]
    other = [(*row[:2], *new[2:]) for row, new in zip(rows, changed, strict=True)]
    expected = {
        (row[:2], name): (_value(one), _value(two))
        for row, new in zip(rows, other, strict=True)
        for name, one, two in zip(VALUES, row[2:], new[2:], strict=True)
        if _value(one) != _value(two)
    }
    found = {}
    for changes in _found(rows, data.draw(st.permutations(other)), 3, 2):
        for each in largest(changes, "", None):
            window = tuple(value.as_py() for value in each.identity.values())
            found |= {(window, name): (_value(x.as_py()), _value(y.as_py())) for name, (x, y) in each.values.items()}
    assert found == expected


@given(a=st.lists(_ROW, max_size=12), b=st.lists(_ROW, max_size=12), most=st.integers(1, 4))
def test_the_first_differences_are_those_with_the_largest_effect(a: list[Row], b: list[Row], most: int) -> None:
    (changes,) = _found(a, b, 1000, 5)
    every = largest(changes, "", None)
    assert [order_of(each)[0] for each in every] == sorted(order_of(each)[0] for each in every)
    assert [order_of(each)[0] for each in largest(changes, "", most)] == [order_of(each)[0] for each in every[:most]]


@pytest.mark.parametrize(("tolerance", "differ"), [(0.0, 3), (1e-6, 2), (0.5, 1), (2.0, 1)])
def test_numbers_within_the_tolerance_are_equal(tolerance: float, differ: int) -> None:
    a = [("a", at, 10, x, "x") for at, x in enumerate([1.5, 100.0, 3.0, 4.0])]
    b = [("a", at, 10, x, t) for at, (x, t) in enumerate([(1.5000001, "x"), (140.0, "x"), (3.0, "y"), (4.0, "x")])]
    assert sum(tally_of(changes).total for changes in _found(a, b, 1000, 0, tolerance)) == differ


def test_null_nan_and_infinity_are_within_no_tolerance_of_a_number() -> None:
    a = [("a", 0, None, math.nan, "x"), ("a", 1, 0, math.inf, "x"), ("a", 2, 0, 1.0, "x")]
    b = [("a", 0, 0, 0.0, "x"), ("a", 1, 0, 1.0, "x"), ("a", 2, 0, -math.inf, "x")]
    (changes,) = _found(a, b, 1000, 0, tolerance=1e9)
    assert tally_of(changes).windows == {"n": 1, "x": 3}
