"""Rounding of quotients of sums of two floats, and of their square roots, with a proof or a doubt (`quotients`).

The first loop over all panes has no branches, so the compiler vectorises it; the second handles the panes in doubt.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from ...columns.arrays import Ints, Mask
from ...support.jit import kernel
from ..folds.exact_sums import is_whole
from ..kernels.loops import Floats, product_error

Four: TypeAlias = tuple[float, float, float, float]
"""A numerator and a denominator, each as a sum of two floats."""

_OFF = 2.0**-71  # bound on the relative error of a quotient, unless the caller gives one
_NORMAL = 2.0**-1022  # the smallest normal float: smaller results round at another bit
_LEAST = 2.0**-900  # a smaller numerator might lose rounding errors to underflow


@kernel
def quotients(
    high: Floats,
    low: Floats,
    over: Floats,
    over_low: Floats,
    scale: float,
    scale_low: float,
    exponents: Floats,
    off: Floats,
    root: bool,
) -> tuple[Floats, Mask]:
    """Quotients times ``2**exponents``, or the roots of these, rounded once; and which are not proven.

    ``exponents``: empty if all are 0. ``over_low``: empty if all are 0. ``off``: see `quotients.nearest`.
    """
    out = np.empty(high.size, np.float64)
    in_doubt = np.ones(high.size, np.bool_)
    if not exponents.size:
        for p in range(high.size):
            share = off[p] if off.size else _OFF
            numbers = high[p], low[p], over[p], over_low[p] if over_low.size else 0.0
            out[p], in_doubt[p] = _ratio(numbers, scale, scale_low, share, root)
    for p in range(high.size):
        if in_doubt[p]:
            share = off[p] if off.size else _OFF
            numbers = high[p], low[p], over[p], over_low[p] if over_low.size else 0.0
            exponent = int(exponents[p]) if exponents.size else 0
            out[p], in_doubt[p] = _scaled_ratio(numbers, scale, scale_low, share, root, exponent)
    return out, in_doubt


@kernel
def _ratio(numbers: Four, scale: float, scale_low: float, share: float, root: bool) -> tuple[float, bool]:
    """A quotient of two sums of two floats, or its root, rounded once; and whether it is in doubt."""
    high, low, over, over_low = numbers
    divisor, rest = times(over, over_low, scale, scale_low)
    near, more = quotient(high, low, divisor, rest)
    if root:
        near, more = _root(near, more)
    # Both ends of the error interval must round to the same float. Plain ``&`` instead of ``and``: no branches.
    room = 2.0 * share * abs(near)
    value = near + (more + room)
    is_sure = (value == near + (more - room)) & (abs(high) > _LEAST) & (abs(value) >= _NORMAL) & (abs(value) < np.inf)
    return value, not is_sure


@kernel
def _scaled_ratio(
    numbers: Four, scale: float, scale_low: float, share: float, root: bool, exponent: int
) -> tuple[float, bool]:
    """The quotient times ``2**exponent``, with all special cases; NaN where the denominator is 0."""
    high, low, over, over_low = numbers
    if over == 0.0 and over_low == 0.0:
        return np.nan, False
    if high == 0.0 and low == 0.0 and not np.isnan(over_low) and not np.isnan(share):
        return 0.0, False
    if exponent == 0:
        return _ratio(numbers, scale, scale_low, share, root)
    # A root halves the exponent, so an odd one moves a factor of 2 into the numerator first.
    twice = 2.0 if root and exponent & 1 else 1.0
    value, is_unsure = _ratio((high * twice, low * twice, over, over_low), scale, scale_low, share, root)
    value = math.ldexp(value, (exponent - (exponent & 1)) // 2 if root else exponent)
    return value, is_unsure or abs(value) < _NORMAL


@kernel
def means(sums: Floats, residuals: Floats, counts: Ints) -> tuple[Floats, Mask]:
    """Means, and which are in doubt."""
    out = np.empty(sums.size, np.float64)
    in_doubt = np.empty(sums.size, np.bool_)
    for p in range(sums.size):
        _, low, high = _mean(sums[p], residuals[p], np.float64(counts[p]))
        out[p] = high
        in_doubt[p] = not (low == high and _LEAST < abs(high) < np.inf)
    for p in range(sums.size):
        if in_doubt[p]:
            out[p], in_doubt[p] = _settled(sums[p], residuals[p], counts[p])
    return out, in_doubt


@kernel
def _mean(total: float, residual: float, count: float) -> tuple[float, float, float]:
    """``total / count``, and the results of rounding at both ends of the error interval, which are mostly one float."""
    near = total / count
    more = (_remainder(total, near, count) + residual) / count
    room = 2.0 * _OFF * abs(near)
    return near, near + (more - room), near + (more + room)


@kernel
def _settled(total: float, residual: float, count: int) -> tuple[float, bool]:
    """A mean that is about half way between two floats, tiny, or not finite; and whether it is in doubt."""
    near, low, high = _mean(total, residual, np.float64(count))
    if count == 0 or residual == 0.0:
        return near, False
    if (
        count & (count - 1) == 0 and _NORMAL < abs(near) < np.inf
    ):  # a division by a power of two is exact, so the sum decides
        return near, False
    # The remainders of the two candidates add up to twice the distance of their midpoint from the sum, exactly.
    twice = _remainder(total, low, np.float64(count)) + _remainder(total, high, np.float64(count))
    if not (is_whole(residual) and abs(near) > _LEAST and np.isfinite(twice)):
        return near, True
    if twice == -2.0 * residual:
        return low + 0.5 * (high - low), False  # half way: adding half of the distance rounds to the even one
    return (high if twice > -2.0 * residual else low), False


@kernel
def _remainder(total: float, near: float, count: float) -> float:
    """``total - count * near``, exactly, for a float next to the mean."""
    product = near * count
    return (total - product) - product_error(near, count, product)


@kernel
def times(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Product of two sums of two floats, with a relative error of a few ``2**-106``."""
    product = a * b
    return product, product_error(a, b, product) + (a * b_low + a_low * b)


@kernel
def quotient(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Quotient of two sums of two floats, with a relative error of a few ``2**-106``."""
    near = a / b
    product = near * b
    left = ((a - product) - product_error(near, b, product)) + (a_low - near * b_low)
    return near, left / b


@kernel
def _root(a: float, a_low: float) -> tuple[float, float]:
    """Square root of a sum of two floats, as two floats: one step of Newton after the float root."""
    near = math.sqrt(a)
    square = near * near
    return near, (((a - square) - product_error(near, near, square)) + a_low) / (2.0 * near)


@kernel
def whole_products(counts: Ints, sample: int) -> Floats:
    """Return ``counts * (counts - sample)`` as floats; the products must be exact in a float."""
    out = np.empty(counts.size, np.float64)
    for p in range(counts.size):
        out[p] = np.float64(counts[p]) * np.float64(counts[p] - sample)
    return out
