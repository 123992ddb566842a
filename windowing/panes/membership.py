"""Which rows each pane shows: ranges of neighbouring rows, or lives of single rows.

Everything that looks into panes (aggregates, groups, lots, the rows themselves) goes through these two forms, so that
no kind of window ever writes down panes times rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..columns.arrays import Ints, Mask
from .membership_kernels import covered, never_fall, painted, spread, to_memberships, to_ranges


@dataclass(frozen=True, slots=True)
class Ranges:
    """P panes, each a half-open range of neighbouring entries.

    ``lo``, ``hi``: int64 (P,), neither falls within a sequence; equal for an empty pane. ``base``: int64 (P,), the
    first entry of the pane's sequence: where nothing else tells the ranks of rows, what is computed of a pane depends
    on ``lo - base`` and ``hi - base``, never on what stands before its sequence. ``apart``: whether no entry can be in
    two panes, which the kind of window decides and never the data. ``row``: int64 (E,), the row of each entry; None
    where entry i is row i.
    """

    lo: Ints
    hi: Ints
    base: Ints
    disjoint: bool
    row: Ints | None = None

    def __len__(self) -> int:
        return len(self.lo)


@dataclass(frozen=True, slots=True)
class Memberships:
    """Panes whose rows need not be neighbours: each entry is a row, and the run of panes that shows it.

    ``row``: int64 (E,), sequence after sequence, in each in the order in which a pane's rows are seen; a row may have
    several entries, with panes that do not show it between them. ``enter``, ``leave``: int64 (E,), the entry is in the
    panes ``[enter, leave)``, at least one.
    ``first_entry``, ``first_pane``: int64 (S+1,), the bounds of the S sequences among the entries and the panes.
    """

    row: Ints
    enter: Ints
    leave: Ints
    first_entry: Ints
    first_pane: Ints

    def __len__(self) -> int:
        return int(self.first_pane[-1])


Membership: TypeAlias = Ranges | Memberships


def sizes(membership: Membership) -> Ints:
    """Rows of each pane, int64 (P,)."""
    if isinstance(membership, Ranges):
        return membership.hi - membership.lo
    count = len(membership)
    changes = np.bincount(membership.enter, minlength=count + 1) - np.bincount(membership.leave, minlength=count + 1)
    return np.cumsum(changes[:count])


def shown(membership: Membership, rows: int) -> Mask:
    """Return which of ``rows`` rows at least one pane shows."""
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
        first, last = np.where(empty, -1, membership.lo), np.where(empty, -1, membership.hi - 1)
    if membership.row is None:
        return first, last
    row = np.append(membership.row, -1)  # place -1 is the last
    return row[first], row[last]


def gathered(membership: Membership, first: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows of the panes ``[first, stop)`` one pane after the other, and the bounds of each, int64."""
    if isinstance(membership, Memberships):
        return _gathered_memberships(membership, first, stop)
    counts = (membership.hi - membership.lo)[first:stop]
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries = np.repeat(membership.lo[first:stop] - bounds[:-1], counts) + np.arange(bounds[-1])
    return (entries if membership.row is None else membership.row[entries]), bounds


def _gathered_memberships(memberships: Memberships, first: int, stop: int) -> tuple[Ints, Ints]:
    low = np.searchsorted(memberships.first_pane, first, side="right") - 1
    high = np.searchsorted(memberships.first_pane, stop, side="left")
    mine = slice(memberships.first_entry[low], memberships.first_entry[high])
    panes = stop - first
    enter, leave = (np.clip(ends[mine] - first, 0, panes) for ends in (memberships.enter, memberships.leave))
    changes = np.bincount(enter, minlength=panes + 1) - np.bincount(leave, minlength=panes + 1)
    bounds = np.concatenate([[0], np.cumsum(np.cumsum(changes[:panes]))]).astype(np.int64)
    return memberships.row[mine][spread(enter, leave, bounds)], bounds


def take(membership: Membership, picks: Ints) -> Membership:
    """Return only the panes at ``picks``, which ascend."""
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
    """Return the same panes as lives."""
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
    """Return for each sequence whether its panes are ranges of neighbouring entries: neither enter nor leave falls."""
    return never_fall(memberships.enter, memberships.leave, memberships.first_entry)


def as_simplest(membership: Membership) -> Membership:
    """Return the same panes as ranges, where no sequence needs lives."""
    return as_ranges(membership) if isinstance(membership, Memberships) and contiguous(membership).all() else membership


def as_ranges(memberships: Memberships) -> Ranges:
    """Return lives as ranges over their entries. Only for `contiguous` sequences; others come out wrong."""
    lo, hi, base = to_ranges(memberships.enter, memberships.leave, memberships.first_entry, memberships.first_pane)
    return Ranges(lo, hi, base, False, memberships.row)


def entered_rows(membership: Membership) -> Ranges:
    """Return as panes the lots of rows that each pane shows and the one before it of its sequence did not."""
    memberships = memberships_of(membership)
    return _lots(memberships, memberships.enter, np.ones(len(memberships.row), np.bool_))


def left_rows(membership: Membership) -> Ranges:
    """Return as panes the lots of rows that each pane no longer shows and the one before it of its sequence did."""
    memberships = memberships_of(membership)
    ends = np.repeat(memberships.first_pane[1:], np.diff(memberships.first_entry))
    return _lots(memberships, memberships.leave, memberships.leave < ends)


def part(membership: Membership, first: int, stop: int) -> Ranges:
    """Return the panes ``[first, stop)`` as ranges; of lives the rows are written down, so let them be few."""
    if isinstance(membership, Ranges):
        lo, hi, base = (a[first:stop] for a in (membership.lo, membership.hi, membership.base))
        return Ranges(lo, hi, base, membership.disjoint, membership.row)
    rows, bounds = gathered(membership, first, stop)
    return Ranges(bounds[:-1], bounds[1:], bounds[:-1], True, rows)


def batches(membership: Membership, rows: int = 1 << 21) -> Iterator[tuple[int, int]]:
    """Cut the panes into runs ``(first, stop)`` that hold about ``rows`` rows together, or are of one pane."""
    reached = np.cumsum(sizes(membership))
    first = 0
    while first < len(reached):
        limit = (reached[first - 1] if first else 0) + rows
        stop = min(max(first + 1, int(np.searchsorted(reached, limit, side="right"))), first + rows)
        yield first, stop
        first = stop


def _lots(memberships: Memberships, pane: Ints, chosen: Mask) -> Ranges:
    """Entries put together by the pane they are told at, in order."""
    entries = np.flatnonzero(chosen)
    entries = entries[np.argsort(pane[entries], kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(pane[entries], minlength=len(memberships)))]).astype(np.int64)
    base = np.repeat(bounds[memberships.first_pane[:-1]], np.diff(memberships.first_pane))
    return Ranges(bounds[:-1], bounds[1:], base, True, memberships.row[entries])
