"""The law of trees over shown entries: sums and extremes are those of each pane by itself."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.windowing.aggregates.inputs import entries_of
from wincli.windowing.aggregates.live_trees import live_extremes, live_sums
from wincli.windowing.rows.membership import Memberships, gathered

MANY = examples(60, deadline=None)


@st.composite
def crowds(draw: st.DrawFn) -> Memberships:
    """Up to three sequences of up to 40 panes and 60 entries, which enter and leave in any order."""
    enter, leave, first_entry, first_pane = [], [], [0], [0]
    for _ in range(draw(st.integers(1, 3))):
        begin, panes = first_pane[-1], draw(st.integers(0, 40))
        runs = st.tuples(st.integers(0, panes), st.integers(0, panes)).filter(lambda run: run[0] != run[1]).map(sorted)
        for low, high in draw(st.lists(runs, max_size=60)) if panes else []:
            enter.append(begin + low)
            leave.append(begin + high)
        first_entry.append(len(enter))
        first_pane.append(begin + panes)
    parts = (np.arange(len(enter)), enter, leave, first_entry, first_pane)
    found = entries_of(Memberships(*(np.array(part, np.int64) for part in parts)))
    assert isinstance(found, Memberships)
    return found


def contents(panes: Memberships) -> list[list[int]]:
    rows, bounds = gathered(panes, 0, len(panes))
    return [sorted(rows[bounds[p] : bounds[p + 1]].tolist()) for p in range(len(panes))]


def test_an_example_drawn() -> None:
    """Three leaves serve four entries: entry 3 takes the leaf that entry 1 leaves.

    pane       0    1    2    3
    entry 0    [--------------]     2.0
    entry 1    [----)               5.0
    entry 2         [---------)     nan
    entry 3         [---------]     1.0
    """
    enter, leave = np.array([0, 0, 1, 1]), np.array([4, 1, 3, 4])
    panes = entries_of(Memberships(np.arange(4), enter, leave, np.array([0, 4]), np.array([0, 4])))
    smallest, largest = live_extremes(np.array([2.0, 5.0, math.nan, 1.0]), panes)
    assert smallest.tolist() == [0, 3, 3, 3]
    assert largest.tolist() == [1, 0, 0, 0]
    sums, residuals = live_sums(np.array([2.0, 5.0, 0.25, 2.0**-60]), np.empty(0), panes)
    assert sums.tolist() == [7.0, 2.25, 2.25, 2.0]
    assert residuals.tolist() == [0.0, 2.0**-60, 2.0**-60, 2.0**-60]


@MANY
@given(st.data(), crowds())
def test_extremes_are_the_first_of_equals(data: st.DataObject, panes: Memberships) -> None:
    some = st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.inf, -math.inf, math.nan])
    size = len(panes.row)
    keys = np.array(data.draw(st.lists(some, min_size=size, max_size=size)), np.float64)
    smallest, largest = live_extremes(keys, panes)
    for p, entries in enumerate(contents(panes)):
        there = [i for i in entries if not math.isnan(keys[i])]
        assert smallest[p] == min(there, key=lambda i: (keys[i], i), default=-1)
        assert largest[p] == min(there, key=lambda i: (-keys[i], i), default=-1)


@MANY
@given(st.data(), crowds())
def test_extremes_of_whole_numbers_reach_both_ends(data: st.DataObject, panes: Memberships) -> None:
    ends = np.iinfo(np.int64)
    some = st.sampled_from([ends.min, ends.min + 1, 0, ends.max - 1, ends.max])
    size = len(panes.row)
    keys = np.array(data.draw(st.lists(some, min_size=size, max_size=size)), np.int64)
    smallest, largest = live_extremes(keys, panes)
    for p, entries in enumerate(contents(panes)):
        assert smallest[p] == min(entries, key=lambda i: (int(keys[i]), i), default=-1)
        assert largest[p] == min(entries, key=lambda i: (-int(keys[i]), i), default=-1)


@MANY
@given(st.data(), crowds())
def test_sums_that_are_proven_are_the_nearest(data: st.DataObject, panes: Memberships) -> None:
    some = st.floats(-1e6, 1e6) | st.sampled_from([1e300, -1e300, 1.0, 2.0**-70, -(2.0**-53), -0.0])
    size = len(panes.row)
    values = np.array(data.draw(st.lists(some, min_size=size, max_size=size)), np.float64)
    sums, residuals = live_sums(values, np.empty(0), panes)
    for p, entries in enumerate(contents(panes)):
        if not math.isnan(residuals[p]):
            assert sums[p] == math.fsum(values[entries].tolist())
            assert not entries or np.isclose(residuals[p], math.fsum([*values[entries].tolist(), -sums[p]]), rtol=1e-9)
