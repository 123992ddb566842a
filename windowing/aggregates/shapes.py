"""Skewness and kurtosis over panes, each the float nearest to the exact one: third and fourth central moments.

With the sums ``S1 .. S4`` of the powers of n numbers, ``n**k`` times the central moments are whole polynomials of them:
``D2 = n * S2 - S1**2``, ``D3 = n**2 * S3 - 3 * n * S1 * S2 + 2 * S1**3``, and ``D4`` likewise. A skewness is
``D3 / D2**1.5`` and a kurtosis ``D4 / D2**2 - 3``, corrected for a sample by factors of n alone. `quotients` rounds
them: of two floats with a bound on their error where it proves the nearest float, else of sums in limbs, else of
Python's integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from ..columns.arrays import Ints
from ..support.jit import kernel
from .exact_sums import nearest_root, to_float
from .folds import new_pivot, picked, spans_of
from .inputs import Dense, frozen, is_disjoint
from .loops import LIMB, Floats, longest, product_error, times
from .moments import (
    SKEWNESS,
    added,
    clear,
    distance_from,
    is_constant,
    loaded,
    propagate,
    put,
    settled,
    two_floats,
)
from .pane_deltas import PaneDeltas

Pair: TypeAlias = tuple[float, float]
"""A number as a sum of two floats."""

Shapes: TypeAlias = Floats
"""A row for each pane, (P, 5): numerator and denominator in two floats each, and a bound on their relative error."""

_LEAST, _MOST = 2.0**-200, 2.0**200  # bounds of sums of squares, between which all on the way are normal floats
_LOST = 2.0**-103  # see `_shape`
_KNOWN = 2.0**-96  # more than what the two floats of limbs lose
_TINY = 2.0**-300  # a smaller numerator may have lost bits to underflow


@kernel
def _product(a: Pair, b: Pair) -> Pair:
    return times(a[0], a[1], b[0], b[1])


@kernel
def _less(a: Pair, b: Pair, c: Pair, d: Pair) -> Pair:
    """``a * b - c * d``."""
    left, right = _product(a, b), _product(c, d)
    return added(left[0], left[1], -right[0], -right[1])


@kernel
def _factors(rule: int, sample: int, count: float) -> tuple[float, float]:
    """The factors of ``D4`` and of ``3 * D2**2``, of which the difference is the numerator of a kurtosis."""
    return (count + 1.0, count - 1.0) if sample and rule != SKEWNESS else (1.0, 1.0)


@kernel
def _finished(rule: int, sample: int, count: float, top: Pair, spread: Pair, off: float, out: Floats) -> None:
    """Write a row of `Shapes`. ``top``: ``D3`` or the numerator of a kurtosis; ``spread``: ``D2``.

    The quotient of a skewness is its square, with its sign.
    """
    square = _product(spread, spread)
    if rule == SKEWNESS:
        side = math.copysign(1.0, top[0])
        over, under = _product(top, (side * top[0], side * top[1])), _product(square, spread)
        more, less = times(count, 0.0, count - 1.0, 0.0), times(count - 2.0, 0.0, count - 2.0, 0.0)
    else:
        over, under = top, square
        more, less = (count - 1.0, 0.0), times(count - 2.0, 0.0, count - 3.0, 0.0)
    if sample:
        over, under = _product(over, more), _product(under, less)
    out[0], out[1], out[2], out[3], out[4] = over[0], over[1], under[0], under[1], off


@kernel
def _shape(rule: int, sample: int, size: int, sums: Floats, out: Floats) -> None:
    """Write the row of a pane, given the sums of the powers of its distances, two floats each.

    Each sum of powers is off by less than ``lost`` of the sum of their magnitudes. These are at most
    ``sqrt(n * S2)`` for S1 and ``sqrt(S2 * S4)`` for S3, and ``S2**2`` at most ``n * S4`` (Cauchy and Schwarz). So all
    terms of D3 add up to at most ``6 * n**2 * sqrt(S2 * S4)``, those of D4 to ``14 * n**3 * S4``, and those of D2 to
    ``2 * n * S2``; the bounds below have room for products of four sums, and for the roundings here.
    """
    one, two, three, four = (sums[0], sums[1]), (sums[2], sums[3]), (sums[4], sums[5]), (sums[6], sums[7])
    count = np.float64(size)
    n, lost = (count, 0.0), (count + 16.0) * _LOST
    spread = _less(n, two, one, one)
    third = _less(n, three, one, two)
    if rule == SKEWNESS:
        top = _less(n, third, (2.0 * one[0], 2.0 * one[1]), spread)
        room = 24.0 * lost * count * count * math.sqrt(two[0] * four[0])
    else:
        third = _less(n, third, one, spread)
        fourth = _product(n, _less(n, four, one, three))
        fourth = _less(n, fourth, times(3.0, 0.0, one[0], one[1]), third)
        whole, part = _factors(rule, sample, count)
        top = _less((whole, 0.0), fourth, times(3.0 * part, 0.0, spread[0], spread[1]), spread)
        room = 128.0 * lost * whole * count * count * count * four[0]
    off = room / abs(top[0]) + 3.0 * (8.0 * lost * count * two[0] / spread[0])
    if abs(top[0]) > room and spread[0] > 0.0 and _LEAST < two[0] < _MOST:
        _finished(rule, sample, count, top, spread, 2.0 * off + _KNOWN, out)
    else:
        out[:] = np.nan


@kernel
def _add_powers(out: Floats, k: int, before: Floats, j: int, distance: Pair) -> None:
    """Write row k: row j of ``before`` and the first four powers of a distance, each added to two floats."""
    step, rest = distance
    square = step * step
    square_rest = product_error(step, step, square) + 2.0 * step * rest
    cube = square * step
    cube_rest = product_error(square, step, cube) + (square * rest + square_rest * step)
    fourth = square * square
    fourth_rest = product_error(square, square, fourth) + 2.0 * square * square_rest
    out[k, 0], out[k, 1] = added(before[j, 0], before[j, 1], step, rest)
    out[k, 2], out[k, 3] = added(before[j, 2], before[j, 3], square, square_rest)
    out[k, 4], out[k, 5] = added(before[j, 4], before[j, 5], cube, cube_rest)
    out[k, 6], out[k, 7] = added(before[j, 6], before[j, 7], fourth, fourth_rest)


@kernel
def _of_ranges(
    rule: int, sample: int, high: Floats, low: Floats, lo: Ints, hi: Ints, base: Ints, before: Ints
) -> Shapes:
    out = np.zeros((lo.size, 5), np.float64)
    back = np.zeros((longest(lo, hi) + 1, 8), np.float64)  # row k: sums of the last k leaves before the pivot
    after, sums = np.zeros((1, 8), np.float64), np.empty(8, np.float64)  # sums of the leaves [middle, reached), of all
    # The scheme of `moments._overlapping`, for panes that share no row as well: the reference is in each of the panes
    # with one pivot, so distances from it are of the size of the pane's own spread.
    pivot = low_end = high_end = origin = 0
    middle = begun = reached = reference = 0
    for p in range(lo.size):
        begin = before[lo[p]] if before.size else lo[p]
        end = before[hi[p]] if before.size else hi[p]
        if begin == end:
            continue
        known = base[p] == origin and low_end <= lo[p] < pivot <= hi[p] < high_end and reached <= end
        if not known:
            origin = base[p]
            pivot, low_end, high_end, middle = new_pivot(lo[p], hi[p], origin, before)
            begun = reached = middle
            reference = middle - 1 if begin < middle else middle
            after[:] = 0.0
        for i in range(begun - 1, begin - 1, -1):
            _add_powers(back, middle - i, back, middle - i - 1, distance_from(high, low, i, reference))
        begun = min(begun, begin)
        for i in range(reached, end):
            _add_powers(after, 0, after, 0, distance_from(high, low, i, reference))
        reached = end
        k = middle - begin
        for c in range(0, 8, 2):
            sums[c], sums[c + 1] = added(back[k, c], back[k, c + 1], after[0, c], after[0, c + 1])
        _shape(rule, sample, end - begin, sums, out[p])
        if sums[2] == 0.0 and is_constant(high, low, begin, end):
            out[p] = 0.0
    return out


def shapes(rule: int, sample: int, high: Floats, low: Floats, present: Dense) -> Shapes:
    """Return the numbers of each pane; those of a constant pane are 0, and NaN where no bound is known.

    ``rule``: `SKEWNESS` or `KURTOSIS`. ``sample``: 1 for a sample, 0 for a population. ``high``, ``low``: the numbers,
    as `inputs.number_halves` returns them.
    """
    if is_disjoint(present.membership):
        lo, hi = present.membership.lo, present.membership.hi
        found: Shapes = _of_ranges(rule, sample, high, low, lo, hi, lo, frozen(np.empty(0, np.int64)))
        return found
    spans = spans_of(present.ranked)
    high, low = picked(high, spans.leaves), picked(low, spans.leaves)
    found = _of_ranges(rule, sample, high, low, spans.lo, spans.hi, spans.base, spans.before)
    if spans.panes is None:
        return found
    every = np.full((len(present.sizes), 5), np.nan)
    every[spans.panes] = found
    return every


# The same of sums in limbs, for panes of which two floats do not prove the nearest float.


_WIDE = 4 * 72 + 32  # limbs: of a number of degree 4, whose single values and sums take 72 (`moments`)
_OFTEN = 2**28  # changes between two carries: each adds less than 2**32 to a limb


@kernel
def _product_in_limbs(left: Ints, right: Ints, out: Ints) -> int:
    """Write the product of two magnitudes; return how many limbs it has."""
    out[: left.size + right.size] = 0
    for j in range(left.size):
        carry = np.uint64(0)
        for k in range(right.size):
            # No step overflows: (2**32 - 1)**2 + 2 * (2**32 - 1) is 2**64 - 1.
            carry += np.uint64(left[j]) * np.uint64(right[k]) + np.uint64(out[j + k])
            out[j + k] = np.int64(carry & np.uint64(LIMB))
            carry >>= np.uint64(32)
        out[j + right.size] = np.int64(carry)
    return left.size + right.size


@kernel
def _settle(limbs: Ints, of: Ints, r: int, total: Ints, span: Ints) -> None:
    """Write number r, without limbs of zeros at its ends."""
    end, sign = settled(total, span, limbs[r])
    begin = min(span[0], end)
    while begin < end and limbs[r, begin] == 0:
        begin += 1
    of[r, 0], of[r, 1], of[r, 2] = begin, end, np.int64(sign)


@kernel
def _combine(
    limbs: Ints, of: Ints, r: int, a: int, b: int, c: int, d: int, factor: int, total: Ints, span: Ints, work: Ints
) -> None:
    """Write number r: ``a * b - factor * c * d``, each the place of a number.

    ``limbs``: (numbers, L), magnitudes in limbs of 32 bit. ``of``: (numbers, 3), where those of each begin and end, and
    its sign. ``total`` is zeros, before and after.
    """
    for i, j, often in ((a, b, 1), (c, d, -factor)):
        left, right = limbs[i, of[i, 0] : of[i, 1]], limbs[j, of[j, 0] : of[j, 1]]
        if often and left.size and right.size:
            count = _product_in_limbs(left, right, work)
            put(total, span, work, count, of[i, 0] + of[j, 0], often * of[i, 2] * of[j, 2])
    _settle(limbs, of, r, total, span)
    clear(total, span)


# Numbers in limbs: 0 is n, 1 to 4 are S1 to S4, 5 is D2, 6 and 7 the factors of a kurtosis, 10 the result.
_TOP, _SPREAD, _WHOLE, _PART = 10, 5, 6, 7
_SKEWNESS_STEPS = np.array([(5, 0, 2, 1, 1, 1), (8, 0, 3, 1, 2, 1), (10, 0, 8, 1, 5, 2)])
"""The numbers r, a, b, c, d and the factor of each `_combine`, as `_shape` has them."""
_KURTOSIS_STEPS = np.array([
    (5, 0, 2, 1, 1, 1), (8, 0, 3, 1, 2, 1), (8, 0, 8, 1, 5, 1), (9, 0, 4, 1, 3, 1),
    (9, 0, 9, 0, 0, 0), (9, 0, 9, 1, 8, 3), (8, 7, 5, 0, 0, 0), (10, 6, 9, 8, 5, 3),
])  # fmt: skip


@kernel
def _shape_in_limbs(
    rule: int, sample: int, size: int, limbs: Ints, of: Ints, total: Ints, span: Ints, work: Ints, out: Floats
) -> None:
    """Write the row of a pane, as `_shape` does, given the numbers of its sums."""
    count, degree = np.float64(size), 3 if rule == SKEWNESS else 4
    whole, part = _factors(rule, sample, count)
    for r, number in ((0, size), (_WHOLE, int(whole)), (_PART, int(part))):
        limbs[r, 0], limbs[r, 1] = number & LIMB, number >> 32
        of[r, 0], of[r, 1], of[r, 2] = 0, 2, 1
    for r, a, b, c, d, factor in _SKEWNESS_STEPS if rule == SKEWNESS else _KURTOSIS_STEPS:
        _combine(limbs, of, r, a, b, c, d, factor, total, span, work)
    high, low, exponent = two_floats(limbs[_TOP], of[_TOP, 0], of[_TOP, 1], np.float64(of[_TOP, 2]))
    over, rest, unit = two_floats(limbs[_SPREAD], of[_SPREAD, 0], of[_SPREAD, 1], 1.0)
    # The units of both cancel, so both are taken in one unit in which the denominator is about 1.
    half = (int(unit) + math.frexp(over)[1]) // 2
    shift, down = max(int(exponent) - degree * half, -4000), int(unit) - 2 * half
    high, low, over, rest = (
        math.ldexp(high, shift), math.ldexp(low, shift), math.ldexp(over, down), math.ldexp(rest, down)
    )  # fmt: skip
    off = _KNOWN if of[_TOP, 0] == of[_TOP, 1] or abs(high) > _TINY else np.nan
    _finished(rule, sample, count, (high, low), (over, rest), off, out)


@kernel
def _put_powers(values: Ints, entry: int, sign: int, sums: Ints, spans: Ints, power: Ints) -> None:
    """Add the first four powers of a number to their sums, or subtract them."""
    side, place, size = loaded(values, entry, power[0])
    while size > 0 and power[0, size - 1] == 0:
        size -= 1
    for k in range(4 if size else 0):
        if k:
            _product_in_limbs(power[k - 1, : k * size], power[0, :size], power[k])
        put(sums[k], spans[k], power[k], (k + 1) * size, (k + 1) * place, sign * side if k % 2 == 0 else sign)


@kernel
def _propagate_all(sums: Ints, spans: Ints) -> None:
    for k in range(4):
        propagate(sums[k], spans[k])


@kernel
def whole_shapes(values: Ints, rule: int, sample: int, deltas: PaneDeltas) -> Shapes:
    """Return `Shapes` from exact sums. ``values``: as `moments.moments` takes them, with its scheme of changes."""
    panes = len(deltas.added_at) - 1
    out = np.zeros((panes, 5), np.float64)
    sums, spans, power = np.zeros((4, _WIDE), np.int64), np.zeros((4, 2), np.int64), np.zeros((4, 40), np.int64)
    limbs, of = np.zeros((_TOP + 1, _WIDE), np.int64), np.zeros((_TOP + 1, 3), np.int64)
    total, span, work = np.zeros(_WIDE, np.int64), np.array([_WIDE, 0]), np.zeros(_WIDE, np.int64)
    spans[:, 0] = _WIDE
    held = since = 0
    for p in range(panes):
        come, gone = deltas.added_at[p + 1] - deltas.added_at[p], deltas.removed_at[p + 1] - deltas.removed_at[p]
        held += come - gone
        if held == come:
            for k in range(4):
                clear(sums[k], spans[k])
            gone = since = 0
        for j in range(gone + come):
            at = deltas.removed_at[p] + j if j < gone else deltas.added_at[p] + j - gone
            entry = deltas.removed[at] if j < gone else deltas.added[at]
            sign = -1 if j < gone else 1
            _put_powers(values, entry, sign, sums, spans, power)
            since += 1
            if since % _OFTEN == 0:
                _propagate_all(sums, spans)
        if held:
            for k in range(4):
                _settle(limbs, of, 1 + k, sums[k], spans[k])
            _shape_in_limbs(rule, sample, held, limbs, of, total, span, work, out[p])
    return out


# In two phases: of each part the exact sums of its powers, of which each is three words (where it begins, its sign, how
# many limbs it has) and its limbs.


@kernel
def power_sums(values: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Return the sums of each part ``[lo, hi)``: bounds, int64 (P+1,), and words. ``values``: as `whole_shapes` has."""
    bounds, words, count = np.zeros(lo.size + 1, np.int64), np.empty(64, np.int64), 0
    sums, spans, power = np.zeros((4, _WIDE), np.int64), np.zeros((4, 2), np.int64), np.zeros((4, 40), np.int64)
    limbs, of = np.zeros((4, _WIDE), np.int64), np.zeros((4, 3), np.int64)
    for p in range(lo.size):
        for k in range(4):
            clear(sums[k], spans[k])
        for i in range(lo[p], hi[p]):
            _put_powers(values, i, 1, sums, spans, power)
            if (i - lo[p] + 1) % _OFTEN == 0:
                _propagate_all(sums, spans)
        for k in range(4):
            _settle(limbs, of, k, sums[k], spans[k])
            begin, size = of[k, 0], of[k, 1] - of[k, 0]
            while count + size + 3 > words.size:
                words = np.append(words, np.empty(words.size, np.int64))
            words[count], words[count + 1], words[count + 2] = begin, of[k, 2], size
            words[count + 3 : count + 3 + size] = limbs[k, begin : begin + size]
            count += size + 3
        bounds[p + 1] = count
    return bounds, words[:count].copy()


@kernel
def merged_shapes(words: Ints, bounds: Ints, sizes: Ints, rule: int, sample: int, lo: Ints, hi: Ints) -> Shapes:
    """Return `Shapes` of panes of the parts ``[lo, hi)``, each from `power_sums`. ``sizes``: numbers of each pane."""
    out = np.zeros((lo.size, 5), np.float64)
    sums, spans = np.zeros((4, _WIDE), np.int64), np.zeros((4, 2), np.int64)
    limbs, of = np.zeros((_TOP + 1, _WIDE), np.int64), np.zeros((_TOP + 1, 3), np.int64)
    total, span, work = np.zeros(_WIDE, np.int64), np.array([_WIDE, 0]), np.zeros(_WIDE, np.int64)
    for p in range(lo.size):
        for k in range(4):
            clear(sums[k], spans[k])
        at = bounds[lo[p]]
        for i in range(4 * lo[p], 4 * hi[p]):
            put(sums[i & 3], spans[i & 3], words[at + 3 :], words[at + 2], words[at], words[at + 1])
            at += words[at + 2] + 3
            if (i + 1) % _OFTEN == 0:
                _propagate_all(sums, spans)
        if sizes[p]:
            for k in range(4):
                _settle(limbs, of, 1 + k, sums[k], spans[k])
            _shape_in_limbs(rule, sample, sizes[p], limbs, of, total, span, work, out[p])
    return out


def whole_power_sums(words: Ints) -> list[int]:
    """Return the sums of the powers of a pane, given the words of its parts."""
    sums, at, k = [0, 0, 0, 0], 0, 0
    while at < len(words):
        begin, sign, size = words[at : at + 3].tolist()
        limbs = words[at + 3 : at + 3 + size].astype("<u4").tobytes()
        sums[k % 4] += sign * int.from_bytes(limbs, "little") << 32 * begin
        at, k = at + 3 + size, k + 1
    return sums


def shape_of(rule: int, sample: int, n: int, sums: list[int]) -> float:
    """Return the nearest float, given the sums of the powers of n numbers that are not all equal."""
    one, two, three, four = sums
    spread = n * two - one**2
    third = n * (n * three - one * two) - 2 * one * spread
    if rule == SKEWNESS:
        square = Fraction(third**2, spread**3) * (Fraction(n * (n - 1), (n - 2) ** 2) if sample else 1)
        return math.copysign(to_float(nearest_root(square)), 1 if third >= 0 else -1)
    fourth = n * n * (n * four - one * three) - 3 * one * (third + one * spread)
    excess = Fraction(fourth, spread**2) - 3
    return to_float(Fraction(n - 1, (n - 2) * (n - 3)) * ((n + 1) * excess + 6) if sample else excess)
