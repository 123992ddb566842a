"""Loops over disjoint panes that find equal values: how many are different, and which occurs most often.

All arrays are one-dimensional, contiguous and read-only (`values.frozen`), as in `loops`. The rows of a short pane are
compared with each other: to encode all values in one dictionary takes much longer where most of them are different.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...columns.hash_kernels import Words
from ...support.jit import kernel
from .loops import Codes, longest

FEW = 16
"""Rows of a pane, at most, of which each is compared with those before it; of more rows the codes are looked up."""


class EqualityKeys(NamedTuple):
    """What decides which values of a column are equal, for n values.

    ``words``: uint64 (n,), equal for equal values and for no others; empty for texts.
    ``offsets``: int64 (n + 1,), where the bytes of each text begin in ``data``; empty for all but texts.
    ``data``: uint8, the bytes of texts.
    """

    words: Words
    offsets: Ints
    data: npt.NDArray[np.uint8]


@kernel
def first_equals(keys: EqualityKeys, codes: Codes, distinct: int, rows: int, lo: Ints, hi: Ints) -> Ints:
    """The first row of its pane with an equal value, for each row: int64 (rows,); -1 for a row in no pane.

    ``codes``: int32 (rows,), below ``distinct``, equal for equal values; read only in panes of more than `FEW` rows.
    """
    first = np.full(rows, -1, np.int64)
    seen = np.full(distinct, -1, np.int64)
    for p in range(lo.size):
        if hi[p] - lo[p] > FEW:
            for i in range(lo[p], hi[p]):
                # A row that another pane has seen is not within the bounds, so nothing is cleared between panes.
                if not lo[p] <= seen[codes[i]] < hi[p]:
                    seen[codes[i]] = i
                first[i] = seen[codes[i]]
            continue
        for i in range(lo[p], hi[p]):
            first[i] = i
            for j in range(lo[p], i):
                # Only first appearances are compared: each of the other rows equals one of them.
                if first[j] == j and _are_equal(keys, i, j):
                    first[i] = j
                    break
    return first


@kernel
def _are_equal(keys: EqualityKeys, i: int, j: int) -> bool:
    if not keys.offsets.size:
        return keys.words[i] == keys.words[j]
    one, other = keys.offsets[i], keys.offsets[j]
    size = keys.offsets[i + 1] - one
    if keys.offsets[j + 1] - other != size:
        return False
    at = 0
    while at < size and keys.data[one + at] == keys.data[other + at]:
        at += 1
    return at == size


@kernel
def most_frequent(first: Ints, lo: Ints, hi: Ints) -> Ints:
    """Row of the first appearance of each pane's most frequent value, the earliest of equals; -1 where empty.

    ``first``: as `first_equals` returns it.
    """
    out = np.full(lo.size, -1, np.int64)
    counts = np.zeros(longest(lo, hi), np.int64)
    for p in range(lo.size):
        # Invariant: all counts are 0 before and after a pane; they are those of the first appearances.
        best = 0
        for i in range(lo[p], hi[p]):
            counts[first[i] - lo[p]] += 1
            best = max(best, counts[first[i] - lo[p]])
        for i in range(lo[p], hi[p]):
            if counts[i - lo[p]] == best and out[p] < 0:
                out[p] = i
            counts[i - lo[p]] = 0
    return out


@kernel
def distinct_counts(first: Ints, lo: Ints, hi: Ints) -> Ints:
    """How many different values each pane holds. ``first``: as `first_equals` returns it."""
    out = np.zeros(lo.size, np.int64)
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            out[p] += first[i] == i
    return out


@kernel
def distinct_rows(first: Ints, total: int, lo: Ints, hi: Ints) -> Ints:
    """Rows in which each pane's values appear first, pane after pane, of shape (total,)."""
    out = np.empty(total, np.int64)
    count = 0
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            if first[i] == i:
                out[count] = i
                count += 1
    return out
