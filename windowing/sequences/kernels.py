"""Loops of `sequence`: counting sorts by key, and tests whether rows are already in order.

Keys are dense codes, so a counting sort takes two passes whatever the number of keys, and it is stable: rows of a key
keep their order, which is why the key is the last of the chain of sorts (docs/decisions/001).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columns.arrays import Ints, Mask
from ..columns.radix_sort import Codes
from ..support.jit import kernel


@kernel
def bounds_of(codes: Codes, count: int) -> Ints:
    """Bounds of the rows of each code after a sort by code: int64 (count + 1,)."""
    bounds = np.zeros(count + 1, np.int64)
    for i in range(len(codes)):
        bounds[codes[i] + 1] += 1
    for code in range(count):
        bounds[code + 1] += bounds[code]
    return bounds


@kernel
def by_code(codes: Codes, cursors: Ints) -> Ints:
    """Counting sort: the row at each place, int64 (n,). ``cursors``: where each code's rows begin; they are moved."""
    out = np.empty(len(codes), np.int64)
    # Invariant: cursors[c] is the place of the next row of code c; rows are taken in order, so the sort is stable.
    for i in range(len(codes)):
        code = codes[i]
        out[cursors[code]] = i
        cursors[code] += 1
    return out


@kernel
def falls_and_ties(first: Ints) -> tuple[bool, bool]:
    """Whether some row's word is smaller than that of the row before it, and whether some is equal."""
    # No early exit: the loop has no branches, and in logs, the common case, it has to reach the end anyway.
    falls, ties = False, False
    for i in range(1, len(first)):
        falls |= first[i] < first[i - 1]
        ties |= first[i] == first[i - 1]
    return falls, ties


@kernel
def falls_and_ties_of(codes: Codes, first: Ints, key_count: int) -> tuple[bool, bool]:
    """Whether some row's word is smaller than that of its key's row before it, and whether some is equal.

    The loop ends at the first word that is smaller, because the rows are then sorted whatever follows.
    """
    last = np.full(key_count, np.iinfo(np.int64).min, np.int64)
    ties = False
    # The smallest int64 stands for "no row yet"; a first word of that value counts as a tie, which costs one sort.
    for i in range(len(codes)):
        word = first[i]
        if word < last[codes[i]]:
            return True, ties
        ties |= word == last[codes[i]]
        last[codes[i]] = word
    return False, ties


@kernel
def interleave(codes: Codes, counts: Ints, cursors: Ints, total: int) -> Ints:
    """Counting sort of runs: run r is ``counts[r]`` neighbouring rows of key ``codes[r]``. Returns int64 (total,).

    ``cursors``: where each key's rows begin; they are moved. Codes are read once for each run and not for each row.
    """
    out = np.empty(total, np.int64)
    row = 0
    for r in range(len(codes)):
        code = codes[r]
        at = cursors[code]
        for _ in range(counts[r]):
            out[at] = row
            at += 1
            row += 1
        cursors[code] = at
    return out


@kernel
def runs_follow(first: Ints, bounds: Ints, codes: Codes, last: Ints, seen: Mask, may_tie: bool) -> bool:
    """Whether run r, the rows ``[bounds[r], bounds[r+1])`` of key ``codes[r]``, comes after the key's last row so far.

    ``first``: the words by which rows are ordered. ``last``, ``seen``: by key, the word of the last row, and whether
    there is one; both are brought up to date. ``may_tie``: whether a run may begin with the word of the last row.
    """
    # Rows within a run are in order, so its two ends decide.
    for r in range(len(codes)):
        if bounds[r] == bounds[r + 1]:
            continue
        key, begin = codes[r], first[bounds[r]]
        if seen[key] and (begin < last[key] or (begin == last[key] and not may_tie)):
            return False
        last[key], seen[key] = first[bounds[r + 1] - 1], True
    return True


@kernel
def move_runs(values: Any, bounds: Ints, codes: Codes, cursors: Ints, out: Any) -> None:
    """Copy run r, the values ``[bounds[r], bounds[r+1])``, to the cursor of key ``codes[r]``, which moves on."""
    # Values are read from the first to the last and written run by run: both go through memory in order.
    for r in range(len(codes)):
        at = cursors[codes[r]]
        for i in range(bounds[r], bounds[r + 1]):
            out[at] = values[i]
            at += 1
        cursors[codes[r]] = at
