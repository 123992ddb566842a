"""Laws of the aggregates over panes that share rows: ranges that slide, lives of rows, rows shown more than once.

The twin computes every pane by itself. What a pane gives must not depend on what else there is, to the bit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
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
from support.aggregate_checks import NUMBERS, WILD, batch, call, near, run
from support.aggregate_laws import ANY_PANES, Law, laws, named
from support.strategies import examples
from wincli.windowing.aggregates import folds
from wincli.windowing.aggregates.inputs import Ranked, entries_of, halves
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.rows.membership import Membership, Memberships, Ranges, memberships_of

MANY = examples(40, deadline=None)
SAFE = st.floats(0.01, 100.0) | st.floats(-100.0, -0.01) | st.sampled_from([0.0, -0.0, math.inf, math.nan])
"""Factors whose products of twenty stay far from both ends of the floats."""
FACTORS = {**NUMBERS, **{f"float{w}": (NUMBERS[f"float{w}"][0], SAFE) for w in (16, 32, 64)}}


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
        panes = draw(st.integers(0, 6))
        bound = st.integers(0, panes)
        runs = st.tuples(bound, bound).filter(lambda run: run[0] != run[1]).map(sorted)
        for low, high in draw(st.lists(runs, max_size=8)) if panes and rows else []:
            row.append(draw(st.integers(0, rows - 1)))
            enter.append(begin + low)
            leave.append(begin + high)
        first_entry.append(len(row))
        first_pane.append(begin + panes)
    return Memberships(*(np.array(a, np.int64) for a in (row, enter, leave, first_entry, first_pane)))


@st.composite
def samples(draw: st.DrawFn, *kinds: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.RecordBatch, Membership]:
    """Columns c0, c1, .. and panes: ranges of rows, ranges of other entries, lives, or ranges written as lives."""
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


def sequences_of(contents: Membership) -> Iterator[tuple[slice, Membership]]:
    """Each sequence alone, as if there were no other, and which panes are its own."""
    if isinstance(contents, Ranges):
        starts = np.flatnonzero(np.diff(contents.base, prepend=-1))
        for first, stop in pairwise([*starts, len(contents)]):
            base = contents.base[first]
            row = np.arange(base, contents.hi[stop - 1]) if contents.row is None else contents.row[base:]
            lo, hi, none = contents.lo[first:stop] - base, contents.hi[first:stop] - base, np.zeros(stop - first, int)
            yield slice(first, stop), Ranges(lo, hi, none, False, row)
        return
    for s in range(len(contents.first_pane) - 1):
        (first, stop), (begin, end) = contents.first_pane[s : s + 2], contents.first_entry[s : s + 2]
        enter, leave = contents.enter[begin:end] - first, contents.leave[begin:end] - first
        bounds = np.array([0, end - begin]), np.array([0, stop - first])
        yield slice(first, stop), Memberships(contents.row[begin:end], enter, leave, *bounds)


def test_an_example_drawn() -> None:
    """Ranges that slide over two sequences.

    row     0    1    2    3    4    5    6
    x       3    -    1    1    2    2    5
    key     [-----------------------)[--------)
    panes   [---------)              [----)
                 [---------)              [---)
                      [-------------)
    """
    rows = pa.RecordBatch.from_pydict({"x": pa.array([3, None, 1, 1, 2, 2, 5])})
    lo, hi, base = np.array([0, 1, 2, 5, 6]), np.array([2, 3, 5, 6, 7]), np.array([0, 0, 0, 5, 5])
    for panes in (Ranges(lo, hi, base, False), memberships_of(Ranges(lo, hi, base, False))):
        assert run("count", rows, [], panes) == [1, 1, 3, 1, 1]
        assert run("sum", rows, [], panes) == [3, 1, 4, 2, 5]
        assert run("max", rows, [], panes) == [3, 1, 2, 2, 5]
        assert run("median", rows, [], panes) == [3.0, 1.0, 1.0, 2.0, 5.0]
        assert run("collect", rows, [], panes) == [[3], [1], [1, 1, 2], [2], [5]]


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


@pytest.mark.parametrize(
    "law",
    [
        *ANY_PANES,
        *laws(FACTORS, "product"),
        *laws(named("string", "list"), "arg_min", "arg_max", beside=named("small ints", "float64", "string", "int64")),
    ],
)
@MANY
@given(data=st.data())
def test_each_gives_what_its_twin_gives(law: Law, data: st.DataObject) -> None:
    law.check(data, samples)


def test_count_of_rows_counts_nulls_too() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([None, 1, None])})
    bound = bind(call("count"), rows.schema)
    panes = Ranges(np.array([0, 0, 1]), np.array([2, 3, 3]), np.zeros(3, np.int64), False)
    assert (
        compute(bound, rows, panes).to_pylist() == compute(bound, rows, memberships_of(panes)).to_pylist() == [2, 3, 2]
    )


@pytest.mark.parametrize("function", ["sum", "mean", "var", "wavg", "product", "median", "min", "mode"])
@MANY
@given(data=st.data())
def test_a_sequence_does_not_see_the_others(function: str, data: st.DataObject) -> None:
    """The same bits from all sequences together and from each one alone."""
    rows, panes = data.draw(samples(*[(pa.float64(), WILD)] * (2 if function == "wavg" else 1)))
    whole = run(function, rows, [], panes)
    for mine, alone in sequences_of(panes):
        assert repr(run(function, rows, [], alone)) == repr(whole[mine])


STEPS = {
    "short": lambda n: (np.maximum(np.arange(n) - 6, 0), np.arange(n) + 1),
    "long": lambda n: (np.maximum(np.arange(n) - 255, 0), np.arange(n) + 1),
    "growing": lambda n: (np.zeros(n, np.int64), np.arange(n) + 1),
    "shrinking": lambda n: (np.arange(n), np.full(n, n)),
    "leaping": lambda n: (
        np.arange(0, n - 60, 7),
        np.arange(0, n - 60, 7) + np.arange(len(range(0, n - 60, 7))) % 3 * 17,
    ),
}


@pytest.mark.parametrize("rule", [folds.SUM, folds.PRODUCT])
@pytest.mark.parametrize("shape", list(STEPS))
def test_a_pane_does_not_see_the_other_panes(shape: str, rule: int) -> None:
    """The same state, to the last bit of its rest, for a range whichever ranges of its sequence came before."""
    values = np.random.default_rng(5).uniform(0.5, 2.0, 700)
    lo, hi = STEPS[shape](700)
    panes = entries_of(Ranges(lo, np.maximum.accumulate(hi), np.zeros(len(lo), np.int64), False))
    whole = np.array(folds.fold(rule, *halves(values), Ranked(panes)))
    for pick in range(0, len(lo), 7):
        alone = entries_of(Ranges(panes.lo[pick:][:1], panes.hi[pick:][:1], panes.base[:1], False))
        assert (
            np.array(folds.fold(rule, *halves(values), Ranked(alone))).tobytes() == whole[:, pick : pick + 1].tobytes()
        )


@pytest.mark.parametrize("rule", [folds.SUM, folds.PRODUCT])
def test_ranges_among_lives_are_folded_as_ranges(rule: int) -> None:
    """A sequence of ranges gives the same bits beside one whose panes are no ranges."""
    values = np.random.default_rng(5).uniform(0.5, 2.0, 200)
    lo, hi = STEPS["long"](200)
    panes = Ranges(lo, hi, np.zeros(200, np.int64), False)
    one, other = memberships_of(panes), scattered(panes)
    enter, leave = (np.append(getattr(one, e), getattr(other, e) + 200) for e in ("enter", "leave"))
    row, bounds = np.append(one.row, other.row), (np.array([0, 200, 401]), np.array([0, 200, 401]))
    both = np.array(folds.fold(rule, *halves(values[row]), Ranked(entries_of(Memberships(row, enter, leave, *bounds)))))
    assert both[:, :200].tobytes() == np.array(folds.fold(rule, *halves(values), Ranked(entries_of(panes)))).tobytes()
    assert np.isclose(both.sum(axis=0)[200:400], both.sum(axis=0)[:200], rtol=1e-15).all()


@pytest.mark.parametrize("values", ["noise", "walk", "integers"])
@pytest.mark.parametrize("shape", list(STEPS))
def test_long_sequences(shape: str, values: str) -> None:
    """Many pivots of all heights, at numbers so far from zero that variance would cancel."""
    numbers = random.Random(11)
    lo, hi = STEPS[shape](700)
    panes = Ranges(lo, np.maximum.accumulate(hi), np.zeros(len(lo), np.int64), False)
    column: list[float] | list[int] = [1e9 + numbers.gauss(0, 1e-3) for _ in range(700)]
    if values == "walk":
        column = np.cumsum([numbers.gauss(0, 1) for _ in range(700)]).tolist()
    if values == "integers":
        column = [2**62 + numbers.randrange(-1000, 1000) for _ in range(700)]
    picks = np.unique(np.append(np.arange(0, len(lo), 41), len(lo) - 1))
    rows = pa.RecordBatch.from_pydict({"c0": column})
    for form in (panes, scattered(panes)):
        for function in ("mean", "var", "min", "median", "count_distinct", "mode"):
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
