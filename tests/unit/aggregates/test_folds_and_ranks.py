"""The law of folds: what a pane gives depends on its own rows and their ranks, to the bit, and on nothing else.

So a run that goes on from a state, in which rows that no pane shows any more are gone, gives what one run over
everything gives.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import expected
from support.aggregate_checks import near, slack
from support.strategies import examples
from wincli.windowing.aggregates.folds import PRODUCT, SUM, State, answer, combined, fold, leaf, trie
from wincli.windowing.aggregates.inputs import Ranked, entries_of, frozen
from wincli.windowing.aggregates.loops import Floats
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.columns.arrays import Ints, Mask
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import (
    Membership,
    Memberships,
    Ranges,
    as_simplest,
    gathered,
    memberships_of,
    shown,
    take,
)

MANY = examples(60, deadline=None)
FUNCTIONS = ("sum", "mean", "wavg", "var", "stddev", "var_pop", "stddev_pop", "product", "min", "arg_max")
RULES = (SUM, PRODUCT)

CANCEL = st.sampled_from([1e200, -1e200, 1e100, -1e100, 1e40, 1.0, -1.0, 0.1, -0.0])
WILD = CANCEL | st.floats() | st.sampled_from([math.nan, math.inf, -math.inf])
VALUES = st.sampled_from([CANCEL, CANCEL | st.none(), WILD | st.none(), st.floats(0.5, 2.0) | st.none()])
"""What the values of one column are drawn from."""


@dataclass(frozen=True)
class Case:
    """Panes over all rows ever, and over some of them: those that the panes picked show, and perhaps more."""

    rows: pa.RecordBatch
    contents: Membership
    rank: Ints
    picks: Ints
    kept: Mask

    @property
    def rest(self) -> Membership:
        """The panes picked, over the rows kept."""
        some, before = take(self.contents, self.picks), np.append(0, np.cumsum(self.kept))
        if isinstance(some, Ranges):
            return replace(some, lo=before[some.lo], hi=before[some.hi], base=before[some.base])
        return replace(some, row=before[some.row])

    @property
    def some_rows(self) -> pa.RecordBatch:
        return self.rows.filter(pa.array(self.kept))


def ints(values: object) -> Ints:
    return np.array(values, np.int64)


@st.composite
def sliding(draw: st.DrawFn, begin: int, size: int) -> Ranges:
    """Ranges of one sequence whose bounds do not fall."""
    length, step = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    if draw(st.booleans()):
        hi = np.arange(step, size + 1, step)
        lo = np.maximum(hi - length, 0)
    else:
        cuts = st.lists(st.integers(0, size), min_size=4, max_size=4).map(sorted)
        one, other = ints(draw(cuts)), ints(draw(cuts))
        lo, hi = np.minimum(one, other), np.maximum(one, other)
    return Ranges(begin + lo, begin + hi, np.full(len(lo), begin), False)


@st.composite
def living(draw: st.DrawFn, begin: int, size: int) -> Memberships:
    """Lives of one sequence, in which rows come and go anywhere, some of them twice."""
    panes, row, enter, leave = draw(st.integers(1, 8)), [], [], []
    for i in range(size):
        edges = sorted(draw(st.lists(st.integers(0, panes), max_size=4, unique=True)))
        for low, high in zip(edges[::2], edges[1::2], strict=False):
            row.append(begin + i)
            enter.append(low)
            leave.append(high)
    return Memberships(ints(row), ints(enter), ints(leave), ints([0, len(row)]), ints([0, panes]))


def together(parts: list[Memberships]) -> Memberships:
    """Lives of several sequences, one after the other."""
    entries, panes = (np.cumsum([0, *counts]) for counts in zip(*((len(p.row), len(p)) for p in parts), strict=True))
    row = np.concatenate([p.row for p in parts])
    enter, leave = (
        np.concatenate([getattr(p, e) + n for p, n in zip(parts, panes, strict=False)]) for e in ("enter", "leave")
    )
    return Memberships(row, enter, leave, entries, panes)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to two sequences of panes of any form."""
    bounds = ints(np.cumsum([0, *draw(st.lists(st.integers(1, 24), min_size=1, max_size=2))]))
    spans = [(begin, end - begin) for begin, end in pairwise(bounds.tolist())]
    contents: Membership
    if draw(st.booleans()):
        contents = together([draw(living(*span)) for span in spans])
    else:
        parts = [draw(sliding(*span)) for span in spans]
        lo, hi, base = (np.concatenate([getattr(p, name) for p in parts]) for name in ("lo", "hi", "base"))
        contents = Ranges(lo, hi, base, False)
        contents = memberships_of(contents) if draw(st.booleans()) else contents
    size = int(bounds[-1])
    rank = np.arange(size) - np.repeat(bounds[:-1], np.diff(bounds))
    columns = [draw(st.lists(draw(VALUES), min_size=size, max_size=size)) for _ in "xw"]
    rows = pa.RecordBatch.from_arrays([pa.array(column, pa.float64()) for column in columns], names=["x", "w"])
    flags = st.lists(st.booleans(), min_size=len(contents), max_size=len(contents))
    first = draw(st.integers(0, len(contents)))
    picks = draw(st.sampled_from([np.arange(first, len(contents)), np.arange(first, len(contents))[:1]]))
    picks = np.flatnonzero(draw(flags)) if draw(st.booleans()) else picks
    extra = draw(st.just([False] * size) | st.lists(st.booleans(), min_size=size, max_size=size))
    return Case(rows, contents, rank, picks, shown(take(contents, picks), size) | np.array(extra, np.bool_))


def run(function: str, rows: pa.RecordBatch, contents: Membership, rank: Ints | None) -> list[float | None]:
    names = ["x", "w"] if function in {"wavg", "arg_max"} else ["x"]
    bound = bind(AggregateCall("out", function, tuple(map(Column, names))), rows.schema)
    return list(compute(bound, rows, contents, rank).to_pylist())


def bits(values: list[float | None]) -> list[bytes | None]:
    return [None if value is None else struct.pack("d", value) for value in values]


@pytest.mark.parametrize("function", FUNCTIONS)
@MANY
@given(case=cases())
def test_rows_that_no_pane_shows_need_not_be_there(function: str, case: Case) -> None:
    whole = run(function, case.rows, case.contents, case.rank)
    rest = run(function, case.some_rows, case.rest, case.rank[case.kept])
    assert bits(rest) == bits([whole[p] for p in case.picks])


def folded(rule: int, contents: Membership, rank: Ints, numbers: Floats, there: Mask) -> Floats:
    """Both floats of each pane, (2, P), given a number of each row, and whether it is no null."""
    contents = as_simplest(contents)
    entry = np.arange(len(numbers)) if contents.row is None else contents.row
    before = frozen(np.append(0, np.cumsum(there[entry])))
    ranked = Ranked(entries_of(contents), rank, contents.row, before[:0] if there.all() else before)
    return np.array(fold(rule, numbers[entry][there[entry]], np.empty(0), ranked))


def check_folds(rule: int, case: Case) -> None:
    random = np.random.default_rng(7)
    numbers = random.normal(size=len(case.rank)) * 10.0 ** random.integers(-9, 9, len(case.rank))
    there = case.rows.column("x").is_valid().to_numpy(zero_copy_only=False)
    whole = folded(rule, case.contents, case.rank, numbers, there)
    kept = case.kept
    rest = folded(rule, case.rest, case.rank[kept], numbers[kept], there[kept])
    assert rest.tobytes() == whole[:, case.picks].tobytes()


@pytest.mark.parametrize("rule", RULES)
@MANY
@given(case=cases())
def test_the_same_down_to_the_last_bit_of_the_rest(rule: int, case: Case) -> None:
    """Answers as they are before they are rounded, which tells apart what a rounded sum does not."""
    check_folds(rule, case)


@pytest.mark.parametrize("function", ["sum", "mean", "var", "min"])
@MANY
@given(case=cases())
def test_ranks_do_not_change_what_is_computed(function: str, case: Case) -> None:
    rows, bounds = gathered(case.contents, 0, len(case.contents))
    columns = [case.rows.column("x").to_pylist()]
    if any(v is not None and abs(v) > 1e100 for v in columns[0]):
        columns = [[None if v is None else math.copysign(1.0, v) for v in columns[0]]]
    batch = pa.RecordBatch.from_arrays([pa.array(columns[0], pa.float64())], names=["x"])
    wanted = expected(function, columns, [], [rows[a:b].tolist() for a, b in pairwise(bounds)])
    for have, want in zip(run(function, batch, case.contents, case.rank), wanted, strict=True):
        assert near(have, want, slack(function, columns)), (have, want)


@MANY
@given(case=cases())
def test_without_ranks_places_are_ranks(case: Case) -> None:
    """Of ranges of rows, places tell what ranks would."""
    if isinstance(case.contents, Ranges):
        for function in FUNCTIONS:
            whole = run(function, case.rows, case.contents, None)
            assert bits(whole) == bits(run(function, case.rows, case.contents, case.rank))


LONG = {
    "short": (np.maximum(np.arange(700) - 6, 0), np.arange(700) + 1),
    "long": (np.maximum(np.arange(700) - 255, 0), np.arange(700) + 1),
    "growing": (np.zeros(700, np.int64), np.arange(700) + 1),
    "shrinking": (np.arange(700), np.full(700, 700)),
}


@pytest.mark.parametrize("form", ["ranges", "late", "falling"])
@pytest.mark.parametrize("shape", list(LONG))
@pytest.mark.parametrize("rule", RULES)
def test_long_sequences_cut_anywhere(rule: int, shape: str, form: str) -> None:
    """Many pivots of all heights; what is before the first row of the panes that are left is gone."""
    ranges = Ranges(*LONG[shape], np.zeros(700, np.int64), False)
    forms: dict[str, Membership] = {"ranges": ranges, "late": with_holes(ranges), "falling": backwards(ranges)}
    contents = forms[form]
    for share in (0.0, 0.3):
        nulls = np.random.default_rng(6).random(700) < share
        rows = pa.RecordBatch.from_arrays([pa.array(np.zeros(700), mask=nulls)], names=["x"])
        for first in range(1, 700, 97):
            picks = np.arange(first, 700)
            check_folds(rule, Case(rows, contents, np.arange(700), picks, shown(take(contents, picks), 700)))


def backwards(panes: Ranges) -> Memberships:
    """The same panes of one sequence, the last of them first."""
    lives = memberships_of(panes)
    return replace(lives, enter=len(panes) - lives.leave, leave=len(panes) - lives.enter)


def with_holes(panes: Ranges) -> Memberships:
    """The same, but that some rows come three panes late, and then leave for one pane."""
    lives = memberships_of(panes)
    late = (lives.row % 7 == 3) & (lives.leave - lives.enter > 5)
    enter, leave = lives.enter + 3 * late, np.where(late, lives.enter + 4, lives.leave)
    row = np.append(lives.row, lives.row[late])
    enter, leave = np.append(enter, lives.enter[late] + 5), np.append(leave, lives.leave[late])
    order = np.lexsort([enter, row])
    return Memberships(row[order], enter[order], leave[order], ints([0, len(row)]), ints([0, len(panes)]))


def nested(ranks: list[int]) -> object:
    """Ranks in pairs of pairs: parted at the highest bit in which the first and the last differ."""
    if len(ranks) == 1:
        return ranks[0]
    bit = (ranks[0] ^ ranks[-1]).bit_length() - 1
    return tuple(nested([r for r in ranks if r >> bit & 1 == side]) for side in (0, 1))


@given(st.lists(st.integers(0, 40) | st.integers(0, 2**62), min_size=1, max_size=40).map(sorted))
def test_a_trie_parts_ranks_at_the_highest_bit_that_differs(ranks: list[int]) -> None:
    node, up, beside, root = trie(ints(ranks))
    at = dict(zip(node.tolist(), ranks, strict=True))

    def below(top: int) -> object:
        if top in at:
            return at[top]
        left, right = sorted(n for n in range(2 * len(at) - 1) if up[n] == top)
        assert (beside[left], beside[right], left < top < right) == (right, left, True)
        return below(left), below(right)

    assert up[root] == -1
    assert below(root) == nested(sorted(set(ranks)))


def test_a_trie_of_nothing() -> None:
    assert trie(ints([]))[3] == 0


Pairs: TypeAlias = "float | tuple[Pairs, Pairs]"


def multiplied(pairs: Pairs) -> State:
    """The state of numbers, combined in the pairs given."""
    if isinstance(pairs, tuple):
        return combined(PRODUCT, multiplied(pairs[0]), multiplied(pairs[1]))
    return leaf(PRODUCT, np.array([pairs]), np.empty(0), 0)


def both_floats(pairs: Pairs) -> list[list[float]]:
    return [[part] for part in answer(PRODUCT, multiplied(pairs))]


A, B, C, D = 2.3, 1.7, 1.4, 2.6
"""How a product of these associates, its rest tells."""


def test_nulls_are_no_holes_drawn() -> None:
    """Nulls have their places: the pane meets at rank 8, and so between its second and its third number.

    rank    5      6     7    8    9
    x       A      null  B    C    D
    pane    [-----------------------------)    (A * B) * (C * D)
    """
    numbers, there = np.array([A, 5.0, B, C, D]), np.array([True, False, True, True, True])
    pane = Ranges(ints([0]), ints([5]), ints([0]), False)
    late = ((A, (B, C)), D)  # at rank 8 before the last
    assert folded(PRODUCT, pane, np.arange(5, 10), numbers, there).tolist() == both_floats(((A, B), (C, D)))
    assert folded(PRODUCT, pane, np.arange(4, 9), numbers, there).tolist() == both_floats(late)
    assert both_floats(late) != both_floats(((A, B), (C, D)))


def test_holes_make_a_tree_drawn() -> None:
    """Four rows alone are neighbours, and are folded towards rank 4; with the one at rank 6 they are no neighbours.

    rank    0      1    2    3  6
    x       A      B    C    D  1
    panes   [-----------------)        A * (B * (C * D))
            [--------------------)     ((A * B) * (C * D)) * 1
    """
    numbers, there = np.array([A, B, C, D, 1.0]), np.ones(5, np.bool_)
    panes = Ranges(ints([0, 0]), ints([4, 5]), ints([0, 0]), False)
    alone, among = both_floats((A, (B, (C, D)))), both_floats((((A, B), (C, D)), 1.0))
    assert alone != among
    for form in (panes, memberships_of(panes)):
        found = folded(PRODUCT, form, ints([0, 1, 2, 3, 6]), numbers, there).tolist()
        assert found == [a + b for a, b in zip(alone, among, strict=True)]
