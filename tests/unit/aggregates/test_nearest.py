"""Means, deviations and weighted means are the nearest floats; products overflow at the end or not at all."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import REFERENCE
from support.strategies import examples
from wincli.windowing.aggregates import quotients
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges, gathered

SOME = examples(30, deadline=None)
DEVIATIONS = ("var", "var_pop", "stddev", "stddev_pop")
SUBNORMAL = 5e-324
LARGEST = 1.7976931348623157e308

Draw = Callable[[random.Random], Any]


def money(digits: int, scale: int) -> Draw:
    context = decimal.Context(prec=80)
    return lambda numbers: context.create_decimal(numbers.randrange(1 - 10**digits, 10**digits)).scaleb(-scale, context)


def any_float(numbers: random.Random) -> float:
    return math.ldexp(numbers.uniform(-1, 1), numbers.choice([-1074, -1030, -600, -300, 0, 3, 60, 500, 1000, 1024]))


KINDS: dict[str, tuple[pa.DataType, Draw]] = {
    "noise": (pa.float64(), lambda numbers: numbers.gauss(0, 1)),
    "far from 0": (pa.float64(), lambda numbers: 1e15 + numbers.randrange(4) / 8),
    "of all sizes": (pa.float64(), any_float),
    "subnormal": (pa.float64(), lambda numbers: numbers.randrange(-4, 4) * SUBNORMAL),
    "largest": (pa.float64(), lambda numbers: numbers.choice([LARGEST, -LARGEST, 1.0, 1e300])),
    "halves": (pa.float32(), lambda numbers: numbers.randrange(-9, 9) / 2),
    "small integers": (pa.int16(), lambda numbers: numbers.randrange(-3, 3)),
    "nanoseconds": (pa.int64(), lambda numbers: 1_700_000_000_000_000_000 + numbers.randrange(10**12)),
    "int64": (pa.int64(), lambda numbers: numbers.choice([-(2**63), 2**63 - 1, -1, numbers.randrange(2**60)])),
    "uint64": (pa.uint64(), lambda numbers: numbers.choice([2**64 - 1, 0, 1, numbers.randrange(2**64)])),
    "decimal(12,2)": (pa.decimal128(12, 2), money(12, 2)),
    "decimal(38,5)": (pa.decimal128(38, 5), money(38, 5)),
    "decimal(38,37)": (pa.decimal128(38, 37), money(38, 37)),
    "decimal(76,30)": (pa.decimal256(76, 30), money(76, 30)),
}


def forms(size: int) -> list[Membership]:
    """Panes that are apart, that slide, and with holes, over some rows."""
    cuts = np.array(sorted({0, size // 3, size // 2, size}))
    hi = np.arange(1, size + 1)
    slide = Ranges(np.maximum(hi - 5, 0), hi, np.zeros(size, np.int64), False)
    row = np.append(np.arange(size), 0)
    order = np.argsort(row, kind="stable")
    enter, leave = np.append(np.arange(size), size - 1), np.append(np.minimum(np.arange(size) + 4, size), size)
    leave[0] = min(2, size - 1) if size > 1 else size
    lives = Memberships(row[order], enter[order], leave[order], np.array([0, len(row)]), np.array([0, size]))
    return [Ranges(cuts[:-1], cuts[1:], cuts[:-1], True), slide, lives]


def check(function: str, *columns: tuple[pa.DataType, list[Any]]) -> None:
    """To the bit what the reference says, of panes of every form."""
    arrays = [pa.array(values, dtype) for dtype, values in columns]
    names = [f"c{i}" for i in range(len(arrays))]
    rows = pa.RecordBatch.from_arrays(arrays, names=names)
    bound = bind(AggregateCall("out", function, tuple(map(Column, names))), rows.schema)
    for contents in forms(len(arrays[0])):
        found = compute(bound, rows, contents).to_pylist()
        for pane, have in enumerate(found):
            picks = gathered(contents, pane, pane + 1)[0]
            want = REFERENCE[function](*[[array[i].as_py() for i in picks] for array in arrays])
            assert repr(have) == repr(want), (function, contents, pane)


def drawn(kind: str, size: int, seed: int, nulls: bool = False) -> tuple[pa.DataType, list[Any]]:
    numbers = random.Random(f"{kind} {seed}")
    dtype, draw = KINDS[kind]
    return dtype, [None if nulls and numbers.random() < 0.2 else draw(numbers) for _ in range(size)]


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("function", [*DEVIATIONS, "mean"])
def test_numbers_of_any_size_give_the_nearest_float(function: str, kind: str) -> None:
    for seed, size in enumerate((6, 13, 40)):
        check(function, drawn(kind, size, seed, nulls=size == 13))


@pytest.mark.parametrize("weights", ["noise", "small integers", "int64", "decimal(38,5)", "of all sizes"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_weighted_means_of_any_types_are_the_nearest_float(kind: str, weights: str) -> None:
    for seed, size in enumerate((6, 13)):
        check("wavg", drawn(kind, size, seed, nulls=size == 13), drawn(weights, size, seed + 1))


EXTREME = st.sampled_from([0.0, -0.0, 1.0, -1.0, 3.0, 1e16, 1e308, -1e308, LARGEST, SUBNORMAL, 2.0**-1022, 1e-160])
FLOATS = EXTREME | st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, None])


@pytest.mark.parametrize("function", [*DEVIATIONS, "mean"])
@SOME
@given(values=st.lists(FLOATS, min_size=2, max_size=12))
def test_extreme_floats_give_the_nearest_float(function: str, values: list[float | None]) -> None:
    check(function, (pa.float64(), values))


@SOME
@given(pairs=st.lists(st.tuples(FLOATS, FLOATS), min_size=2, max_size=12))
def test_extreme_weights_give_the_nearest_float(pairs: list[tuple[float | None, float | None]]) -> None:
    check("wavg", *((pa.float64(), list(column)) for column in zip(*pairs, strict=True)))


def test_integers_beyond_53_bits_are_no_floats_first() -> None:
    values = [-1, -1, 30932561706814301]
    rows = pa.RecordBatch.from_pydict({"x": values})
    bound = bind(AggregateCall("out", "var", (Column("x"),)), rows.schema)
    pane = Ranges(np.array([0]), np.array([3]), np.array([0]), True)
    assert compute(bound, rows, pane).to_pylist() == [float(Fraction(30932561706814302**2, 3))]


def test_half_way_between_two_floats_rounds_to_even() -> None:
    check("mean", (pa.int64(), [2**53 + 1, 2**53 + 1, 2**53 + 3, 2**53 + 3]))
    check("mean", (pa.float64(), [2.0**53, 2.0**53 + 2, 2.0**53 + 2, 2.0**53 + 4]))
    check("wavg", (pa.int64(), [2**53 + 1, 2**53 + 3, 2**54 + 2]), (pa.int64(), [1, 2, 3]))
    check("var_pop", (pa.float64(), [0.0, 2.0 * (2**27 + 1)]))  # (2**27 + 1)**2 has 55 bits


TIE = 2.0**-53  # half of the last place of 1.0


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
    assert mean_of(values) == mean == float(sum(map(Fraction, values)) / 3)


@pytest.mark.parametrize(("lost", "mean"), [(2.0**-200, 1.0 + 2 * TIE), (-(2.0**-200), 1.0), (0.0, 1.0)])
def test_what_two_floats_do_not_hold_decides_a_mean_half_way(lost: float, mean: float) -> None:
    assert mean_of([4.0, 1.0, 5 * TIE, lost, 0.0]) == mean


def mean_of(values: list[float]) -> float:
    rows = pa.RecordBatch.from_arrays([pa.array(values)], names=["x"])
    bound = bind(AggregateCall("out", "mean", (Column("x"),)), rows.schema)
    pane = Ranges(np.array([0]), np.array([len(values)]), np.array([0]), True)
    found: float = compute(bound, rows, pane)[0].as_py()
    return found


def test_weights_that_sum_to_nothing_give_null() -> None:
    check("wavg", (pa.float64(), [1.0, 2.0, 3.0]), (pa.float64(), [1e16, 1.0, -1e16 - 1]))
    check("wavg", (pa.int64(), [1, 2, 3]), (pa.int64(), [2**62, -(2**62) + 1, -1]))
    check("wavg", (pa.int64(), [1, 2, 3]), (pa.float64(), [0.0, 0.0, 0.0]))


@pytest.mark.parametrize("function", DEVIATIONS)
def test_long_windows_over_a_walk_and_one_far_value(function: str) -> None:
    """The first value is far from all others, so that distances from it are large for all panes that hold it."""
    random_numbers = np.random.default_rng(3)
    values = np.append(1e12, np.cumsum(random_numbers.normal(size=2999)))
    hi = np.arange(500, 3001, 250)
    contents = Ranges(np.maximum(hi - 1500, 0), hi, np.zeros(len(hi), np.int64), False)
    rows = pa.RecordBatch.from_pydict({"x": values})
    bound = bind(AggregateCall("out", function, (Column("x"),)), rows.schema)
    wanted = [REFERENCE[function](values[a:b].tolist()) for a, b in zip(contents.lo, contents.hi, strict=True)]
    assert compute(bound, rows, contents).to_pylist() == wanted


@pytest.mark.parametrize(
    ("values", "product"),
    [
        ([1e300, 1e300, 0.0], 0.0),
        ([1e300, -1e300, 0.0], -0.0),
        ([0.0, 1e300, 1e300], 0.0),
        ([2.0**1000, 2.0**1000, 2.0**-1000, 2.0**-1000], 1.0),
        ([2.0**-1000, 2.0**-1000, 2.0**1000, 2.0**1000], 1.0),
        ([2.0**-1074, 2.0**-1074, 2.0**1000, 2.0**1000], 2.0**-148),
        ([SUBNORMAL, 3.0], 3 * SUBNORMAL),
        ([2.0**-600, 2.0**-600, 3.0, 2.0**600], 3 * 2.0**-600),
        ([1e300, 1e300], math.inf),
        ([1e300, -1e300], -math.inf),
        ([1e-300, 1e-300], 0.0),
        ([math.inf, 1e-300, 1e-300], math.inf),
        ([math.inf, 0.0], math.nan),
        ([math.inf, -1e-300], -math.inf),
        ([1e300, 1e300, math.nan], math.nan),
        ([LARGEST] * 40 + [1 / LARGEST] * 40, None),
    ],
)
def test_products_leave_no_range_on_the_way(values: list[float], product: float | None) -> None:
    rows = pa.RecordBatch.from_pydict({"x": values})
    bound = bind(AggregateCall("out", "product", (Column("x"),)), rows.schema)
    lo, hi, size = np.array([0]), np.array([len(values)]), len(values)
    lives = Memberships(
        np.arange(size), (np.arange(size) < size - 1) * 1, np.full(size, 2), np.array([0, size]), np.array([0, 2])
    )
    for contents in (Ranges(lo, hi, lo, True), Ranges(lo, hi, lo, False), lives):
        (found,) = compute(bound, rows, contents)[-1:].to_pylist()
        if product is None:
            assert math.isclose(found, math.prod(map(Fraction, values)), rel_tol=1e-14)
        else:
            assert repr(found) == repr(product)
