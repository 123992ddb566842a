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


def sizes(contents: Membership) -> Ints:
    """Rows of each pane, int64 (P,)."""
    if isinstance(contents, Ranges):
        return contents.hi - contents.lo
    count = len(contents)
    changes = np.bincount(contents.enter, minlength=count + 1) - np.bincount(contents.leave, minlength=count + 1)
    return np.cumsum(changes[:count])


def shown(contents: Membership, rows: int) -> Mask:
    """Return which of ``rows`` rows at least one pane shows."""
    out = np.zeros(rows, np.bool_)
    if isinstance(contents, Memberships):
        out[contents.row] = True
        return out
    entries = rows if contents.row is None else len(contents.row)
    found = covered(contents.lo, contents.hi, entries)
    if contents.row is None:
        return found
    out[contents.row[found]] = True
    return out


def edge_rows(contents: Membership) -> tuple[Ints, Ints]:
    """Return the first and the last row of each pane, int64 (P,); -1 for an empty one."""
    if isinstance(contents, Memberships):
        first, last = painted(contents.enter, contents.leave, len(contents))
    else:
        empty = contents.lo == contents.hi
        first, last = np.where(empty, -1, contents.lo), np.where(empty, -1, contents.hi - 1)
    if contents.row is None:
        return first, last
    row = np.append(contents.row, -1)  # place -1 is the last
    return row[first], row[last]


def gathered(contents: Membership, first: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows of the panes ``[first, stop)`` one pane after the other, and the bounds of each, int64."""
    if isinstance(contents, Memberships):
        return _gathered_memberships(contents, first, stop)
    counts = (contents.hi - contents.lo)[first:stop]
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries = np.repeat(contents.lo[first:stop] - bounds[:-1], counts) + np.arange(bounds[-1])
    return (entries if contents.row is None else contents.row[entries]), bounds


def _gathered_memberships(lives: Memberships, first: int, stop: int) -> tuple[Ints, Ints]:
    low = np.searchsorted(lives.first_pane, first, side="right") - 1
    high = np.searchsorted(lives.first_pane, stop, side="left")
    mine = slice(lives.first_entry[low], lives.first_entry[high])
    panes = stop - first
    enter, leave = (np.clip(ends[mine] - first, 0, panes) for ends in (lives.enter, lives.leave))
    changes = np.bincount(enter, minlength=panes + 1) - np.bincount(leave, minlength=panes + 1)
    bounds = np.concatenate([[0], np.cumsum(np.cumsum(changes[:panes]))]).astype(np.int64)
    return lives.row[mine][spread(enter, leave, bounds)], bounds


def take(contents: Membership, picks: Ints) -> Membership:
    """Return only the panes at ``picks``, which ascend."""
    if isinstance(contents, Ranges):
        return Ranges(contents.lo[picks], contents.hi[picks], contents.base[picks], contents.disjoint, contents.row)
    enter, leave = np.searchsorted(picks, contents.enter), np.searchsorted(picks, contents.leave)
    alive = enter < leave
    before = np.concatenate([[0], np.cumsum(alive)])
    first_pane = np.searchsorted(picks, contents.first_pane)
    return Memberships(contents.row[alive], enter[alive], leave[alive], before[contents.first_entry], first_pane)


def memberships_of(contents: Membership) -> Memberships:
    """Return the same panes as lives."""
    if isinstance(contents, Memberships):
        return contents
    starts = np.flatnonzero(np.diff(contents.base, prepend=-1)) if len(contents) else np.empty(0, np.int64)
    first_pane = np.append(starts, len(contents))
    ends = contents.hi[first_pane[1:] - 1] if len(starts) else np.empty(0, np.int64)
    entry, enter, leave, first_entry = to_memberships(contents.lo, contents.hi, first_pane, contents.base[starts], ends)
    row = entry if contents.row is None else contents.row[entry]
    return Memberships(row, enter, leave, first_entry, first_pane)


def contiguous(lives: Memberships) -> Mask:
    """Return for each sequence whether its panes are ranges of neighbouring entries: neither enter nor leave falls."""
    return never_fall(lives.enter, lives.leave, lives.first_entry)


def as_simplest(contents: Membership) -> Membership:
    """Return the same panes as ranges, where no sequence needs lives."""
    return as_ranges(contents) if isinstance(contents, Memberships) and contiguous(contents).all() else contents


def as_ranges(lives: Memberships) -> Ranges:
    """Return lives as ranges over their entries. Only for `contiguous` sequences; others come out wrong."""
    lo, hi, base = to_ranges(lives.enter, lives.leave, lives.first_entry, lives.first_pane)
    return Ranges(lo, hi, base, False, lives.row)


def entered_rows(contents: Membership) -> Ranges:
    """Return as panes the lots of rows that each pane shows and the one before it of its sequence did not."""
    lives = memberships_of(contents)
    return _lots(lives, lives.enter, np.ones(len(lives.row), np.bool_))


def left_rows(contents: Membership) -> Ranges:
    """Return as panes the lots of rows that each pane no longer shows and the one before it of its sequence did."""
    lives = memberships_of(contents)
    ends = np.repeat(lives.first_pane[1:], np.diff(lives.first_entry))
    return _lots(lives, lives.leave, lives.leave < ends)


def part(contents: Membership, first: int, stop: int) -> Ranges:
    """Return the panes ``[first, stop)`` as ranges; of lives the rows are written down, so let them be few."""
    if isinstance(contents, Ranges):
        lo, hi, base = (a[first:stop] for a in (contents.lo, contents.hi, contents.base))
        return Ranges(lo, hi, base, contents.disjoint, contents.row)
    rows, bounds = gathered(contents, first, stop)
    return Ranges(bounds[:-1], bounds[1:], bounds[:-1], True, rows)


def batches(contents: Membership, rows: int = 1 << 21) -> Iterator[tuple[int, int]]:
    """Cut the panes into runs ``(first, stop)`` that hold about ``rows`` rows together, or are of one pane."""
    reached = np.cumsum(sizes(contents))
    first = 0
    while first < len(reached):
        limit = (reached[first - 1] if first else 0) + rows
        stop = min(max(first + 1, int(np.searchsorted(reached, limit, side="right"))), first + rows)
        yield first, stop
        first = stop


def _lots(lives: Memberships, pane: Ints, chosen: Mask) -> Ranges:
    """Entries put together by the pane they are told at, in order."""
    entries = np.flatnonzero(chosen)
    entries = entries[np.argsort(pane[entries], kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(pane[entries], minlength=len(lives)))]).astype(np.int64)
    base = np.repeat(bounds[lives.first_pane[:-1]], np.diff(lives.first_pane))
    return Ranges(bounds[:-1], bounds[1:], base, True, lives.row[entries])
