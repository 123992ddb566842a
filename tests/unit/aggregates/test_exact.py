"""Numbers where rounding or wrapping would show: float sums, variances, integers and decimals at their limits."""

from __future__ import annotations

import decimal
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from references.aggregates import to_float
from wincli.windowing.aggregates.exact_sums import parts_of
from wincli.windowing.aggregates.inputs import PaneOverflow, frozen
from wincli.windowing.aggregates.moments import float_sums
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges

MAX = 2**63 - 1
MIN = -(2**63)


def one(function: str, values: list[Any], dtype: pa.DataType, *literals: Fraction) -> Any:
    """The aggregate of one pane of all values: the same from panes of every form."""
    rows = pa.RecordBatch.from_arrays([pa.array(values, dtype)], names=["x"])
    bound = bind(AggregateCall("out", function, (Column("x"), *literals)), rows.schema)
    answers = [compute(bound, rows, form)[-1].as_py() for form in forms(len(values))]
    assert repr(answers) == repr(answers[:1] * 3)
    return answers[0]


def forms(size: int) -> list[Membership]:
    """A pane of all rows alone, as one that could overlap others, and as the last of two that are no ranges.

    The other one of these shows only the last row.
    """
    lo, hi, row = np.array([0]), np.array([size]), np.arange(size)
    lives = Memberships(row, (row < size - 1).astype(np.int64), np.full(size, 2), np.array([0, size]), np.array([0, 2]))
    return [Ranges(lo, hi, lo, True), Ranges(lo, hi, lo, False), lives]


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e16, 1.0, -1e16], 1.0),
        ([0.1] * 10, 1.0),
        ([1e100, 1.0, -1e100, 1.0], 2.0),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([1.0, math.nan, math.inf], math.nan),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([1e308, 1e308, -math.inf], -math.inf),
        ([2.0**53, 1.0], 2.0**53),
        ([2.0**53, 1.0, 2.0**-1074], 2.0**53 + 2),
        ([-(2.0**53), -3.0, 1e-300, -1e-300], -(2.0**53) - 4),
        ([math.inf, 1e308, 1.0], math.inf),
        ([-math.inf, 0.1, 0.2], -math.inf),
        ([5e-324, 5e-324], 1e-323),
    ],
)
def test_float_sums(values: list[float], total: float) -> None:
    assert repr(one("sum", values, pa.float64())) == repr(total)
    exact = to_float(sum(map(Fraction, values), Fraction(0)) / len(values)) if np.isfinite(values).all() else total
    assert repr(one("mean", values, pa.float64())) == repr(exact)


GRADED = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-1074, 970))
"""Floats of all sizes, with few bits or many."""


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3))
    | st.lists(st.floats(allow_nan=False, allow_infinity=False))
    | st.lists(st.sampled_from([2.0**53, 1.0, -1.0, 0.5, 2.0**-60, 2.0**54, -(2.0**53), 1e308, -1e308]))
    | st.lists(GRADED)
)
def test_a_float_sum_is_the_float_nearest_to_the_true_sum(values: list[float]) -> None:
    if not values:
        return
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    assert repr(one("sum", values, pa.float64())) == repr(nearest)


@settings(deadline=None)
@given(st.lists(st.floats() | st.floats(-1e3, 1e3) | GRADED, max_size=30), st.lists(st.integers(0, 30), max_size=3))
def test_parts_of_a_float_sum_have_the_same_sum(values: list[float], cuts: list[int]) -> None:
    """Few floats stand for all: never more than there are, and one at least where there is any."""
    edges = np.array(sorted({0, len(values), *(c for c in cuts if c < len(values))}))
    given = np.array(values, np.float64)
    bounds, parts = parts_of(given, edges[:-1], edges[1:])
    whole = [
        float_sums(frozen(a), Ranges(lo, hi, lo, True))
        for a, lo, hi in (
            (given, frozen(edges[:-1]), frozen(edges[1:])),
            (parts, frozen(bounds[:-1]), frozen(bounds[1:])),
        )
    ]
    assert whole[0].tobytes() == whole[1].tobytes()
    assert ((np.diff(bounds) <= np.diff(edges)) & (np.diff(bounds) > 0)).all() or not values


def test_float32_is_summed_in_64_bit() -> None:
    assert one("sum", [16777216.0, 1.0, 1.0], pa.float32()) == 16777218.0


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([MAX, 1, -1], MAX),
        ([MAX, MAX, MIN, MIN, 5], 3),
        ([MIN, -1, 1], MIN),
        ([MIN], MIN),
        ([MAX], MAX),
        ([MIN, MAX], -1),
    ],
)
def test_integer_sums_near_the_limits(values: list[int], total: int) -> None:
    assert one("sum", values, pa.int64()) == total
    assert one("mean", values, pa.int64()) == float(total) / len(values)


@pytest.mark.parametrize("values", [[MAX, 1], [MIN, -1], [MAX] * 8, [MIN] * 8])
def test_integer_sums_never_wrap(values: list[int]) -> None:
    with pytest.raises(PaneOverflow, match=r"^sum\(x\) does not fit int64 in pane 0 \(column 'x'\)$"):
        one("sum", values, pa.int64())
    assert math.isclose(one("mean", values, pa.int64()), sum(values) / len(values))


def test_unsigned_sums_must_fit_signed() -> None:
    assert one("sum", [MAX], pa.uint64()) == MAX
    assert one("mean", [2**64 - 1, 2**64 - 1], pa.uint64()) == 2.0**64
    with pytest.raises(PaneOverflow):
        one("sum", [MAX, 1], pa.uint64())
    with pytest.raises(PaneOverflow):
        one("sum", [2**64 - 1], pa.uint64())


def test_an_overflow_names_the_first_pane_and_pickles() -> None:
    rows = pa.RecordBatch.from_pydict({"amount": [1, MAX, 1, MAX]})
    bound = bind(AggregateCall("total", "sum", (Column("amount"),)), rows.schema)
    with pytest.raises(PaneOverflow) as caught:
        compute(bound, rows, Ranges(np.array([0, 1, 3]), np.array([1, 3, 4]), np.zeros(3, np.int64), True))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.pane, error.call, error.column, error.type) == (1, "sum(amount)", "amount", pa.int64())


NINES = decimal.Decimal("9" * 38)
LOWEST = NINES.copy_negate()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([NINES, decimal.Decimal(1), decimal.Decimal(-1)], NINES),
        ([NINES, NINES, LOWEST, LOWEST, decimal.Decimal(7)], decimal.Decimal(7)),
        ([LOWEST], LOWEST),
        ([NINES, LOWEST], decimal.Decimal(0)),
    ],
)
def test_decimal_sums_of_38_digits(values: list[decimal.Decimal], total: decimal.Decimal) -> None:
    assert one("sum", values, pa.decimal128(38, 0)) == total
    assert math.isclose(one("mean", values, pa.decimal128(38, 0)), total / len(values), rel_tol=1e-15)


@pytest.mark.parametrize("values", [[NINES, 1], [LOWEST, -1], [NINES] * 10])
def test_decimal_sums_overflow(values: list[decimal.Decimal]) -> None:
    with pytest.raises(PaneOverflow, match=r"sum\(x\) does not fit decimal128\(38, 0\)"):
        one("sum", list(map(decimal.Decimal, values)), pa.decimal128(38, 0))


def test_decimals_keep_their_scale() -> None:
    cents = [decimal.Decimal("0.10")] * 3
    assert str(one("sum", cents, pa.decimal128(5, 2))) == "0.30"
    assert str(one("range", [*cents, decimal.Decimal("-0.05")], pa.decimal128(5, 2))) == "0.15"
    with pytest.raises(PaneOverflow):
        one("range", [NINES, LOWEST], pa.decimal128(38, 0))


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([2**32, 2**30, 2], None),
        ([2**62, 4, 0], 0),
        ([2**62, -2], MIN),
        ([-(2**62), 2], MIN),
        ([MIN], MIN),
        ([MIN, -1], None),
        ([-1, -1], 1),
        ([MIN, MIN, 0], 0),
    ],
)
def test_integer_products(values: list[int], answer: int | None) -> None:
    if answer is None:
        with pytest.raises(PaneOverflow):
            one("product", values, pa.int64())
    else:
        assert one("product", values, pa.int64()) == answer


def test_unsigned_products() -> None:
    assert one("product", [2**32, 2**30], pa.uint64()) == 2**62
    assert one("product", [2**64 - 1, 0], pa.uint64()) == 0
    for values in ([2**63], [2**64 - 1, 2**64 - 1]):
        with pytest.raises(PaneOverflow):
            one("product", values, pa.uint64())


def test_ranges_of_integers() -> None:
    assert one("range", [-128, 127], pa.int8()) == 255
    assert one("range", [2**64 - 1, 2**64 - 5], pa.uint64()) == 4
    for values, dtype in (([MIN, 0], pa.int64()), ([0, 2**63], pa.uint64()), ([MIN, MAX], pa.int64())):
        with pytest.raises(PaneOverflow):
            one("range", values, dtype)


def test_range_of_timestamps_overflows_too() -> None:
    with pytest.raises(PaneOverflow, match=r"range\(x\) does not fit duration\[ns\]"):
        one("range", [MIN + 1, MAX], pa.timestamp("ns"))


def test_variance_does_not_cancel() -> None:
    assert one("var", [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], pa.float64()) == 30.0
    assert one("var_pop", [1e16, 1e16 + 2], pa.float64()) == 1.0
    assert one("var", [0.1] * 10, pa.float64()) == 0.0
    assert one("stddev_pop", [2, 4, 4, 4, 5, 5, 7, 9], pa.int64()) == 2.0


def test_variance_of_integers_beyond_float_precision() -> None:
    assert one("var", [2**60, 2**60 + 1], pa.int64()) == 0.5
    assert one("var_pop", [2**64 - 1, 2**64 - 3], pa.uint64()) == 1.0
    assert one("var_pop", [MIN, MIN + 2], pa.int64()) == 1.0


def test_variance_of_decimals_beyond_float_precision() -> None:
    values = [decimal.Decimal("1234567890123456.01"), decimal.Decimal("1234567890123456.03")]
    assert one("var_pop", values, pa.decimal128(18, 2)) == 1e-4
    assert one("stddev_pop", values, pa.decimal128(18, 2)) == 0.01


@pytest.mark.parametrize("function", ["var", "stddev"])
def test_a_sample_of_one_has_no_variance(function: str) -> None:
    assert one(function, [5.0], pa.float64()) is None
    assert one(f"{function}_pop", [5.0], pa.float64()) == 0.0


def test_quantile_places_are_exact() -> None:
    """0.7 of 30 steps is place 21 and nothing beside it."""
    values = [float(i) for i in range(31)]
    for share in ("0.1", "0.3", "0.7", "0.9"):
        assert one("quantile", values, pa.float64(), Fraction(share)) == float(30 * Fraction(share))


def test_quantiles_of_what_is_not_finite() -> None:
    half = Fraction(1, 2)
    assert math.isnan(one("quantile", [1.0, math.nan], pa.float64(), half))
    assert one("quantile", [math.nan, 1.0, 2.0], pa.float64(), half) == 2.0
    assert one("quantile", [-math.inf, 5.0], pa.float64(), half) == -math.inf
    assert one("quantile", [1.7e308, -1.7e308], pa.float64(), half) == 0.0
    assert one("median", [math.inf, math.inf], pa.float64()) == math.inf


def test_nan_and_zeros() -> None:
    values = [math.nan, -0.0, 0.0, math.nan, 1.0]
    assert one("count", values, pa.float64()) == 5
    assert one("count_distinct", values, pa.float64()) == 3
    assert one("min_count", values, pa.float64()) == 2
    assert math.isnan(one("mode", values, pa.float64()))
    assert repr(one("collect_distinct", values, pa.float64())) == "[nan, -0.0, 1.0]"
    assert one("max", [math.nan], pa.float64()) is None
    assert one("max_count", [math.nan], pa.float64()) == 0
    assert one("range", [math.nan], pa.float64()) is None


def test_nan_of_any_payload_is_one_value() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000042], np.uint64)
    assert one("count_distinct", list(bits.view(np.float64)), pa.float64()) == 1
