"""The order of pairs of integers that mostly come in order: of panes by key and number, for example."""

from __future__ import annotations

import numpy as np

from ..support.jit import kernel
from .arrays import Ints


def ascend(first: Ints, second: Ints) -> bool:
    """Whether pairs ascend."""
    return bool(_ascend(first, second))


def pair_order(first: Ints, second: Ints) -> Ints | None:
    """Return the stable permutation that sorts pairs, int64 (n,), or None where they ascend."""
    # numpy sorts what is nearly in order as fast as `radix_order` does, or faster, and takes longer where nothing is
    return None if ascend(first, second) else np.lexsort([second, first])


@kernel
def _ascend(first: Ints, second: Ints) -> bool:
    # one pass without a sort: nearly all pairs come in order
    for i in range(1, len(first)):
        if first[i] < first[i - 1] or (first[i] == first[i - 1] and second[i] < second[i - 1]):
            return False
    return True
