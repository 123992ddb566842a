"""Arithmetic aggregates (semantics section 9): sums, means, variances, products, quantiles, ranges of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, take_or_null
from ..rows.membership import sizes
from ..support.jit import kernel
from . import loops
from .exact_sums import as_decimal, as_int64, as_wide, exact_sums, parts_of, propagate_carries, split, two_floats
from .folds import PRODUCT, fold, rounded
from .inputs import (
    Dense,
    Inputs,
    TwoPhase,
    as_ranges,
    decimal_words,
    dense,
    exact_numbers,
    filtered,
    floats,
    from_halves,
    frozen,
    halves,
    integers,
    is_disjoint,
    is_ticks,
    is_unsigned,
    list_array,
    masked,
    number_halves,
    order_keys,
    scale_of,
)
from .loops import Floats, between, longest
from .moments import (
    MEAN,
    SKEWNESS,
    SPREAD,
    WEIGHTED,
    float_sums,
    squared_deviations,
    sums_and_residuals,
    weighted_sums,
)
from .order_statistics import deviations_of, values_at
from .quotients import (
    COLUMNS,
    NOTHING,
    Quotients,
    TwoFloats,
    exactly,
    merge_spread,
    nearest,
    nearest_means,
    round_quotients,
    split_spread,
    spread_counts,
    whole_floats,
)
from .selection import counts, extreme_entries, items_of, over_items
from .shapes import merged_shapes, power_sums, shape_of, shapes, whole_power_sums

# Loops of quantiles over disjoint panes: selection of one place (quickselect) in a scratch array, without a sort.


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
def interpolated_quantiles(values: Floats, below: Ints, part: Floats, lo: Ints, hi: Ints) -> Floats:
    """Value at place ``below + part`` of each pane's sorted values, NaN last, linear between."""
    out = np.full(lo.size, np.nan)
    scratch = np.empty(longest(lo, hi), np.float64)
    for p in range(lo.size):
        # NaNs sort last, so they count for the place but need not be in the scratch array.
        count = 0
        for i in range(lo[p], hi[p]):
            if values[i] == values[i]:
                scratch[count] = values[i]
                count += 1
        place = below[p]
        if lo[p] < hi[p] and place + (part[p] > 0) < count:
            out[p] = select(scratch, count, place)
            if part[p] > 0:
                # `select` leaves no smaller value after this place: the next one in order is a minimum.
                above = scratch[place + 1]
                for i in range(place + 2, count):
                    above = min(above, scratch[i])
                out[p] = between(out[p], above, part[p])
    return out


@kernel
def _distances(values: Floats, middle: Floats, lo: Ints, hi: Ints) -> Floats:
    """How far each value is from the middle of its pane."""
    out = np.empty(values.size, np.float64)
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            out[i] = abs(values[i] - middle[p])
    return out


_DAY = 86400  # seconds: the difference of two dates is a duration in seconds
_PLACES = 10**9  # largest denominator of a quantile, so that its product with the number of rows fits 64 bit


def sums(inputs: Inputs) -> pa.Array:
    """Sum: exact for integers, booleans, durations and decimals; for floats the float nearest to the true sum."""
    present = dense(inputs)
    column = present.columns[0]
    if pa.types.is_floating(column.type):
        return masked(_float_totals(inputs, present)[0], present.empty, inputs.type)
    return exact_totals(inputs, present)


def exact_totals(inputs: Inputs, present: Dense) -> pa.Array:
    """Sum of any type but floats, in the type of the result. Raises `PaneOverflow` where a sum does not fit."""
    limbs = exact_sums(present)
    if pa.types.is_decimal(inputs.type):
        result, over = as_decimal(limbs, inputs.type.scale, present.empty)
        inputs.refuse_overflow(over)
        return result
    totals, over = as_int64(limbs)
    inputs.refuse_overflow(over)
    return masked(totals, present.empty, inputs.type)


def means(inputs: Inputs) -> pa.Array:
    """Mean: the float nearest to the exact mean."""
    present = dense(inputs)
    column = present.columns[0]
    if not pa.types.is_floating(column.type):
        return exact_means(inputs, present, present.sizes)
    return float_means(
        inputs, Quotients(MEAN, column, column, present.membership, present.sizes), _float_totals(inputs, present)
    )


def float_means(inputs: Inputs, wanted: Quotients, totals: TwoFloats) -> pa.Array:
    """Means of floats, given the result of `sums_and_residuals`."""
    return masked(nearest_means(wanted, *totals), wanted.sizes == 0, inputs.type)


def exact_means(inputs: Inputs, present: Dense, counts: Ints) -> pa.Array:
    """Means: sums of the first column, which holds no floats, divided by ``counts``."""
    column = present.columns[0]
    wanted = Quotients(MEAN, column, column, present.membership, counts, scale_of(column))
    means = nearest(wanted, two_floats(exact_sums(present)), whole_floats(counts))
    return masked(means, present.empty, inputs.type)


def _float_totals(inputs: Inputs, present: Dense) -> TwoFloats:
    return inputs.cached("float sums", lambda: sums_and_residuals(floats(present.columns[0]), present.membership))


def weighted_means(inputs: Inputs) -> pa.Array:
    """``sum(x * w) / sum(w)`` over the rows in which neither is null; null where the weights sum to 0."""
    means, null = weighted(dense(inputs))
    return masked(means, null, inputs.type)


def weighted(present: Dense, unit: int = 0) -> tuple[Floats, Mask]:
    """Return weighted means, or with ``unit`` weighted sums over that number, and which are null.

    The columns are values and weights.
    """
    column, weights = present.columns
    wanted = Quotients(WEIGHTED, weights, column, present.membership, present.sizes, scale_of(column), unit=unit)
    (values, more), (shares, further) = number_halves(column), number_halves(weights)
    if len(more) or len(further):
        means = exactly(wanted, np.arange(len(present.sizes)))
    else:
        total, residual, weight, weight_residual = weighted_sums(values, shares, present)
        over = whole_floats(np.full(len(total), unit)) if unit else (weight, weight_residual)
        means = nearest(wanted, (total, residual), over)
    null = np.isnan(means)
    return _with_non_finite(means, floats(column), floats(weights), present) if null.any() else (means, null)


def _with_non_finite(means: Floats, values: Floats, weights: Floats, present: Dense) -> tuple[Floats, Mask]:
    finite = np.isfinite(values) & np.isfinite(weights)
    if finite.all():
        return means, np.isnan(means)
    with np.errstate(all="ignore"):
        non_finite = np.where(finite, 0.0, values * weights)
        total, weight = (float_sums(frozen(part), present.membership) for part in (non_finite, weights))
        has_non_finite = sizes(filtered(present.membership, ~finite)) > 0
        means = np.where(has_non_finite, total / weight, means)
    return means, np.where(has_non_finite, weight == 0, np.isnan(means))


def variance(root: bool, sample: bool) -> Callable[[Inputs], pa.Array]:
    """Return the variance or its square root, of a sample (null for one value) or of a population."""

    def compute(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        column, less = present.columns[0], int(sample)
        wanted = Quotients(SPREAD, column, column, present.membership, present.sizes, scale_of(column), less, root)
        high, low, off = inputs.cached("deviations", lambda: squared_deviations(*number_halves(column), present))
        result = nearest(wanted, (high, low), spread_counts(present.sizes, less), off)
        return masked(result, present.sizes <= less, inputs.type)

    return compute


def shape(rule: int, sample: bool) -> Callable[[Inputs], pa.Array]:
    """Return the skewness or the kurtosis; null for less values than it takes, and where all are equal."""

    def compute(inputs: Inputs) -> pa.Array:
        present = dense(inputs)
        column, membership, less = present.columns[0], present.membership, int(sample)
        wanted = Quotients(rule, column, column, membership, present.sizes, 0, less, rule == SKEWNESS)
        high, low, over, over_low, off = shapes(rule, less, *number_halves(column), present).T
        found = nearest(wanted, (high, low), (over, over_low), off)
        endless = np.zeros(len(found), np.int64)
        if np.isnan(found).any():
            endless = sizes(filtered(membership, _endless(column)))
        return _shapes_or_null(inputs, rule, less, found, present.sizes, endless)

    return compute


def _endless(column: pa.Array) -> Mask:
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), np.bool_)
    return ~np.isfinite(floats(column))


def _shapes_or_null(inputs: Inputs, rule: int, sample: int, found: Floats, counts: Ints, endless: Ints) -> pa.Array:
    """Return null for too few or equal values, and NaN where there is an infinity or NaN, of which are ``endless``."""
    least = (2 if rule == SKEWNESS else 3) if sample else 1
    found = np.where(endless > 0, np.nan, found)
    return masked(found, (counts <= least) | (np.isnan(found) & (endless == 0)), inputs.type)


def _split_shape(inputs: Inputs) -> list[pa.Array]:
    """How many values there are, how many of them are infinite or NaN, and the exact sums of powers of the others."""
    present = dense(inputs)
    column, ranges = present.columns[0], present.ranges
    values, endless = exact_numbers(column), _endless(column)
    if endless.any():
        values = np.where(endless, 0.0, values)
    sums = power_sums(frozen(values.view(np.int64)), frozen(ranges.lo), frozen(ranges.hi))
    return [pa.array(present.sizes), pa.array(sizes(filtered(ranges, endless))), list_array(*sums)]


def shape_phases(rule: int, sample: bool) -> TwoPhase:
    """Return the two phases of `shape`."""

    def merge(inputs: Inputs) -> pa.Array:
        present, less = as_ranges(dense(inputs)), int(sample)
        lo, hi = present.ranges.lo, present.ranges.hi
        of_parts = (present.columns[0].to_numpy(), present.columns[1].to_numpy())
        counts, endless = (frozen(np.append(0, np.cumsum(each))) for each in of_parts)
        counts, endless = counts[hi] - counts[lo], endless[hi] - endless[lo]
        bounds = np.append(0, np.cumsum(present.columns[2].value_lengths().to_numpy(), dtype=np.int64))
        words, places = frozen(present.columns[2].flatten().to_numpy()), (frozen(lo), frozen(hi))
        *numbers, off = merged_shapes(words, frozen(bounds), frozen(counts), rule, less, *places).T
        wanted = Quotients(
            rule, present.columns[0], present.columns[0], present.ranges, counts, 0, less, rule == SKEWNESS
        )
        found, in_doubt = round_quotients((numbers[0], numbers[1], numbers[2], numbers[3]), NOTHING, off, wanted)
        for pane in np.flatnonzero(in_doubt & (endless == 0)).tolist():
            sums = whole_power_sums(words[bounds[lo[pane]] : bounds[hi[pane]]])
            found[pane] = shape_of(rule, less, int(counts[pane]), sums)
        return _shapes_or_null(inputs, rule, less, found, counts, endless)

    return TwoPhase(3, _split_shape, merge)


def products(inputs: Inputs) -> pa.Array:
    """Product: exact for integers, in floats for all other types."""
    present = dense(inputs)
    column, membership = present.columns[0], present.membership
    if not pa.types.is_integer(column.type):
        factors = floats(column)
        if is_disjoint(membership):
            found = loops.float_products(factors, membership.lo, membership.hi)
        else:
            found = rounded(fold(PRODUCT, *halves(factors), present.ranked))
        return masked(found, present.empty, inputs.type)
    values, unsigned = integers(column), is_unsigned(column.type)
    if is_disjoint(membership):
        result, over = loops.exact_products(values, unsigned, membership.lo, membership.hi)
    else:  # zeros are counted apart: a product beyond 64 bit fits if there is one
        zero = values == 0
        result, over = from_halves(*fold(PRODUCT, *halves(np.where(zero, 1, values), unsigned), present.ranked))
        none = sizes(filtered(membership, zero)) == 0
        result, over = np.where(none, result, 0), over & none
    inputs.refuse_overflow(over)
    return masked(result, present.empty, inputs.type)


def value_ranges(inputs: Inputs) -> pa.Array:
    """Largest value minus smallest value, NaN skipped."""
    present = dense(inputs)
    column = present.columns[0]
    largest, smallest = (extreme_entries(inputs, present, large) for large in (True, False))
    if pa.types.is_decimal(column.type):
        ends = [take_or_null(column, entries) for entries in (largest, smallest)]
        none = ends[0].is_null().to_numpy(zero_copy_only=False)
        limbs = [a - b for a, b in zip(*(split(decimal_words(end)) for end in ends), strict=True)]
        result, over = as_decimal(propagate_carries(limbs), column.type.scale, none)
        inputs.refuse_overflow(over & ~none)
        return result
    if not len(column):
        return pa.nulls(len(largest), inputs.type)
    keys = order_keys(column)
    none = largest < 0
    with np.errstate(over="ignore", invalid="ignore"):
        distance = keys[largest] - keys[smallest]
        if distance.dtype.kind == "f":
            return masked(distance.astype(inputs.type.to_pandas_dtype()), none, inputs.type)
    inputs.refuse_overflow((distance < 0) & ~none)  # int64 has wrapped iff the larger less the smaller is negative
    days = pa.types.is_date32(inputs.columns[0].type)
    return masked(distance * _DAY if days else distance, none, inputs.type)


METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
"""What a quantile is between two values: a point of the line, one of both, the nearest in place, or the middle."""
_HALF = Fraction(1, 2)


def _places(sizes: Ints, share: Fraction, method: str = METHODS[0]) -> tuple[Ints, Floats]:
    """Return the place of a quantile in each pane's sorted values: whole, and the part of the way to the next one."""
    share = share.limit_denominator(_PLACES)
    place, whole = (sizes - 1) * share.numerator, share.denominator
    below, rest = place // whole, place % whole
    if method == "midpoint":
        return frozen(below), frozen(np.where(rest > 0, 0.5, 0.0))
    if method == "linear":
        return frozen(below), frozen(rest / whole)
    is_nearer = (2 * rest > whole) | ((2 * rest == whole) & (below % 2 == 1))  # half way to the even place
    up = {"lower": np.zeros(len(rest), np.bool_), "higher": rest > 0, "nearest": is_nearer}[method]
    return frozen(below + up), frozen(np.zeros(len(rest)))


def quantiles(inputs: Inputs) -> pa.Array:
    """Quantile q, one half for a median, on floats, NaN sorted last; between two values by one of `METHODS`."""
    present = dense(inputs)
    values, membership = floats(present.columns[0]), present.membership
    below, part = _places(present.sizes, *(inputs.literals or (_HALF,)))
    if is_disjoint(membership):
        found = interpolated_quantiles(values, below, part, membership.lo, membership.hi)
        return masked(found, present.empty, inputs.type)
    # Of panes that overlap the same, through a tree of ranks.
    low, high = values_at(values, np.where(present.empty, -2, below), membership)
    with np.errstate(all="ignore"):  # infinities, and empty panes
        near, far = low + (high - low) * part, low * (1.0 - part) + high * part
        found = np.where(part == 0, low, np.where(np.isfinite(high - low), near, far))
    return masked(found, present.empty, inputs.type)


def median_deviations(inputs: Inputs) -> pa.Array:
    """Median of the distances of the values from their median, on floats, NaN sorted last."""
    present = dense(inputs)
    values, membership = floats(present.columns[0]), present.membership
    if not is_disjoint(membership):
        return masked(deviations_of(values, membership), present.empty, inputs.type)
    places, panes = _places(present.sizes, _HALF), (membership.lo, membership.hi)
    far = _distances(values, frozen(interpolated_quantiles(values, *places, *panes)), *panes)
    return masked(interpolated_quantiles(frozen(far), *places, *panes), present.empty, inputs.type)


# What is left of the rows of a part, and what it makes of that of several parts (`TwoPhase`).


_WIDE = pa.decimal128(38, 0)  # has room for 2**63 integers of 64 bit


def _merge_counts(inputs: Inputs) -> pa.Array:
    totals, _ = as_int64(exact_sums(dense(inputs)))
    return pa.array(totals)


def _split_sum(inputs: Inputs) -> list[pa.Array]:
    """The sum as a wide integer or decimal, or as a list of a few floats; null where a pane has no value."""
    present = dense(inputs)
    dtype = present.columns[0].type
    if not pa.types.is_floating(dtype):
        wide = pa.decimal256(76, dtype.scale) if pa.types.is_decimal(dtype) else _WIDE
        return [as_wide(exact_sums(present), wide, present.empty)]
    bounds, parts = parts_of(floats(present.columns[0]), present.ranges.lo, present.ranges.hi)
    return [list_array(bounds, parts, present.empty)]


def _merge_sums(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column = present.columns[0]
    if pa.types.is_list(column.type):
        items, membership = items_of(column, present)
        return masked(float_sums(floats(items), membership), present.empty, inputs.type)
    return exact_totals(inputs, present)


def _merge_means(inputs: Inputs) -> pa.Array:
    present = dense(inputs)
    column, counts = present.columns
    sizes, _ = as_int64(exact_sums(replace(present, columns=(counts,))))
    if not pa.types.is_list(column.type):
        return exact_means(inputs, present, sizes)
    items, membership = items_of(column, present)
    totals = sums_and_residuals(floats(items), membership)
    return float_means(inputs, Quotients(MEAN, items, items, membership, sizes), totals)


def _split_range(inputs: Inputs) -> list[pa.Array]:
    present = dense(inputs)
    ends = [extreme_entries(inputs, present, is_largest) for is_largest in (False, True)]
    entries = np.stack(ends, axis=1).ravel()
    there = np.concatenate([[0], np.cumsum((ends[0] >= 0) * 2)])
    items = present.columns[0].take(pa.array(entries[entries >= 0]))
    return [list_array(there, items)]


def spread_phases(root: bool, sample: bool) -> TwoPhase:
    """Return the two phases of `variance`."""
    return TwoPhase(COLUMNS, split_spread, merge_spread(root, int(sample)), in_order=True, fits=_has_ticks)


def _has_ticks(types: Sequence[pa.DataType], _: Sequence[Any]) -> bool:
    return not pa.types.is_decimal(types[0]) or is_ticks(types[0])


def _is_narrow(types: Sequence[pa.DataType], _: Sequence[Any]) -> bool:
    return not pa.types.is_decimal256(types[0])


COUNT_PHASES = TwoPhase(1, lambda inputs: [counts(inputs)], _merge_counts)
SUM_PHASES = TwoPhase(1, _split_sum, _merge_sums, fits=_is_narrow)
MEAN_PHASES = TwoPhase(2, lambda inputs: [*_split_sum(inputs), counts(inputs)], _merge_means, fits=_is_narrow)
RANGE_PHASES = TwoPhase(1, _split_range, over_items(value_ranges), in_order=True)
