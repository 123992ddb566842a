"""Aggregates of rows that follow one another merge: whatever they are cut into, the bits of all rows at once.

That all do so, over columns of every type and parts of few rows, is in `test_laws`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.aggregate_checks import apart, in_parts
from wincli.windowing.aggregates.table import bind, compute, is_mergeable
from wincli.windowing.language.parser import parse_aggregate


def check_parts(call: str, rows: pa.RecordBatch, panes: Sequence[tuple[int, int]], cuts: Sequence[int]) -> None:
    bound = bind(parse_aggregate(call), rows.schema)
    assert in_parts(bound, rows, apart(*panes), cuts).equals(compute(bound, rows, apart(*panes)))


def test_squares_beyond_the_range_of_floats_are_summed_exactly() -> None:
    """Squares of 1e200 overflow and those of 1e-200 underflow; a thousand others lose no bit beside them."""
    values = [1e200, 1e-200, *(math.sin(i) * 10.0 ** (i % 30 - 15) for i in range(1000)), -1e200, 1e-200]
    rows = pa.RecordBatch.from_arrays([pa.array(values)], names=["x"])
    for call in ("var(x)", "stddev_pop(x)", "skew(x)", "kurtosis_pop(x)"):
        for pane, cuts in (((0, len(values)), [1]), ((0, len(values)), [300, 301, 1003]), ((2, 1002), [500])):
            check_parts(call, rows, [pane], cuts)


@given(st.lists(st.sampled_from([0, 1, 5, 100, 384, 385, 386, 420, 5000]), min_size=1, max_size=4), st.integers(0, 400))
def test_sketches_of_many_values_merge(sizes: list[int], step: int) -> None:
    """Lists, sets and sketches of places; what 385 values share with one another is not 385 places."""
    values = np.concatenate([np.arange(size) + i * step for i, size in enumerate(sizes)])
    rows = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["i"])
    for call in ("hll_sketch(i)", "approx_count_distinct(i)"):
        check_parts(call, rows, [(0, len(values))], np.cumsum(sizes).tolist())


SHAPES: dict[str, Callable[[Any, int], Any]] = {
    "far from 0": lambda rng, size: rng.normal(1e6, 1e-3, size),
    "of all sizes": lambda rng, size: 10.0 ** rng.uniform(-300, 300, size),
    "spread": lambda rng, size: rng.lognormal(0, 5, size),
    "cents": lambda rng, size: np.round(rng.gamma(2, 20, size), 2),
    "few": lambda rng, size: rng.integers(-1, 2, size).astype(float),
    "large integers": lambda rng, size: rng.integers(-(2**62), 2**62, size),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_of_many_parts_have_the_bits_of_all_rows(shape: str) -> None:
    size, rng = 5000, np.random.default_rng(3)
    rows = pa.RecordBatch.from_arrays([pa.array(SHAPES[shape](rng, size))], names=["x"])
    cuts = np.unique([0, size, *rng.integers(0, size, 600)])
    bounds = np.unique([0, size, *rng.choice(cuts, 100)])
    panes = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    for call in ("var(x)", "stddev(x)", "var_pop(x)", "stddev_pop(x)", "skew(x)", "kurtosis(x)"):
        check_parts(call, rows, panes, cuts.tolist())


@pytest.mark.parametrize(
    ("call", "is_in_order", "is_merged"),
    [
        ("sum(x)", True, True),
        ("first(x)", False, True),
        ("var(i)", False, True),
        ("var(wide)", False, False),
        ("skew(wide)", True, True),
        ("rank(x)", False, False),
        ("sum(wide)", False, False),
        ("nth(x, 1000)", False, True),
        ("nth(x, -1001)", False, False),
        ("median(x)", False, False),
        ("product(x)", False, False),
        ("collect(x)", False, False),
    ],
)
def test_what_merges(call: str, is_in_order: bool, is_merged: bool) -> None:
    schema = pa.schema([("x", pa.float64()), ("i", pa.int64()), ("wide", pa.decimal256(70, 2))])
    bound = bind(parse_aggregate(call), schema)
    assert is_mergeable(bound, schema, are_neighbours=True) == is_merged
    assert is_mergeable(bound, schema, are_neighbours=False) == is_in_order
