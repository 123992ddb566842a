"""Laws of the aggregates: each is what its row-at-a-time twin says, for any type, nulls, NaN and any panes.

Panes share no row, or are ranges that slide, lives of rows, rows shown more than once. The twin computes every pane by
itself: what a pane gives must not depend on what else there is, to the bit.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import REFERENCE
from support.aggregate_checks import FEW, LAWS, LONG, SHAPES, SORTABLE, Kind, apart, batch, call, check, near, run
from support.strategies import examples
from wincli.windowing.aggregates import arithmetic, folds, live_trees, loops, order_statistics, pane_deltas
from wincli.windowing.aggregates.table import TABLE, Results, bind, compute, warm
from wincli.windowing.language.spec import Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges, memberships_of

MANY = examples(50, deadline=None)


@st.composite
def sliding(draw: st.DrawFn, size: int) -> tuple[list[int], list[int]]:
    """Ranges of one sequence of ``size`` rows whose bounds do not fall, some empty."""
    count = draw(st.integers(0, 8))
    cuts = st.lists(st.integers(0, size), min_size=count, max_size=count).map(sorted)
    some, others = draw(cuts), draw(cuts)
    return [min(pair) for pair in zip(some, others, strict=True)], [max(p) for p in zip(some, others, strict=True)]


@st.composite
def ranges(draw: st.DrawFn, size: int) -> Ranges:
    """Ranges of up to three sequences that share out ``size`` entries and stand in any order."""
    cuts = draw(st.lists(st.integers(1, size - 1), max_size=2, unique=True).map(sorted)) if size > 1 else []
    lo, hi, base = [], [], []
    for begin, end in draw(st.permutations(list(pairwise([0, *cuts, size])))):
        low, high = draw(sliding(end - begin))
        lo += [begin + place for place in low]
        hi += [begin + place for place in high]
        base += [begin] * len(low)
    return Ranges(*(np.array(a, np.int64) for a in (lo, hi, base)), False)


@st.composite
def lives(draw: st.DrawFn, rows: int) -> Memberships:
    """Lives in up to three sequences over ``rows`` rows; a row may live more than once."""
    row, enter, leave, first_entry, first_pane = [], [], [], [0], [0]
    for _ in range(draw(st.integers(1, 3))):
        begin = first_pane[-1]
        panes = draw(st.integers(0, 12))
        bound = st.integers(0, panes)
        runs = st.tuples(bound, bound).filter(lambda run: run[0] != run[1]).map(sorted)
        for low, high in draw(st.lists(runs, max_size=40)) if panes and rows else []:
            row.append(draw(st.integers(0, rows - 1)))
            enter.append(begin + low)
            leave.append(begin + high)
        first_entry.append(len(row))
        first_pane.append(begin + panes)
    return Memberships(*(np.array(a, np.int64) for a in (row, enter, leave, first_entry, first_pane)))


@st.composite
def samples_apart(draw: st.DrawFn, *kinds: Kind) -> tuple[pa.RecordBatch, Ranges]:
    """Columns c0, c1, .. and panes that share no row, some of them empty; or one of all rows."""
    size = draw(st.integers(0, 12))
    some = st.lists(st.integers(0, size), max_size=10).map(sorted)
    cuts = draw(some | st.just([0, size]))
    return batch(draw, size, *kinds), apart(*zip(cuts[::2], cuts[1::2], strict=False))


@st.composite
def samples_shared(draw: st.DrawFn, *kinds: Kind) -> tuple[pa.RecordBatch, Membership]:
    """Columns and panes: ranges of rows, ranges of other entries, lives, or ranges written as lives."""
    size = draw(st.integers(0, 20))
    rows = batch(draw, size, *kinds)
    form = draw(st.sampled_from(["ranges", "mapped", "lives", "lives of ranges"]))
    if form == "lives":
        return rows, draw(lives(size))
    if form == "mapped" and size:
        row = draw(st.lists(st.integers(0, size - 1), max_size=20))
        return rows, replace(draw(ranges(len(row))), row=np.array(row, np.int64))
    drawn = draw(ranges(size))
    return rows, memberships_of(drawn) if form == "lives of ranges" else drawn


def samples(*kinds: Kind) -> st.SearchStrategy[tuple[pa.RecordBatch, Membership]]:
    return samples_apart(*kinds) | samples_shared(*kinds) | samples_shared(*kinds)


# --- laws ---------------------------------------------------------------------------------------------------------


def test_every_aggregate_has_a_twin() -> None:
    assert list(REFERENCE) == [name for name in TABLE if not TABLE[name].reads]  # these have one of their own


@pytest.mark.parametrize(("functions", "columns"), LAWS)
@MANY
@given(data=st.data())
def test_each_gives_what_its_twin_gives_at_once_and_in_two_phases(
    functions: dict[str, st.SearchStrategy[Any] | None], columns: tuple[Kind, ...], data: st.DataObject
) -> None:
    rows, panes = data.draw(samples(*columns))
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    for function, literal in functions.items():
        drawn = () if literal is None else data.draw(literal)
        check(function, rows, panes, drawn if isinstance(drawn, tuple) else [drawn], cuts)


@pytest.mark.parametrize("function", ["mode", "count_distinct", "collect_distinct"])
@pytest.mark.parametrize("kind", SORTABLE)
@FEW
@given(data=st.data())
def test_equal_values_are_found_in_short_and_long_panes(function: str, kind: str, data: st.DataObject) -> None:
    """Panes on both sides of the length from which values are encoded, one kind or both, and rows in no pane."""
    few = data.draw(samples_apart(SORTABLE[kind]))[0].column(0)
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


@pytest.mark.parametrize("values", ["noise", "walk", "integers"])
@pytest.mark.parametrize("shape", LONG)
def test_long_sequences(shape: str, values: str) -> None:
    """Many pivots of all heights, at numbers so far from zero that variance would cancel."""
    numbers = random.Random(11)
    panes = LONG[shape]
    column: list[float] | list[int] = [1e9 + numbers.gauss(0, 1e-3) for _ in range(700)]
    if values == "walk":
        column = np.cumsum([numbers.gauss(0, 1) for _ in range(700)]).tolist()
    if values == "integers":
        column = [2**62 + numbers.randrange(-1000, 1000) for _ in range(700)]
    picks = np.unique(np.append(np.arange(0, len(panes), 41), len(panes) - 1))
    rows = pa.RecordBatch.from_pydict({"c0": column})
    for form in (panes, scattered(panes)):
        for function in ("mean", "var", "min", "median", "count_distinct", "mode", *SHAPES, "mad", "rank"):
            wanted = [
                REFERENCE[function](column[lo:hi]) for lo, hi in zip(panes.lo[picks], panes.hi[picks], strict=True)
            ]
            got = run(function, rows, [], form)
            for pick, want in zip(picks, wanted, strict=True):
                assert near(got[pick], want, 0.0), (function, pick)


def scattered(panes: Ranges) -> Memberships:
    """The same panes of one sequence, and one more in which the first row lives again: so they are no ranges."""
    lives, more = memberships_of(panes), len(panes)
    row, enter, leave = (
        [new, *old] for new, old in zip((0, more, more + 1), (lives.row, lives.enter, lives.leave), strict=True)
    )
    return Memberships(*map(np.array, (row, enter, leave, [0, len(row)], [0, more + 1])))


# --- examples -----------------------------------------------------------------------------------------------------


def test_lives_that_are_no_ranges_drawn() -> None:
    """The second row leaves before the first one, and the third comes back.

    pane    0    1    2    3
    row 0   [--------------)
    row 1        [----)
    row 2   [----)         [----
    """
    rows = pa.RecordBatch.from_pydict({"x": [10.0, 20.0, 40.0]})
    row, enter, leave = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 3]), np.array([3, 2, 1, 4])
    panes = Memberships(row, enter, leave, np.array([0, 4]), np.array([0, 4]))
    assert run("sum", rows, [], panes) == [50.0, 30.0, 10.0, 40.0]
    assert run("first", rows, [], panes) == [10.0, 10.0, 10.0, 40.0]
    assert run("last", rows, [], panes) == [40.0, 20.0, 10.0, 40.0]
    assert run("nth", rows, [Fraction(1)], panes) == [40.0, 20.0, None, None]
    assert run("var_pop", rows, [], panes) == [225.0, 25.0, 0.0, 0.0]
    assert run("median", rows, [], panes) == [25.0, 15.0, 10.0, 40.0]
    assert run("collect", rows, [], panes) == [[10.0, 40.0], [10.0, 20.0], [10.0], [40.0]]


def test_count_of_rows_counts_nulls_too() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([None, 1, None])})
    bound = bind(call("count"), rows.schema)
    assert bound.columns == ()
    assert compute(bound, rows, apart((0, 2), (2, 2), (2, 3))).to_pylist() == [2, 0, 1]
    panes = Ranges(np.array([0, 0, 1]), np.array([2, 3, 3]), np.zeros(3, np.int64), False)
    for form in (panes, memberships_of(panes)):
        assert compute(bound, rows, form).to_pylist() == [2, 3, 2]


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
