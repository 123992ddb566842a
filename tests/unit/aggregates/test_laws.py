"""Laws of the aggregates: each is what its row-at-a-time twin says, for any type, nulls, NaN and any panes."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import REFERENCE
from support.aggregate_checks import FEW, NUMBERS, SORTABLE, WILD, batch, call, check, run
from support.aggregate_laws import ANY_PANES, SEPARATORS, WEIGHTS, Law, laws, named
from wincli.windowing.aggregates import arithmetic, folds, live_trees, loops, order_statistics, pane_deltas
from wincli.windowing.aggregates.table import TABLE, Results, bind, compute, warm
from wincli.windowing.language.spec import Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges


def apart(*panes: tuple[int, int]) -> Ranges:
    """Half-open panes that share no row."""
    lo, hi = (np.array([pane[end] for pane in panes], np.int64) for end in (0, 1))
    return Ranges(lo, hi, np.zeros(len(panes), np.int64), True)


@st.composite
def samples(draw: st.DrawFn, *kinds: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.RecordBatch, Ranges]:
    """Columns c0, c1, .. and panes that share no row, some of them empty; or one of all rows."""
    size = draw(st.integers(0, 12))
    some = st.lists(st.integers(0, size), max_size=10).map(sorted)
    cuts = draw(some | st.just([0, size]))
    return batch(draw, size, *kinds), apart(*zip(cuts[::2], cuts[1::2], strict=False))


def test_every_aggregate_has_a_twin() -> None:
    assert list(REFERENCE) == list(TABLE)


def test_an_example_drawn() -> None:
    """Rows and panes, the second one empty, the last one of nothing but null.

    row     0    1    2    3    4    5
    x       3    -    1    1    2    -
    panes   [---------)
                      |
                      [-------------)
                                    [----)
    """
    rows = pa.RecordBatch.from_pydict({"x": pa.array([3, None, 1, 1, 2, None])})
    panes = apart((0, 2), (2, 2), (2, 5), (5, 6))
    assert run("count", rows, [], panes) == [1, 0, 3, 0]
    assert run("sum", rows, [], panes) == [3, None, 4, None]
    assert run("min", rows, [], panes) == [3, None, 1, None]
    assert run("min_count", rows, [], panes) == [1, 0, 2, 0]
    assert run("last", rows, [], panes) == [3, None, 2, None]
    assert run("median", rows, [], panes) == [3.0, None, 1.0, None]
    assert run("collect", rows, [], panes) == [[3], None, [1, 1, 2], None]


def test_count_of_rows_counts_nulls_too() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([None, 1, None])})
    bound = bind(call("count"), rows.schema)
    assert bound.columns == ()
    assert compute(bound, rows, apart((0, 2), (2, 2), (2, 3))).to_pylist() == [2, 0, 1]


@pytest.mark.parametrize(
    "law",
    [
        *ANY_PANES,
        *laws(NUMBERS, "product"),
        *laws(named("float32"), "wavg", beside=WEIGHTS),
        *laws(named("large string", "string view", "dictionary"), string_join=SEPARATORS),
        *laws(
            named("string", "list", "float64"),
            *("arg_min", "arg_max"),
            beside=named("small ints", "float64", "string", "timestamp", "decimal(38,5)"),
        ),
    ],
)
@FEW
@given(data=st.data())
def test_each_gives_what_its_twin_gives(law: Law, data: st.DataObject) -> None:
    law.check(data, samples)


@pytest.mark.parametrize(
    "function", ["sum", "mean", "var", "wavg", "quantile", "min", "mode", "collect", "string_join"]
)
@FEW
@given(data=st.data())
def test_a_pane_does_not_see_how_the_work_was_cut(function: str, data: st.DataObject) -> None:
    """The same bits from the whole batch, from a slice of it that just holds the pane, and from a copy of that."""
    kind = SORTABLE["string"] if function == "string_join" else (pa.float64(), WILD)
    rows, panes = data.draw(samples(*[kind] * (2 if function == "wavg" else 1)))
    literals: list[Any] = {"quantile": [Fraction(9, 10)], "string_join": ["-"]}.get(function, [])
    whole = run(function, rows, literals, panes)
    for lo, hi, value in zip(panes.lo, panes.hi, whole, strict=True):
        part = rows.slice(lo, hi - lo)
        copy = pa.RecordBatch.from_pylist(part.to_pylist(), rows.schema)
        assert repr(run(function, part, literals, apart((0, hi - lo)))) == repr([value])
        assert repr(run(function, copy, literals, apart((0, hi - lo)))) == repr([value])


@pytest.mark.parametrize("function", ["mode", "count_distinct", "collect_distinct"])
@pytest.mark.parametrize("kind", SORTABLE)
@FEW
@given(data=st.data())
def test_equal_values_are_found_in_short_and_long_panes(function: str, kind: str, data: st.DataObject) -> None:
    """Panes on both sides of the length from which values are encoded, one kind or both, and rows in no pane."""
    few = data.draw(samples(SORTABLE[kind]))[0].column(0)
    numbers = data.draw(st.randoms(use_true_random=False))
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 2, 15, 16, 17, 40]), max_size=4))
    ends = np.cumsum([2, *sizes]).tolist()
    values = numbers.choices(few.to_pylist(), k=ends[-1] + 1) if len(few) else []
    panes = apart(*pairwise(ends)) if values else apart((0, 0))
    check(function, pa.RecordBatch.from_pydict({"c0": pa.array(values, few.type)}), panes)


def test_long_panes_select_the_right_quantile() -> None:
    numbers = random.Random(7)
    shapes = {
        "random": [numbers.random() for _ in range(5000)],
        "ascending": [float(i) for i in range(5000)],
        "organ pipe": [float(min(i, 5000 - i)) for i in range(5000)],
        "equal": [1.0] * 5000,
    }
    for values in shapes.values():
        rows = pa.RecordBatch.from_pydict({"x": values})
        for share in (Fraction(0), Fraction(333, 1000), Fraction(95, 100), Fraction(1)):
            for panes in (apart((0, 5000)), apart((10, 4000), (4000, 4999))):
                check("quantile", rows, panes, [share])


def test_nothing_to_compute_gives_nothing() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([], pa.float64())})
    for name, aggregate in TABLE.items():
        if len(aggregate.parameters) == 1 and not name.startswith("bool"):
            assert run(name, rows, [], apart()) == []


@pytest.mark.parametrize("form", ["apart", "ranges", "lives"])
def test_what_calls_have_found_changes_no_value_of_others(form: str) -> None:
    """In any order, with columns of each other's, and with two columns where one was asked for before."""
    rows = pa.RecordBatch.from_pydict(
        {"f": [0.1, None, 0.3, 0.7], "g": [1e300, 0.5, -1e300, 2.0], "i": [1, 2, None, 4]}
    )
    calls = [call(f, Column(c)) for f in ("sum", "mean", "max", "stddev", "range") for c in ("f", "g", "i")]
    calls += [call(f, Column("f"), Column("g")) for f in ("wavg", "arg_max")]
    bound = [bind(c, rows.schema) for c in [*calls, *reversed(calls)]]
    found: Results = {}
    for one in bound:
        assert compute(one, rows, panes_of(form), None, found).equals(compute(one, rows, panes_of(form))), one.text
    assert found["f",]


@pytest.mark.parametrize("form", ["apart", "ranges", "lives"])
def test_each_kernel_is_compiled_for_one_layout_of_arrays(form: str) -> None:
    """After `warm`, no real call compiles anything: not for read-only, writable, sliced, strided or holed arrays."""
    schema = pa.schema({"f": pa.float64(), "i": pa.int64(), "s": pa.string()})
    functions = ("sum", "max", "mode", "median", "var", "product", "last", "min_count")
    calls = [call(f, Column(c)) for f in functions for c in ("f", "i")]
    texts = [call(f, Column("s")) for f in ("count_distinct", "min", "collect_distinct")]
    bound = [bind(c, schema) for c in [*calls, *texts, call("count"), call("wavg", Column("f"), Column("i"))]]
    warm(bound, schema, overlapping=form != "apart")
    before = compiled()
    for values in ([1.0, 2.0, 3.0, 4.0], [1.0, None, 3.0, None]):
        rows = pa.RecordBatch.from_arrays(
            [pa.array(values), pa.array(values).cast(pa.int64()), pa.array(values).cast(pa.string())], schema=schema
        )
        for one in bound:
            compute(one, rows, panes_of(form))
            compute(one, rows.slice(1), panes_of(form))
    assert compiled() == before


def panes_of(form: str) -> Membership:
    """Two panes of some form, in arrays of several layouts."""
    lo, hi, base = np.array([0, 9, 1, 9], np.int64)[::2], np.array([2, 3], np.int64), np.zeros(2, np.int64)
    hi.flags.writeable = False
    if form != "lives":
        return Ranges(lo, hi, base, form == "apart")
    return Memberships(lo, np.array([1, 0]), hi[::-1] - 1, np.array([0, 9, 2])[::2], np.array([0, 2]))


def compiled() -> int:
    modules = (loops, loops, arithmetic, folds, live_trees, pane_deltas, order_statistics)
    every = {name: value for module in modules for name, value in vars(module).items()}
    return sum(len(value.signatures) for value in every.values() if hasattr(value, "signatures"))
