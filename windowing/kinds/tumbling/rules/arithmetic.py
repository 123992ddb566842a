"""Signs between the integers or floats of an amount: what they give, and whether it fits 64 bits (section 13)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ....support.jit import kernel

INT, FLOAT, INT_COLUMN, FLOAT_COLUMN, TO_FLOAT, OLD_INT, OLD_FLOAT, ADD, SUBTRACT, MULTIPLY, DIVIDE = range(11)
"""What a step does; from `ADD` on of two integers, or `OF_FLOATS` more of two floats."""
NEGATE, LEAST, GREATEST, OF_FLOATS = 11, 12, 13, 10

MOST_TICKS: Final = np.uint64(2**64 - 1)
LEAST_WORD, MOST_WORD = -(2**63), 2**63 - 1
_MOST_INT: Final = np.uint64(2**63 - 1)


@kernel
def of_ints(step: int, a: int, b: int) -> tuple[int, bool]:
    """Return the result, and whether it fits 64 bits."""
    # Checked before, because the compiler may take it that integers do not overflow.
    if step == LEAST:
        return min(a, b), True
    if step == GREATEST:
        return max(a, b), True
    if step == MULTIPLY:
        fits = not _product_is_far(a, b)
        return (a * b if fits else 0), fits
    fits = not sum_is_far(a, b, step == SUBTRACT)
    if not fits:
        return 0, False
    return (a + b if step == ADD else a - b), True


@kernel
def sum_is_far(a: int, b: int, subtract: bool) -> bool:
    """Whether ``a + b`` or ``a - b`` does not fit 64 bits."""
    if subtract:
        return a > MOST_WORD + b if b < 0 else a < LEAST_WORD + b
    return a < LEAST_WORD - b if b < 0 else a > MOST_WORD - b


@kernel
def _product_is_far(a: int, b: int) -> bool:
    """Whether ``a * b`` does not fit 64 bits."""
    if a == 0 or b == 0:
        return False
    most = _MOST_INT if (a < 0) == (b < 0) else _MOST_INT + np.uint64(1)
    return bool(_magnitude(a) > most // _magnitude(b))


@kernel
def _magnitude(a: int) -> np.uint64:
    return np.uint64(-(a + 1)) + np.uint64(1) if a < 0 else np.uint64(a)


@kernel
def of_floats(step: int, a: float, b: float) -> float:
    """Return the result as IEEE has it; the least and the greatest of NaN and another are NaN."""
    if step == ADD:
        return a + b
    if step == SUBTRACT:
        return a - b
    if step == MULTIPLY:
        return a * b
    if step == DIVIDE:
        return a / b
    if a != a or b != b:  # noqa: PLR0124 - only NaN is not itself
        return np.nan
    return min(a, b) if step == LEAST else max(a, b)


@kernel
def ticks_of_float(number: float) -> np.uint64:
    """Round down; an amount beyond 64 bits becomes the largest."""
    whole = math.floor(number) if number < 2.0**53 else number
    if whole >= 2.0**64:
        return MOST_TICKS
    return np.uint64(min(np.float64(whole), 2.0**64 - 2048))
