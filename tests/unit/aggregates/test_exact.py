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

MAX, MIN = 2**63 - 1, -(2**63)
NINES = decimal.Decimal("9" * 38)
LOWEST = NINES.copy_negate()
NAN, INF, HALF = math.nan, math.inf, Fraction(1, 2)
F64, I64, U64, DECIMAL = pa.float64(), pa.int64(), pa.uint64(), pa.decimal128(38, 0)
OVERFLOW = "does not fit"


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
    ([5e-324, 5e-324], 1e-323),
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
SPREAD = [decimal.Decimal("1234567890123456.01"), decimal.Decimal("1234567890123456.03")]
MIXED = [NAN, -0.0, 0.0, NAN, 1.0]
ANSWERS: list[tuple[str, list[Any], pa.DataType, Any]] = [
    *(("sum", values, F64, total) for values, total in FLOAT_SUMS),
    *(("sum", *case) for case in WHOLE_SUMS),
    *(("sum", list(map(decimal.Decimal, values)), DECIMAL, total) for values, total in DECIMAL_SUMS),
    ("sum", [16777216.0, 1.0, 1.0], pa.float32(), 16777218.0),  # summed in 64 bit
    ("sum", [decimal.Decimal("0.10")] * 3, pa.decimal128(5, 2), decimal.Decimal("0.30")),
    ("mean", [2**64 - 1, 2**64 - 1], U64, 2.0**64),
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
    ("var", [5.0], F64, None),
    ("stddev", [5.0], F64, None),
    ("var_pop", [5.0], F64, 0.0),
    ("var_pop", [1e16, 1e16 + 2], F64, 1.0),
    ("var_pop", [2**64 - 1, 2**64 - 3], U64, 1.0),
    ("var_pop", [MIN, MIN + 2], I64, 1.0),
    ("var_pop", SPREAD, pa.decimal128(18, 2), 1e-4),
    ("stddev_pop", SPREAD, pa.decimal128(18, 2), 0.01),
    ("stddev_pop", [2, 4, 4, 4, 5, 5, 7, 9], I64, 2.0),
    ("median", [INF, INF], F64, INF),
    ("count_distinct", MIXED, F64, 3),
    ("min_count", MIXED, F64, 2),
    ("mode", MIXED, F64, NAN),
    ("collect_distinct", MIXED, F64, [NAN, -0.0, 1.0]),
    ("max", [NAN], F64, None),
    ("max_count", [NAN], F64, 0),
]


@pytest.mark.parametrize(("function", "values", "dtype", "answer"), ANSWERS)
def test_answers_at_the_limits(function: str, values: list[Any], dtype: pa.DataType, answer: Any) -> None:
    if answer is OVERFLOW:
        with pytest.raises(PaneOverflow, match=rf"^{function}\(x\) does not fit .* in pane 0 \(column 'x'\)$"):
            one(function, values, dtype)
    else:
        assert repr(one(function, values, dtype)) == repr(answer)
    if function == "sum":
        numbers = np.array(values, np.float64)
        exact = (
            to_float(sum(map(Fraction, values), Fraction(0)) / len(values)) if np.isfinite(numbers).all() else answer
        )
        assert repr(one("mean", values, dtype)) == repr(exact)


GRADED = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-1074, 970))
"""Floats of all sizes, with few bits or many."""


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1)
    | st.lists(st.sampled_from([2.0**53, 1.0, -1.0, 0.5, 2.0**-60, 2.0**54, -(2.0**53), 1e308, -1e308]), min_size=1)
    | st.lists(GRADED, min_size=1)
)
def test_a_float_sum_is_the_float_nearest_to_the_true_sum(values: list[float]) -> None:
    assert repr(one("sum", values, pa.float64())) == repr(to_float(sum(map(Fraction, values), Fraction(0))))


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


def test_an_overflow_names_the_first_pane_and_pickles() -> None:
    rows = pa.RecordBatch.from_pydict({"amount": [1, MAX, 1, MAX]})
    bound = bind(AggregateCall("total", "sum", (Column("amount"),)), rows.schema)
    with pytest.raises(PaneOverflow) as caught:
        compute(bound, rows, Ranges(np.array([0, 1, 3]), np.array([1, 3, 4]), np.zeros(3, np.int64), True))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.pane, error.call, error.column, error.type) == (1, "sum(amount)", "amount", pa.int64())


@pytest.mark.parametrize(
    ("values", "share", "answer"),
    [
        *(
            ([float(i) for i in range(31)], Fraction(share), float(30 * Fraction(share)))
            for share in ("0.1", "0.7", "0.9")
        ),
        ([1.0, NAN], HALF, NAN),
        ([NAN, 1.0, 2.0], HALF, 2.0),
        ([-INF, 5.0], HALF, -INF),
        ([1.7e308, -1.7e308], HALF, 0.0),
    ],
)
def test_places_of_quantiles_are_exact(values: list[float], share: Fraction, answer: float) -> None:
    """0.7 of 30 steps is place 21 and nothing beside it."""
    assert repr(one("quantile", values, F64, share)) == repr(answer)


def test_nan_of_any_payload_is_one_value() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000042], np.uint64)
    assert one("count_distinct", list(bits.view(np.float64)), pa.float64()) == 1
