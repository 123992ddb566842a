"""Variances in two phases: a few floats with the sum of some numbers, and a few with the sum of their squares.

A square of a float is the sum of two floats, unless they are too large or too small to be floats. Numbers with such
squares are kept as they are, and so are infinities and NaN. So both sums are exact, whatever the numbers, and the
variance of any number of parts is the float nearest to the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...panes.membership import Ranges
from ...support.jit import kernel
from ..folds.exact_sums import LIMBS, add_to_limbs, parts_of, write_limbs
from ..folds.inputs import Dense, Inputs, as_ranges, dense, masked
from ..folds.values import frozen, number_halves, scale_of
from ..kernels.loops import Floats, error_of_product
from .quotients import nearest_root, to_float

_LEAST, _MOST = 2.0**-480, 2.0**480
"""Between them, squares and the errors of these are floats, and sums of fewer than 2**60 squares, too."""
_SOME = 256  # numbers whose squares wait to be added

COLUMNS = 4
"""Columns of the first phase: how many numbers there are, the floats of both sums, and the numbers that are kept."""


def split_spread(inputs: Inputs) -> list[pa.Array]:
    """Return, for each pane, the number of values and what is left of them: lists of floats, and of values."""
    present = dense(inputs)
    column, ranges = present.columns[0], present.ranges
    high, low = number_halves(column)
    size = np.abs(high)
    is_kept = ~((high == 0.0) | ((size > _LEAST) & (size < _MOST)))
    if is_kept.any():
        high = frozen(np.where(is_kept, 0.0, high))
        low = frozen(np.where(is_kept, 0.0, low)) if low.size else low
    sums = _lists(*parts_of(*_interleaved(high, low, ranges)))
    squares = _lists(*_square_parts(high, low, frozen(ranges.lo), frozen(ranges.hi)))
    return [pa.array(present.sizes), sums, squares, _kept(column, is_kept, ranges)]


def merge_spread(root: bool, sample: int) -> Callable[[Inputs], pa.Array]:
    """Return the second phase of a variance, or of its root, of a sample (1) or of a population (0)."""

    def merge(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        spreads = list(_spreads(present))
        counts = np.array([count for count, _ in spreads], np.int64)
        found = np.array([_nearest(count, spread, root, sample) for count, spread in spreads], np.float64)
        return masked(found, counts <= sample, inputs.type)

    return merge


def _spreads(present: Dense) -> Iterator[tuple[int, Fraction | None]]:
    """Yield the count of each pane and ``count * sum(x * x) - sum(x)**2``; None where a value is not finite."""
    counts, sums, squares, kept = present.columns
    unit = Fraction(1, 10 ** scale_of(kept.values))
    for lo, hi in zip(present.ranges.lo.tolist(), present.ranges.hi.tolist(), strict=True):
        count = sum(counts.slice(lo, hi - lo).to_pylist())
        some = kept.slice(lo, hi - lo).flatten()
        if pa.types.is_floating(some.type) and not np.isfinite(some.to_numpy(zero_copy_only=False)).all():
            yield count, None
            continue
        values = [Fraction(value) for value in some.to_pylist()]
        total, of_squares = (_total(lists.slice(lo, hi - lo)) for lists in (sums, squares))
        total, of_squares = total * unit + sum(values), of_squares * unit * unit + sum(v * v for v in values)
        yield count, count * of_squares - total * total


def _total(lists: pa.Array) -> Fraction:
    return sum(map(Fraction, lists.flatten().to_pylist()), Fraction(0))


def _nearest(count: int, spread: Fraction | None, root: bool, sample: int) -> float:
    if spread is None or count <= sample:
        return math.nan
    exact = spread / (count * (count - sample))
    return to_float(nearest_root(exact) if root else exact)


def _interleaved(high: Floats, low: Floats, ranges: Ranges) -> tuple[Floats, Ints, Ints]:
    if not low.size:
        return high, ranges.lo, ranges.hi
    return np.stack([high, low], axis=1).ravel(), 2 * ranges.lo, 2 * ranges.hi


def _lists(bounds: Ints, parts: Floats) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), parts)


def _kept(column: pa.Array, is_kept: Mask, ranges: Ranges) -> pa.Array:
    """Return the lists of values that are kept; of disjoint panes, in their order."""
    before = np.concatenate([[0], np.cumsum(is_kept)])
    sizes = before[ranges.hi] - before[ranges.lo]
    shown = np.zeros(len(is_kept) + 1, np.int64)
    np.add.at(shown, ranges.lo, 1)
    np.add.at(shown, ranges.hi, -1)
    picks = np.flatnonzero(is_kept & (np.cumsum(shown)[:-1] > 0))
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), column.take(pa.array(picks)))


@kernel
def _square_parts(high: Floats, low: Floats, lo: Ints, hi: Ints) -> tuple[Ints, Floats]:
    """Return for each pane a few floats with the sum of the squares of its numbers ``high + low``, and their bounds."""
    bounds = np.zeros(lo.size + 1, np.int64)
    parts = np.empty(lo.size * LIMBS, np.float64)  # most of it is never written, so it takes no memory
    limbs = np.zeros(LIMBS, np.int64)
    waiting = np.empty(6 * _SOME, np.float64)
    count = 0
    for p in range(lo.size):
        limbs[:] = 0
        for begin in range(lo[p], hi[p], _SOME):
            filled = 0
            for i in range(begin, min(begin + _SOME, hi[p])):
                filled = _add_product(high[i], high[i], waiting, filled)
                if low.size and low[i] != 0.0:
                    filled = _add_product(2.0 * high[i], low[i], waiting, filled)
                    filled = _add_product(low[i], low[i], waiting, filled)
            add_to_limbs(waiting, 0, filled, limbs)
        count = write_limbs(limbs, parts, count)
        bounds[p + 1] = count
    return bounds, parts[:count].copy()


@kernel
def _add_product(a: float, b: float, waiting: Floats, filled: int) -> int:
    """Write a product as two floats behind others; return how many there are."""
    product = a * b
    waiting[filled] = product
    waiting[filled + 1] = error_of_product(a, b, product)
    return filled + 2
