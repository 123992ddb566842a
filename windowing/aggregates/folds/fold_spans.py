"""Panes of a fold divided into those with contiguous ranks and those with holes, which associate differently."""

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
    """The panes without holes, empty ones included, as ranges of rows.

    ``lo``: int64 (Q,), first row of each, inclusive.
    ``hi``: int64 (Q,), end of each, exclusive.
    ``base``: int64 (Q,), the place that the row of rank 0 would have if no row before the pane were missing.
    ``panes``: int64 (Q,), the indices of these panes, sorted so that panes with one pivot are neighbours; None if they
        are all panes in their order.
    ``before``: int64 (n+1,), how many leaves belong to rows before each row, and to all; empty if row i has leaf i.
    ``leaves``: int64, the leaves of these rows; None for all.
    ``holed``: int64, the indices of the other panes, ascending.
    """

    lo: Ints
    hi: Ints
    base: Ints
    panes: Ints | None
    before: Ints
    leaves: Ints | None
    holed: Ints


def spans_of(ranked: Ranked) -> Spans:
    """Return the panes without holes, and the indices of the others."""
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
    """The spans of memberships. A row is one place here, however many entries it has."""
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
    """`Spans.before` and `Spans.leaves`, from the same of entries and which entries are the first of their row."""
    if is_row.all():
        return before, None
    rows = np.flatnonzero(is_row)
    if not before.size:
        return before, rows
    has_leaf = before[rows + 1] > before[rows]
    return frozen(np.append(0, np.cumsum(has_leaf))), before[rows[has_leaf]]


@kernel
def pivot_place(lo: int, hi: int) -> int:
    """Return the place in ``(lo, hi]`` that the highest power of two divides; ``0 <= lo < hi``."""
    # It is ``hi`` without the bits below the highest one in which ``lo`` and ``hi`` differ.
    shift = 0
    while (lo >> shift) != (hi >> shift):
        shift += 1
    return (hi >> (shift - 1)) << (shift - 1)


@kernel
def _pivots(lo: Ints, hi: Ints, base: Ints) -> Ints:
    """The pivot of each pane; ``lo`` for an empty pane."""
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
            # Ranks ascend by at least 1, so a pane has no hole if its first and last rank agree on the base.
            base[p] = lo[p] - rank[lo[p]]
            holed[p] = hi[p] - 1 - rank[hi[p] - 1] != base[p]
    return base, holed
