"""What comes and what goes from pane to pane: aggregates of whole numbers add the one and take away the other.

Taking away is exact for integers, and for nothing else (semantics section 9): floats are folded (`folds`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...columns.arrays import Ints
from ...panes.membership import Membership, Ranges
from ...support.jit import kernel
from .loops import LIMB, Codes, goes_on


class PaneDeltas(NamedTuple):
    """Entries as they go and come, int64.

    Pane p begins as the pane before it; then ``gone[gone_at[p]:gone_at[p + 1]]`` go, and
    ``come[come_at[p]:come_at[p + 1]]`` come. At the first pane of a sequence all that the sequence before it still
    shows goes. An entry that no pane shows does neither.
    """

    added: Ints
    removed: Ints
    added_at: Ints
    removed_at: Ints


def pane_deltas(membership: Membership) -> PaneDeltas:
    """Return what changes from each pane to the next."""
    if isinstance(membership, Ranges):
        entries, come_at, gone_at = _range_deltas(membership.lo, membership.hi, membership.base)
        return PaneDeltas(entries, entries, come_at, gone_at)
    panes = len(membership)
    come, come_at = _by_pane(membership.enter, panes)
    gone, gone_at = _by_pane(membership.leave, panes)
    return PaneDeltas(come, gone, come_at, gone_at)


@kernel
def limb_sums(values: Ints, high_mask: int, deltas: PaneDeltas) -> tuple[Ints, Ints]:
    """Exact sums as ``high * 2**32 + low``; see `kernels.limb_sums`."""
    panes = len(deltas.added_at) - 1
    high = np.empty(panes, np.int64)
    low = np.empty(panes, np.int64)
    upper = lower = 0
    for p in range(panes):
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
    """How many of each pane's codes are that of entry ``picks``; 0 where that is -1."""
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
    """The entries of all ranges in order, and the bounds of those that come and of those that go with each pane."""
    come_at = np.zeros(lo.size + 1, np.int64)
    gone_at = np.zeros(lo.size + 1, np.int64)
    for p in range(lo.size):
        reached = hi[p - 1] if goes_on(lo, hi, base, p) else lo[p]
        come_at[p + 1] = come_at[p] + hi[p] - max(lo[p], reached)
    entries = np.empty(come_at[-1], np.int64)
    for p in range(lo.size):
        for j in range(come_at[p], come_at[p + 1]):
            entries[j] = hi[p] - come_at[p + 1] + j
        gone = come_at[p]
        if goes_on(lo, hi, base, p):
            gone = gone_at[p]
            while gone < come_at[p] and entries[gone] < lo[p]:
                gone += 1
        gone_at[p + 1] = gone
    return entries, come_at, gone_at


@kernel
def _by_pane(pane: Ints, panes: int) -> tuple[Ints, Ints]:
    """Entries sorted by the pane given of each, and the bounds of those of the first ``panes`` panes."""
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
