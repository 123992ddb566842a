"""Instants on a grid: ticks at or after them, what lies a span later, and how they are told."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.tumbling import ticks_of
from wincli.windowing.clock.tick_grid import make_grid
from wincli.windowing.errors import ConfigError, DataError

TENTHS = st.integers(-(10**9), 10**9).map(lambda n: n / 10)
SPANS = st.integers(1, 10**6).map(lambda n: Fraction(n, 1000))


@given(st.lists(TENTHS, min_size=1), SPANS, st.booleans())
def test_a_float_moves_to_the_float_nearest_to_the_exact_sum(values: list[float], span: Fraction, back: bool) -> None:
    span = -span if back else span
    grid = make_grid(pa.float64(), abs(span), Fraction(0))
    moved = grid.later(grid.instants(np.array(values)), span)
    assert moved.tolist() == [float(Fraction(value) + span) for value in values]


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.timestamp("ms"), pa.decimal128(18, 1)])
@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 70), st.integers(-70, 70))
def test_first_ticks_are_at_or_after_and_none_is_between(
    kind: pa.DataType, values: list[int], period: int, origin: int
) -> None:
    grid = make_grid(kind, Fraction(period, 10), Fraction(origin, 10))
    measures = np.array(values) / 10 if pa.types.is_floating(kind) else np.array(values)
    instants = grid.instants(measures)
    ticks = grid.first_ticks(instants)
    at, before = (seconds(grid.bounds(ticks - step)) for step in (0, 1))
    assert all(a < now <= b for a, now, b in zip(before, seconds(grid.to_arrow(instants)), at, strict=True))


def seconds(column: pa.Array) -> list[Fraction]:
    """Instants as comparable numbers of one unit."""
    return [Fraction(value) for value in ticks_of(column)]


def test_spans_make_the_type_of_the_bounds_finer() -> None:
    #   whole seconds, ticks each 2 s, but rows go after 2.5 s
    grid = make_grid(pa.timestamp("s", "UTC"), Fraction(2), Fraction(0), Fraction(5, 2))
    gone = grid.later(grid.instants(np.array([1, 2])), Fraction(5, 2))
    assert grid.to_arrow(gone) == pa.array([3_500, 4_500], pa.timestamp("ms", "UTC"))
    assert grid.bounds(grid.first_ticks(gone)) == pa.array([4_000, 6_000], pa.timestamp("ms", "UTC"))


def test_ticks_between_the_places_of_a_decimal_are_floats() -> None:
    grid = make_grid(pa.decimal128(5, 1), Fraction(1), Fraction(0), Fraction(1, 20))
    assert grid.to_arrow(grid.later(grid.instants(np.array([3])), Fraction(1, 20))) == pa.array([0.35])
    assert grid.to_arrow(grid.instants(np.array([3]))) == pa.array([0.3])  # Arrow's own cast says 0.30000000000000004


def test_a_span_reaches_beyond_64_bit_like_a_period_does() -> None:
    near, far = (make_grid(pa.int64(), Fraction(1), Fraction(0), Fraction(span)) for span in (1, 2**62))
    assert near.instants(np.array([2**62])).tolist() == [2**62]
    with pytest.raises(DataError):
        far.instants(np.array([2**62]))


def test_floats_too_far_apart_for_a_span_and_spans_finer_than_a_nanosecond_are_errors() -> None:
    grid = make_grid(pa.float64(), Fraction(1), Fraction(0))
    assert grid.later(np.array([2.0**52]), Fraction(1)).tolist() == [2.0**52 + 1]
    for furthest in (2.0**54, 1e308 * 1.7, float("inf")):
        with pytest.raises(DataError):
            grid.later(np.array([0.0, furthest]), Fraction(1))
    with pytest.raises(ConfigError):
        make_grid(pa.timestamp("ns"), Fraction(1), Fraction(0), Fraction(1, 10**10))


def test_a_column_without_a_value_has_whole_numbers() -> None:
    grid = make_grid(pa.null(), Fraction(1, 2), Fraction(0))
    assert grid.type == pa.float64()
    assert make_grid(pa.null(), Fraction(1), Fraction(0)).bounds(np.empty(0, np.int64)).type == pa.int64()
