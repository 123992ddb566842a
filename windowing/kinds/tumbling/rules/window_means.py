"""The sum or mean of one window inside of a loop: the float nearest to the true result, as aggregates have it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ....aggregates.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs, nearest_sums
from ....aggregates.loops import LIMB, Floats
from ....aggregates.quotients import means
from ....columns.arrays import Ints
from ....support.jit import kernel

_SMALLEST: Final = -1074  # the binary exponent of the smallest float
_EXACT: Final = 2.0**53  # integers up to it are floats


@kernel
def sum_or_mean(values: Floats, lo: int, hi: int, count: int, is_mean: bool) -> float:
    """Return the float nearest to the sum or mean of values, of which those that are not there are 0."""
    sums, residuals = nearest_sums(values, np.array([lo]), np.array([hi]))
    if not is_mean:
        return sums[0]
    found, in_doubt = means(sums, residuals, np.array([count]))
    return _mean_in_limbs(values, lo, hi, count) if in_doubt[0] else found[0]


@kernel
def mean_of_ints(high: int, low: int, count: int) -> float:
    """Return the float nearest to ``(high * 2**32 + low) / count``."""
    total = np.float64(high) * 2.0**32 + np.float64(low)
    if abs(total) < _EXACT:
        return total / np.float64(count)
    parts = np.array([np.float64(high >> 32) * 2.0**64, np.float64(high & LIMB) * 2.0**32, np.float64(low)])
    return _mean_in_limbs(parts, 0, 3, count)


@kernel
def _mean_in_limbs(values: Floats, lo: int, hi: int, count: int) -> float:
    """Return the float nearest to a sum of floats divided by a number of rows, ties to even."""
    limbs = np.zeros(LIMBS, np.int64)
    special = add_to_limbs(values, lo, hi, limbs)
    total = nearest_in_limbs(limbs, special)  # leaves the magnitude in the limbs
    if special != 0.0:
        return special / np.float64(count)
    sign = -1.0 if total < 0.0 else 1.0
    rest = 0
    for k in range(LIMBS - 1, -1, -1):
        part = (rest << 32) | limbs[k]
        limbs[k] = part // count
        rest = part - limbs[k] * count
    is_small = limbs[3] < 2**21
    for k in range(4, LIMBS):
        is_small &= limbs[k] == 0
    if is_small:
        return sign * _small_quotient(limbs, rest)
    limbs[0] |= 1 if rest else 0
    return sign * nearest_in_limbs(limbs, 0.0)


@kernel
def _small_quotient(limbs: Ints, rest: int) -> float:
    """Round a quotient of less than 53 bits above the smallest float to a multiple of that, ties to even."""
    whole = (limbs[3] << 32) | limbs[2]
    half = 1 << 31
    is_half = limbs[1] == half and limbs[0] == 0 and rest == 0
    if (is_half and whole & 1) or (not is_half and limbs[1] >= half):
        whole += 1
    return math.ldexp(np.float64(whole), _SMALLEST)
