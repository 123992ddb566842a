"""Loops over values that are compared by an amount: which rows are evicted, and which trigger a ``delta``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columns.arrays import Ints, Mask, Measures
from ..rows.sequence import rises
from ..support.jit import kernel

# The loops of sliding windows: which row evicts another by ``delta``, and which is the oldest row young enough.
#
# The loops know nothing of columns, triggers or panes. Values are as `comparable` returns them, amounts of the same
# type.


_LOWEST = np.int64(-(2**63))


def comparable(values: Measures) -> Measures:
    """Return values whose differences do not wrap, shape (n,): int64 moved up by 2**63 as uint64, floats unchanged."""
    return (values ^ _LOWEST).view(np.uint64) if values.dtype == np.int64 else values


@kernel
def risen_pairs(new: Measures, old: Measures, amount: Any) -> Mask:
    """Return for each pair of values whether it `rises`, bool (n,): as `have_risen`, in one pass over the rows."""
    out = np.empty(len(new), np.bool_)
    for i in range(len(new)):
        out[i] = rises(new[i], old[i], amount)
    return out


@kernel
def _first_fall(values: Measures, begin: int, end: int) -> int:
    """Return the first row below the one before it; ``end`` where there is none."""
    for i in range(begin + 1, end):
        if values[i] < values[i - 1]:
            return i
    return end


@kernel
def _nearest(records: Ints, height: int, values: Measures, i: int, amount: Any) -> int:
    """Return the index of the nearest record that rises above row i; -1 where none does.

    The last record is the nearest and the lowest, so the records that rise enough are the first ones. The search
    begins at the last record, in growing steps, because most rows are evicted by a row that is not far away.
    """
    # invariant: the records from ``high`` on do not rise enough
    low, high, step = height - 1, height, 1
    while low >= 0 and not rises(values[records[low]], values[i], amount):
        high = low
        low -= step
        step *= 2
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if rises(values[records[middle]], values[i], amount):
            low = middle
        else:
            high = middle
    return low


@kernel
def _recorded(records: Ints, height: int, values: Measures, i: int) -> int:
    """Remove the records that row i reaches and put row i on top; NaN reaches no record and is none itself."""
    if not values[i] == values[i]:  # noqa: SIM201 - only NaN is not itself
        return height
    # row i comes before the reached records and is at least as high: it evicts whatever they would evict, and sooner
    while height > 0 and values[records[height - 1]] <= values[i]:
        height -= 1
    records[height] = i
    return height + 1


@kernel
def evicted_by_delta(bounds: Ints, values: Measures, amount: Any) -> Ints:
    """Return for each row the row of its key that evicts it; n where no row does, int64 of shape (n,).

    The evicting row is the first later row that rises above it by more than ``amount`` (semantics section 3,
    ``delta``). While no row has fallen below the one before it, only the oldest rows are checked, up to the first that
    stays. The result is the same, except that a NaN, which is never evicted, protects the rows after it until the
    first fall. O(n log n), and O(n) where no row falls.
    """
    n = len(values)
    out = np.full(n, n, np.int64)
    records = np.empty(n, np.int64)
    for k in range(len(bounds) - 1):
        begin, end = bounds[k], bounds[k + 1]
        fall = _first_fall(values, begin, end)
        oldest = begin
        # Before the first fall the values ascend, so rows are evicted in the order of their arrival: one pointer
        # to the oldest row replaces the search.
        for i in range(begin, fall):
            while oldest < i and rises(values[i], values[oldest], amount):
                out[oldest] = i
                oldest += 1
        height = 0
        # Backwards, ``records[:height]`` are the later rows that no row between i and them reaches: a stack whose
        # values descend towards its top, so bisection finds the nearest row that rises enough. Rows before the fall
        # are never pushed: the loop above has shown that none of them evicts another one that is left.
        for i in range(end - 1, oldest - 1, -1):
            found = _nearest(records, height, values, i, amount)
            if found >= 0:
                out[i] = records[found]
            if i >= fall:
                height = _recorded(records, height, values, i)
    return out


@kernel
def oldest_retained(begin: Ints, place: Ints, at: Measures, values: Measures, age: Any) -> Ints:
    """Return for each trigger the first row of ``[begin, place)`` that is not more than ``age`` before ``at``.

    The triggers of one key share one ``begin``, and neither ``place`` nor ``at`` descends among them. The result is
    ``place`` where all rows are older. int64 of shape (triggers,).
    """
    out = np.empty(len(place), np.int64)
    # Within a key neither place nor time goes back, so the oldest row never does: one pass, O(rows + triggers).
    low = 0
    for p in range(len(place)):
        low = max(low, begin[p])
        while low < place[p] and rises(at[p], values[low], age):
            low += 1
        out[p] = low
    return out


# Where ``delta`` starts a window: the rows that rise above the first row of a window by more than an amount.


@kernel
def delta_starts(bounds: Ints, values: Measures, amount: Any, begin: Ints, known: Mask, baseline: Measures) -> Mask:
    """Return which rows start a ``delta`` window: ``new >= first and new - first > amount``; NaN compares false.

    ``values``, ``amount``: as `windowing.rows.sequence.measures_and_amount` returns them. ``begin``: int64 (K,), the
    first row of each key that is compared; rows before it start none. ``known``: bool (K,), whether an earlier row has
    set the value that it is compared with, ``baseline``, (K,), of any length where none is known; else it sets the
    value, and counts as a start.
    """
    # Each start depends on the one before it, so the loop over the rows of a key cannot be a vector operation.
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        row = begin[k]
        if row == bounds[k + 1]:
            continue
        if known[k]:
            first = baseline[k]
        else:
            first = values[row]
            flags[row] = True
            row += 1
        for i in range(row, bounds[k + 1]):
            if rises(values[i], first, amount):
                flags[i] = True
                first = values[i]
    return flags
