"""Order statistics and modes of panes that overlap, in trees that are updated by pane deltas.

A pane costs its changes times O(log n), whatever its number of rows is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints
from ..rows.membership import Membership, Ranges
from ..support.jit import kernel
from .inputs import entries_of, frozen
from .loops import Codes, Floats, longest
from .pane_deltas import PaneDeltas, pane_deltas

Counts = npt.NDArray[np.int32]

_FAN = 4  # a counter covers 2**4 counters of the level below: 16 of int32 are one cache line of 64 bytes
_ENTRIES_AT_ONCE = 1 << 16  # the counters of so many entries fit the cache of a core


def values_at(values: Floats, place: Ints, membership: Membership) -> tuple[Floats, Floats]:
    """Return the values at places ``place`` and ``place + 1`` of each pane's sorted values, NaN last.

    ``place``: int64 (P,). A place that a pane does not have gives NaN. Equal values, the two zeros among them,
    are in the order of their entries.
    """
    out = np.full((2, len(place)), np.nan)
    for panes, entries, part in _spans(membership, len(values)):
        ascending = np.argsort(values[entries], kind="stable")
        ranks = np.empty(len(ascending), np.int64)
        ranks[ascending] = np.arange(len(ascending))
        found = order_statistics(ranks, frozen(place[panes]), 2, pane_deltas(part))
        out[:, panes] = np.append(values[entries][ascending], np.nan)[found].T
    return out[0], out[1]


def _spans(membership: Membership, size: int) -> Iterator[tuple[slice, slice, Membership]]:
    """Cut long ranges into runs of neighbouring panes; yield the panes, the entries, and the panes over these entries.

    Each run is ranked by itself, which keeps trees small. The cuts do not change the result.
    """
    if not isinstance(membership, Ranges):
        yield slice(None), slice(0, size), membership
        return
    cuts = _cuts(membership.lo, membership.hi, max(_ENTRIES_AT_ONCE, 4 * longest(membership.lo, membership.hi)))
    for first, stop in pairwise([*cuts.tolist(), len(membership)]):
        lo, hi, base = (a[first:stop] for a in (membership.lo, membership.hi, membership.base))
        begin, end = lo.min(), hi.max()
        yield slice(first, stop), slice(begin, end), entries_of(Ranges(lo - begin, hi - begin, base - begin, False))


@kernel
def _cuts(lo: Ints, hi: Ints, room: int) -> Ints:
    cuts = np.empty(lo.size, np.int64)
    count = low = high = 0
    for p in range(lo.size):
        low, high = min(low, lo[p]), max(high, hi[p])
        if p == 0 or high - low > room:
            cuts[count] = p
            count += 1
            low, high = lo[p], hi[p]
    return cuts[:count]


@kernel
def _levels(size: int) -> Ints:
    """Where each level of counters begins, from one counter for each rank to at most 16 for all; and where they end."""
    first = [0, max(size, 1)]
    while first[-1] - first[-2] > 1 << _FAN:
        first.append(first[-1] + ((first[-1] - first[-2] - 1) >> _FAN) + 1)
    return np.array(first)


@kernel
def _shift(counts: Counts, first: Ints, rank: int, step: int) -> None:
    for level in range(first.size - 1):
        counts[first[level] + (rank >> (_FAN * level))] += step


@kernel
def _find(counts: Counts, first: Ints, place: int) -> int:
    # From the top level down: skip counters until the one that covers ``place``, at most 15 on each level.
    node = 0
    for level in range(first.size - 2, -1, -1):
        node <<= _FAN
        while place >= counts[first[level] + node]:
            place -= counts[first[level] + node]
            node += 1
    return node


@kernel
def order_statistics(ranks: Ints, place: Ints, width: int, deltas: PaneDeltas) -> npt.NDArray[np.int64]:
    """Return the ranks at places ``place``, ``place + 1``, .. of each pane's sorted ranks, of shape (P, width).

    ``ranks``: int64 (E,), all different, from 0 to E - 1. ``place``: int64 (P,). -1 where the pane has no such place.
    O(log E) for each entry that is added or removed, and for each rank that is returned.
    """
    first = _levels(ranks.size)
    counts = np.zeros(first[-1], np.int32)
    out = np.full((place.size, width), -1, np.int64)
    size = 0
    # Invariant: each counter is the number of the pane's ranks in its range; level 0 has one counter for each rank.
    for p in range(place.size):
        for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
            _shift(counts, first, ranks[deltas.removed[j]], -1)
        for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
            _shift(counts, first, ranks[deltas.added[j]], 1)
        size += deltas.added_at[p + 1] - deltas.added_at[p] - deltas.removed_at[p + 1] + deltas.removed_at[p]
        for k in range(width):
            if 0 <= place[p] + k < size:
                out[p, k] = _find(counts, first, place[p] + k)
    return out


@kernel
def _following(codes: Codes, distinct: int) -> Ints:
    """The next entry with the same code, for each entry; -1 after the last."""
    out = np.empty(codes.size, np.int64)
    seen = np.full(distinct, -1, np.int64)
    for i in range(codes.size - 1, -1, -1):
        out[i] = seen[codes[i]]
        seen[codes[i]] = i
    return out


@kernel
def _update_winners(winners: Counts, node: int, counts: Ints, first: Ints) -> None:
    """Update the winners above a leaf: the higher count wins; of equals the code that appeared earlier."""
    while node > 1:
        node //= 2
        a, b = winners[2 * node], winners[2 * node + 1]
        b_wins = b >= 0 and (counts[b] > counts[a] or (counts[b] == counts[a] and first[b] < first[a]))
        winners[node] = b if b_wins else a


@kernel
def most_frequent(codes: Codes, distinct: int, deltas: PaneDeltas) -> Ints:
    """Entry of the first appearance of each pane's most frequent code, the earliest of equals; -1 where empty.

    Entries must be removed in the order in which they were added. O(log distinct) for each added or removed entry.
    """
    panes = len(deltas.added_at) - 1
    out = np.full(panes, -1, np.int64)
    counts = np.zeros(distinct, np.int64)
    first = np.zeros(distinct, np.int64)  # entry of the first appearance of each code whose count is above 0
    following = _following(codes, distinct)
    leaves = 1
    while leaves < distinct:
        leaves *= 2
    winners = np.full(
        2 * leaves, -1, np.int32
    )  # tournament: node k holds the better of the codes of nodes 2k and 2k + 1
    for code in range(distinct):
        winners[leaves + code] = code
    for node in range(leaves - 1, 0, -1):
        winners[node] = winners[2 * node]
    for p in range(panes):
        for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
            code = codes[deltas.removed[j]]
            counts[code] -= 1
            # Entries are removed oldest first, so the code now appears first at the next entry with this code.
            first[code] = following[deltas.removed[j]]
            _update_winners(winners, leaves + code, counts, first)
        for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
            code = codes[deltas.added[j]]
            if counts[code] == 0:
                first[code] = deltas.added[j]
            counts[code] += 1
            _update_winners(winners, leaves + code, counts, first)
        if distinct > 0 and counts[winners[1]] > 0:
            out[p] = first[winners[1]]
    return out
