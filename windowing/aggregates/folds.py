"""Folds of overlapping panes: states are combined and never subtracted (semantics section 9).

The association of a fold decides the last bits of its floats. It depends only on the ranks of the pane's own rows, rows
with nulls included (`inputs.Ranked`), and never on other rows or on earlier panes.

- A pane with contiguous ranks is split at its *pivot*, the place in ``(first, last + 1]`` of its ranks that the highest
  power of two divides. The rows before the pivot are folded once, downwards, for all panes with this pivot; the rows
  after it are folded upwards as panes grow. A leaf costs O(1) if panes have about one length or only grow, and never
  more than O(log n).
- A pane with holes is folded in a binary trie over ranks: O(log n) for each leaf that is added or removed.

Sums and extremes of lives need no ranks, and have a smaller tree (`live_trees`).

So overlap is paid for once: a row costs the same whether panes hold 10 rows or 1,000 (decision 009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..columns.arrays import Ints, Mask
from ..rows.membership import Memberships, edge_rows, memberships_of, sizes, take
from ..support.jit import kernel, njit
from .exact_sums import nearest_of
from .inputs import Ranked, frozen
from .loops import TAME_FROM, TAME_TO, Floats, longest, product_error, scaled, sum_and_error, tamed
from .pane_deltas import PaneDeltas, pane_deltas

# Panes of a fold divided into those with contiguous ranks and those with holes, which associate differently.


_NONE: Ints = frozen(np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Spans:
    """The panes without holes, empty ones included, as ranges of rows.

    ``lo``: int64 (Q,), first row of each, inclusive.
    ``hi``: int64 (Q,), end of each, exclusive.
    ``base``: int64 (Q,), the place that the row of rank 0 would have if no row before the pane were missing.
    ``panes``: int64 (Q,), the indices of these panes, sorted so that panes with one pivot are neighbours; None if they
        are all panes in their order.
    ``before``: int64 (n+1,), how many leaves belong to rows before each row, and to all; empty if row i has leaf i.
    ``leaves``: int64, the leaves of these rows; None for all.
    ``holed``: int64, the indices of the other panes, ascending.
    """

    lo: Ints
    hi: Ints
    base: Ints
    panes: Ints | None
    before: Ints
    leaves: Ints | None
    holed: Ints


def spans_of(ranked: Ranked) -> Spans:
    """Return the panes without holes, and the indices of the others."""
    if isinstance(ranked.membership, Memberships):
        return _membership_spans(ranked.membership, ranked)
    lo, hi, base = ranked.membership.lo, ranked.membership.hi, ranked.membership.base
    if ranked.rank is None:
        return Spans(lo, hi, base, None, ranked.valid_before, None, _NONE)
    base, is_holed = _range_spans(lo, hi, ranks_of(ranked))
    holed = np.flatnonzero(is_holed)
    if not len(holed):
        return Spans(lo, hi, frozen(base), None, ranked.valid_before, None, _NONE)
    panes = np.flatnonzero(~is_holed)
    lo, hi, base = (frozen(places[panes]) for places in (lo, hi, base))
    return Spans(lo, hi, base, panes, ranked.valid_before, None, holed)


def ranks_of(ranked: Ranked) -> Ints:
    """Return the rank of each entry, int64 (E,)."""
    membership = ranked.membership
    if ranked.rank is not None:
        ranks: Ints = frozen(ranked.rank if ranked.row is None else ranked.rank[ranked.row])
        return ranks
    assert isinstance(membership, Memberships)  # of ranges, `Ranges.base` says it
    return np.arange(len(membership.row)) - np.repeat(membership.first_entry[:-1], np.diff(membership.first_entry))


def _membership_spans(memberships: Memberships, ranked: Ranked) -> Spans:
    rank = ranks_of(ranked)
    is_row = np.append(True, rank[1:] != rank[:-1])[: len(rank)]
    is_row[memberships.first_entry[:-1][np.diff(memberships.first_entry) > 0]] = True
    rank, place = np.append(rank, 0), np.append(np.cumsum(is_row) - 1, 0)  # entry -1, of an empty pane, is the last
    first, last = edge_rows(memberships)
    is_holed = (first >= 0) & (rank[last] - rank[first] + 1 != sizes(memberships))
    panes = np.flatnonzero(~is_holed)
    first, last = first[panes], last[panes]
    lo = place[first]
    hi, base = np.where(first < 0, lo, place[last] + 1), lo - rank[first]
    order = np.lexsort([hi, _pivots(lo, hi, base)])
    lo, hi, base = (frozen(places[order]) for places in (lo, hi, base))
    return Spans(lo, hi, base, panes[order], *_of_rows(ranked.valid_before, is_row), np.flatnonzero(is_holed))


def _of_rows(before: Ints, is_row: Mask) -> tuple[Ints, Ints | None]:
    if is_row.all():
        return before, None
    rows = np.flatnonzero(is_row)
    if not before.size:
        return before, rows
    has_leaf = before[rows + 1] > before[rows]
    return frozen(np.append(0, np.cumsum(has_leaf))), before[rows[has_leaf]]


@kernel
def pivot_place(lo: int, hi: int) -> int:
    """Return the place in ``(lo, hi]`` that the highest power of two divides; ``0 <= lo < hi``."""
    # It is ``hi`` without the bits below the highest one in which ``lo`` and ``hi`` differ.
    shift = 0
    while (lo >> shift) != (hi >> shift):
        shift += 1
    return (hi >> (shift - 1)) << (shift - 1)


@kernel
def new_pivot(lo: int, hi: int, origin: int, before: Ints) -> tuple[int, int, int, int]:
    """Return ``(pivot, low_end, high_end, middle)`` of a range ``[lo, hi)`` that is not empty.

    Ranges inside ``[low_end, high_end)`` that contain the pivot have this pivot. ``origin``: the first entry of the
    sequence. ``middle``: the leaf at the pivot. ``before``: as in `Spans`.
    """
    place = pivot_place(lo - origin, hi - origin)
    pivot, span = origin + place, place & -place
    return pivot, pivot - span, pivot + span, before[pivot] if before.size else pivot


@kernel
def _pivots(lo: Ints, hi: Ints, base: Ints) -> Ints:
    """The pivot of each pane; ``lo`` for an empty pane."""
    out = lo.copy()
    for p in range(lo.size):
        if lo[p] < hi[p]:
            out[p] = base[p] + pivot_place(lo[p] - base[p], hi[p] - base[p])
    return out


@kernel
def _range_spans(lo: Ints, hi: Ints, rank: Ints) -> tuple[Ints, Mask]:
    base = np.zeros(lo.size, np.int64)
    holed = np.zeros(lo.size, np.bool_)
    for p in range(lo.size):
        if lo[p] < hi[p]:
            # Ranks ascend by at least 1, so a pane has no hole if its first and last rank agree on the base.
            base[p] = lo[p] - rank[lo[p]]
            holed[p] = hi[p] - 1 - rank[hi[p] - 1] != base[p]
    return base, holed


# The states that folds combine: the aggregate of a run of leaves (`folds`).
#
# A leaf is the number ``high[i] + low[i]``, so that 64 bit integers and rounding errors are exact; an empty ``low``
# means zeros. A state is ``(count, high, low, more, rest)``, five floats, and an array of shape (n, 5) holds n
# states.


State: TypeAlias = tuple[float, float, float, float, float]

SUM, PRODUCT, SMALLEST = range(3)
"""Rules: the sum, with its rest and a bound on what the rest lost; the product, with its rest and a binary exponent;
the entry of the smallest leaf."""

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)
"""The state of no leaves, the neutral element of `combined`."""

_inlined = njit(inline="always", error_model="numpy")
"""Inlining keeps states in processor registers from step to step. Measured: a third faster than calls."""


@_inlined
def combined(rule: int, a: State, b: State) -> State:
    """Return the state of the leaves of ``a`` followed by the leaves of ``b``."""
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    if rule == SMALLEST:
        # Of equals the earlier one stays; high is compared first because low is less than half a unit of high.
        return b if b[1] < a[1] or (b[1] == a[1] and b[2] < a[2]) else a
    count = a[0] + b[0]
    if rule == PRODUCT:
        high, low, exponent = _multiplied(a[1], a[2], b[1], b[2])
        return count, high, low, a[3] + b[3] + exponent, 0.0
    # more bounds all that the low parts lost; the sum of a state is high + low, off by at most more.
    high, error = sum_and_error(a[1], b[1])
    low, lost = sum_and_error(a[2], b[2])
    low, further = sum_and_error(low, error)
    return count, high, low, a[3] + b[3] + (abs(lost) + abs(further)), 0.0


@_inlined
def leaf(rule: int, high: Floats, low: Floats, i: int) -> State:
    """Return the state of one leaf. A NaN has no state under `SMALLEST`."""
    rest = low[i] if low.size else 0.0
    if rule == SMALLEST:
        return (1.0 if high[i] == high[i] else 0.0), high[i], rest, np.float64(i), 0.0
    if rule == PRODUCT:
        near, more, exponent = _tamed(high[i], rest)
        return 1.0, near, more, exponent, 0.0
    return 1.0, high[i], rest, 0.0, 0.0


@_inlined
def answer(rule: int, state: State) -> tuple[float, float]:
    """Return the two floats of `folds.fold` for a pane whose leaves have this state."""
    if rule == SMALLEST:
        return (state[3] if state[0] > 0.0 else -1.0), 0.0
    if rule == SUM:
        # + 0.0: a sum of nothing but -0.0 is 0.0.
        nearest, residual, is_proven = nearest_of(state[1] + 0.0, state[2], state[3])
        return nearest, residual if is_proven else np.nan
    return scaled(state[1], int(state[3])), scaled(state[2], int(state[3]))


@_inlined
def store_state(states: Floats, k: int, state: State) -> None:
    """Write row ``k``."""
    for c in range(5):
        states[k, c] = state[c]


@_inlined
def load_state(states: Floats, k: int) -> State:
    """Read row ``k``."""
    return states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4]


@kernel
def _tamed(high: float, low: float) -> tuple[float, float, float]:
    if TAME_FROM < abs(high) < TAME_TO:
        return high, low, 0.0
    near, exponent = tamed(high)
    return near, scaled(low, -exponent), np.float64(exponent)


@kernel
def _multiplied(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float, float]:
    """Product of two floats with rests: the nearest float, its rest (0.0 if it is 0 or not finite), and an exponent."""
    product = a * b
    rest = product_error(a, b, product) + (a * b_rest + a_rest * b)
    nearest = product + rest
    if product == 0.0 or not np.isfinite(nearest):
        return product, 0.0, 0.0
    return _tamed(nearest, rest - (nearest - product))


# A compressed binary trie over ranks. Its shape depends on the ranks alone, so folds through it associate by rank.


@kernel
def _join_nodes(parent: Ints, sibling: Ints, node: int, left: int, right: int) -> int:
    parent[left] = parent[right] = node
    sibling[left], sibling[right] = right, left
    return node


@kernel
def trie(rank: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Return the trie over m distinct ranks: two ranks separate at the highest bit in which they differ.

    ``rank``: int64 (E,), ascending, 0 or more; equal ranks share one leaf. Leaf k is node 2k, and node 2k + 1 separates
    leaf k from leaf k + 1, so node numbers rise from left to right. Returns the node of each rank, int64
    (E,); the parent of each of the 2m - 1 nodes, -1 for the root; the sibling of each node; and the root, 0 for an
    empty trie.
    """
    node = np.empty(rank.size, np.int64)
    parent = np.full(max(1, 2 * rank.size), -1, np.int64)
    sibling = parent.copy()
    # One pass over ascending ranks, O(E). The stack holds the right edge of the trie: inner nodes from the root down
    # whose right subtree is not complete. 64 bits of a rank bound its depth.
    right_edge = np.empty(65, np.int64)  # the node at each depth
    left = np.empty(65, np.int64)  # root of its left subtree
    bits = np.empty(65, np.int64)  # exclusive or of the two ranks that it separates; falls with depth
    depth = 0
    top = 0  # root of the complete subtree to the right of the whole stack
    for i in range(rank.size):
        if i == 0 or rank[i] == rank[i - 1]:
            node[i] = top if i == 0 else node[i - 1]
            continue
        node[i] = node[i - 1] + 2
        differ = rank[i] ^ rank[i - 1]
        # Nodes that separate at a lower bit are complete: the new rank lies to the right of all their leaves.
        while depth > 0 and bits[depth - 1] < differ:
            depth -= 1
            top = _join_nodes(parent, sibling, right_edge[depth], left[depth], top)
        right_edge[depth], left[depth], bits[depth] = node[i] - 1, top, differ
        depth += 1
        top = node[i]
    while depth > 0:
        depth -= 1
        top = _join_nodes(parent, sibling, right_edge[depth], left[depth], top)
    return node, parent, sibling, top


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
            pivot, low_end, high_end, middle = new_pivot(lo[p], hi[p], origin, before)
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
def _update_leaf(rule: int, tree: Floats, parent: Ints, sibling: Ints, node: int, state: State) -> None:
    store_state(tree, node, state)
    # Nodes are numbered from left to right, so the smaller of node and parent says on which side the node is.
    while parent[node] >= 0:
        other = load_state(tree, sibling[node])
        state = combined(rule, state, other) if node < parent[node] else combined(rule, other, state)
        node = parent[node]
        store_state(tree, node, state)


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
