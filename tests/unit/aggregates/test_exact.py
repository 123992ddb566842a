"""Numbers where rounding or wrapping would show: each answer is the nearest to the exact one, or does not fit."""

from __future__ import annotations

import decimal
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import REFERENCE
from support.aggregate_checks import GRADED, check
from support.strategies import examples
from wincli.windowing.aggregates import quotients
from wincli.windowing.aggregates.exact_sums import parts_of
from wincli.windowing.aggregates.inputs import PaneOverflow, frozen
from wincli.windowing.aggregates.moments import float_sums
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges

MAX, MIN = 2**63 - 1, -(2**63)
NINES = decimal.Decimal("9" * 38)
LOWEST = NINES.copy_negate()
NAN, INF, HALF = math.nan, math.inf, Fraction(1, 2)
SUBNORMAL, LARGEST = 5e-324, 1.7976931348623157e308
F64, I64, U64, DECIMAL = pa.float64(), pa.int64(), pa.uint64(), pa.decimal128(38, 0)
OVERFLOW = "does not fit"
TIE = 2.0**-53  # half of the last place of 1.0
NANS = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000042], np.uint64).view(np.float64)


def answers(function: str, columns: list[pa.Array], panes: Membership, *literals: Fraction) -> list[Any]:
    rows = pa.RecordBatch.from_arrays(columns, names=["x", "w"][: len(columns)])
    bound = bind(AggregateCall("out", function, (*map(Column, rows.schema.names), *literals)), rows.schema)
    return list(compute(bound, rows, panes).to_pylist())


def one(function: str, values: Any, dtype: pa.DataType, *literals: Fraction) -> Any:
    """The aggregate of one pane of all values: alone, as one that may overlap others, behind one of the last row."""
    size = len(values)
    lo, hi, row = np.array([0]), np.array([size]), np.arange(size)
    lives = Memberships(row, (row < size - 1).astype(np.int64), np.full(size, 2), np.array([0, size]), np.array([0, 2]))
    every = [
        answers(function, [pa.array(values, dtype)], panes, *literals)[-1]
        for panes in (Ranges(lo, hi, lo, True), Ranges(lo, hi, lo, False), lives)
    ]
    assert repr(every) == repr(every[:1] * 3)
    return every[0]


FLOAT_SUMS: list[tuple[list[float], float]] = [
    ([1e16, 1.0, -1e16], 1.0),
    ([0.1] * 10, 1.0),
    ([1e100, 1.0, -1e100, 1.0], 2.0),
    ([INF, 1.0], INF),
    ([INF, -INF], NAN),
    ([1.0, NAN, INF], NAN),
    ([1e308, 1e308], INF),
    ([1e308, 1e308, -1e308], 1e308),
    ([1e308, 1e308, -INF], -INF),
    ([2.0**53, 1.0], 2.0**53),
    ([2.0**53, 1.0, 2.0**-1074], 2.0**53 + 2),
    ([-(2.0**53), -3.0, 1e-300, -1e-300], -(2.0**53) - 4),
    ([SUBNORMAL, SUBNORMAL], 1e-323),
]
WHOLE_SUMS: list[tuple[list[int], pa.DataType, Any]] = [
    ([MAX, 1, -1], I64, MAX),
    ([MAX, MAX, MIN, MIN, 5], I64, 3),
    ([MIN, -1, 1], I64, MIN),
    ([MIN, MAX], I64, -1),
    ([MAX, 1], I64, OVERFLOW),
    ([MIN, -1], I64, OVERFLOW),
    ([MAX] * 8, I64, OVERFLOW),
    ([MAX], U64, MAX),
    ([MAX, 1], U64, OVERFLOW),
    ([2**64 - 1], U64, OVERFLOW),
]
DECIMAL_SUMS: list[tuple[list[Any], Any]] = [
    ([NINES, 1, -1], NINES),
    ([NINES, NINES, LOWEST, LOWEST, 7], decimal.Decimal(7)),
    ([LOWEST], LOWEST),
    ([NINES, LOWEST], decimal.Decimal(0)),
    ([NINES, 1], OVERFLOW),
    ([LOWEST, -1], OVERFLOW),
    ([NINES] * 10, OVERFLOW),
]
PRODUCTS: list[tuple[list[float], float]] = [
    ([1e300, 1e300, 0.0], 0.0),
    ([1e300, -1e300, 0.0], -0.0),
    ([0.0, 1e300, 1e300], 0.0),
    ([2.0**1000, 2.0**1000, 2.0**-1000, 2.0**-1000], 1.0),
    ([2.0**-1000, 2.0**-1000, 2.0**1000, 2.0**1000], 1.0),
    ([2.0**-1074, 2.0**-1074, 2.0**1000, 2.0**1000], 2.0**-148),
    ([SUBNORMAL, 3.0], 3 * SUBNORMAL),
    ([2.0**-600, 2.0**-600, 3.0, 2.0**600], 3 * 2.0**-600),
    ([1e300, 1e300], INF),
    ([1e300, -1e300], -INF),
    ([1e-300, 1e-300], 0.0),
    ([INF, 1e-300, 1e-300], INF),
    ([INF, 0.0], NAN),
    ([INF, -1e-300], -INF),
    ([1e300, 1e300, NAN], NAN),
]
SPREAD = [decimal.Decimal("1234567890123456.01"), decimal.Decimal("1234567890123456.03")]
MIXED = [NAN, -0.0, 0.0, NAN, 1.0]
ANSWERS: list[tuple[Any, ...]] = [
    *(("sum", values, F64, total) for values, total in FLOAT_SUMS),
    *(("sum", *case) for case in WHOLE_SUMS),
    *(("sum", list(map(decimal.Decimal, values)), DECIMAL, total) for values, total in DECIMAL_SUMS),
    ("sum", [16777216.0, 1.0, 1.0], pa.float32(), 16777218.0),  # summed in 64 bit
    ("sum", [decimal.Decimal("0.10")] * 3, pa.decimal128(5, 2), decimal.Decimal("0.30")),
    ("mean", [2**64 - 1, 2**64 - 1], U64, 2.0**64),
    ("mean", [4.0, 1.0, 5 * TIE, 2.0**-200, 0.0], F64, 1.0 + 2 * TIE),  # what two floats do not hold decides
    ("mean", [4.0, 1.0, 5 * TIE, -(2.0**-200), 0.0], F64, 1.0),
    ("mean", [4.0, 1.0, 5 * TIE, 0.0, 0.0], F64, 1.0),
    *(("product", values, F64, product) for values, product in PRODUCTS),
    ("product", [2**32, 2**30, 2], I64, OVERFLOW),
    ("product", [2**62, 4, 0], I64, 0),
    ("product", [2**62, -2], I64, MIN),
    ("product", [MIN, -1], I64, OVERFLOW),
    ("product", [MIN, MIN, 0], I64, 0),
    ("product", [2**32, 2**30], U64, 2**62),
    ("product", [2**64 - 1, 0], U64, 0),
    ("product", [2**63], U64, OVERFLOW),
    ("product", [2**64 - 1, 2**64 - 1], U64, OVERFLOW),
    ("range", [-128, 127], pa.int8(), 255),
    ("range", [2**64 - 1, 2**64 - 5], U64, 4),
    ("range", [MIN, 0], I64, OVERFLOW),
    ("range", [0, 2**63], U64, OVERFLOW),
    ("range", [MIN + 1, MAX], pa.timestamp("ns"), OVERFLOW),
    ("range", [NINES, LOWEST], DECIMAL, OVERFLOW),
    ("range", [NAN], F64, None),
    ("var", [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], F64, 30.0),
    ("var", [0.1] * 10, F64, 0.0),
    ("var", [2**60, 2**60 + 1], I64, 0.5),
    ("var", [-1, -1, 30932561706814301], I64, float(Fraction(30932561706814302**2, 3))),  # no floats on the way
    ("var", [5.0], F64, None),
    ("stddev", [5.0], F64, None),
    ("var_pop", [5.0], F64, 0.0),
    ("var_pop", [1e16, 1e16 + 2], F64, 1.0),
    ("var_pop", [2**64 - 1, 2**64 - 3], U64, 1.0),
    ("var_pop", [MIN, MIN + 2], I64, 1.0),
    ("var_pop", SPREAD, pa.decimal128(18, 2), 1e-4),
    ("stddev_pop", SPREAD, pa.decimal128(18, 2), 0.01),
    ("stddev_pop", [2, 4, 4, 4, 5, 5, 7, 9], I64, 2.0),
    ("skew", [1e9 + 1, 1e9 + 2, 1e9 + 4], F64, 0.9352195295828245),
    ("skew", [1, 2, 4], I64, 0.9352195295828245),
    ("skew", [0.1] * 10, F64, None),
    ("skew", [2**60, 2**60 + 1, 2**60 + 2], I64, 0.0),
    ("skew_pop", [1.0, 2.0], F64, 0.0),
    ("kurtosis_pop", [1.0, 2.0], F64, -2.0),
    ("kurtosis", [1, 2, 2, 3], I64, 1.5),
    ("kurtosis", [1e300, -1e300, 1e-300, 0.0], F64, 1.5),
    ("skew", [1.0, 2.0], F64, None),
    ("kurtosis", [1.0, 2.0, 4.0], F64, None),
    ("skew", [1.0, INF, 2.0], F64, NAN),
    ("skew", [NAN, NAN, NAN], F64, NAN),
    ("mad", [1.0, INF, INF], F64, NAN),
    ("mad", [1.0, 2.0, INF, INF, INF], F64, NAN),
    ("mad", [-INF, 1.0, 2.0, 4.0, INF], F64, 2.0),
    ("median", [INF, INF], F64, INF),
    *(("quantile", [float(i) for i in range(31)], F64, float(30 * q), q) for q in map(Fraction, ("0.1", "0.7", "0.9"))),
    ("quantile", [1.0, NAN], F64, NAN, HALF),
    ("quantile", [NAN, 1.0, 2.0], F64, 2.0, HALF),
    ("quantile", [-INF, 5.0], F64, -INF, HALF),
    ("quantile", [1.7e308, -1.7e308], F64, 0.0, HALF),
    ("count_distinct", MIXED, F64, 3),
    ("count_distinct", NANS, F64, 1),
    ("min_count", MIXED, F64, 2),
    ("mode", MIXED, F64, NAN),
    ("collect_distinct", MIXED, F64, [NAN, -0.0, 1.0]),
    ("max", [NAN], F64, None),
    ("max_count", [NAN], F64, 0),
]  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_at_the_limits(case: tuple[Any, ...]) -> None:
    function, values, dtype, answer, *literals = case
    if answer is OVERFLOW:
        with pytest.raises(PaneOverflow, match=rf"^{function}\(x\) does not fit .* in pane 0 \(column 'x'\)$"):
            one(function, values, dtype)
    else:
        assert repr(one(function, values, dtype, *literals)) == repr(answer)
    if function == "sum":
        assert repr(one("mean", values, dtype)) == repr(REFERENCE["mean"](pa.array(values, dtype).to_pylist()))


def test_a_product_of_many_large_and_small_factors_loses_little() -> None:
    factors = [LARGEST] * 40 + [1 / LARGEST] * 40
    assert math.isclose(one("product", factors, F64), math.prod(map(Fraction, factors)), rel_tol=1e-14)


def test_an_overflow_names_the_first_pane_and_pickles() -> None:
    rows = pa.RecordBatch.from_pydict({"amount": [1, MAX, 1, MAX]})
    bound = bind(AggregateCall("total", "sum", (Column("amount"),)), rows.schema)
    with pytest.raises(PaneOverflow) as caught:
        compute(bound, rows, Ranges(np.array([0, 1, 3]), np.array([1, 3, 4]), np.zeros(3, np.int64), True))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.pane, error.call, error.column, error.type) == (1, "sum(amount)", "amount", pa.int64())


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        ("mean", [pa.array([2**53 + 1, 2**53 + 1, 2**53 + 3, 2**53 + 3])]),
        ("mean", [pa.array([2.0**53, 2.0**53 + 2, 2.0**53 + 2, 2.0**53 + 4])]),
        ("wavg", [pa.array([2**53 + 1, 2**53 + 3, 2**54 + 2]), pa.array([1, 2, 3])]),
        ("var_pop", [pa.array([0.0, 2.0 * (2**27 + 1)])]),  # (2**27 + 1)**2 has 55 bits
        ("wavg", [pa.array([1.0, 2.0, 3.0]), pa.array([1e16, 1.0, -1e16 - 1])]),  # weights that sum to nothing
        ("wavg", [pa.array([1, 2, 3]), pa.array([2**62, -(2**62) + 1, -1])]),
        ("wavg", [pa.array([1, 2, 3]), pa.array([0.0, 0.0, 0.0])]),
    ],
)
def test_half_way_between_two_floats_rounds_to_even(function: str, columns: list[pa.Array]) -> None:
    hi = np.arange(1, len(columns[0]) + 1)
    check(
        function,
        pa.RecordBatch.from_arrays(columns, names=["c0", "c1"][: len(columns)]),
        Ranges(np.maximum(hi - 4, 0), hi, np.zeros(len(hi), np.int64), False),
        cuts=[1],
    )


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([2.0, 1.0, 3 * TIE], 1.0),
        ([2.0, 1.0, 9 * TIE], 1.0 + 4 * TIE),
        ([2.0, 1.0, 3 * TIE * (1 + 2.0**-50)], 1.0 + 2 * TIE),
        ([2.0, 1.0, 3 * TIE * (1 - 2.0**-50)], 1.0),
        ([-2.0, -1.0, -9 * TIE], -1.0 - 4 * TIE),
        ([2.0**60, 2.0**61, 9 * TIE * 2.0**60], 2.0**60 * (1.0 + 4 * TIE)),
    ],
)
def test_means_about_half_way_take_no_limbs_where_two_floats_are_the_sum(
    values: list[float], mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotients, "exactly", None)
    assert one("mean", values, F64) == mean == float(sum(map(Fraction, values)) / 3)


@pytest.mark.parametrize("function", ["var", "var_pop", "stddev", "stddev_pop"])
def test_long_windows_over_a_walk_and_one_far_value(function: str) -> None:
    """The first value is far from all others, so that distances from it are large for all panes that hold it."""
    values = np.append(1e12, np.cumsum(np.random.default_rng(3).normal(size=2999)))
    hi = np.arange(500, 3001, 250)
    panes = Ranges(np.maximum(hi - 1500, 0), hi, np.zeros(len(hi), np.int64), False)
    wanted = [REFERENCE[function](values[a:b].tolist()) for a, b in zip(panes.lo, panes.hi, strict=True)]
    assert answers(function, [pa.array(values)], panes) == wanted


@examples(30, deadline=None)
@given(st.lists(st.floats() | st.floats(-1e3, 1e3) | GRADED, max_size=30), st.lists(st.integers(0, 30), max_size=3))
def test_parts_of_a_float_sum_have_the_same_sum(values: list[float], cuts: list[int]) -> None:
    """Few floats stand for all: never more than there are, and one at least where there is any."""
    edges = np.array(sorted({0, len(values), *(c for c in cuts if c < len(values))}))
    given = np.array(values, np.float64)
    bounds, parts = parts_of(given, edges[:-1], edges[1:])
    whole = [
        float_sums(frozen(floats), Ranges(frozen(ends[:-1]), frozen(ends[1:]), frozen(ends[:-1]), True))
        for floats, ends in ((given, edges), (parts, bounds))
    ]
    assert whole[0].tobytes() == whole[1].tobytes()
    assert ((np.diff(bounds) <= np.diff(edges)) & (np.diff(bounds) > 0)).all() or not values
