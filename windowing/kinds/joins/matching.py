"""Which keys meet, and which pairs match: the condition of a join, asked of a bounded number of pairs at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, combined, spread
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


def matching(
    condition: PairCondition, rows: pa.RecordBatch, left: Ints, lo: Ints, hi: Ints, right: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return spans of the pairs that match: of which span each is, ascending, and its range, all int64.

    ``left``, ``lo``, ``hi``, ``right``: as in `Pairs`. A span none of whose pairs matches has one empty range.
    """
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
    return np.insert(span, at, none), np.insert(lo, at, 0), np.insert(hi, at, 0)
