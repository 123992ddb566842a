"""Folds of overlapping panes: combine, never un-combine (semantics section 9), at a cost that overlap does not raise.

A fold is a rule that `_combined` knows, over *leaves*: entry i is the number ``high[i] + low[i]``, so that integers of
64 bit and rounding errors come along whole; an empty ``low`` stands for zeros. The state of a run of entries is
``(count, high, low, more, rest)``; it depends on the places of the entries in their sequence, and on nothing else:

- panes that are ranges of neighbours meet at a *pivot*, the place in ``(lo, hi]`` that is the roundest in binary as
  counted from the start of the sequence. What stands before it is folded towards it once, downwards, for all panes
  with this pivot, and what follows is folded on and on upwards. Each entry costs O(1) for panes of about one length
  and for panes that only grow, and never more than O(log n);
- others hang in a binary tree over the entries of their sequence, O(log n) for each that comes or goes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

from windowing.aggregates.changes import Changes, changes_of
from windowing.aggregates.kernels import Floats, goes_on, longest, product_error
from windowing.aggregates.values import frozen
from windowing.columns import Ints, Mask
from windowing.contents import Contents, Ranges, as_ranges, contiguous
from windowing.jit import kernel

State: TypeAlias = tuple[float, float, float, float, float]
Answers: TypeAlias = tuple[Floats, Floats]

SUM, PRODUCT, DEVIATION, SMALLEST = range(4)
"""Rules: the sum and the product, each with its rest; squared deviations from the mean; the entry of the smallest."""

_inlined = njit(inline="always", error_model="numpy")
"""States then stay in registers from step to step: a third faster than calls."""

_NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


def fold(rule: int, high: Floats, low: Floats, contents: Contents) -> Answers:
    """Return two floats (P,) for each pane that together are the answer of a rule.

    `SUM`, `PRODUCT`, `DEVIATION`: the answer and what rounding took from it, see `rounded`. `SMALLEST`: the entry of
    the smallest leaf, the first of equals, NaN skipped; -1 where there is none; and 0.
    """
    high, low = frozen(high), frozen(low)
    if isinstance(contents, Ranges):
        answers: Answers = _range_folds(rule, high, low, contents.lo, contents.hi, contents.base)
        return answers
    straight = contiguous(contents)
    bounds = contents.first_entry, contents.first_pane
    first, second = _life_folds(rule, high, low, changes_of(contents), *bounds, straight)
    if straight.any():
        panes = np.flatnonzero(np.repeat(straight, np.diff(contents.first_pane)))
        ranges = as_ranges(contents)
        lo, hi, base = (frozen(places[panes]) for places in (ranges.lo, ranges.hi, ranges.base))
        first[panes], second[panes] = _range_folds(rule, high, low, lo, hi, base)
    return first, second


def rounded(answers: Answers) -> Floats:
    """Return answers as single floats; once one is inf or NaN, its rest means nothing."""
    total, rest = answers
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(rest), total + rest, total)


@kernel
def products(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the leaves of ``a[i] * b[i]``: the nearest floats, and exactly what rounding took from them."""
    high = a * b
    low = np.empty(a.size, np.float64)
    for i in range(a.size):
        low[i] = product_error(a[i], b[i], high[i])
    return high, low


@_inlined
def _combined(rule: int, a: State, b: State) -> State:
    """State of the entries of ``a`` and, after them, those of ``b``."""
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
    high, error = _sum_and_error(a[1], b[1])
    low = a[2] + b[2] + error
    if rule == SUM:
        return count, high, low, 0.0, 0.0
    apart = _distance(a, b)  # all that is added is positive: nothing cancels
    more, error = _sum_and_error(a[3], b[3])
    more, further = _sum_and_error(more, apart * (apart / (a[0] * b[0] * count)))
    return count, high, low, more, a[4] + b[4] + error + further


@kernel
def _distance(a: State, b: State) -> float:
    """The distance of the means of two states times both counts, the products and their difference exact."""
    left = a[0] * b[1]
    right = b[0] * a[1]
    distance, error = _sum_and_error(left, -right)
    error += product_error(a[0], b[1], left) - product_error(b[0], a[1], right)
    return distance + (error + (a[0] * b[2] - b[0] * a[2]))


@kernel
def _sum_and_error(a: float, b: float) -> tuple[float, float]:
    """Return ``a + b`` as a float, and exactly what rounding took from it."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


@kernel
def _multiplied(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Product of two floats with rests: the nearest float, and its rest, 0.0 where the product is no finite one."""
    product = a * b
    rest = product_error(a, b, product) + (a * b_rest + a_rest * b)
    nearest = product + rest
    return (nearest, rest - (nearest - product)) if np.isfinite(nearest) else (product, 0.0)


@_inlined
def _leaf(rule: int, high: Floats, low: Floats, i: int) -> State:
    rest = low[i] if low.size else 0.0
    if rule == SMALLEST:
        return (1.0 if high[i] == high[i] else 0.0), high[i], rest, np.float64(i), 0.0
    return 1.0, high[i], rest, 0.0, 0.0


@_inlined
def _answer(rule: int, state: State) -> tuple[float, float]:
    if rule == SMALLEST:
        return (state[3] if state[0] > 0.0 else -1.0), 0.0
    if rule == DEVIATION:
        return (state[3] if np.isfinite(state[1]) else np.nan), state[4]
    return state[1] + 0.0, state[2]  # a sum of nothing but -0.0 is 0.0


@kernel
def _pivot(lo: int, hi: int) -> int:
    """The place in ``(lo, hi]`` that more twos divide than any other; ``0 <= lo < hi``."""
    shift = 0
    while (lo >> shift) != (hi >> shift):
        shift += 1
    return (hi >> (shift - 1)) << (shift - 1)


@kernel
def _range_folds(rule: int, high: Floats, low: Floats, lo: Ints, hi: Ints, base: Ints) -> Answers:
    first = np.empty(lo.size, np.float64)
    second = np.empty(lo.size, np.float64)
    before = np.empty((longest(lo, hi), 5), np.float64)  # row k: the state of the k + 1 entries before the pivot
    after = _NOTHING  # of the entries from the pivot to `reached`
    pivot = -1
    stays = reached = 0  # a rounder place than the pivot comes at `stays`, not earlier
    for p in range(lo.size):
        if not goes_on(lo, hi, base, p):
            pivot = -1
        if lo[p] == hi[p]:
            first[p], second[p] = _answer(rule, _NOTHING)
            continue
        if pivot <= lo[p] or hi[p] >= stays:
            place = _pivot(lo[p] - base[p], hi[p] - base[p])
            pivot = base[p] + place
            stays = pivot + (place & -place)
            after, reached = _NOTHING, pivot
            state = _NOTHING
            for i in range(pivot - 1, lo[p] - 1, -1):
                state = _combined(rule, _leaf(rule, high, low, i), state)
                _keep(before, pivot - 1 - i, state)
        for i in range(reached, hi[p]):
            after = _combined(rule, after, _leaf(rule, high, low, i))
        reached = hi[p]
        first[p], second[p] = _answer(rule, _combined(rule, _kept(before, pivot - 1 - lo[p]), after))
    return first, second


@kernel
def _life_folds(
    rule: int, high: Floats, low: Floats, changes: Changes, first_entry: Ints, first_pane: Ints, skip: Mask
) -> Answers:
    first = np.empty(first_pane[-1], np.float64)
    second = np.empty(first_pane[-1], np.float64)
    for s in range(len(first_pane) - 1):
        if skip[s]:
            continue
        leaves = 1
        while leaves < first_entry[s + 1] - first_entry[s]:
            leaves *= 2
        tree = np.zeros((2 * leaves, 5), np.float64)  # the children of node k are 2k and 2k + 1
        place = leaves - first_entry[s]
        for p in range(first_pane[s], first_pane[s + 1]):
            if p > first_pane[s]:
                for j in range(changes.gone_at[p], changes.gone_at[p + 1]):
                    _plant(rule, tree, place + changes.gone[j], _NOTHING)
            for j in range(changes.come_at[p], changes.come_at[p + 1]):
                i = changes.come[j]
                _plant(rule, tree, place + i, _leaf(rule, high, low, i))
            first[p], second[p] = _answer(rule, _kept(tree, 1))
    return first, second


@kernel
def _plant(rule: int, tree: Floats, node: int, state: State) -> None:
    """Put a leaf's state and those of all nodes above it."""
    _keep(tree, node, state)
    while node > 1:
        node //= 2
        _keep(tree, node, _combined(rule, _kept(tree, 2 * node), _kept(tree, 2 * node + 1)))


@_inlined
def _keep(states: Floats, k: int, state: State) -> None:
    for c in range(5):
        states[k, c] = state[c]


@_inlined
def _kept(states: Floats, k: int) -> State:
    return states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4]
