"""What windows over both sides of a join share: rows of one side, which keys meet, and which pairs match and come out.

A condition of pairs is asked of a bounded number of them at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined, spread
from ...columns.radix_sort import changes
from ...rows.pairs import PairCondition
from ...rows.sequence import Sequences

_PAIRS = 1 << 20
"""So many pairs are made at a time."""


def meets(sequences: Sequences) -> Mask:
    """Return the keys whose rows may meet others, bool (K,): null and NaN equal nothing."""
    out = np.ones(len(sequences.bounds) - 1, np.bool_)
    for column in () if sequences.keys is None else sequences.keys.columns:
        out &= ~combined(column).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return out


@dataclass(frozen=True, slots=True)
class SideRows:
    """The rows of one side.

    ``row``: int64 (n,), in their order. ``bounds``: int64 (K+1,), those of each key. ``key``: int64 (n,), of each row.
    """

    row: Ints
    bounds: Ints
    key: Ints


def rows_of_side(sequences: Sequences, is_there: Mask) -> SideRows:
    """Return the rows of a side. ``is_there``: bool, which of all rows they are."""
    row = np.flatnonzero(is_there)
    bounds = np.searchsorted(row, sequences.bounds)
    return SideRows(row, bounds, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)))


@dataclass(frozen=True, slots=True)
class Spans:
    """Right rows of left rows, as in `Pairs`, before they are panes; an empty span: the row has no partner in it.

    ``of``: int64 (S,), what each belongs to: a pane, a moment, or the left row itself.
    ``left``: int64 (S,), the left row; -1: none. ``lo``, ``hi``: int64 (S,), ranges of the right rows.
    ``tag``: int64 (S,), the number of the offset; None: there is one, or none.
    """

    of: Ints
    left: Ints
    lo: Ints
    hi: Ints
    tag: Ints | None = None

    def take(self, picks: Ints | Mask) -> Spans:
        tag = None if self.tag is None else self.tag[picks]
        return Spans(self.of[picks], self.left[picks], self.lo[picks], self.hi[picks], tag)

    def coming_out(self, how: str) -> Spans:
        """Return those that come out of left rows with all of their spans, which stand one after the other."""
        if how in {"left", "full"}:
            return self
        is_met = self.lo < self.hi
        if how == "semi":  # each row once, and without its partners
            is_met &= changes(self.of) | changes(self.left)
        found = self.take(~is_met) if how == "anti" else self if is_met.all() else self.take(is_met)
        return replace(found, hi=found.lo) if how == "semi" else found


def matching(condition: PairCondition | None, rows: pa.RecordBatch, spans: Spans, right: Ints) -> Spans:
    """Return spans of the pairs that match; one none of whose pairs matches is empty. ``right``: as in `Pairs`."""
    if condition is None:
        return spans
    left, lo, hi = spans.left, spans.lo, spans.hi
    counts = hi - lo
    ends = np.cumsum(counts)
    parts, total = list[tuple[Ints, Ints, Ints]](), int(ends[-1]) if len(ends) else 0
    for first in range(0, total, _PAIRS):
        stop = min(total, first + _PAIRS)
        some = slice(np.searchsorted(ends, first, side="right"), np.searchsorted(ends, stop) + 1)
        begins = ends[some] - counts[some]
        pairs = np.minimum(ends[some], stop) - np.maximum(begins, first)
        span = np.repeat(np.arange(some.start, some.start + len(pairs)), pairs)
        place = spread(lo[some] + np.maximum(first - begins, 0), pairs)
        chosen = condition.holds(rows, left[span], right[place])
        span, place = span[chosen], place[chosen]
        is_first = np.append(True, (span[1:] != span[:-1]) | (place[1:] != place[:-1] + 1))[: len(span)]
        starts = np.flatnonzero(is_first)
        parts.append((span[starts], place[starts], place[np.append(starts[1:], len(span))[: len(starts)] - 1] + 1))
    nothing = np.empty(0, np.int64)
    span, lo, hi = (np.concatenate(each) for each in zip((nothing,) * 3, *parts, strict=True))
    alone = np.ones(len(left), np.bool_)
    alone[span] = False
    none = np.flatnonzero(alone)
    at = np.searchsorted(span, none)
    lo, hi = np.insert(lo, at, 0), np.insert(hi, at, 0)
    return replace(spans.take(np.insert(span, at, none)), lo=lo, hi=hi)
