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
from .loops import Codes, Floats, Numbers, between, longest
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


def deviations_of(values: Floats, membership: Membership) -> Floats:
    """Return the median of the distances of each pane's values from their median, NaN last; NaN for an empty pane."""
    out = np.full(len(membership), np.nan)
    for panes, entries, part in _spans(membership, len(values)):
        ascending = np.argsort(values[entries], kind="stable")
        ranks = np.empty(len(ascending), np.int64)
        ranks[ascending] = np.arange(len(ascending))
        out[panes] = median_deviations(ranks, values[entries][ascending], pane_deltas(part))
    return out


def below_and_equal(keys: Numbers, picks: Ints, membership: Membership) -> tuple[Ints, Ints]:
    """Return how many of each pane's keys are below that of the entry ``picks``, and equal to it, NaN last; 0 at -1."""
    out = np.zeros((2, len(picks)), np.int64)
    for panes, entries, part in _spans(membership, len(keys)):
        distinct, ranks = np.unique(keys[entries], return_inverse=True)
        mine = np.where(picks[panes] < 0, -1, picks[panes] - entries.start)
        out[:, panes] = counts_below(frozen(ranks.astype(np.int64)), len(distinct), frozen(mine), pane_deltas(part))
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
def _below(counts: Counts, first: Ints, rank: int) -> int:
    """How many of the pane's ranks are below one: on each level the counters before its own, at most 15."""
    total = 0
    for level in range(first.size - 1):
        node = rank >> (_FAN * level)
        for other in range((node >> _FAN) << _FAN, node):
            total += counts[first[level] + other]
    return total


@kernel
def _move(counts: Counts, first: Ints, ranks: Ints, deltas: PaneDeltas, p: int) -> int:
    """Go from the pane before to pane p; return by how many entries it is larger."""
    for j in range(deltas.removed_at[p], deltas.removed_at[p + 1]):
        _shift(counts, first, ranks[deltas.removed[j]], -1)
    for j in range(deltas.added_at[p], deltas.added_at[p + 1]):
        _shift(counts, first, ranks[deltas.added[j]], 1)
    return deltas.added_at[p + 1] - deltas.added_at[p] - deltas.removed_at[p + 1] + deltas.removed_at[p]


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
        size += _move(counts, first, ranks, deltas, p)
        for k in range(width):
            if 0 <= place[p] + k < size:
                out[p, k] = _find(counts, first, place[p] + k)
    return out


@kernel
def counts_below(ranks: Ints, distinct: int, picks: Ints, deltas: PaneDeltas) -> Ints:
    """How many ranks of each pane are below that of the entry ``picks``, and equal to it: (2, P); 0 where it is -1.

    ``ranks``: int64 (E,), from 0 to ``distinct`` - 1, equal for equal values. O(log distinct) for each change.
    """
    first = _levels(distinct)
    counts = np.zeros(first[-1], np.int32)
    out = np.zeros((2, picks.size), np.int64)
    for p in range(picks.size):
        _move(counts, first, ranks, deltas, p)
        if picks[p] >= 0:
            out[0, p], out[1, p] = _below(counts, first, ranks[picks[p]]), counts[ranks[picks[p]]]
    return out


@kernel
def _from(counts: Counts, first: Ints, ascending: Floats, place: int, middle: float) -> float:
    """How far the value at a place of the pane's sorted values is above ``middle``; less than 0 below it."""
    above: float = ascending[_find(counts, first, place)] - middle
    return above


@kernel
def _nearest_run(
    counts: Counts, first: Ints, ascending: Floats, last: int, width: int, middle: float, guess: int
) -> int:
    """Where the ``width + 1`` values nearest to ``middle`` begin among the pane's sorted values, at most at ``last``.

    They are neighbours in order. As such a run moves up, its lower end comes nearer and its upper end goes away, so it
    is about the first whose upper end is the farther one. That is looked for from a guess on, in steps that double.
    """
    at = min(guess, last - 1)
    low, high, step = 0, last, 1
    # Invariant: no run before ``low`` is the first one, none after ``high``, and ``low <= at < high``.
    while low < high:
        if _from(counts, first, ascending, at + width, middle) >= -_from(counts, first, ascending, at, middle):
            high = at
            at = max(low, at - step)
        else:
            low = at + 1
            at = min(high - 1, at + step)
        step *= 2
        if step > high - low:
            at = (low + high) >> 1
    if low > 0:
        before, after = low - 1, low + width
        if -_from(counts, first, ascending, before, middle) < _from(counts, first, ascending, after, middle):
            return before
    return low


@kernel
def median_deviations(ranks: Ints, ascending: Floats, deltas: PaneDeltas) -> Floats:
    """The median distance of each pane's values from their median: (P,). ``ascending``: the values by rank, NaN last.

    O(log E) for each change, and O(log(n) * log(E)) for each pane of n values.
    """
    panes = len(deltas.added_at) - 1
    out = np.full(panes, np.nan)
    first = _levels(ranks.size)
    counts = np.zeros(first[-1], np.int32)
    known = ranks.size  # the ranks from here on are NaN
    while known > 0 and np.isnan(ascending[known - 1]):
        known -= 1
    size = run = 0
    for p in range(panes):
        size += _move(counts, first, ranks, deltas, p)
        count = _below(counts, first, known) if known < ranks.size else size
        below, is_between = (size - 1) // 2, size % 2 == 0
        if size == 0 or below + is_between >= count:
            continue
        middle = ascending[_find(counts, first, below)]
        if is_between:
            middle = between(middle, ascending[_find(counts, first, below + 1)], 0.5)
        # From an infinity at least half of the values are at no distance, NaN, and so is the median of all distances.
        if np.isfinite(middle):
            run = _nearest_run(counts, first, ascending, count - 1 - below, below, middle, run)
            ends = -_from(counts, first, ascending, run, middle), _from(counts, first, ascending, run + below, middle)
            out[p] = max(abs(ends[0]), abs(ends[1]))
            if is_between:  # the next distance is that of a neighbour of the run
                far = -_from(counts, first, ascending, run - 1, middle) if run > 0 else np.inf
                if run + below + 1 < count:
                    far = min(far, _from(counts, first, ascending, run + below + 1, middle))
                out[p] = between(out[p], far, 0.5)
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
