"""Kernels of sequences: counting sorts by key, and whether rows stand in order."""

from __future__ import annotations

import numpy as np

from ..columns.arrays import Ints
from ..columns.radix_sort import Codes
from ..support.jit import kernel


@kernel
def bounds_of(codes: Codes, count: int) -> Ints:
    """Where the rows of each code begin and end once they are sorted by it: int64 (count + 1,)."""
    bounds = np.zeros(count + 1, np.int64)
    for i in range(len(codes)):
        bounds[codes[i] + 1] += 1
    for code in range(count):
        bounds[code + 1] += bounds[code]
    return bounds


@kernel
def by_code(codes: Codes, cursors: Ints) -> Ints:
    """Counting sort: which row goes to each place, given where each code's rows begin."""
    out = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        code = codes[i]
        out[cursors[code]] = i
        cursors[code] += 1
    return out


@kernel
def falls_and_ties(first: Ints) -> tuple[bool, bool]:
    """Whether a row's word is smaller than that of the row before it, or equal."""
    falls, ties = False, False
    for i in range(1, len(first)):
        falls |= first[i] < first[i - 1]
        ties |= first[i] == first[i - 1]
    return falls, ties


@kernel
def falls_and_ties_of(codes: Codes, first: Ints, key_count: int) -> tuple[bool, bool]:
    """What `falls_and_ties` does, of each row and its key's row before it.

    Once a word is smaller no more is looked at.
    """
    last = np.full(key_count, np.iinfo(np.int64).min, np.int64)
    ties = False
    for i in range(len(codes)):
        word = first[i]
        if word < last[codes[i]]:
            return True, ties
        ties |= word == last[codes[i]]
        last[codes[i]] = word
    return False, ties


@kernel
def interleave(codes: Codes, counts: Ints, cursors: Ints, total: int) -> Ints:
    """Counting sort of runs: run r is ``counts[r]`` neighbouring rows of key ``codes[r]``."""
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
