"""Amounts that ask for the window before: their numbers. Their laws are in `test_conditions`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.strategies import examples
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.language.programs import KEPT

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([5e-324, 1.5e-323, 1e308, 2.0**53, 0.1])
WORDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)


@examples(200)
@given(st.data(), st.sampled_from([name for name in KEPT if name != "count"]), st.booleans())
def test_an_aggregate_of_the_window_before_is_that_of_the_result(
    data: st.DataObject, function: str, floats: bool
) -> None:
    """Bit for bit: one row is at the value, and another is the next float above it."""
    some = st.lists(NUMBERS if floats else WORDS, min_size=1, max_size=6)
    values = data.draw(some)
    kind = pa.float64() if floats else pa.int64()
    table = pa.table({"x": pa.array(values, kind)})
    try:
        found = wincli.aggregate(table, f"count({len(values)})", aggregates=[f"v={function}(x)"])["v"][0].as_py()
    except DataError:
        return  # an integer does not fit 64 bits
    if not 0 <= found < np.finfo(np.float64).max:
        return
    attribute = pa.float64() if isinstance(found, float) else pa.uint64()
    steps = [0.0, found, np.nextafter(found, np.inf)] if isinstance(found, float) else [0, found, found + 1]
    log = pa.table({
        "a": pa.array([0] * len(values) + steps, attribute),
        "x": pa.array([*values, None, None, None], kind),
        "w": [*[1] * len(values), 2, 2, 2],
    })  # fmt: skip
    window = f"change(w) or delta(a, previous({function}(x), 0))"
    sizes = wincli.aggregate(log, window, aggregates=["n=count()"])["n"].to_pylist()
    assert sizes == [len(values), 2, 1]


TABLE = pa.table({"t": [0, 1, 2, 3], "x": [1, 2, 3, 4], "y": [0.5, None, float("nan"), 1.0], "u": list("abcd")})


def test_other_types_than_integers_and_floats_are_an_error() -> None:
    with pytest.raises(ConfigError, match="needs integers or floats, and u is string"):
        wincli.aggregate(TABLE, "delta(t, previous(sum(u), 1))", order_by="t")


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("previous(count(), 1) - 2", "negative_amount"),
        ("previous(first(y), 1) / 0 - 1 / 0.0", "nan_attribute"),
        ("9223372036854775807 * previous(count(), 1) * 2", "expression_error"),
        ("-9223372036854775807 * previous(count(), 1) - 2", "expression_error"),
        ("9223372036854775807 + previous(count(), 1)", "expression_error"),
        ("-(-9223372036854775807 * previous(count(), 1) - 1)", "expression_error"),
    ],
)
def test_a_row_whose_amount_cannot_be_is_rejected(amount: str, reason: str) -> None:
    for window in (f"count({amount})", f"delta(t, {amount})", f"gap(t, {amount})"):
        with pytest.raises(DataError, match=f"4 rows have no place in the window: row 0 is {reason}"):
            wincli.aggregate(TABLE, window, order_by="t")
        assert len(wincli.aggregate(TABLE, window, order_by="t", rejected="drop")) == 0


def test_a_sum_that_does_not_fit_rejects_the_rows_that_ask_for_it() -> None:
    table = pa.table({"t": [0, 9, 10, 11, 12], "x": [2**62, 2**62, 1, 2, 3]})
    found = wincli.aggregate(
        table, "count(greatest(previous(sum(x), 2), 2))", order_by="t", aggregates=["collect(x)"], rejected="drop"
    )
    assert found["collect_x"].to_pylist() == [[2**62, 2**62]]
    with pytest.raises(DataError, match=r"3 rows .* row 2 is expression_error: count\(greatest\(previous"):
        wincli.aggregate(table, "count(greatest(previous(sum(x), 2), 2))", order_by="t")


def test_a_window_goes_on_behind_a_row_that_is_rejected() -> None:
    """
    t:      0  1  2  9  10 11
    n:      5  5  1  5  5  5
    amount: 4  4  -  4  -  4     n - 1, and 2 less than that behind a window of three rows
    panes: [a  b]   [d     f]
    """
    table = pa.table({"t": [0, 1, 2, 9, 10, 11], "n": [5, 5, 0, 5, 2, 5], "x": [1] * 6})
    found = wincli.aggregate(
        table, "gap(t, n - previous(count(), 1) - 1)", order_by="t", aggregates=["collect(t)"], rejected="drop"
    )
    assert found["collect_t"].to_pylist() == [[0, 1], [9, 11]]
    assert found["closed_by"].to_pylist() == ["gap", "end"]


def test_rows_without_a_value_for_the_amount_are_rejected() -> None:
    found = wincli.aggregate(
        TABLE, "count(previous(count(), 1) * y)", order_by="t", aggregates=["collect(x)"], rejected="drop"
    )
    assert found["collect_x"].to_pylist() == [[1], [4]]
