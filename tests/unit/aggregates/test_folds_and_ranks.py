"""The law of folds: what a pane gives depends on its own rows and their ranks, to the bit, and on nothing else.

So a run that goes on from a state, in which rows that no pane shows any more are gone, gives what one run over
everything gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.aggregates import expected
from support.aggregate_checks import EXACT, LONG, call, rows_of
from support.strategies import examples
from wincli.windowing.aggregates.folds import NOTHING, PRODUCT, SUM, State, answer, combined, fold, leaf
from wincli.windowing.aggregates.inputs import Ranked, entries_of, frozen
from wincli.windowing.aggregates.table import bind, compute
from wincli.windowing.columns.arrays import Ints, Mask
from wincli.windowing.language.spec import Column
from wincli.windowing.rows.membership import Membership, Memberships, Ranges, as_simplest, memberships_of, shown, take

MANY = examples(60, deadline=None)
FUNCTIONS = ("sum", "mean", "wavg", "var", "stddev", "var_pop", "stddev_pop", "product", "min", "arg_max", "median",
             "mode", "collect")  # fmt: skip
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


def ints(values: object) -> Ints:
    return np.array(values, np.int64)


@st.composite
def ranges(draw: st.DrawFn, begin: int, size: int, disjoint: bool) -> Ranges:
    """Ranges of one sequence whose bounds do not fall, or that share no row."""
    length, step = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    cuts = st.lists(st.integers(0, size), min_size=4, max_size=4).map(sorted)
    if disjoint:
        lo, hi = ints(draw(cuts)).reshape(2, 2).T
    elif draw(st.booleans()):
        hi = np.arange(step, size + 1, step)
        lo = np.maximum(hi - length, 0)
    else:
        one, other = ints(draw(cuts)), ints(draw(cuts))
        lo, hi = np.minimum(one, other), np.maximum(one, other)
    return Ranges(begin + lo, begin + hi, np.full(len(lo), begin), disjoint)


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
    """Up to two sequences of panes of any form, over rows that are a slice of others."""
    bounds = ints(np.cumsum([0, *draw(st.lists(st.integers(1, 24), min_size=1, max_size=2))]))
    spans = [(begin, end - begin) for begin, end in pairwise(bounds.tolist())]
    form = draw(st.sampled_from(["lives", "lives", "ranges", "ranges as lives", "apart"]))
    contents: Membership
    if form == "lives":
        contents = together([draw(living(*span)) for span in spans])
    else:
        parts = [draw(ranges(*span, form == "apart")) for span in spans]
        lo, hi, base = (np.concatenate([getattr(p, name) for p in parts]) for name in ("lo", "hi", "base"))
        contents = Ranges(lo, hi, base, form == "apart")
        contents = memberships_of(contents) if form == "ranges as lives" else contents
    size = int(bounds[-1])
    rank = np.arange(size) - np.repeat(bounds[:-1], np.diff(bounds))
    columns = [draw(st.lists(draw(VALUES), min_size=size, max_size=size)) for _ in "xw"]
    rows = pa.RecordBatch.from_arrays([pa.array([7.0, *column], pa.float64()) for column in columns], names=["x", "w"])
    flags = st.lists(st.booleans(), min_size=len(contents), max_size=len(contents))
    first = draw(st.integers(0, len(contents)))
    picks = draw(st.sampled_from([np.arange(first, len(contents)), np.arange(first, len(contents))[:1]]))
    picks = np.flatnonzero(draw(flags)) if draw(st.booleans()) else picks
    extra = draw(st.just([False] * size) | st.lists(st.booleans(), min_size=size, max_size=size))
    kept = shown(take(contents, picks), size) | np.array(extra, np.bool_)
    return Case(rows.slice(1), contents, rank, picks, kept)


def run(function: str, rows: pa.RecordBatch, contents: Membership, rank: Ints | None) -> list[str]:
    """The value of each pane, as a text that tells floats apart."""
    names = ["x", "w"] if function in {"wavg", "arg_max"} else ["x"]
    values = compute(bind(call(function, *map(Column, names)), rows.schema), rows, contents, rank)
    return [repr(value) for value in values.to_pylist()]


@pytest.mark.parametrize("function", FUNCTIONS)
@MANY
@given(case=cases())
def test_what_a_pane_gives_depends_on_its_own_rows_alone(function: str, case: Case) -> None:
    """Rows that no pane shows need not be there; of ranges of rows, places tell what ranks would."""
    whole = run(function, case.rows, case.contents, case.rank)
    rest = run(function, case.rows.filter(pa.array(case.kept)), case.rest, case.rank[case.kept])
    assert rest == [whole[p] for p in case.picks]
    if isinstance(case.contents, Ranges):
        assert run(function, case.rows, case.contents, None) == whole
    if function in EXACT:
        columns = [column.to_pylist() for column in case.rows.columns][: 1 + (function == "wavg")]
        assert whole == [repr(value) for value in expected(function, columns, [], rows_of(case.contents))]


# --- how a fold associates ----------------------------------------------------------------------------------------

Pairs: TypeAlias = "int | tuple[Pairs, Pairs]"


def in_pairs(ranks: list[int]) -> Pairs:
    """Which ranks of a pane are combined with which, in pairs of pairs.

    Without holes all before the pivot, from the last of them down, then all behind it, from the first one up. With
    holes they are parted at the highest bit in which the first and the last differ, and each part again.
    """
    if len(ranks) == 1:
        return ranks[0]
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        pivot = max(range(ranks[0] + 1, ranks[-1] + 2), key=lambda place: place & -place)
        before, behind = [r for r in ranks if r < pivot], [r for r in ranks if r >= pivot]
        downwards: Pairs = reduce(lambda pairs, rank: (rank, pairs), reversed(before[:-1]), before[-1])
        return (downwards, reduce(lambda pairs, rank: (pairs, rank), behind[1:], behind[0])) if behind else downwards
    return parted(ranks)


def parted(ranks: list[int]) -> Pairs:
    if len(ranks) == 1:
        return ranks[0]
    bit = (ranks[0] ^ ranks[-1]).bit_length() - 1
    left, right = (parted([r for r in ranks if r >> bit & 1 == side]) for side in (0, 1))
    return left, right


def state_of(rule: int, pairs: Pairs, numbers: dict[int, float]) -> State:
    """The state of the numbers at some ranks; where one has none, it is null."""
    if isinstance(pairs, tuple):
        return combined(rule, state_of(rule, pairs[0], numbers), state_of(rule, pairs[1], numbers))
    return leaf(rule, np.array([numbers[pairs]]), np.empty(0), 0) if pairs in numbers else NOTHING


def check_folds(rule: int, contents: Membership, rank: Ints, there: Mask, panes: Ints) -> None:
    """Both floats of some panes are those of their own ranks in pairs."""
    random = np.random.default_rng(7)
    numbers = random.normal(size=len(rank)) * 10.0 ** random.integers(-9, 9, len(rank))
    simple = as_simplest(contents)
    entry = np.arange(len(numbers)) if simple.row is None else simple.row
    before = frozen(np.append(0, np.cumsum(there[entry])))
    ranked = Ranked(entries_of(simple), rank, simple.row, before[:0] if there.all() else before)
    found = fold(rule, numbers[entry][there[entry]], np.empty(0), ranked)
    rows = rows_of(contents)
    for pane in panes.tolist():
        own = {int(rank[row]): float(numbers[row]) for row in rows[pane] if there[row]}
        pairs = in_pairs(rank[rows[pane]].tolist()) if rows[pane] else -1
        assert repr([float(part[pane]) for part in found]) == repr(list(answer(rule, state_of(rule, pairs, own)))), pane


@pytest.mark.parametrize("rule", RULES)
@MANY
@given(case=cases(), holes=st.booleans())
def test_a_fold_associates_by_the_ranks_of_the_pane(rule: int, case: Case, holes: bool) -> None:
    """Both floats, which tell apart what a rounded sum does not; nulls have ranks, and are no holes."""
    there = case.rows.column("x").is_valid().to_numpy(zero_copy_only=False)
    rank = case.rank + 3 * (np.cumsum(case.rank % 5 == 4) if holes else 5)
    check_folds(rule, case.contents, rank, there, np.arange(len(case.contents)))


@pytest.mark.parametrize("form", ["ranges", "late", "falling"])
@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("rule", RULES)
def test_long_sequences_are_folded_by_ranks(rule: int, shape: str, form: str) -> None:
    """Many pivots of all heights."""
    contents = {"ranges": lambda panes: panes, "late": with_holes, "falling": backwards}[form](LONG[shape])
    for share in (0.0, 0.3):
        there = np.random.default_rng(6).random(700) >= share
        some = np.append(np.arange(0, 700, 61), [254, 255, 256, 511, 512])
        check_folds(rule, contents, np.arange(700), there, some[some < len(contents)])


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


def test_pairs_by_hand() -> None:
    """Of five neighbours about rank 8, of four towards rank 4, and of the same four with one that is no neighbour."""
    assert in_pairs([5, 6, 7, 8, 9]) == ((5, (6, 7)), (8, 9))
    assert in_pairs([0, 1, 2, 3]) == (0, (1, (2, 3)))
    assert in_pairs([0, 1, 2, 3, 6]) == (((0, 1), (2, 3)), 6)
