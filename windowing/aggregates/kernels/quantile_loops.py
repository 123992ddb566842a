"""The loops of quantiles: each pane's values go to one scratch array, and only the place asked for is sorted out."""

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
                above = scratch[below + 1]
                for i in range(below + 2, count):
                    above = min(above, scratch[i])
                out[p] = between(out[p], above, part)
    return out


@kernel
def select(scratch: Floats, count: int, k: int) -> float:
    """Return the k-th smallest of the first ``count`` values and leave no smaller one after place k (Hoare).

    Pivots come from a fixed pseudo-random row: no order of the data makes it slow, and the answer is the same.
    """
    left, right, state = 0, count - 1, count
    while left < right:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        pivot = scratch[left + (state >> 8) % (right - left + 1)]
        i, j = left, right
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
    """Return the value a ``part`` of the way from low to high, also where their distance is not finite."""
    if np.isfinite(high - low):
        return low + (high - low) * part
    return low * (1.0 - part) + high * part
