"""What quotients of sums of two floats, and roots of them, round to, and where that is not sure (`quotients`).

The first loop over all panes has no branches, so that it computes several at once; the second does what is left.
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

_OFF = 2.0**-71
_NORMAL = 2.0**-1022
_LEAST = 2.0**-900  # of a numerator, so that what rounding takes is a float


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
    """Quotients times ``2**exponents`` (none: 0), or the roots of these, rounded once; and which are not sure.

    ``over_low``: empty where all are 0. ``off``: see `quotients.nearest`.
    """
    out = np.empty(high.size, np.float64)
    unsure = np.ones(high.size, np.bool_)
    if not exponents.size:
        for p in range(high.size):
            share = off[p] if off.size else _OFF
            numbers = high[p], low[p], over[p], over_low[p] if over_low.size else 0.0
            out[p], unsure[p] = _ratio(numbers, scale, scale_low, share, root)
    for p in range(high.size):
        if unsure[p]:
            share = off[p] if off.size else _OFF
            numbers = high[p], low[p], over[p], over_low[p] if over_low.size else 0.0
            exponent = int(exponents[p]) if exponents.size else 0
            out[p], unsure[p] = _scaled_ratio(numbers, scale, scale_low, share, root, exponent)
    return out, unsure


@kernel
def _ratio(numbers: Four, scale: float, scale_low: float, share: float, root: bool) -> tuple[float, bool]:
    """A quotient of two sums of two floats, or the root of it, rounded once; and whether it is not sure."""
    high, low, over, over_low = numbers
    divisor, rest = times(over, over_low, scale, scale_low)
    near, more = quotient(high, low, divisor, rest)
    if root:
        near, more = _root(near, more)
    room = 2.0 * share * abs(near)
    value = near + (more + room)
    is_sure = (value == near + (more - room)) & (abs(high) > _LEAST) & (abs(value) >= _NORMAL) & (abs(value) < np.inf)
    return value, not is_sure


@kernel
def _scaled_ratio(
    numbers: Four, scale: float, scale_low: float, share: float, root: bool, exponent: int
) -> tuple[float, bool]:
    """The same times ``2**exponent``; NaN where a denominator is 0."""
    high, low, over, over_low = numbers
    if over == 0.0 and over_low == 0.0:
        return np.nan, False
    if high == 0.0 and low == 0.0 and not np.isnan(over_low) and not np.isnan(share):
        return 0.0, False
    if exponent == 0:
        return _ratio(numbers, scale, scale_low, share, root)
    twice = 2.0 if root and exponent & 1 else 1.0
    value, is_unsure = _ratio((high * twice, low * twice, over, over_low), scale, scale_low, share, root)
    value = math.ldexp(value, (exponent - (exponent & 1)) // 2 if root else exponent)
    return value, is_unsure or abs(value) < _NORMAL


@kernel
def means(sums: Floats, lacks: Floats, counts: Ints) -> tuple[Floats, Mask]:
    """Means, and which are not sure."""
    out = np.empty(sums.size, np.float64)
    unsure = np.empty(sums.size, np.bool_)
    for p in range(sums.size):
        _, low, high = _mean(sums[p], lacks[p], np.float64(counts[p]))
        out[p] = high
        unsure[p] = not (low == high and _LEAST < abs(high) < np.inf)
    for p in range(sums.size):
        if unsure[p]:
            out[p], unsure[p] = _settled(sums[p], lacks[p], counts[p])
    return out, unsure


@kernel
def _mean(total: float, lack: float, count: float) -> tuple[float, float, float]:
    """A sum over a count, but for what the sum lacks, and the two floats next to the mean, which mostly are one."""
    near = total / count
    more = (_left(total, near, count) + lack) / count
    room = 2.0 * _OFF * abs(near)
    return near, near + (more - room), near + (more + room)


@kernel
def _settled(total: float, lack: float, count: int) -> tuple[float, bool]:
    """The mean where it is about half way between two floats, tiny, or no finite number; and whether it is not sure."""
    near, low, high = _mean(total, lack, np.float64(count))
    if count == 0 or lack == 0.0:
        return near, False
    if count & (count - 1) == 0 and _NORMAL < abs(near) < np.inf:  # then it is rounded with the sum
        return near, False
    twice = _left(total, low, np.float64(count)) + _left(total, high, np.float64(count))
    if not (is_whole(lack) and abs(near) > _LEAST and np.isfinite(twice)):
        return near, True
    if twice == -2.0 * lack:
        return low + 0.5 * (high - low), False  # half way: to the even one
    return (high if twice > -2.0 * lack else low), False


@kernel
def _left(total: float, near: float, count: float) -> float:
    """What is left of a sum once the count times a float next to the mean is taken away, exactly."""
    product = near * count
    return (total - product) - product_error(near, count, product)


@kernel
def times(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Product of two sums of two floats, off by a few ``2**-106`` of itself."""
    product = a * b
    return product, product_error(a, b, product) + (a * b_low + a_low * b)


@kernel
def quotient(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Quotient of two sums of two floats, off by a few ``2**-106`` of itself."""
    near = a / b
    product = near * b
    left = ((a - product) - product_error(near, b, product)) + (a_low - near * b_low)
    return near, left / b


@kernel
def _root(a: float, a_low: float) -> tuple[float, float]:
    near = math.sqrt(a)
    square = near * near
    return near, (((a - square) - product_error(near, near, square)) + a_low) / (2.0 * near)


@kernel
def whole_products(counts: Ints, sample: int) -> Floats:
    """Return ``counts * (counts - sample)`` as floats, which must have room for them."""
    out = np.empty(counts.size, np.float64)
    for p in range(counts.size):
        out[p] = np.float64(counts[p]) * np.float64(counts[p] - sample)
    return out
