"""Which panes of a fold are neighbours in rank, and which have holes: what decides how each of them associates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns.arrays import Ints, Mask
from ...panes.membership import Memberships, edge_rows, sizes
from ...support.jit import kernel
from .inputs import Ranked
from .values import frozen

_NONE: Ints = frozen(np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Spans:
    """The panes without holes, those that are empty included, as ranges of rows.

    ``lo``, ``hi``: int64 (Q,), half open. ``base``: int64 (Q,), the place of rank 0, were the rows between it and the
    pane there. ``panes``: int64 (Q,), which panes they are, those that meet at one pivot together; None: all, as they
    stand. ``before``: int64, how many leaves are of rows before each, and of all; empty where row i has leaf i.
    ``leaves``: int64, the leaves of these rows; None: all. ``holed``: int64, the other panes, ascending.
    """

    lo: Ints
    hi: Ints
    base: Ints
    panes: Ints | None
    before: Ints
    leaves: Ints | None
    holed: Ints


def spans_of(ranked: Ranked) -> Spans:
    """Return the panes without holes, and which the others are."""
    if isinstance(ranked.membership, Memberships):
        return _membership_spans(ranked.membership, ranked)
    lo, hi, base = ranked.membership.lo, ranked.membership.hi, ranked.membership.base
    if ranked.rank is None:
        return Spans(lo, hi, base, None, ranked.valid_before, None, _NONE)
    base, is_holed = _range_spans(lo, hi, ranks_of(ranked))
    holed = np.flatnonzero(is_holed)
    if not len(holed):
        return Spans(lo, hi, frozen(base), None, ranked.valid_before, None, _NONE)
    panes = np.flatnonzero(~is_holed)
    lo, hi, base = (frozen(places[panes]) for places in (lo, hi, base))
    return Spans(lo, hi, base, panes, ranked.valid_before, None, holed)


def ranks_of(ranked: Ranked) -> Ints:
    """Return the rank of each entry, int64 (E,)."""
    membership = ranked.membership
    if ranked.rank is not None:
        ranks: Ints = frozen(ranked.rank if ranked.row is None else ranked.rank[ranked.row])
        return ranks
    assert isinstance(membership, Memberships)  # of ranges, `Ranges.base` says it
    return np.arange(len(membership.row)) - np.repeat(membership.first_entry[:-1], np.diff(membership.first_entry))


def _membership_spans(memberships: Memberships, ranked: Ranked) -> Spans:
    """A row is one place here, however many entries it has."""
    rank = ranks_of(ranked)
    is_row = np.append(True, rank[1:] != rank[:-1])[: len(rank)]
    is_row[memberships.first_entry[:-1][np.diff(memberships.first_entry) > 0]] = True
    rank, place = np.append(rank, 0), np.append(np.cumsum(is_row) - 1, 0)  # entry -1, of an empty pane, is the last
    first, last = edge_rows(memberships)
    is_holed = (first >= 0) & (rank[last] - rank[first] + 1 != sizes(memberships))
    panes = np.flatnonzero(~is_holed)
    first, last = first[panes], last[panes]
    lo = place[first]
    hi, base = np.where(first < 0, lo, place[last] + 1), lo - rank[first]
    order = np.lexsort([hi, _pivots(lo, hi, base)])
    lo, hi, base = (frozen(places[order]) for places in (lo, hi, base))
    return Spans(lo, hi, base, panes[order], *_of_rows(ranked.valid_before, is_row), np.flatnonzero(is_holed))


def _of_rows(before: Ints, is_row: Mask) -> tuple[Ints, Ints | None]:
    """`Spans.before` and `Spans.leaves`, given ``before`` of entries and which of them are the first of their row."""
    if is_row.all():
        return before, None
    rows = np.flatnonzero(is_row)
    if not before.size:
        return before, rows
    has_leaf = before[rows + 1] > before[rows]
    return frozen(np.append(0, np.cumsum(has_leaf))), before[rows[has_leaf]]


@kernel
def pivot_place(lo: int, hi: int) -> int:
    """Return the place in ``(lo, hi]`` that more twos divide than any other; ``0 <= lo < hi``."""
    shift = 0
    while (lo >> shift) != (hi >> shift):
        shift += 1
    return (hi >> (shift - 1)) << (shift - 1)


@kernel
def _pivots(lo: Ints, hi: Ints, base: Ints) -> Ints:
    """The pivot of each pane; ``lo`` of an empty one."""
    out = lo.copy()
    for p in range(lo.size):
        if lo[p] < hi[p]:
            out[p] = base[p] + pivot_place(lo[p] - base[p], hi[p] - base[p])
    return out


@kernel
def _range_spans(lo: Ints, hi: Ints, rank: Ints) -> tuple[Ints, Mask]:
    """`Spans.base` of each pane, and which panes have holes."""
    base = np.zeros(lo.size, np.int64)
    holed = np.zeros(lo.size, np.bool_)
    for p in range(lo.size):
        if lo[p] < hi[p]:
            base[p] = lo[p] - rank[lo[p]]
            holed[p] = hi[p] - 1 - rank[hi[p] - 1] != base[p]
    return base, holed
