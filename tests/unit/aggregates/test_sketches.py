"""Sketches: the bytes of a reference, read by DataSketches, the same however the work was cut."""

from __future__ import annotations

import importlib.util
import random
import sys
from fractions import Fraction
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import sketches as reference
from support.aggregate_checks import FEW, NUMBERS, SORTABLE, WILD, call, run
from wincli.windowing.aggregates.table import bind
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.spec import Column
from wincli.windowing.rows.membership import Ranges

HASHABLE = [
    "int32", "int64", "uint16", "uint64", "float64", "float32", "bool", "date32", "date64", "timestamp",
    "timestamp with zone", "string", "large string", "binary", "fixed binary",
]  # fmt: skip
SHARES = [Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000), Fraction(1)]


def apart(*panes: tuple[int, int]) -> Ranges:
    lo, hi = np.array(panes, np.int64).reshape(-1, 2).T
    return Ranges(lo, hi, np.zeros(len(panes), np.int64), disjoint=True)


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["x"])


@st.composite
def samples(draw: st.DrawFn, kind: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.RecordBatch, Ranges]:
    values = draw(st.lists(kind[1] | st.none(), max_size=30)) * draw(st.sampled_from([1, 1, 40]))
    cuts = draw(st.lists(st.integers(0, len(values)), max_size=8).map(sorted) | st.just([0, len(values)]))
    return column(values, kind[0]), apart(*zip(cuts[::2], cuts[1::2], strict=False))


def panes_of(rows: pa.RecordBatch, panes: Ranges) -> list[list[Any]]:
    return [rows.column(0).to_pylist()[lo:hi] for lo, hi in zip(panes.lo, panes.hi, strict=True)]


@pytest.mark.parametrize("kind", HASHABLE)
@FEW
@given(data=st.data())
def test_a_sketch_of_different_values_is_that_of_its_twin(kind: str, data: st.DataObject) -> None:
    rows, panes = data.draw(samples(SORTABLE[kind]))
    wanted = panes_of(rows, panes)
    assert run("hll_sketch", rows, [], panes) == [reference.hll_sketch(pane) for pane in wanted]
    assert run("approx_count_distinct", rows, [], panes) == [reference.approx_count_distinct(p) for p in wanted]


@pytest.mark.parametrize("kind", ["small ints", "int64", "float64", "float32", "float16"])
@FEW
@given(data=st.data())
def test_a_sketch_of_a_distribution_is_that_of_its_twin(kind: str, data: st.DataObject) -> None:
    rows, panes = data.draw(samples(NUMBERS[kind]))
    wanted = panes_of(rows, panes)
    assert run("kll_sketch", rows, [], panes) == [reference.kll_sketch(pane) for pane in wanted]
    share = data.draw(st.sampled_from(SHARES))
    found = run("approx_quantile", rows, [share], panes)
    assert repr(found) == repr([reference.approx_quantile(pane, share) for pane in wanted])


@pytest.mark.parametrize("size", [7, 8, 24, 25, 200, 201, 384, 385, 3_000, 20_000])
def test_sketches_of_many_values_are_those_of_their_twins(size: int) -> None:
    numbers = random.Random(size)
    floats = [numbers.gauss(0, 1) for _ in range(size)]
    for values in (floats, [f"user {n}" for n in range(size)]):
        (found,) = run("hll_sketch", column(values), [], apart((0, size)))
        assert found == reference.hll_sketch(values)
    for values in (floats, sorted(floats), [numbers.randrange(1000) for _ in range(size)]):
        (found,) = run("kll_sketch", column(values), [], apart((0, size)))
        assert found == reference.kll_sketch(values)


@pytest.mark.parametrize("size", [1, 7, 100, 384, 5_000, 200_000])
def test_datasketches_reads_what_is_written_and_agrees(size: int) -> None:
    """A sketch that DataSketches makes of the same values adds nothing to a union with ours."""
    values = np.random.default_rng(size).integers(0, 2**40, size)
    (hll,) = run("hll_sketch", column(values), [], apart((0, size)))
    (estimate,) = run("approx_count_distinct", column(values), [], apart((0, size)))
    ours, theirs = datasketches.hll_sketch.deserialize(hll), datasketches.hll_sketch(12, datasketches.HLL_8)
    for value in values.tolist():
        theirs.update(value)
    assert round(ours.get_estimate()) == estimate
    alone, both = datasketches.hll_union(12), datasketches.hll_union(12)
    for union, sketches in ((alone, [theirs, theirs]), (both, [theirs, ours])):
        for sketch in sketches:
            union.update(sketch)
    assert both.get_estimate() == alone.get_estimate()
    distinct = len(set(values.tolist()))
    assert abs(estimate - distinct) <= 0.05 * distinct

    floats = values.astype("f8")
    (kll,) = run("kll_sketch", column(floats), [], apart((0, size)))
    read = datasketches.kll_doubles_sketch.deserialize(kll)
    assert (read.n, read.k, read.get_min_value(), read.get_max_value()) == (size, 200, floats.min(), floats.max())
    for share in SHARES:
        (found,) = run("approx_quantile", column(floats), [share], apart((0, size)))
        assert found == read.get_quantile(float(share), True)
        ranks = ((floats < found).mean(), (floats <= found).mean())
        assert ranks[0] - 0.03 <= share <= ranks[1] + 0.03


@FEW
@given(data=st.data())
def test_a_pane_does_not_see_how_the_work_was_cut(data: st.DataObject) -> None:
    rows, panes = data.draw(samples((pa.float64(), WILD)))
    for function, literals in (("hll_sketch", []), ("kll_sketch", []), ("approx_quantile", [Fraction(9, 10)])):
        whole = run(function, rows, literals, panes)
        for lo, hi, value in zip(panes.lo, panes.hi, whole, strict=True):
            part = rows.slice(lo, hi - lo)
            assert repr(run(function, part, literals, apart((0, hi - lo)))) == repr([value])


def test_the_order_of_values_changes_no_sketch_of_different_values() -> None:
    values = [float(n % 700) for n in range(2_000)]
    shuffled = random.Random(1).sample(values, len(values))
    panes = apart((0, len(values)))
    assert run("hll_sketch", column(values), [], panes) == run("hll_sketch", column(shuffled), [], panes)


def test_panes_that_overlap_show_each_its_own_rows() -> None:
    values = [float(n % 900) for n in range(3_000)]
    lo = np.arange(0, 2_000, 10)
    panes = Ranges(lo, lo + 1_000, np.zeros(len(lo), np.int64), disjoint=False)
    for function in ("hll_sketch", "kll_sketch"):
        found = run(function, column(values), [], panes)
        wanted = [run(function, column(values[at : at + 1_000]), [], apart((0, 1_000)))[0] for at in lo.tolist()]
        assert found == wanted


def test_equal_values_of_different_types_are_one_value() -> None:
    panes = apart((0, 3))
    small, large = ([1, 2, 3], pa.int8()), ([1, 2, 3], pa.int64())
    assert run("hll_sketch", column(*small), [], panes) == run("hll_sketch", column(*large), [], panes)
    assert run("approx_count_distinct", column([0.0, -0.0, 1.0]), [], panes) == [2]
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000123], np.uint64).view("f8")
    assert run("approx_count_distinct", column(pa.array(nans)), [], panes) == [1]
    assert run("approx_count_distinct", column(["", "a", "a"]), [], panes) == [1], "DataSketches skips the empty text"


@pytest.mark.parametrize("function", ["hll_sketch", "approx_count_distinct", "kll_sketch"])
def test_values_without_one_form_are_refused(function: str) -> None:
    for kind in (pa.list_(pa.int64()), pa.duration("s"), pa.time32("s")):
        with pytest.raises(ConfigError, match=f"{function} needs"):
            bind(call(function, Column("x")), pa.schema([("x", kind)]))


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[bind.__module__], "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install '.\[sketch\]'"):
        bind(call("approx_count_distinct", Column("x")), pa.schema([("x", pa.int64())]))
    assert bind(call("hll_sketch", Column("x")), pa.schema([("x", pa.int64())])).type == pa.binary()
    assert importlib.util.find_spec("datasketches") is not None
