"""Aggregates that compute with numbers (semantics section 9): sums, means, deviations, products, quantiles."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from windowing.aggregates import kernels, quantile_kernels
from windowing.aggregates.inputs import Dense, Inputs, Mask, dense, masked, taken
from windowing.aggregates.kernels import Floats, Numbers
from windowing.aggregates.values import decimal_words, floats, integers, is_ticks, is_unsigned, order_keys, ticks
from windowing.aggregates.wide import Limbs, as_decimal, as_float, as_int64, carried, pane_sums, split

_DAY = 86400  # seconds; the distance of two dates is a duration in them
_PLACES = 10**9  # finest fraction of a quantile, so that places times rows fit 64 bit


def sums(inputs: Inputs) -> pa.Array:
    """Sum: exact for integers, booleans, durations and decimals; double-double for floats."""
    part = dense(inputs.columns, inputs.ranges)
    column, ranges = part.columns[0], part.ranges
    if pa.types.is_floating(column.type):
        return masked(_float_sums(part), ranges.empty, inputs.type)
    if pa.types.is_decimal(column.type):
        result, over = as_decimal(_exact_sums(part), column.type.scale, ranges.empty)
        inputs.refuse_overflow(over)
        return result
    totals, over = as_int64(_exact_sums(part))
    inputs.refuse_overflow(over)
    return masked(totals, ranges.empty, inputs.type)


def means(inputs: Inputs) -> pa.Array:
    """Mean: the sum, rounded once to a float, over the count."""
    part = dense(inputs.columns, inputs.ranges)
    dtype = part.columns[0].type
    totals = _float_sums(part) if pa.types.is_floating(dtype) else as_float(_exact_sums(part))
    places = dtype.scale if pa.types.is_decimal(dtype) else 0
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 in empty panes, which are null
        return masked(totals / 10.0**places / part.ranges.sizes, part.ranges.empty, inputs.type)


def weighted_means(inputs: Inputs) -> pa.Array:
    """``sum(x * w) / sum(w)`` over the rows that have both; null where the weights sum to 0."""
    part = dense(inputs.columns, inputs.ranges)
    values, weights = floats(part.columns[0]), floats(part.columns[1])
    lo, hi = part.ranges.lo, part.ranges.hi
    with np.errstate(all="ignore"):  # 0 / 0 in panes that are null
        total = kernels.weighted_sums(values, weights, lo, hi)
        weight = kernels.compensated_sums(weights, lo, hi)
        return masked(total / weight, weight == 0, inputs.type)


def variance(root: bool, sample: bool) -> Callable[[Inputs], pa.Array]:
    """Return the variance or its root, of a sample (null for one value) or of all there is."""

    def compute(inputs: Inputs) -> pa.Array:
        part = dense(inputs.columns, inputs.ranges)
        squares, places = _squared_deviations(part)
        divisor = part.ranges.sizes - int(sample)
        with np.errstate(all="ignore"):  # panes with nothing to divide by are null
            spread = squares / divisor
            result = np.sqrt(spread) / 10.0**places if root else spread / 10.0 ** (2 * places)
        return masked(result, divisor <= 0, inputs.type)

    return compute


def products(inputs: Inputs) -> pa.Array:
    """Product: exact for integers, of floats for everything else."""
    part = dense(inputs.columns, inputs.ranges)
    column, ranges = part.columns[0], part.ranges
    if not pa.types.is_integer(column.type):
        return masked(kernels.float_products(floats(column), ranges.lo, ranges.hi), ranges.empty, inputs.type)
    result, over = kernels.exact_products(integers(column), is_unsigned(column.type), ranges.lo, ranges.hi)
    inputs.refuse_overflow(over)
    return masked(result, ranges.empty, inputs.type)


def value_ranges(inputs: Inputs) -> pa.Array:
    """Largest less smallest value, NaN skipped."""
    part = dense(inputs.columns, inputs.ranges)
    column = part.columns[0]
    keys = order_keys(column)
    largest = kernels.first_largest(keys, part.ranges.lo, part.ranges.hi)
    smallest = kernels.first_smallest(keys, part.ranges.lo, part.ranges.hi)
    if pa.types.is_decimal(column.type):
        return _decimal_distances(inputs, taken(column, largest), taken(column, smallest))
    if not len(keys):
        return pa.nulls(len(largest), inputs.type)
    return _distances(inputs, keys[largest], keys[smallest], largest < 0)


def quantiles(inputs: Inputs) -> pa.Array:
    """Quantile q by linear interpolation on floats, NaN sorted last."""
    return _quantiles(inputs, inputs.literals[0])


def medians(inputs: Inputs) -> pa.Array:
    """The quantile one half."""
    return _quantiles(inputs, Fraction(1, 2))


def _quantiles(inputs: Inputs, fraction: Fraction) -> pa.Array:
    part = dense(inputs.columns, inputs.ranges)
    place = fraction.limit_denominator(_PLACES)
    values, lo, hi = floats(part.columns[0]), part.ranges.lo, part.ranges.hi
    result = quantile_kernels.quantiles(values, place.numerator, place.denominator, lo, hi)
    return masked(result, part.ranges.empty, inputs.type)


def _float_sums(part: Dense) -> Floats:
    sums: Floats = kernels.compensated_sums(floats(part.columns[0]), part.ranges.lo, part.ranges.hi)
    return sums


def _squared_deviations(part: Dense) -> tuple[Floats, int]:
    """Sums of squared deviations in units of ``10**-places``; decimals too wide for int64 are rounded to floats."""
    column, lo, hi = part.columns[0], part.ranges.lo, part.ranges.hi
    if not is_ticks(column.type):
        return kernels.squared_deviations(floats(column), lo, hi), 0
    places = column.type.scale if pa.types.is_decimal(column.type) else 0
    return kernels.integer_squared_deviations(ticks(column), lo, hi), places


def _exact_sums(part: Dense) -> Limbs:
    column = part.columns[0]
    words = decimal_words(column) if pa.types.is_decimal(column.type) else [integers(column)]
    return pane_sums(words, part.ranges, is_unsigned(column.type))


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
