"""Loops over memberships: flat functions over int64 arrays, for `membership`. Each is linear in its input or output."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints, Mask
from ..support.jit import kernel


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
