"""Folds of overlapping panes: states are combined and never subtracted (semantics section 9).

The association of a fold decides the last bits of its floats. It depends only on the ranks of the pane's own rows, rows
with nulls included (`inputs.Ranked`), and never on other rows or on earlier panes.

- A pane with contiguous ranks is split at its *pivot*, the place in ``(first, last + 1]`` of its ranks that the highest
  power of two divides. The rows before the pivot are folded once, downwards, for all panes with this pivot; the rows
  after it are folded upwards as panes grow. A leaf costs O(1) if panes have about one length or only grow, and never
  more than O(log n).
- A pane with holes is folded in a binary trie over ranks: O(log n) for each leaf that is added or removed.

Sums and extremes of lives need no ranks, and have a smaller tree (`live_trees`).

So overlap is paid for once: a row costs the same whether panes hold 10 rows or 1,000 (docs/decisions/009).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...columns.arrays import Ints
from ...panes.membership import memberships_of, take
from ...support.jit import kernel
from ..kernels.loops import Floats, longest
from ..kernels.pane_deltas import PaneDeltas, pane_deltas
from ..kernels.rank_tree import trie
from .fold_spans import pivot_place, ranks_of, spans_of
from .fold_states import NOTHING, State, answer, combined, leaf, load_state, store_state
from .inputs import Ranked
from .values import frozen

Answers: TypeAlias = tuple[Floats, Floats]


def fold(rule: int, high: Floats, low: Floats, ranked: Ranked) -> Answers:
    """Return the result of a rule of `fold_states` for each pane, as two arrays of floats (P,).

    ``high``, ``low``: the leaves, one for each entry that is not null. `SUM`: the float nearest to the sum, and its
    residual (`nearest_of`), NaN where the float is not proven to be the nearest, for example where it is not finite.
    `PRODUCT`: the product, and what rounding took from it, see `rounded`. `SMALLEST`: the entry, nulls not
    counted, of the smallest leaf, the first of equals, NaN skipped, -1 where there is none; and 0. `SMALLEST` is exact
    under any association and needs no ranks.
    """
    high, low = frozen(high), frozen(low)
    spans = spans_of(ranked)
    places = spans.lo, spans.hi, spans.base, spans.before
    answers: Answers = _range_folds(rule, picked(high, spans.leaves), picked(low, spans.leaves), *places)
    if spans.panes is None:
        return answers
    first, second = np.empty((2, len(ranked.membership)))
    first[spans.panes], second[spans.panes] = answers
    if len(spans.holed):
        first[spans.holed], second[spans.holed] = _holed_folds(rule, high, low, ranked, spans.holed)
    return first, second


def rounded(answers: Answers) -> Floats:
    """Return the sum of both floats of each answer; the second float of an infinite or NaN answer means nothing."""
    total, rest = answers
    with np.errstate(invalid="ignore"):
        return one_nan(np.where(np.isfinite(rest) & (rest != 0.0), total + rest, total))


def one_nan(floats: Floats) -> Floats:
    """Return floats with all NaNs made one: of two NaNs in a sum, the processor decides which bits come out."""
    nan = np.isnan(floats)
    return np.where(nan, np.nan, floats) if nan.any() else floats


def picked(half: Floats, leaves: Ints | None) -> Floats:
    """Return the leaves at some places; None means all leaves."""
    found: Floats = half if leaves is None or not half.size else frozen(half[leaves])
    return found


def _holed_folds(rule: int, high: Floats, low: Floats, ranked: Ranked, panes: Ints) -> Answers:
    """Fold the panes that have holes, in the trie."""
    memberships, before = memberships_of(take(ranked.membership, panes)), ranked.valid_before
    leaves = memberships.row
    if before.size:
        leaves = np.where(before[leaves] < before[leaves + 1], before[leaves], -1)
    rank, bounds = ranks_of(ranked)[memberships.row], (frozen(memberships.first_entry), frozen(memberships.first_pane))
    answers: Answers = _tree_folds(rule, high, low, pane_deltas(memberships), frozen(leaves), frozen(rank), *bounds)
    return answers


@kernel
def _range_folds(rule: int, high: Floats, low: Floats, lo: Ints, hi: Ints, base: Ints, before: Ints) -> Answers:
    """Fold ranges; see `Spans`. It is fastest if panes with one pivot are neighbours and their ``hi`` rises."""
    first = np.empty(lo.size, np.float64)
    second = np.empty(lo.size, np.float64)
    back = np.empty((longest(lo, hi) + 1, 5), np.float64)  # row k: state of the last k leaves before the pivot
    store_state(back, 0, NOTHING)
    after = NOTHING  # state of the leaves [middle, reached)
    pivot = low_end = high_end = origin = 0  # ranges inside [low_end, high_end) that contain the pivot have this pivot
    middle = begun = reached = 0  # leaves: at the pivot, first one in ``back``, end of those in ``after``
    for p in range(lo.size):
        if lo[p] == hi[p]:
            first[p], second[p] = answer(rule, NOTHING)
            continue
        begin = before[lo[p]] if before.size else lo[p]
        end = before[hi[p]] if before.size else hi[p]
        known = base[p] == origin and low_end <= lo[p] < pivot <= hi[p] < high_end and reached <= end
        if not known:
            origin = base[p]
            place = pivot_place(lo[p] - origin, hi[p] - origin)
            pivot = origin + place
            low_end, high_end = pivot - (place & -place), pivot + (place & -place)
            middle = before[pivot] if before.size else pivot
            begun = reached = middle
            after = NOTHING
        # Invariant: ``back`` holds the states of [i, middle) for all i from ``begun`` on, ``after`` that of [middle,
        # reached). Both only grow until the pivot moves, so each leaf is combined once on each side of a pivot.
        if begin < begun:
            state = load_state(back, middle - begun)
            for i in range(begun - 1, begin - 1, -1):
                state = combined(rule, leaf(rule, high, low, i), state)
                store_state(back, middle - i, state)
            begun = begin
        for i in range(reached, end):
            after = combined(rule, after, leaf(rule, high, low, i))
        reached = end
        first[p], second[p] = answer(rule, combined(rule, load_state(back, middle - begin), after))
    return first, second


@kernel
def _tree_folds(
    rule: int,
    high: Floats,
    low: Floats,
    deltas: PaneDeltas,
    leaves: Ints,
    rank: Ints,
    first_entry: Ints,
    first_pane: Ints,
) -> Answers:
    """Fold any panes. ``leaves``, ``rank``: int64 (E,), the leaf of each entry, -1 for none, and its rank."""
    first = np.empty(first_pane[-1], np.float64)
    second = np.empty(first_pane[-1], np.float64)
    tree = np.empty((2 * max(1, longest(first_entry[:-1], first_entry[1:])), 5), np.float64)
    for s in range(len(first_pane) - 1):
        begin, end = first_entry[s], first_entry[s + 1]
        node, parent, sibling, root = trie(rank[begin:end])
        # Invariant: each node holds the state of the leaves below it that the current pane shows. Leaves that are not
        # shown hold NOTHING, so the association depends on the shape of the trie, which is a function of ranks alone.
        tree[: parent.size] = 0.0
        for p in range(first_pane[s], first_pane[s + 1]):
            if p > first_pane[s]:
                for i in deltas.removed[deltas.removed_at[p] : deltas.removed_at[p + 1]]:
                    if leaves[i] >= 0:
                        _update_leaf(rule, tree, parent, sibling, node[i - begin], NOTHING)
            for i in deltas.added[deltas.added_at[p] : deltas.added_at[p + 1]]:
                if leaves[i] >= 0:
                    _update_leaf(rule, tree, parent, sibling, node[i - begin], leaf(rule, high, low, leaves[i]))
            first[p], second[p] = answer(rule, load_state(tree, root))
    return first, second


@kernel
def _update_leaf(rule: int, tree: Floats, parent: Ints, sibling: Ints, node: int, state: State) -> None:
    """Store the state of a leaf, and update all nodes above it."""
    store_state(tree, node, state)
    while parent[node] >= 0:
        other = load_state(tree, sibling[node])
        state = combined(rule, state, other) if node < parent[node] else combined(rule, other, state)
        node = parent[node]
        store_state(tree, node, state)
