"""Sums and extremes of panes with holes, in a tree over the entries that a pane shows.

How these associate is never seen: a sum is the float nearest to the true sum, and an extreme is an entry. So the tree
knows no ranks. An entry takes any leaf that is free while panes show it, and the tree is as deep as the entries of the
largest pane of its sequence ask for, however many rows the sequence has. An entry that comes with the pane that another
one leaves takes its leaf, so both cost one walk to the root (decision 064).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints
from ..rows.membership import Memberships
from ..support.jit import kernel
from .exact_sums import nearest_of
from .inputs import frozen
from .loops import Floats, Numbers, longest, sum_and_error
from .pane_deltas import PaneDeltas, pane_deltas

Leaves = npt.NDArray[np.int32]
Sums: TypeAlias = tuple[Floats, Floats]
Extremes: TypeAlias = tuple[Ints, Ints]


class LeafSteps(NamedTuple):
    """What changes at the leaves of a tree from each pane to the next.

    Each sequence begins with an empty tree. Pane p takes the steps ``[at[p], at[p + 1])``.

    ``leaf``: int32, the leaf that each step sets, from 0.
    ``entry``: int64, the entry that it holds from then on; -1 for none.
    ``at``: int64 (P+1,), bounds of each pane's steps.
    ``leaves``: int64 (S,), the number of leaves of each sequence's tree, a power of two.
    ``first_pane``: int64 (S+1,), bounds of the sequences among the panes.
    """

    leaf: Leaves
    entry: Ints
    at: Ints
    leaves: Ints
    first_pane: Ints


def live_sums(high: Floats, low: Floats, memberships: Memberships) -> Sums:
    """Return what `folds.fold` returns for `SUM`, with ``high`` and ``low`` as it takes them.

    ``memberships``: panes over entries, as `inputs.entries_of` returns them.
    """
    sums: Sums = _sums(frozen(high), frozen(low), _leaf_steps(memberships))
    return sums


def live_extremes(keys: Numbers, memberships: Memberships) -> Extremes:
    """Return the entries of each pane's smallest and largest key, int64 (P,): the first of equals, NaN skipped.

    -1 where there is none. ``keys``: int64 or float64 (E,). ``memberships``: as in `live_sums`.
    """
    extremes: Extremes = _extremes(frozen(keys), _leaf_steps(memberships))
    return extremes


def _leaf_steps(memberships: Memberships) -> LeafSteps:
    leaf, entry, at, leaves = _steps(pane_deltas(memberships), memberships.first_entry, memberships.first_pane)
    return LeafSteps(frozen(leaf), frozen(entry), frozen(at), frozen(leaves), memberships.first_pane)


@kernel
def _steps(deltas: PaneDeltas, first_entry: Ints, first_pane: Ints) -> tuple[Leaves, Ints, Ints, Ints]:
    panes, sequences = first_pane[-1], len(first_pane) - 1
    room = len(deltas.added) + len(deltas.removed)
    leaf, entry = np.empty(room, np.int32), np.empty(room, np.int64)
    at, leaves = np.zeros(panes + 1, np.int64), np.ones(sequences, np.int64)
    most = longest(first_entry[:-1], first_entry[1:])
    free, taken = np.empty(most, np.int32), np.empty(most, np.int32)
    count = 0
    for s in range(sequences):
        # Invariant: ``free[:idle]`` are the leaves below ``opened`` without an entry, and ``taken`` has the leaf of
        # each entry that is shown. A leaf is opened where none is free, so there are as many as the largest pane has
        # entries.
        idle = opened = 0
        for p in range(first_pane[s], first_pane[s + 1]):
            gone, last = deltas.removed_at[p], deltas.removed_at[p + 1]
            if p == first_pane[s]:
                gone = last  # the entries that the sequence before still showed: its tree is dropped
            come, end = deltas.added_at[p], deltas.added_at[p + 1]
            while gone < last or come < end:
                if gone < last:
                    place = taken[deltas.removed[gone] - first_entry[s]]
                    gone += 1
                elif idle > 0:
                    idle -= 1
                    place = free[idle]
                else:
                    place = np.int32(opened)
                    opened += 1
                leaf[count] = place
                if come < end:
                    entry[count] = deltas.added[come]
                    taken[deltas.added[come] - first_entry[s]] = place
                    come += 1
                else:
                    entry[count] = -1
                    free[idle] = place
                    idle += 1
                count += 1
            at[p + 1] = count
        while leaves[s] < opened:
            leaves[s] *= 2
    return leaf[:count].copy(), entry[:count].copy(), at, leaves


@kernel
def _sums(high: Floats, low: Floats, steps: LeafSteps) -> Sums:
    first, second = np.empty(len(steps.at) - 1, np.float64), np.empty(len(steps.at) - 1, np.float64)
    tree = np.empty((2 * max(1, steps.leaves.max()) if len(steps.leaves) else 2, 3), np.float64)
    for s in range(len(steps.leaves)):
        leaves = steps.leaves[s]
        # Invariant: the children of node k are 2k and 2k + 1, leaf i is node leaves + i, and each node holds the sum of
        # the leaves below it: two floats, and a bound on what these have lost. Leaves without an entry hold 0.
        tree[: 2 * leaves] = 0.0
        for p in range(steps.first_pane[s], steps.first_pane[s + 1]):
            for k in range(steps.at[p], steps.at[p + 1]):
                node, i = leaves + steps.leaf[k], steps.entry[k]
                total = high[i] if i >= 0 else 0.0
                rest = low[i] if i >= 0 and low.size else 0.0
                lost = 0.0
                tree[node, 0], tree[node, 1], tree[node, 2] = total, rest, lost
                while node > 1:
                    other = node ^ 1
                    lost += tree[other, 2]
                    total, error = sum_and_error(total, tree[other, 0])
                    rest, further = sum_and_error(rest, tree[other, 1])
                    lost += abs(further)
                    rest, further = sum_and_error(rest, error)
                    lost += abs(further)
                    node >>= 1
                    tree[node, 0], tree[node, 1], tree[node, 2] = total, rest, lost
            # + 0.0: a sum of nothing but -0.0 is 0.0.
            nearest, residual, is_proven = nearest_of(tree[1, 0] + 0.0, tree[1, 1], tree[1, 2])
            first[p], second[p] = nearest, residual if is_proven else np.nan
    return first, second


@kernel
def _better(keys: Numbers, a: int, b: int, largest: bool) -> int:
    """The entry with the smaller key, or the larger one, the first of equals; -1 is no entry."""
    if a < 0 or b < 0:
        return max(a, b)
    if keys[a] == keys[b]:
        return min(a, b)
    return a if (keys[a] > keys[b]) == largest else b


@kernel
def _extremes(keys: Numbers, steps: LeafSteps) -> Extremes:
    smallest, largest = np.empty(len(steps.at) - 1, np.int64), np.empty(len(steps.at) - 1, np.int64)
    tree = np.empty((2 * max(1, steps.leaves.max()) if len(steps.leaves) else 2, 2), np.int64)
    for s in range(len(steps.leaves)):
        leaves = steps.leaves[s]
        # Invariant: as in `_sums`, but each node holds the entries of the smallest and of the largest key below it, -1
        # where there is none. So a walk ends at the first node that keeps both.
        tree[: 2 * leaves] = -1
        for p in range(steps.first_pane[s], steps.first_pane[s + 1]):
            for k in range(steps.at[p], steps.at[p + 1]):
                node, i = leaves + steps.leaf[k], steps.entry[k]
                if i >= 0 and keys[i] != keys[i]:
                    i = -1
                low = high = i
                while tree[node, 0] != low or tree[node, 1] != high:
                    tree[node, 0], tree[node, 1] = low, high
                    if node == 1:
                        break
                    low = _better(keys, low, tree[node ^ 1, 0], False)
                    high = _better(keys, high, tree[node ^ 1, 1], True)
                    node >>= 1
            smallest[p], largest[p] = tree[1, 0], tree[1, 1]
    return smallest, largest
