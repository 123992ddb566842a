"""Aggregates that compute with numbers (semantics section 9): sums, means, deviations, products, quantiles."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from windowing.aggregates import folds, kernels, quantile_kernels
from windowing.aggregates.float_sums import float_sums
from windowing.aggregates.folds import fold, one_nan, rounded
from windowing.aggregates.inputs import Dense, Inputs, dense, is_apart, masked, only, taken
from windowing.aggregates.kernels import Floats, Numbers
from windowing.aggregates.ranking import values_at
from windowing.aggregates.selection import extreme_entries
from windowing.aggregates.states import DEVIATION, PRODUCT, SUM
from windowing.aggregates.values import (
    decimal_words,
    floats,
    from_halves,
    halves,
    integers,
    is_ticks,
    is_unsigned,
    order_keys,
    ticks,
)
from windowing.aggregates.wide import as_decimal, as_float, as_int64, carried, exact_sums, split
from windowing.columns import Ints, Mask
from windowing.contents import sizes

_DAY = 86400  # seconds; the distance of two dates is a duration in them
_PLACES = 10**9  # finest fraction of a quantile, so that places times rows fit 64 bit


def sums(inputs: Inputs) -> pa.Array:
    """Sum: exact for integers, booleans, durations and decimals; for floats the one nearest to the true sum."""
    those = dense(inputs)
    column = those.columns[0]
    if pa.types.is_floating(column.type):
        return masked(_float_totals(inputs, those), those.empty, inputs.type)
    return exact_totals(inputs, those)


def exact_totals(inputs: Inputs, those: Dense) -> pa.Array:
    """Sum of anything but floats, in the type of the result. Raises `PaneOverflow` where one does not fit."""
    limbs = exact_sums(those)
    if pa.types.is_decimal(inputs.type):
        result, over = as_decimal(limbs, inputs.type.scale, those.empty)
        inputs.refuse_overflow(over)
        return result
    totals, over = as_int64(limbs)
    inputs.refuse_overflow(over)
    return masked(totals, those.empty, inputs.type)


def means(inputs: Inputs) -> pa.Array:
    """Mean: the sum, rounded once to a float, over the count."""
    those = dense(inputs)
    column = those.columns[0]
    totals = _float_totals(inputs, those) if pa.types.is_floating(column.type) else as_float(exact_sums(those))
    return quotients(inputs, those, totals, those.sizes)


def _float_totals(inputs: Inputs, those: Dense) -> Floats:
    return inputs.once("float sums", lambda: float_sums(floats(those.columns[0]), those.contents, those.ranked))


def quotients(inputs: Inputs, those: Dense, totals: Floats, counts: Ints) -> pa.Array:
    """Totals of the first column, unscaled where it is of decimals, over counts."""
    dtype = those.columns[0].type
    places = dtype.scale if pa.types.is_decimal(dtype) else 0
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 in empty panes, which are null
        return masked(totals / 10.0**places / counts, those.empty, inputs.type)


def weighted_means(inputs: Inputs) -> pa.Array:
    """``sum(x * w) / sum(w)`` over the rows that have both; null where the weights sum to 0."""
    those = dense(inputs)
    values, weights = floats(those.columns[0]), floats(those.columns[1])
    with np.errstate(all="ignore"):  # 0 / 0 in panes that are null
        total = _weighted_sums(values, weights, those)
        weight = float_sums(weights, those.contents, those.ranked)
        return masked(total / weight, weight == 0, inputs.type)


def variance(root: bool, sample: bool) -> Callable[[Inputs], pa.Array]:
    """Return the variance or its root, of a sample (null for one value) or of all there is."""

    def compute(inputs: Inputs) -> pa.Array:
        those = dense(inputs)
        squares, places = _squared_deviations(those)
        divisor = those.sizes - int(sample)
        with np.errstate(all="ignore"):  # panes with nothing to divide by are null
            spread = squares / divisor
            result = np.sqrt(spread) / 10.0**places if root else spread / 10.0 ** (2 * places)
        return masked(result, divisor <= 0, inputs.type)

    return compute


def products(inputs: Inputs) -> pa.Array:
    """Product: exact for integers, of floats for everything else."""
    those = dense(inputs)
    column = those.columns[0]
    if not pa.types.is_integer(column.type):
        return masked(_float_products(floats(column), those), those.empty, inputs.type)
    result, over = _exact_products(integers(column), is_unsigned(column.type), those)
    inputs.refuse_overflow(over)
    return masked(result, those.empty, inputs.type)


def value_ranges(inputs: Inputs) -> pa.Array:
    """Largest less smallest value, NaN skipped."""
    those = dense(inputs)
    column = those.columns[0]
    largest, smallest = (extreme_entries(those, large) for large in (True, False))
    if pa.types.is_decimal(column.type):
        return _decimal_distances(inputs, taken(column, largest), taken(column, smallest))
    if not len(column):
        return pa.nulls(len(largest), inputs.type)
    keys = order_keys(column)
    return _distances(inputs, keys[largest], keys[smallest], largest < 0)


def quantiles(inputs: Inputs) -> pa.Array:
    """Quantile q by linear interpolation on floats, NaN sorted last."""
    return _quantiles(inputs, inputs.literals[0])


def medians(inputs: Inputs) -> pa.Array:
    """The quantile one half."""
    return _quantiles(inputs, Fraction(1, 2))


def _quantiles(inputs: Inputs, fraction: Fraction) -> pa.Array:
    those = dense(inputs)
    share, values = fraction.limit_denominator(_PLACES), floats(those.columns[0])
    if is_apart(those.contents):
        lo, hi = those.contents.lo, those.contents.hi
        result = quantile_kernels.quantiles(values, share.numerator, share.denominator, lo, hi)
    else:
        result = _ranked_quantiles(values, share, those)
    return masked(result, those.empty, inputs.type)


def _ranked_quantiles(values: Floats, share: Fraction, those: Dense) -> Floats:
    """What `quantile_kernels.quantiles` says, by ranks."""
    place = (those.sizes - 1) * share.numerator
    below, part = place // share.denominator, place % share.denominator / share.denominator
    low, high = values_at(values, np.where(those.empty, -2, below), those.contents)
    with np.errstate(all="ignore"):  # what is not finite, and the empty
        near, far = low + (high - low) * part, low * (1.0 - part) + high * part
        return np.where(part == 0, low, np.where(np.isfinite(high - low), near, far))


def _weighted_sums(values: Floats, weights: Floats, those: Dense) -> Floats:
    contents = those.contents
    if is_apart(contents):
        sums: Floats = kernels.weighted_sums(values, weights, contents.lo, contents.hi)
        return sums
    nearest, _ = fold(SUM, *folds.products(values, weights), those.ranked)
    return one_nan(nearest)


def _float_products(values: Floats, those: Dense) -> Floats:
    contents = those.contents
    if is_apart(contents):
        products: Floats = kernels.float_products(values, contents.lo, contents.hi)
        return products
    return rounded(fold(PRODUCT, *halves(values), those.ranked))


def _exact_products(values: Ints, unsigned: bool, those: Dense) -> tuple[Ints, Mask]:
    """Product of each pane's integers, and where it does not fit int64; zeros are counted apart from the others."""
    contents = those.contents
    if is_apart(contents):
        products: tuple[Ints, Mask] = kernels.exact_products(values, unsigned, contents.lo, contents.hi)
        return products
    zero = values == 0
    high, low = fold(PRODUCT, *halves(np.where(zero, 1, values), unsigned), those.ranked)
    numbers, over = from_halves(high, low)
    none = sizes(only(contents, zero)) == 0
    return np.where(none, numbers, 0), over & none


def _squared_deviations(those: Dense) -> tuple[Floats, int]:
    """Sums of squared deviations in units of ``10**-places``; decimals too wide for int64 are rounded to floats."""
    column, contents = those.columns[0], those.contents
    whole = is_ticks(column.type)
    places = column.type.scale if whole and pa.types.is_decimal(column.type) else 0
    if is_apart(contents):
        lo, hi = contents.lo, contents.hi
        if whole:
            return kernels.integer_squared_deviations(ticks(column), lo, hi), places
        return kernels.squared_deviations(floats(column), lo, hi), places
    leaves = halves(ticks(column) if whole else floats(column))
    return rounded(fold(DEVIATION, *leaves, those.ranked)), places


def _distances(inputs: Inputs, largest: Numbers, smallest: Numbers, none: Mask) -> pa.Array:
    with np.errstate(over="ignore", invalid="ignore"):
        distance = largest - smallest
        if distance.dtype.kind == "f":
            return masked(distance.astype(inputs.type.to_pandas_dtype()), none, inputs.type)
    inputs.refuse_overflow((distance < 0) & ~none)  # int64 has wrapped iff the larger less the smaller is negative
    days = pa.types.is_date32(inputs.columns[0].type)
    return masked(distance * _DAY if days else distance, none, inputs.type)


def _decimal_distances(inputs: Inputs, largest: pa.Array, smallest: pa.Array) -> pa.Array:
    none = largest.is_null().to_numpy(zero_copy_only=False)
    ends = [split(decimal_words(column)) for column in (largest, smallest)]
    limbs = carried([a - b for a, b in zip(*ends, strict=True)])
    result, over = as_decimal(limbs, largest.type.scale, none)
    inputs.refuse_overflow(over & ~none)
    return result
