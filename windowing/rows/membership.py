"""Membership: which rows each pane shows, as ranges of neighbouring rows or as the panes of each single row.

Aggregates, groups, ``--emit entered`` and ``left``, and rows of results all read panes through these two forms. So
panes times rows is never materialised, whatever the kind of window (decision 008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints, Mask
from ..columns.arrays import spread as runs
from ..columns.radix_sort import pair_order
from ..support.jit import kernel

# Loops over memberships: flat functions over int64 arrays, for `membership`. Each is linear in its input or output.


@kernel
def covered(lo: Ints, hi: Ints, entries: int) -> Mask:
    """Which entries some range covers. Ranges rise within a sequence; sequences may be in any order."""
    out = np.zeros(entries, np.bool_)
    reached = 0
    # Invariant: all covered entries of this sequence before ``reached`` are set already, so overlap costs nothing.
    for p in range(len(lo)):
        if lo[p] < reached and (p == 0 or lo[p] < lo[p - 1]):
            reached = lo[p]  # a range that falls belongs to another sequence, whose entries may be anywhere
        for i in range(max(lo[p], reached), hi[p]):
            out[i] = True
        reached = max(reached, hi[p])
    return out


@kernel
def different_ranges(lo: Ints, hi: Ints, base: Ints) -> tuple[npt.NDArray[np.int32], Ints]:
    """Number the ranges from 0, neighbours that are alike with one number, int32 (P,); and the first of each number."""
    out = np.empty(len(lo), np.int32)
    first = np.empty(len(lo), np.int64)
    count = 0
    for p in range(len(lo)):
        if p == 0 or lo[p] != lo[p - 1] or hi[p] != hi[p - 1] or base[p] != base[p - 1]:
            first[count] = p
            count += 1
        out[p] = count - 1
    return out, first[:count].copy()


@kernel
def paint(out: Ints, bare: Ints, begin: int, end: int, colour: int) -> None:
    """Give a colour to those of the panes ``[begin, end)`` that have none."""
    p = begin
    while p < end:
        root = p
        while bare[root] != root:
            root = bare[root]
        while bare[p] != root:  # path compression, for later searches
            bare[p], p = root, bare[p]
        if root >= end:
            return
        out[root] = colour
        bare[root] = root + 1
        p = root + 1


@kernel
def painted(enter: Ints, leave: Ints, panes: int) -> tuple[Ints, Ints]:
    """First and last entry of each pane, -1 for an empty pane: only the first entry of a pane colours it."""
    first = np.full(panes, -1, np.int64)
    last = np.full(panes, -1, np.int64)
    # Union-find over panes: bare[p] leads to the next pane at or after p without a colour. Each pane is coloured once,
    # so all entries together cost about O(E + P), and not entries times panes.
    bare = np.arange(panes + 1)
    for i in range(len(enter)):
        paint(first, bare, enter[i], leave[i], i)
    bare = np.arange(panes + 1)
    for i in range(len(enter) - 1, -1, -1):
        paint(last, bare, enter[i], leave[i], i)
    return first, last


@kernel
def spread(enter: Ints, leave: Ints, bounds: Ints) -> Ints:
    """Entries of panes, pane after pane. ``bounds``: where each pane's entries go, int64 (P+1,)."""
    out = np.empty(bounds[-1], np.int64)
    cursor = bounds[:-1].copy()
    # Entries outside, panes inside: so the entries of each pane enters in their order without a sort.
    for i in range(len(enter)):
        for p in range(enter[i], leave[i]):
            out[cursor[p]] = i
            cursor[p] += 1
    return out


@kernel
def to_memberships(lo: Ints, hi: Ints, first_pane: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Entry, enter, leave of all entries in some range, and the bounds of the sequences among them, all int64."""
    total = 0
    for s in range(len(begins)):
        total += ends[s] - begins[s]
    entry = np.empty(total, np.int64)
    enter = np.empty(total, np.int64)
    leave = np.empty(total, np.int64)
    first_entry = np.zeros(len(begins) + 1, np.int64)
    count = 0
    for s in range(len(begins)):
        enters, leaves, end = first_pane[s], first_pane[s], first_pane[s + 1]
        # Two cursors over the panes of a sequence, which only move on because neither ``lo`` nor ``hi`` falls: entry i
        # is in the panes after all that end at or before it, up to the first that begins after it.
        for i in range(begins[s], ends[s]):
            while enters < end and hi[enters] <= i:
                enters += 1
            while leaves < end and lo[leaves] <= i:
                leaves += 1
            if enters < leaves:
                entry[count] = i
                enter[count] = enters
                leave[count] = leaves
                count += 1
        first_entry[s + 1] = count
    return entry[:count], enter[:count], leave[:count], first_entry


@kernel
def never_fall(enter: Ints, leave: Ints, first_entry: Ints) -> Mask:
    """In which sequences neither ``enter`` nor ``leave`` ever falls, bool (S,)."""
    out = np.ones(len(first_entry) - 1, np.bool_)
    for s in range(len(out)):
        for i in range(first_entry[s] + 1, first_entry[s + 1]):
            if enter[i] < enter[i - 1] or leave[i] < leave[i - 1]:
                out[s] = False
                break
    return out


@kernel
def to_ranges(enter: Ints, leave: Ints, first_entry: Ints, first_pane: Ints) -> tuple[Ints, Ints, Ints]:
    """``lo``, ``hi`` and ``base`` of each pane, for sequences in which neither ``enter`` nor ``leave`` falls."""
    panes = first_pane[-1]
    lo = np.empty(panes, np.int64)
    hi = np.empty(panes, np.int64)
    base = np.empty(panes, np.int64)
    for s in range(len(first_pane) - 1):
        # Two cursors over the entries: [low, high) are the entries that have entered and not left. Entries leave in the
        # order in which they entered, so the range has no holes.
        low, high = first_entry[s], first_entry[s]
        for p in range(first_pane[s], first_pane[s + 1]):
            while high < first_entry[s + 1] and enter[high] <= p:
                high += 1
            while low < high and leave[low] <= p:
                low += 1
            lo[p] = low
            hi[p] = high
            base[p] = first_entry[s]
    return lo, hi, base


@kernel
def union_sizes(bounds: Ints, lo: Ints, hi: Ints) -> Ints:
    """Return how many integers the ranges of each group cover, int64 (groups,). Ranges ascend by ``lo``."""
    sizes = np.zeros(len(bounds) - 1, np.int64)
    for g in range(len(sizes)):
        # invariant: all integers of the ranges so far are below ``reached``, so only the rest of a range is new
        reached = np.iinfo(np.int64).min
        for i in range(bounds[g], bounds[g + 1]):
            begin = max(lo[i], reached)
            if begin <= hi[i]:
                sizes[g] += hi[i] - begin + 1
                reached = hi[i] + 1
    return sizes


@kernel
def union_members(bounds: Ints, lo: Ints, hi: Ints, first: Ints) -> Ints:
    """Return the integers that `union_sizes` counts, ascending in each group; ``first``: bounds of the groups."""
    members = np.empty(first[-1], np.int64)
    place = 0
    for g in range(len(bounds) - 1):
        reached = np.iinfo(np.int64).min
        for i in range(bounds[g], bounds[g + 1]):
            for k in range(max(lo[i], reached), hi[i] + 1):
                members[place] = k
                place += 1
                reached = k + 1
    return members


@kernel
def first_from(ascending: Any, begin: int, end: int, value: Any) -> int:
    """Return the first place in ``[begin, end)`` of a value not smaller, ``end`` if none; fast where it is near."""
    step, stop = 1, begin
    while stop < end and ascending[stop] < value:
        begin = stop + 1
        stop += step
        step *= 2
    stop = min(stop, end)
    # not `np.searchsorted`: its call alone takes longer than the usual search, which ends at the first look
    while begin < stop:
        middle = (begin + stop) >> 1
        if ascending[middle] < value:
            begin = middle + 1
        else:
            stop = middle
    return begin


@kernel
def first_above(ascending: Any, begin: int, end: int, value: Any) -> int:
    """Return the first place in ``[begin, end)`` of a value that is larger, ``end`` if none; fast where it is near."""
    step, stop = 1, begin
    while stop < end and ascending[stop] <= value:
        begin = stop + 1
        stop += step
        step *= 2
    stop = min(stop, end)
    while begin < stop:
        middle = (begin + stop) >> 1
        if ascending[middle] <= value:
            begin = middle + 1
        else:
            stop = middle
    return begin


@kernel
def places_among(bounds: Ints, first: Ints, last: Ints, group_bounds: Ints, members: Ints) -> tuple[Ints, Ints]:
    """Return the places ``[enter, leave)`` of the members in each range ``[first, last]`` among those of its group."""
    enter, leave = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    for g in range(len(bounds) - 1):
        low = group_bounds[g]
        own = members[low : group_bounds[g + 1]]
        for i in range(bounds[g], bounds[g + 1]):
            enter[i] = low + np.searchsorted(own, first[i])
            leave[i] = low + np.searchsorted(own, last[i], side="right")
    return enter, leave


@dataclass(frozen=True, slots=True)
class Ranges:
    """P panes, each a half-open range of neighbouring entries.

    ``lo``: int64 (P,), first entry, inclusive; never falls within a sequence.
    ``hi``: int64 (P,), end, exclusive; never falls within a sequence; equal to ``lo`` for an empty pane.
    ``base``: int64 (P,), first entry of the pane's sequence. Where no ranks are given, results depend on ``lo - base``
        and ``hi - base``, and never on the sequences before.
    ``disjoint``: whether no entry can be in two panes; the kind of window decides it, never the data.
    ``row``: int64 (E,), the row of each entry; None where entry i is row i.
    """

    lo: Ints
    hi: Ints
    base: Ints
    disjoint: bool
    row: Ints | None = None

    def __len__(self) -> int:
        return len(self.lo)


def ranges(lo: Ints, hi: Ints) -> Ranges:
    """Return the membership of windows ``[lo, hi)`` that share no row."""
    return Ranges(lo, hi, lo, True)


@dataclass(frozen=True, slots=True)
class Memberships:
    """Panes whose rows need not be neighbours: each entry is a row and the run of panes that shows it.

    ``row``: int64 (E,), the row of each entry, sequence after sequence, within a sequence in the row order of panes. A
        row may have several entries, with panes that do not show it between them.
    ``enter``: int64 (E,), first pane that shows the entry, inclusive.
    ``leave``: int64 (E,), end of the panes that show the entry, exclusive; greater than ``enter``.
    ``first_entry``: int64 (S+1,), bounds of the S sequences among the entries.
    ``first_pane``: int64 (S+1,), bounds of the S sequences among the panes.
    """

    row: Ints
    enter: Ints
    leave: Ints
    first_entry: Ints
    first_pane: Ints

    def __len__(self) -> int:
        return int(self.first_pane[-1])


Membership: TypeAlias = Ranges | Memberships


def united(bounds: Ints, lo: Ints, hi: Ints, check: Callable[[int], None]) -> tuple[Ints, Ints]:
    """Return for each group of ranges ``[lo, hi]`` the integers in any of them: bounds of the groups, and integers.

    ``check``: is told how many there are, before they take memory.
    """
    # rows ordered by time come with ``lo`` ascending; others are not sorted in a kernel: numba compiles that for two
    # seconds
    turn = pair_order(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), lo)
    if turn is not None:
        lo, hi = lo[turn], hi[turn]
    counts = union_sizes(bounds, lo, hi)
    first = np.append(0, np.cumsum(counts))
    check(int(first[-1]))
    return first, union_members(bounds, lo, hi, first)


def sizes(membership: Membership) -> Ints:
    """Return the number of rows of each pane, int64 (P,)."""
    if isinstance(membership, Ranges):
        return membership.hi - membership.lo
    count = len(membership)
    changes = np.bincount(membership.enter, minlength=count + 1) - np.bincount(membership.leave, minlength=count + 1)
    return np.cumsum(changes[:count])


def shown(membership: Membership, rows: int) -> Mask:
    """Return which of ``rows`` rows at least one pane shows, bool (rows,)."""
    out = np.zeros(rows, np.bool_)
    if isinstance(membership, Memberships):
        out[membership.row] = True
        return out
    entries = rows if membership.row is None else len(membership.row)
    found = covered(membership.lo, membership.hi, entries)
    if membership.row is None:
        return found
    out[membership.row[found]] = True
    return out


def edge_rows(membership: Membership) -> tuple[Ints, Ints]:
    """Return the first and the last row of each pane, int64 (P,); -1 for an empty one."""
    if isinstance(membership, Memberships):
        first, last = painted(membership.enter, membership.leave, len(membership))
    else:
        empty = membership.lo == membership.hi
        if not empty.any() and membership.row is None:
            return membership.lo, membership.hi - 1
        first, last = np.where(empty, -1, membership.lo), np.where(empty, -1, membership.hi - 1)
    if membership.row is None:
        return first, last
    row = np.append(membership.row, -1)  # index -1 of an empty pane is the last element
    return row[first], row[last]


def gathered(membership: Membership, first: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows of the panes ``[first, stop)``, pane after pane, and the bounds of each pane, both int64."""
    if isinstance(membership, Memberships):
        low = np.searchsorted(membership.first_pane, first, side="right") - 1
        high = np.searchsorted(membership.first_pane, stop, side="left")
        mine, panes = slice(membership.first_entry[low], membership.first_entry[high]), stop - first
        enter, leave = (np.clip(ends[mine] - first, 0, panes) for ends in (membership.enter, membership.leave))
        changes = np.bincount(enter, minlength=panes + 1) - np.bincount(leave, minlength=panes + 1)
        bounds = np.concatenate([[0], np.cumsum(np.cumsum(changes[:panes]))]).astype(np.int64)
        return membership.row[mine][spread(enter, leave, bounds)], bounds
    counts = (membership.hi - membership.lo)[first:stop]
    bounds, entries = np.append(0, np.cumsum(counts)), runs(membership.lo[first:stop], counts)
    return (entries if membership.row is None else membership.row[entries]), bounds


def take(membership: Membership, picks: Ints) -> Membership:
    """Return the panes at ``picks``, which must ascend."""
    if isinstance(membership, Ranges):
        return Ranges(
            membership.lo[picks], membership.hi[picks], membership.base[picks], membership.disjoint, membership.row
        )
    enter, leave = np.searchsorted(picks, membership.enter), np.searchsorted(picks, membership.leave)
    alive = enter < leave
    before = np.concatenate([[0], np.cumsum(alive)])
    first_pane = np.searchsorted(picks, membership.first_pane)
    return Memberships(membership.row[alive], enter[alive], leave[alive], before[membership.first_entry], first_pane)


def memberships_of(membership: Membership) -> Memberships:
    """Return the same panes as memberships."""
    if isinstance(membership, Memberships):
        return membership
    starts = np.flatnonzero(np.diff(membership.base, prepend=-1)) if len(membership) else np.empty(0, np.int64)
    first_pane = np.append(starts, len(membership))
    ends = membership.hi[first_pane[1:] - 1] if len(starts) else np.empty(0, np.int64)
    entry, enter, leave, first_entry = to_memberships(
        membership.lo, membership.hi, first_pane, membership.base[starts], ends
    )
    row = entry if membership.row is None else membership.row[entry]
    return Memberships(row, enter, leave, first_entry, first_pane)


def contiguous(memberships: Memberships) -> Mask:
    """Return for each sequence whether its panes are ranges of neighbouring entries: no enter or leave falls."""
    return never_fall(memberships.enter, memberships.leave, memberships.first_entry)


def as_simplest(membership: Membership) -> Membership:
    """Return the same panes as ranges, unless some sequence needs memberships."""
    return as_ranges(membership) if isinstance(membership, Memberships) and contiguous(membership).all() else membership


def as_ranges(memberships: Memberships) -> Ranges:
    """Return memberships as ranges over their entries. All sequences must be `contiguous`, which is not checked."""
    lo, hi, base = to_ranges(memberships.enter, memberships.leave, memberships.first_entry, memberships.first_pane)
    return Ranges(lo, hi, base, False, memberships.row)


def entered_rows(membership: Membership) -> Ranges:
    """Return panes of the rows that each pane shows and the pane before it in its sequence did not show."""
    memberships = memberships_of(membership)
    return _grouped_by_pane(memberships, memberships.enter, np.ones(len(memberships.row), np.bool_))


def left_rows(membership: Membership) -> Ranges:
    """Return panes of the rows that each pane no longer shows and the pane before it in its sequence showed."""
    memberships = memberships_of(membership)
    ends = np.repeat(memberships.first_pane[1:], np.diff(memberships.first_entry))
    return _grouped_by_pane(memberships, memberships.leave, memberships.leave < ends)


def with_filter(membership: Membership, chosen: Mask) -> Ranges:
    """Return the panes with only some of their rows, as ranges; ``chosen``: bool (n,), for all rows.

    Of memberships all rows of all panes are copied: keep them few.
    """
    ranges = membership if isinstance(membership, Ranges) else part(membership, 0, len(membership))
    row = np.arange(len(chosen)) if ranges.row is None else ranges.row
    before = np.concatenate([[0], np.cumsum(chosen[row])]).astype(np.int64)
    lo, hi, base = (before[edges] for edges in (ranges.lo, ranges.hi, ranges.base))
    return Ranges(lo, hi, base, ranges.disjoint, row[chosen[row]])


def part(membership: Membership, first: int, stop: int) -> Ranges:
    """Return the panes ``[first, stop)`` as ranges. Of memberships all rows of all panes are copied: keep them few."""
    if isinstance(membership, Ranges):
        lo, hi, base = (a[first:stop] for a in (membership.lo, membership.hi, membership.base))
        return Ranges(lo, hi, base, membership.disjoint, membership.row)
    rows, bounds = gathered(membership, first, stop)
    return Ranges(bounds[:-1], bounds[1:], bounds[:-1], True, rows)


def batches(membership: Membership, rows: int = 1 << 21, order: Ints | None = None) -> Iterator[tuple[int, int]]:
    """Yield runs of panes ``(first, stop)`` that together hold about ``rows`` rows, or one larger pane.

    ``order``: that of the panes; None: as they stand.
    """
    counts = sizes(membership)
    reached = np.cumsum(counts if order is None else counts[order])
    first = 0
    while first < len(reached):
        limit = (reached[first - 1] if first else 0) + rows
        stop = min(max(first + 1, int(np.searchsorted(reached, limit, side="right"))), first + rows)
        yield first, stop
        first = stop


def _grouped_by_pane(memberships: Memberships, pane: Ints, chosen: Mask) -> Ranges:
    entries = np.flatnonzero(chosen)
    entries = entries[np.argsort(pane[entries], kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(pane[entries], minlength=len(memberships)))]).astype(np.int64)
    base = np.repeat(bounds[memberships.first_pane[:-1]], np.diff(memberships.first_pane))
    return Ranges(bounds[:-1], bounds[1:], base, True, memberships.row[entries])
