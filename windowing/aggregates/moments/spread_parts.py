"""Variances in two phases: a few floats with the sum of some numbers, and a few with the sum of their squares.

A square of a float is the sum of two floats, unless they are too large or too small to be floats. Numbers with such
squares are kept as they are, and so are infinities and NaN. So both sums are exact, whatever the numbers, and the
variance of any number of parts is the float nearest to the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...panes.membership import Ranges
from ...support.jit import kernel
from ..folds.exact_sums import LIMBS, add_to_limbs, nearest_sums, parts_of, write_limbs
from ..folds.inputs import Dense, Inputs, as_ranges, dense, masked
from ..folds.values import frozen, number_halves, scale_of
from ..kernels.loops import Floats, error_of_product, products_and_errors
from .exact_moments import SPREAD
from .quotients import Quotients, nearest_root, round_quotients, spread_counts, to_float

_LEAST, _MOST = 2.0**-480, 2.0**480
"""Between them, squares and the errors of these are floats, and sums of fewer than 2**60 squares, too."""
_OFF = 2.0**-68  # more than what both sums lose, of the larger one: `nearest_sums` leaves less than 2**-72 of each
_NOTHING: Floats = frozen(np.empty(0, np.float64))
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
        counts, _, _, kept = present.columns
        before = np.concatenate([[0], np.cumsum(counts.to_numpy())])
        sizes = before[present.ranges.hi] - before[present.ranges.lo]
        values = kept.flatten()
        wanted = Quotients(SPREAD, values, values, present.ranges, sizes, scale_of(values), sample, root)
        high, low, off = _two_floats(present, sizes)
        over, over_low = spread_counts(sizes, sample)
        found, in_doubt = round_quotients((high, low, over, over_low), _NOTHING, off, wanted)
        for pane in np.flatnonzero(in_doubt & (sizes > sample)).tolist():
            found[pane] = _nearest(int(sizes[pane]), _exact_spread(present, pane), root, sample)
        return masked(found, sizes <= sample, inputs.type)

    return merge


def _two_floats(present: Dense, counts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return ``count * sum(x * x) - sum(x)**2`` as two floats, and a bound on their relative error; NaN: unknown."""
    _, sums, squares, kept = present.columns
    (total, rest), (of_squares, more) = (_sums_of_items(lists, present.ranges) for lists in (sums, squares))
    many = frozen(counts.astype(np.float64))
    with np.errstate(all="ignore"):
        whole, error = products_and_errors(many, of_squares)
        square, lost = products_and_errors(total, total)
        high = whole - square
        part = high - whole  # the error of this difference, as in `loops.sum_and_error`
        low = (whole - (high - part)) - (square + part) + (error + many * more) - (lost + 2.0 * total * rest)
        near = high + low
        low -= near - high
        has_bound = (near > 0.0) & (of_squares > 2.0**-900) & (whole < 2.0**960)
        off = np.where(has_bound, _OFF * (whole / near), np.nan)
    return near, low, np.where(_lengths(kept, present.ranges) > 0, np.nan, off)


def _sums_of_items(lists: pa.Array, ranges: Ranges) -> tuple[Floats, Floats]:
    """Return the sums of all items of the lists of each pane, as `nearest_sums` does."""
    before = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())])
    items = frozen(lists.flatten().to_numpy())
    found: tuple[Floats, Floats] = nearest_sums(items, frozen(before[ranges.lo]), frozen(before[ranges.hi]))
    return found


def _lengths(lists: pa.Array, ranges: Ranges) -> Ints:
    before = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())])
    return before[ranges.hi] - before[ranges.lo]


def _exact_spread(present: Dense, pane: int) -> Fraction | None:
    """Return ``count * sum(x * x) - sum(x)**2`` of a pane; None where a value is not finite."""
    counts, sums, squares, kept = present.columns
    unit = Fraction(1, 10 ** scale_of(kept.values))
    lo, size = int(present.ranges.lo[pane]), int(present.ranges.hi[pane] - present.ranges.lo[pane])
    count, some = sum(counts.slice(lo, size).to_pylist()), kept.slice(lo, size).flatten()
    if pa.types.is_floating(some.type) and not np.isfinite(some.to_numpy(zero_copy_only=False)).all():
        return None
    values = [Fraction(value) for value in some.to_pylist()]
    total, of_squares = (_total(lists.slice(lo, size)) for lists in (sums, squares))
    total, of_squares = total * unit + sum(values), of_squares * unit * unit + sum(v * v for v in values)
    return count * of_squares - total * total


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
