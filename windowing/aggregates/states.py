"""The states that folds combine: what is known of a run of leaves (`folds`).

A leaf is the number ``high[i] + low[i]``, so that integers of 64 bit and rounding errors come along whole; an empty
``low`` stands for zeros. A state is ``(count, high, low, more, rest)``, and rows of arrays of shape (n, 5) hold states.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from windowing.aggregates.exact_sums import nearest_of
from windowing.aggregates.kernels import Floats, product_error, sum_and_error
from windowing.jit import kernel, njit

State: TypeAlias = tuple[float, float, float, float, float]

SUM, PRODUCT, DEVIATION, SMALLEST = range(4)
"""Rules: the sum, with its rest and how much of that is lost at most; the product, with its rest; squared deviations
from the mean; the entry of the smallest."""

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)
"""The state of no leaves: combined with another, it gives that one."""

_inlined = njit(inline="always", error_model="numpy")
"""States then stay in registers from step to step: a third faster than calls."""


@_inlined
def combined(rule: int, a: State, b: State) -> State:
    """State of the leaves of ``a`` and, after them, those of ``b``."""
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    if rule == SMALLEST:
        return b if b[1] < a[1] or (b[1] == a[1] and b[2] < a[2]) else a
    count = a[0] + b[0]
    if rule == PRODUCT:
        high, low = _multiplied(a[1], a[2], b[1], b[2])
        return count, high, low, 0.0, 0.0
    high, error = sum_and_error(a[1], b[1])
    if rule == SUM:
        low, lost = sum_and_error(a[2], b[2])
        low, further = sum_and_error(low, error)
        return count, high, low, a[3] + b[3] + (abs(lost) + abs(further)), 0.0
    low = a[2] + b[2] + error
    apart = _distance(a, b)  # all that is added is positive: nothing cancels
    more, error = sum_and_error(a[3], b[3])
    more, further = sum_and_error(more, apart * (apart / (a[0] * b[0] * count)))
    return count, high, low, more, a[4] + b[4] + error + further


@_inlined
def leaf(rule: int, high: Floats, low: Floats, i: int) -> State:
    """State of one leaf."""
    rest = low[i] if low.size else 0.0
    if rule == SMALLEST:
        return (1.0 if high[i] == high[i] else 0.0), high[i], rest, np.float64(i), 0.0
    return 1.0, high[i], rest, 0.0, 0.0


@_inlined
def answer(rule: int, state: State) -> tuple[float, float]:
    """The two floats that `folds.fold` gives for a pane whose leaves have this state."""
    if rule == SMALLEST:
        return (state[3] if state[0] > 0.0 else -1.0), 0.0
    if rule == DEVIATION:
        return (state[3] if np.isfinite(state[1]) else np.nan), state[4]
    if rule == SUM:
        nearest, sure = nearest_of(state[1] + 0.0, state[2], state[3])  # a sum of nothing but -0.0 is 0.0
        return nearest, 0.0 if sure else 1.0
    return state[1], state[2]


@_inlined
def keep(states: Floats, k: int, state: State) -> None:
    """Write row ``k``."""
    for c in range(5):
        states[k, c] = state[c]


@_inlined
def kept(states: Floats, k: int) -> State:
    """Read row ``k``."""
    return states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4]


@kernel
def _distance(a: State, b: State) -> float:
    """The distance of the means of two states times both counts, the products and their difference exact."""
    left = a[0] * b[1]
    right = b[0] * a[1]
    distance, error = sum_and_error(left, -right)
    error += product_error(a[0], b[1], left) - product_error(b[0], a[1], right)
    return distance + (error + (a[0] * b[2] - b[0] * a[2]))


@kernel
def _multiplied(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Product of two floats with rests: the nearest float, and its rest, 0.0 where the product is no finite one."""
    product = a * b
    rest = product_error(a, b, product) + (a * b_rest + a_rest * b)
    nearest = product + rest
    return (nearest, rest - (nearest - product)) if np.isfinite(nearest) else (product, 0.0)
