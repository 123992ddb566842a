"""The states that folds combine: the aggregate of a run of leaves (`folds`).

A leaf is the number ``high[i] + low[i]``, so that 64 bit integers and rounding errors are exact; an empty ``low`` means
zeros. A state is ``(count, high, low, more, rest)``, five floats, and an array of shape (n, 5) holds n states.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...support.jit import kernel, njit
from ..kernels.loops import TAME_FROM, TAME_TO, Floats, product_error, scaled, sum_and_error, tamed
from .exact_sums import nearest_of

State: TypeAlias = tuple[float, float, float, float, float]

SUM, PRODUCT, SMALLEST = range(3)
"""Rules: the sum, with its rest and a bound on what the rest lost; the product, with its rest and a binary exponent;
the entry of the smallest leaf."""

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)
"""The state of no leaves, the neutral element of `combined`."""

_inlined = njit(inline="always", error_model="numpy")
"""Inlining keeps states in processor registers from step to step. Measured: a third faster than calls."""


@_inlined
def combined(rule: int, a: State, b: State) -> State:
    """Return the state of the leaves of ``a`` followed by the leaves of ``b``."""
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    if rule == SMALLEST:
        # Of equals the earlier one stays; high is compared first because low is less than half a unit of high.
        return b if b[1] < a[1] or (b[1] == a[1] and b[2] < a[2]) else a
    count = a[0] + b[0]
    if rule == PRODUCT:
        high, low, exponent = _multiplied(a[1], a[2], b[1], b[2])
        return count, high, low, a[3] + b[3] + exponent, 0.0
    # more bounds all that the low parts lost; the sum of a state is high + low, off by at most more.
    high, error = sum_and_error(a[1], b[1])
    low, lost = sum_and_error(a[2], b[2])
    low, further = sum_and_error(low, error)
    return count, high, low, a[3] + b[3] + (abs(lost) + abs(further)), 0.0


@_inlined
def leaf(rule: int, high: Floats, low: Floats, i: int) -> State:
    """Return the state of one leaf. A NaN has no state under `SMALLEST`."""
    rest = low[i] if low.size else 0.0
    if rule == SMALLEST:
        return (1.0 if high[i] == high[i] else 0.0), high[i], rest, np.float64(i), 0.0
    if rule == PRODUCT:
        near, more, exponent = _tamed(high[i], rest)
        return 1.0, near, more, exponent, 0.0
    return 1.0, high[i], rest, 0.0, 0.0


@_inlined
def answer(rule: int, state: State) -> tuple[float, float]:
    """Return the two floats of `folds.fold` for a pane whose leaves have this state."""
    if rule == SMALLEST:
        return (state[3] if state[0] > 0.0 else -1.0), 0.0
    if rule == SUM:
        # + 0.0: a sum of nothing but -0.0 is 0.0.
        nearest, residual, is_proven = nearest_of(state[1] + 0.0, state[2], state[3])
        return nearest, residual if is_proven else np.nan
    return scaled(state[1], int(state[3])), scaled(state[2], int(state[3]))


@_inlined
def store_state(states: Floats, k: int, state: State) -> None:
    """Write row ``k``."""
    for c in range(5):
        states[k, c] = state[c]


@_inlined
def load_state(states: Floats, k: int) -> State:
    """Read row ``k``."""
    return states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4]


@kernel
def _multiplied(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float, float]:
    """Product of two floats with rests: the nearest float, its rest (0.0 if it is 0 or not finite), and an exponent."""
    product = a * b
    rest = product_error(a, b, product) + (a * b_rest + a_rest * b)
    nearest = product + rest
    if product == 0.0 or not np.isfinite(nearest):
        return product, 0.0, 0.0
    return _tamed(nearest, rest - (nearest - product))


@kernel
def _tamed(high: float, low: float) -> tuple[float, float, float]:
    """A float between `TAME_FROM` and `TAME_TO`, its rest, and a binary exponent."""
    if TAME_FROM < abs(high) < TAME_TO:
        return high, low, 0.0
    near, exponent = tamed(high)
    return near, scaled(low, -exponent), np.float64(exponent)
