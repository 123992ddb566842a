"""Sketches of many values: the bytes of a reference, read by DataSketches. Those of few values are in `test_laws`."""

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

from references import sketches as reference
from support.aggregate_checks import apart, call, run
from wincli.windowing.aggregates.table import bind
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.spec import Column
from wincli.windowing.rows.membership import Ranges

SHARES = [Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000), Fraction(1)]


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["x"])


@pytest.mark.parametrize("size", [7, 8, 24, 25, 200, 201, 384, 385, 3_000, 20_000])
def test_sketches_of_many_values_are_those_of_their_twins(size: int) -> None:
    """In panes that overlap."""
    numbers = random.Random(size)
    floats = [numbers.gauss(0, 1) for _ in range(size)]
    panes = Ranges(np.array([0, size // 3]), np.full(2, size), np.zeros(2, np.int64), disjoint=False)
    for function, values in (
        *(("hll_sketch", values) for values in (floats, [f"user {n}" for n in range(size)])),
        *(
            ("kll_sketch", values)
            for values in (floats, sorted(floats), [numbers.randrange(1000) for _ in range(size)])
        ),
    ):
        twin = getattr(reference, function)
        assert run(function, column(values), [], panes) == [twin(values), twin(values[size // 3 :])]


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
