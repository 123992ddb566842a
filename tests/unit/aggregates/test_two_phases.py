"""Aggregates of rows that follow one another merge: whatever they are cut into, the bits of all rows at once."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.aggregates.inputs import PaneOverflow
from wincli.windowing.aggregates.table import TABLE, bind, compute, in_two_phases, is_mergeable, split
from wincli.windowing.language.parser import parse_aggregate
from wincli.windowing.rows.membership import Ranges

HUGE = 2**62
FLOATS = [0.1, 1e16, -1e16, 1e300, -1e300, 5e-324, 1e-200, 3e-160, 0.0, -0.0, 1.5, 12.25, 3e7, None]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "x": (pa.float64(), FLOATS),
    "y": (pa.float64(), [0.1, 0.2, 1e-9, 12.25, 3e7, 1.0, 1.0, None]),
    "z": (pa.float64(), [*FLOATS, math.nan, math.inf, -math.inf]),
    "h": (pa.float32(), [0.1, 1e10, -0.0, 0.0, None]),
    "i": (pa.int64(), [HUGE, -HUGE, 2**53 + 1, 1, 0, 3, None]),
    "w": (pa.uint64(), [2**64 - 1, 2**63, 0, 7, None]),
    "d": (pa.decimal128(18, 2), [decimal.Decimal("9" * 16 + ".99"), decimal.Decimal("-0.01"), None]),
    "p": (pa.duration("us"), [1, -5, 2**40, None]),
    "t": (pa.timestamp("s"), [0, 3, 3, 9]),
    "s": (pa.string(), ["", "a", "b", None]),
    "f": (pa.bool_(), [True, False, None]),
    "l": (pa.list_(pa.int64()), [[1], [], [2, 3], None]),
}
OF_ALL = ["first", "last", "nth:0", "nth:2", "nth:-1", "nth:-3", "count"]
OF_SORTED = ["min", "max", "min_count", "max_count"]
OF_NUMBERS = ["var", "stddev", "var_pop", "stddev_pop", "mean", "sum"]
OF_HASHES = ["hll_sketch", "approx_count_distinct"]
TYPES = {"l": OF_ALL, "s": [*OF_ALL, *OF_SORTED, *OF_HASHES]}
TYPES |= {"f": [*OF_ALL, *OF_SORTED, *OF_HASHES, "bool_and", "bool_or", "sum"]}
TYPES |= {"p": [*OF_ALL, *OF_SORTED, "sum", "range"], "t": [*OF_ALL, *OF_SORTED, "range"]}


@st.composite
def calls(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(list(COLUMNS)))
    name, _, place = draw(
        st.sampled_from(
            TYPES.get(column, [*OF_ALL, *OF_SORTED, *OF_NUMBERS, *OF_NUMBERS, "range", "arg_min", "arg_max"])
        )
    ).partition(":")
    if name.startswith("arg"):
        return f"{name}({draw(st.sampled_from(list(COLUMNS)))}, {column})"
    return f"{name}({column}{', ' + place if place else ''})"


def value_of(call: str, rows: pa.RecordBatch, lo: list[int], hi: list[int]) -> Any:
    """What comes of panes, or the overflow that says which does not fit."""
    panes = Ranges(np.array(lo, np.int64), np.array(hi, np.int64), np.array(lo, np.int64), True)
    try:
        return compute(bind(parse_aggregate(call), rows.schema), rows, panes)
    except PaneOverflow as over:
        return str(over)


def merged(call: str, rows: pa.RecordBatch, edges: list[int], panes: list[int]) -> Any:
    """The same of parts of each pane: ``edges`` are those of all parts, ``panes`` how many parts each pane has."""
    bound = bind(parse_aggregate(call), rows.schema)
    lo, hi = np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64)
    then = in_two_phases(bound, "part")
    columns = split(bound, rows, Ranges(lo, hi, lo, True))
    parts = pa.RecordBatch.from_arrays(columns, names=list(then.columns))
    first = np.cumsum([0, *panes[:-1]])
    whole = Ranges(first, first + np.array(panes), first, True)
    try:
        return compute(then, parts, whole)
    except PaneOverflow as over:
        return str(over)


def same_bits(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    if pa.types.is_floating(one.type):  # of NaN, one is as good as another
        return str(one.to_pylist()) == str(other.to_pylist()) and one.null_count == other.null_count
    return bool(one.equals(other))


@examples(600)
@given(st.data(), calls())
def test_parts_of_panes_merge_to_the_bits_of_all_rows(data: st.DataObject, call: str) -> None:
    sizes = data.draw(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=3))
    count = sum(map(sum, sizes))
    arrays = [
        pa.array(data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)), dtype)
        for dtype, values in COLUMNS.values()
    ]
    rows = pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
    edges = np.cumsum([0, *(size for pane in sizes for size in pane)]).tolist()
    bounds = np.cumsum([0, *map(sum, sizes)]).tolist()
    whole = value_of(call, rows, bounds[:-1], bounds[1:])
    parts = merged(call, rows, edges, [len(pane) for pane in sizes])
    assert same_bits(parts, whole), (parts, whole)


def test_squares_beyond_the_range_of_floats_are_summed_exactly() -> None:
    """Squares of 1e200 overflow and those of 1e-200 underflow; a thousand others lose no bit beside them."""
    values = [1e200, 1e-200, *(math.sin(i) * 10.0 ** (i % 30 - 15) for i in range(1000)), -1e200, 1e-200]
    rows = pa.RecordBatch.from_arrays([pa.array(values)], names=["x"])
    for call in ("var(x)", "stddev_pop(x)"):
        whole = value_of(call, rows, [0], [len(values)])
        for edges in ([0, 1, len(values)], [0, 300, 301, 1003, len(values)]):
            assert same_bits(merged(call, rows, edges, [len(edges) - 1]), whole)
        some = merged(call, rows, [2, 500, 1002], [2])
        assert same_bits(some, value_of(call, rows, [2], [1002]))


@given(st.lists(st.sampled_from([0, 1, 5, 100, 384, 385, 386, 420, 5000]), min_size=1, max_size=4), st.integers(0, 400))
def test_sketches_of_many_values_merge(sizes: list[int], step: int) -> None:
    """Lists, sets and sketches of places; what 385 values share with one another is not 385 places."""
    values = np.concatenate([np.arange(size) + i * step for i, size in enumerate(sizes)])
    rows = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["i"])
    edges = np.cumsum([0, *sizes]).tolist()
    for call in ("hll_sketch(i)", "approx_count_distinct(i)"):
        parts = merged(call, rows, edges, [len(sizes)])
        assert same_bits(parts, value_of(call, rows, [0], [len(values)]))


SHAPES = {
    "far from 0": lambda rng, size: rng.normal(1e6, 1e-3, size),
    "of all sizes": lambda rng, size: 10.0 ** rng.uniform(-300, 300, size),
    "spread": lambda rng, size: rng.lognormal(0, 5, size),
    "cents": lambda rng, size: np.round(rng.gamma(2, 20, size), 2),
    "few": lambda rng, size: rng.integers(-1, 2, size).astype(float),
    "large integers": lambda rng, size: rng.integers(-(2**62), 2**62, size),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_variances_of_many_parts_have_the_bits_of_all_rows(shape: str) -> None:
    size, rng = 5000, np.random.default_rng(3)
    rows = pa.RecordBatch.from_arrays([pa.array(SHAPES[shape](rng, size))], names=["x"])
    edges = np.unique([0, size, *rng.integers(0, size, 600)])
    first = np.unique([0, *rng.integers(0, len(edges) - 1, 100)])
    panes = np.diff([*first, len(edges) - 1]).tolist()
    bounds = edges[[*first, -1]].tolist()
    for call in ("var(x)", "stddev(x)", "var_pop(x)", "stddev_pop(x)"):
        parts = merged(call, rows, edges.tolist(), panes)
        assert same_bits(parts, value_of(call, rows, bounds[:-1], bounds[1:]))


@pytest.mark.parametrize(
    ("call", "is_in_order", "is_merged"),
    [
        ("sum(x)", True, True),
        ("first(x)", False, True),
        ("var(i)", False, True),
        ("var(wide)", False, False),
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


def test_every_aggregate_in_two_phases_is_tried() -> None:
    tried = {*OF_ALL, *OF_SORTED, *OF_NUMBERS, *OF_HASHES, "bool_and", "bool_or", "range", "arg_min", "arg_max"}
    assert {name.partition(":")[0] for name in tried} == {
        name for name, aggregate in TABLE.items() if aggregate.phases is not None
    }
