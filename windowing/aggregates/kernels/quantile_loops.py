"""Loops of quantiles over disjoint panes: selection of one place (quickselect) in a scratch array, without a sort."""

from __future__ import annotations

import numpy as np

from ...columns.arrays import Ints
from ...support.jit import kernel
from .loops import Floats, longest


@kernel
def quantiles(values: Floats, numerator: int, denominator: int, lo: Ints, hi: Ints) -> Floats:
    """Value at place ``(n - 1) * numerator / denominator`` of each pane's sorted values, NaN last, linear between."""
    out = np.full(lo.size, np.nan)
    scratch = np.empty(longest(lo, hi), np.float64)
    for p in range(lo.size):
        # NaNs sort last, so they count for the place but need not be in the scratch array.
        count = 0
        for i in range(lo[p], hi[p]):
            if values[i] == values[i]:
                scratch[count] = values[i]
                count += 1
        place = (hi[p] - lo[p] - 1) * numerator
        below = place // denominator
        part = (place % denominator) / denominator
        if lo[p] < hi[p] and below + (part > 0) < count:
            out[p] = select(scratch, count, below)
            if part > 0:
                # `select` leaves no smaller value after place ``below``: the next one in order is a minimum.
                above = scratch[below + 1]
                for i in range(below + 2, count):
                    above = min(above, scratch[i])
                out[p] = between(out[p], above, part)
    return out


@kernel
def select(scratch: Floats, count: int, k: int) -> float:
    """Return the k-th smallest of the first ``count`` values and leave no smaller one after place k (Hoare).

    Pivots come from a fixed pseudo-random sequence, so no usual order of the data (sorted, reversed, all equal) makes
    it quadratic. The pivots do not change the result.
    """
    left, right, state = 0, count - 1, count
    while left < right:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        pivot = scratch[left + (state >> 8) % (right - left + 1)]
        i, j = left, right
        # Invariant: all before i are at most the pivot, all after j at least; the pivot itself stops both inner loops.
        while i <= j:
            while scratch[i] < pivot:
                i += 1
            while scratch[j] > pivot:
                j -= 1
            if i <= j:
                scratch[i], scratch[j] = scratch[j], scratch[i]
                i += 1
                j -= 1
        if j < k < i:
            break
        left, right = (left, j) if k <= j else (i, right)
    answer: float = scratch[k]
    return answer


@kernel
def between(low: float, high: float, part: float) -> float:
    """Return ``low + part * (high - low)``, also where the difference of the two overflows."""
    if np.isfinite(high - low):
        return low + (high - low) * part
    return low * (1.0 - part) + high * part
