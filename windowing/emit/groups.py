"""Groups inside panes (semantics section 4, ``groupBy``): each pane is divided into one pane for each group it shows.

The rows of one group of a key are a sequence of their own, and the panes of a group are those that show one of its
rows. So groups cost as much as their rows and their output, and every aggregate treats them like whole panes.

Where panes overlap, the association of the floats of a group depends on which of its rows are present, from its first
row on. One run over the whole input gives the same bits however it is cut; incremental runs may differ from it in the
last bit of a float sum, mean, variance or product by group. All other aggregates are exact, and so are the groups of
panes that do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.arrays import Ints
from ..panes.membership import Membership, Memberships, Ranges, memberships_of
from ..support.jit import kernel


@dataclass(frozen=True, slots=True)
class Grouped:
    """Q panes of groups, in the order of ``membership``.

    ``pane``: int64 (Q,), the pane of the window that each belongs to.
    ``group``: int64 (Q,), the code of its group.
    ``membership``: the rows that each shows.
    """

    pane: Ints
    group: Ints
    membership: Membership


def grouped(contents: Membership, codes: Ints, touched: bool) -> Grouped:
    """Divide panes by the group ``codes`` of all rows, int64 (n,).

    ``touched``: whether a pane has only the groups of rows that it is the first to show or the first to show no more,
    including groups that are now empty (semantics section 6); else it has every group of which it shows a row.
    """
    if isinstance(contents, Ranges) and contents.disjoint:
        return _apart(contents, codes)
    lives = memberships_of(contents)
    sequence = np.repeat(np.arange(len(lives.first_entry) - 1), np.diff(lives.first_entry))
    group = codes[lives.row]
    order = np.lexsort([group, sequence])
    starts = _starts(sequence[order], group[order])
    enter, leave, bounds = lives.enter[order], lives.leave[order], np.append(starts, len(order))
    if touched:
        ends = lives.first_pane[1:][sequence[order][starts]]
        pane, first_pane = _touched(enter, leave, bounds, ends)
    else:
        pane, first_pane = _shown(enter, leave, bounds)
    own_enter, own_leave = _renumbered(enter, leave, bounds, pane, first_pane)
    of_group = np.repeat(group[order][starts], np.diff(first_pane))
    return Grouped(pane, of_group, Memberships(lives.row[order], own_enter, own_leave, bounds, first_pane))


def _apart(contents: Ranges, codes: Ints) -> Grouped:
    """Divide panes that share no row: their rows only need to be sorted by group."""
    counts = contents.hi - contents.lo
    before = np.cumsum(counts) - counts
    entries = np.repeat(contents.lo - before, counts) + np.arange(counts.sum())
    row = entries if contents.row is None else contents.row[entries]
    pane = np.repeat(np.arange(len(contents)), counts)
    order = np.lexsort([codes[row], pane])
    row, pane = row[order], pane[order]
    starts = _starts(pane, codes[row])
    ranges = Ranges(starts, np.append(starts, len(row))[1:], starts, True, row)
    return Grouped(pane[starts], codes[row][starts], ranges)


def _starts(major: Ints, minor: Ints) -> Ints:
    """Return the places where a new pair begins among sorted pairs."""
    new = np.ones(len(major), np.bool_)
    new[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
    return np.flatnonzero(new)


def _shown(enter: Ints, leave: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Return the panes that show some entry, group after group, and the bounds of each group's panes."""
    by_enter = np.lexsort([enter, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))])
    count, first_pane = _count_shown(enter, leave, bounds, by_enter)
    return _fill_shown(enter, leave, bounds, by_enter, count), first_pane


def _touched(enter: Ints, leave: Ints, bounds: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the panes at which some entry enters or leaves, group after group, and the bounds of each group's."""
    group = np.repeat(np.arange(len(ends)), np.diff(bounds))
    goes = leave < ends[group]
    groups, panes = np.concatenate([group, group[goes]]), np.concatenate([enter, leave[goes]])
    order = np.lexsort([panes, groups])
    groups, panes = groups[order], panes[order]
    kept = _starts(groups, panes)
    first_pane = np.concatenate([[0], np.cumsum(np.bincount(groups[kept], minlength=len(ends)))]).astype(np.int64)
    return panes[kept], first_pane


@kernel
def _count_shown(enter: Ints, leave: Ints, bounds: Ints, by_enter: Ints) -> tuple[int, Ints]:
    """Return how many panes `_fill_shown` writes, and the bounds of each group's."""
    # Two passes, first the count and then the panes: rows times panes is never written down.
    first_pane = np.zeros(len(bounds), np.int64)
    count = 0
    for g in range(len(bounds) - 1):
        # invariant: the entries so far, by ascending ``enter``, show no pane from ``reached`` on
        reached = 0
        for i in range(bounds[g], bounds[g + 1]):
            begin, end = enter[by_enter[i]], leave[by_enter[i]]
            count += max(0, end - max(begin, reached))
            reached = max(reached, end)
        first_pane[g + 1] = count
    return count, first_pane


@kernel
def _fill_shown(enter: Ints, leave: Ints, bounds: Ints, by_enter: Ints, count: int) -> Ints:
    """Return the panes that the entries of each group show, ascending in each group, each once."""
    out = np.empty(count, np.int64)
    place = 0
    for g in range(len(bounds) - 1):
        reached = 0
        for i in range(bounds[g], bounds[g + 1]):
            begin, end = enter[by_enter[i]], leave[by_enter[i]]
            for p in range(max(begin, reached), end):
                out[place] = p
                place += 1
            reached = max(reached, end)
    return out


@kernel
def _renumbered(enter: Ints, leave: Ints, bounds: Ints, pane: Ints, first_pane: Ints) -> tuple[Ints, Ints]:
    """Return enter and leave as places among the panes of the entry's own group."""
    own_enter = np.empty(len(enter), np.int64)
    own_leave = np.empty(len(leave), np.int64)
    for g in range(len(bounds) - 1):
        low, high = first_pane[g], first_pane[g + 1]
        for i in range(bounds[g], bounds[g + 1]):
            own_enter[i] = low + np.searchsorted(pane[low:high], enter[i])
            own_leave[i] = low + np.searchsorted(pane[low:high], leave[i])
    return own_enter, own_leave
