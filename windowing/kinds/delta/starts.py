"""Where ``delta`` starts a window: the rows that rise above the first row of a window by more than an amount."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...columns.arrays import Ints, Mask, Measures
from ...rows.sequence import rises
from ...support.jit import kernel


class Baselines(NamedTuple):
    """The values with which the rows of K keys are compared first.

    ``begin``: int64 (K,), the first row of each key that is compared.
    ``known``: bool (K,), whether an earlier row has set the value.
    ``value``: int64 or float64 (K,), the value; of any length where none is known.
    """

    begin: Ints
    known: Mask
    value: Measures


def delta_starts(bounds: Ints, values: Measures, amount: Any, baselines: Baselines | None = None) -> Ints:
    """Return the rows where a ``delta`` window starts: ``new >= first and new - first > amount``; int64, ascending.

    ``values``, ``amount``: as `windowing.rows.sequence.measures_and_amount` returns them; NaN compares
    false. ``baselines``: the baselines of keys that have one already; None: the first row of each key sets it, and
    counts as a start.
    """
    if baselines is None:
        baselines = Baselines(bounds[:-1], np.zeros(len(bounds) - 1, np.bool_), np.zeros(1, values.dtype))
    return np.flatnonzero(_delta_flags(bounds, values, amount, baselines))


@kernel
def _delta_flags(bounds: Ints, values: Measures, amount: Any, baselines: Baselines) -> Mask:
    """Flag the rows that start a ``delta`` window; NaN starts none unless it is a key's first row."""
    # Each start depends on the one before it, so the loop over the rows of a key cannot be a vector operation.
    flags = np.zeros(len(values), np.bool_)
    for k in range(len(bounds) - 1):
        begin = baselines.begin[k]
        if begin == bounds[k + 1]:
            continue
        if baselines.known[k]:
            first = baselines.value[k]
        else:
            first = values[begin]
            flags[begin] = True
            begin += 1
        for i in range(begin, bounds[k + 1]):
            if rises(values[i], first, amount):
                flags[i] = True
                first = values[i]
    return flags
