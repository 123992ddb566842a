"""Pane deltas: the entries that are added and removed from each pane to the next.

Aggregates of integers add and subtract them, so a pane costs its changes and not its rows. Subtraction is exact for
integers and for nothing else (semantics section 9): floats are folded (`folds`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..columns.arrays import Ints
from ..rows.membership import Membership, Ranges
from ..support.jit import kernel
from .loops import LIMB, Codes, continues_previous


class PaneDeltas(NamedTuple):
    """Entries that are added and removed between neighbouring panes.

    Pane p is the pane before it without ``removed[removed_at[p]:removed_at[p + 1]]`` and with
    ``added[added_at[p]:added_at[p + 1]]``. The first pane of a sequence removes all entries that the sequence before it
    still shows. An entry that no pane shows is neither added nor removed.

    ``added``: int64, entries in the order in which panes add them.
    ``removed``: int64, entries in the order in which panes remove them.
    ``added_at``: int64 (P+1,), bounds of each pane's entries in ``added``.
    ``removed_at``: int64 (P+1,), bounds of each pane's entries in ``removed``.
    """

    added: Ints
    removed: Ints
    added_at: Ints
    removed_at: Ints


def pane_deltas(membership: Membership) -> PaneDeltas:
    """Return what changes from each pane to the next."""
    if isinstance(membership, Ranges):
        entries, added_at, removed_at = _range_deltas(membership.lo, membership.hi, membership.base)
        return PaneDeltas(entries, entries, added_at, removed_at)
    panes = len(membership)
    added, added_at = _by_pane(membership.enter, panes)
    removed, removed_at = _by_pane(membership.leave, panes)
    return PaneDeltas(added, removed, added_at, removed_at)


@kernel
def limb_sums(values: Ints, high_mask: int, deltas: PaneDeltas) -> tuple[Ints, Ints]:
    """Exact sums as ``high * 2**32 + low``; see `loops.limb_sums`."""
    panes = len(deltas.added_at) - 1
    high = np.empty(panes, np.int64)
    low = np.empty(panes, np.int64)
    upper = lower = 0
    for p in range(panes):
        # Invariant: the two limbs hold the sum of exactly the entries of the pane. They run on through all sequences,
        # because a new sequence first removes what the one before still showed.
        for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
            upper -= (values[deltas.removed[j]] >> 32) & high_mask
            lower -= values[deltas.removed[j]] & LIMB
        for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
            upper += (values[deltas.added[j]] >> 32) & high_mask
            lower += values[deltas.added[j]] & LIMB
        high[p] = upper
        low[p] = lower
    return high, low


@kernel
def distinct_counts(codes: Codes, distinct: int, deltas: PaneDeltas) -> Ints:
    """How many different codes each pane holds."""
    panes = len(deltas.added_at) - 1
    out = np.empty(panes, np.int64)
    counts = np.zeros(distinct, np.int64)
    different = 0
    for p in range(panes):
        # Invariant: counts[c] entries of the pane have code c, and ``different`` of the counts are above 0. Removal
        # comes first, so no count exceeds the rows of a pane.
        for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
            code = codes[deltas.removed[j]]
            counts[code] -= 1
            different -= counts[code] == 0
        for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
            code = codes[deltas.added[j]]
            different += counts[code] == 0
            counts[code] += 1
        out[p] = different
    return out


@kernel
def equal_counts(codes: Codes, distinct: int, picks: Ints, deltas: PaneDeltas) -> Ints:
    """How many of each pane's codes equal the code of entry ``picks``; 0 where ``picks`` is -1."""
    panes = len(deltas.added_at) - 1
    out = np.zeros(panes, np.int64)
    counts = np.zeros(distinct, np.int64)
    for p in range(panes):
        for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
            counts[codes[deltas.removed[j]]] -= 1
        for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
            counts[codes[deltas.added[j]]] += 1
        if picks[p] >= 0:
            out[p] = counts[codes[picks[p]]]
    return out


@kernel
def _range_deltas(lo: Ints, hi: Ints, base: Ints) -> tuple[Ints, Ints, Ints]:
    added_at = np.zeros(lo.size + 1, np.int64)
    removed_at = np.zeros(lo.size + 1, np.int64)
    for p in range(lo.size):
        reached = hi[p - 1] if continues_previous(lo, hi, base, p) else lo[p]
        added_at[p + 1] = added_at[p] + hi[p] - max(lo[p], reached)
    # One array serves as both: ranges of a sequence never fall, so entries are removed in the order they were added.
    entries = np.empty(added_at[-1], np.int64)
    for p in range(lo.size):
        for j in range(added_at[p], added_at[p + 1]):
            entries[j] = hi[p] - added_at[p + 1] + j
        removed = added_at[p]
        if continues_previous(lo, hi, base, p):
            removed = removed_at[p]
            while removed < added_at[p] and entries[removed] < lo[p]:
                removed += 1
        removed_at[p + 1] = removed
    return entries, added_at, removed_at


@kernel
def _by_pane(pane: Ints, panes: int) -> tuple[Ints, Ints]:
    """Entries sorted by ``pane``, (E,), by counting; and the bounds of those of each of the first ``panes`` panes."""
    cursors = np.zeros(panes + 2, np.int64)
    for i in range(len(pane)):
        cursors[pane[i] + 1] += 1
    for p in range(panes + 1):
        cursors[p + 1] += cursors[p]
    bounds = cursors[: panes + 1].copy()
    entries = np.empty(len(pane), np.int64)
    for i in range(len(pane)):
        entries[cursors[pane[i]]] = i
        cursors[pane[i]] += 1
    return entries, bounds
