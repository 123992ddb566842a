"""Sums of floats over panes of any form, and exact sums of numbers and of their products (semantics section 9)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..columns.arrays import Ints
from ..rows.membership import Membership, Memberships, batches, part, take
from ..support.jit import kernel
from .exact_sums import nearest_of, nearest_sums, whole_sums
from .folds import SUM, fold, new_pivot, one_nan, picked, spans_of
from .inputs import Dense, Ranked, frozen, halves, is_disjoint
from .live_trees import live_sums
from .loops import LIMB, Floats, error_of_product, longest, product_error, products_and_errors, sum_and_error
from .pane_deltas import PaneDeltas


def float_sums(values: Floats, membership: Membership) -> Floats:
    """Return the float nearest to the true sum of each pane, 0.0 for an empty one.

    NaN where a pane holds a NaN, or both infinities; infinite where it holds one infinity, or where its sum exceeds the
    largest float. ``membership``: panes over ``values``.
    """
    return sums_and_residuals(values, membership)[0]


def sums_and_residuals(values: Floats, membership: Membership) -> tuple[Floats, Floats]:
    """Return `float_sums`, and the residual of each (true sum less float), as `exact_sums.nearest_of` defines it."""
    if is_disjoint(membership):
        nearest, residuals = nearest_sums(values, membership.lo, membership.hi)
        return one_nan(nearest), residuals
    nearest, residuals = sums_of_shared(*halves(values), membership)
    picks = np.flatnonzero(np.isnan(residuals))
    if len(picks):
        finite = np.abs(values[np.isfinite(values)])
        if finite.max(initial=0.0) <= np.finfo(np.float64).max / max(1, len(finite)):  # no true sum overflows
            picks = picks[np.isfinite(nearest[picks])]
    if len(picks):
        nearest[picks] = _whole(values, take(membership, picks))
    return one_nan(nearest), residuals


def sums_of_shared(high: Floats, low: Floats, membership: Membership) -> tuple[Floats, Floats]:
    """Return what `fold` returns for `SUM`, of panes that share entries."""
    if isinstance(membership, Memberships):
        return live_sums(high, low, membership)
    return fold(SUM, high, low, Ranked(membership))


def _whole(values: Floats, membership: Membership) -> Floats:
    """Sums in limbs, for panes whose two floats do not prove the nearest float; in batches of rows."""
    sums = [np.empty(0)]
    for run in batches(membership):
        panes = part(membership, *run)
        entries = values if panes.row is None else frozen(values[panes.row])
        sums.append(whole_sums(entries, frozen(panes.lo), frozen(panes.hi)))
    return np.concatenate(sums)


# Weighted sums and sums of weights over panes of any form, each in two floats.


Both: TypeAlias = tuple[Floats, Floats, Floats, Floats]

_NONE = np.empty(0, np.float64)


def weighted_sums(values: Floats, weights: Floats, present: Dense) -> Both:
    """Return ``sum(values * weights)`` and ``sum(weights)`` of each pane, both as `sums_and_residuals` does."""
    membership = present.membership
    if is_disjoint(membership):
        both: Both = _disjoint(values, weights, membership.lo, membership.hi)
        return both
    products = products_and_errors(values, weights)
    return *sums_of_shared(*products, membership), *sums_of_shared(weights, _NONE, membership)


@kernel
def _disjoint(values: Floats, weights: Floats, lo: Ints, hi: Ints) -> Both:
    first, first_residuals = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    second, second_residuals = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    for p in range(lo.size):
        # Both sums as `exact_sums._with_errors`; the error of each product is one more number of the first sum. One
        # loop for both reads the rows once.
        total = rest = lost = weight = weight_rest = weight_lost = 0.0
        for i in range(lo[p], hi[p]):
            product = values[i] * weights[i]
            total, error = sum_and_error(total, product)
            rest, further = sum_and_error(rest, error)
            lost += abs(further)
            rest, further = sum_and_error(rest, error_of_product(values[i], weights[i], product))
            lost += abs(further)
            weight, error = sum_and_error(weight, weights[i])
            weight_rest, further = sum_and_error(weight_rest, error)
            weight_lost += abs(further)
        first[p], residual, is_proven = nearest_of(total, rest, lost)
        first_residuals[p] = residual if is_proven else np.nan
        second[p], residual, is_proven = nearest_of(weight, weight_rest, weight_lost)
        second_residuals[p] = residual if is_proven else np.nan
    return first, first_residuals, second, second_residuals


# Squared deviations from the mean over panes: ``n * sum(x * x) - sum(x)**2``, in two floats.
#
# All numbers of a pane are taken as distances from one number of the same pane. So at most a factor of n + 1 cancels
# in the final subtraction, whatever the numbers are, and 106 bits leave enough to decide the nearest float. Where
# they do not, exact sums take over (`quotients`). The association is therefore never visible (decision 007).


Sums: TypeAlias = tuple[float, float, float, float]
"""Sum of distances and sum of their squares, each as two floats."""

Deviations: TypeAlias = tuple[Floats, Floats, Floats]
"""Two floats for each pane, and a bound on the relative error of their sum."""

_SOME = 64  # rows between two normalisations of a sum: the bound of `_spread_sum` needs them
_LOST = 2.0**-95  # see `_spread_sum`
_LEAST, _MOST = 2.0**-900, 2.0**960  # bounds of sums of squares, between which errors of products are floats


def squared_deviations(high: Floats, low: Floats, present: Dense) -> Deviations:
    """Return two floats for each pane, and a bound on the relative error of their sum; NaN where no bound is known.

    ``high``, ``low``: the numbers, as `values.halves` returns them.
    """
    if is_disjoint(present.membership):
        found: Deviations = _disjoint_deviations(high, low, present.membership.lo, present.membership.hi)
        return found
    spans = spans_of(present.ranked)
    high, low = picked(high, spans.leaves), picked(low, spans.leaves)
    found = _overlapping(high, low, spans.lo, spans.hi, spans.base, spans.before)
    if spans.panes is None:
        return found
    every = np.full((3, len(present.sizes)), np.nan)
    every[:, spans.panes] = found
    return every[0], every[1], every[2]


@kernel
def is_constant(high: Floats, low: Floats, begin: int, end: int) -> bool:
    """Whether all numbers are one finite number. A sum of squares of 0 does not prove it: tiny squares underflow."""
    same = begin if begin == end or np.isfinite(high[begin]) else end + 1
    while same < end and high[same] == high[begin] and (low.size == 0 or low[same] == low[begin]):
        same += 1
    return same == end


@kernel
def _spread_sum(count: int, sums: Sums, constant: bool) -> tuple[float, float, float]:
    """``count * squares - total**2`` as two floats, and a bound on its relative error; NaN where no bound is known.

    The lower float of a sum is at most 68 units in the last place of the upper float, because sums are normalised after
    at most 64 rows. So a sum of squares loses less than ``count * 2**-98`` of itself, and ``total**2``, at most
    ``count`` times that sum, no more than ``count * 2**-97`` of it. Squares that are too small have no such bound.
    """
    if constant:
        return 0.0, 0.0, 0.0
    total, rest, squares, square_rest = sums
    many = np.float64(count)
    whole = many * squares
    square = total * total
    left, error = sum_and_error(whole, -square)
    error += product_error(many, squares, whole) + many * square_rest
    error -= product_error(total, total, square) + 2.0 * total * rest
    left, error = sum_and_error(left, error)
    is_known = left > 0.0 and squares > _LEAST and whole < _MOST
    return left, error, many * _LOST * (whole / left) if is_known else np.nan


@kernel
def _disjoint_deviations(high: Floats, low: Floats, lo: Ints, hi: Ints) -> Deviations:
    # Blocks of rows: all that does not depend on the rows before goes into loops without a dependence between steps,
    # which the compiler vectorises. Only the four running sums are sequential.
    out, more, off = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    distance, error = np.empty(_SOME, np.float64), np.empty(_SOME, np.float64)
    square, residuals = np.empty(_SOME, np.float64), np.empty(_SOME, np.float64)
    for p in range(lo.size):
        reference = lo[p]
        total = rest = squares = square_rest = 0.0
        for begin in range(lo[p] + 1, hi[p], _SOME):
            count = min(_SOME, hi[p] - begin)
            for k in range(count):
                distance[k], error[k] = sum_and_error(high[begin + k], -high[reference])
            if low.size:
                for k in range(count):
                    distance[k], error[k] = sum_and_error(distance[k], error[k] + (low[begin + k] - low[reference]))
            for k in range(count):
                square[k] = distance[k] * distance[k]
                residuals[k] = product_error(distance[k], distance[k], square[k]) + 2.0 * distance[k] * error[k]
            for k in range(count):
                total, lost = sum_and_error(total, distance[k])
                rest += lost + error[k]
                squares, lost = sum_and_error(squares, square[k])
                square_rest += lost + residuals[k]
            # Normalise after each block, so ``rest`` stays small against ``total``: `_spread_sum` needs it.
            total, rest = sum_and_error(total, rest)
            squares, square_rest = sum_and_error(squares, square_rest)
        constant = squares == 0.0 and is_constant(high, low, lo[p], hi[p])
        out[p], more[p], off[p] = _spread_sum(hi[p] - lo[p], (total, rest, squares, square_rest), constant)
    return out, more, off


@kernel
def distance_from(high: Floats, low: Floats, i: int, reference: int) -> tuple[float, float]:
    """The distance of a number from another, as two floats."""
    distance, error = sum_and_error(high[i], -high[reference])
    more = low[i] - low[reference] if low.size else 0.0
    return sum_and_error(distance, error + more)  # without a branch for empty errors, which takes longer


@kernel
def added(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Sum of two sums of two floats; it loses less than ``2**-104`` of the larger one."""
    total, error = sum_and_error(a, b)
    return sum_and_error(total, error + (a_low + b_low))


@kernel
def _with_distance(sums: Sums, distance: float, error: float) -> Sums:
    total, rest = added(sums[0], sums[1], distance, error)
    square = distance * distance
    more = product_error(distance, distance, square) + 2.0 * distance * error
    squares, square_rest = added(sums[2], sums[3], square, more)
    return total, rest, squares, square_rest


@kernel
def _overlapping(high: Floats, low: Floats, lo: Ints, hi: Ints, base: Ints, before: Ints) -> Deviations:
    out, more, off = np.empty(lo.size, np.float64), np.empty(lo.size, np.float64), np.empty(lo.size, np.float64)
    back = np.zeros((longest(lo, hi) + 1, 4), np.float64)  # row k: sums of the last k leaves before the pivot
    after = (0.0, 0.0, 0.0, 0.0)  # sums of the leaves [middle, reached)
    # The scheme of `folds._range_folds`. All panes with one pivot share the reference leaf, so they share sums;
    # the reference is in each of them, so what cancels is bounded for each.
    pivot = low_end = high_end = origin = 0  # ranges inside [low_end, high_end) that contain the pivot have this pivot
    middle = begun = reached = reference = 0  # leaves: at the pivot, first in ``back``, end of ``after``, reference
    for p in range(lo.size):
        begin = before[lo[p]] if before.size else lo[p]
        end = before[hi[p]] if before.size else hi[p]
        if begin == end:
            out[p] = more[p] = off[p] = 0.0
            continue
        known = base[p] == origin and low_end <= lo[p] < pivot <= hi[p] < high_end and reached <= end
        if not known:
            origin = base[p]
            pivot, low_end, high_end, middle = new_pivot(lo[p], hi[p], origin, before)
            begun = reached = middle
            reference = middle - 1 if begin < middle else middle
            after = (0.0, 0.0, 0.0, 0.0)
        for i in range(begun - 1, begin - 1, -1):
            k = middle - i
            back[k, 0], back[k, 1], back[k, 2], back[k, 3] = _with_distance(
                (back[k - 1, 0], back[k - 1, 1], back[k - 1, 2], back[k - 1, 3]),
                *distance_from(high, low, i, reference),
            )
        begun = min(begun, begin)
        for i in range(reached, end):
            after = _with_distance(after, *distance_from(high, low, i, reference))
        reached = end
        k = middle - begin
        total, rest = added(back[k, 0], back[k, 1], after[0], after[1])
        squares, square_rest = added(back[k, 2], back[k, 3], after[2], after[3])
        sums = total, rest, squares, square_rest
        constant = squares == 0.0 and is_constant(high, low, begin, end)
        out[p], more[p], off[p] = _spread_sum(end - begin, sums, constant)
    return out, more, off


# Exact sums of numbers and of their products, for numbers of any size and type: integers in limbs of 32 bit.
#
# Added entries are added and removed entries subtracted, which is exact for integers, so panes that overlap cost no
# more than their changes, with holes or without. `quotients` needs these sums where sums of two floats do not prove the
# nearest float, and for all decimals of more than 64 bit.


MEAN, WEIGHTED, SPREAD, SHARED, SKEWNESS, KURTOSIS = range(6)
"""Rules: only ``sum(a)``; also ``sum(a * b)``; also ``n * sum(a * a) - sum(a)**2`` of n values; also ``n * sum(a * b) -
sum(a) * sum(b)``; see also `shapes`."""

FLOAT_UNIT = -1074
"""Binary exponent of the smallest float. All floats are multiples of that float; words are multiples of 1."""

_SUM = 72  # limbs of a sum: 64 places for floats of 3 limbs, or 8 limbs of a decimal, and room for carries
_WORK = 2 * _SUM + 16  # limbs of a sum of products, and of the square of a sum
_OFTEN = 2**24  # changes between two carries: a product adds less than 2**37 to each limb


@kernel
def put(total: Ints, span: Ints, limbs: Ints, count: int, place: int, sign: int) -> None:
    """Add or subtract the limbs of a number. ``span``: the bounds of the limbs that may differ from 0."""
    for j in range(count):
        total[place + j] += sign * limbs[j]
    span[0] = min(span[0], place)
    span[1] = max(span[1], place + count)


@kernel
def _put_product(
    products: Ints, span: Ints, left: Ints, count: int, right: Ints, many: int, place: int, sign: int
) -> None:
    # Half products of 32 bit go to two limbs, so no step overflows; ``span`` keeps later loops short.
    for j in range(count):
        for k in range(many):
            product = np.uint64(left[j]) * np.uint64(right[k])
            products[place + j + k] += sign * np.int64(product & np.uint64(LIMB))
            products[place + j + k + 1] += sign * np.int64(product >> np.uint64(32))
    span[0] = min(span[0], place)
    span[1] = max(span[1], place + count + many)


@kernel
def _loaded_float(bits: int, limbs: Ints) -> tuple[int, int, int]:
    exponent, digits = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    if exponent:
        digits |= 1 << 52
        exponent -= 1
    shift = exponent & 31
    low, high = (digits & LIMB) << shift, (digits >> 32) << shift
    middle = (low >> 32) + (high & LIMB)
    limbs[0] = low & LIMB
    limbs[1] = middle & LIMB
    limbs[2] = (high >> 32) + (middle >> 32)
    return -1 if bits < 0 else 1, exponent >> 5, 3


@kernel
def loaded(values: Ints, i: int, limbs: Ints) -> tuple[int, int, int]:
    """Write the limbs of a number; return its sign, the place of the least significant limb, and how many there are."""
    if values.ndim == 1:
        return _loaded_float(values[i], limbs)
    # Sign and magnitude: two's complement is undone limb by limb, so that products need no signed limbs.
    carry = 1
    count = 0
    negative = values[i, values.shape[1] - 1] < 0
    for j in range(2 * values.shape[1]):
        limb = (values[i, j >> 1] >> (32 * (j & 1))) & LIMB
        if negative:
            limb = (limb ^ LIMB) + carry
            carry = limb >> 32
            limb &= LIMB
        limbs[j] = limb
        if limb:
            count = j + 1
    return -1 if negative else 1, 0, count


@kernel
def propagate(limbs: Ints, span: Ints) -> None:
    """Propagate carries: all limbs but the last, which has the sign, keep 32 bit."""
    end = min(span[1] + 2, limbs.size - 1)
    for k in range(span[0], end):
        limbs[k + 1] += limbs[k] >> 32
        limbs[k] &= LIMB
    while end >= span[0] and limbs[end] == 0:
        end -= 1
    span[1] = end + 1


@kernel
def _spread(
    sums: Ints, begin: int, end: int, others: Ints, low: int, high: int, sign: int,
    products: Ints, span: Ints, count: int, work: Ints
) -> None:  # fmt: skip
    """``count * products - sign * sums * others``; ``sums``, ``others``: limbs of magnitudes.

    ``span``: of the products, then of the result.
    """
    propagate(products, span)
    if begin < end and low < high:
        span[0], span[1] = min(span[0], begin + low), max(span[1], end + high)
    work[span[0] : span[1] + 3] = 0
    for k in range(span[0], span[1]):
        work[k] += (products[k] & 0xFFFF) * count
        more = (products[k] >> 16) * count
        work[k] += (more & 0xFFFF) << 16
        work[k + 1] += more >> 16
    for j in range(begin, end):
        for k in range(low, high):
            product = np.uint64(sums[j]) * np.uint64(others[k])
            work[j + k] -= sign * np.int64(product & np.uint64(LIMB))
            work[j + k + 1] -= sign * np.int64(product >> np.uint64(32))


@kernel
def settled(total: Ints, span: Ints, out: Ints) -> tuple[int, float]:
    """Write the size of a number in limbs of 32 bit from ``span[0]`` on; return the end of these, and its sign."""
    begin, end = span[0], min(span[1] + 3, total.size)
    carry = 0
    for k in range(begin, end):
        carry += total[k]
        out[k] = carry & LIMB
        carry >>= 32
    sign = 1.0
    if carry < 0:
        sign = -1.0
        carry = 1
        for k in range(begin, end):
            carry += out[k] ^ LIMB
            out[k] = carry & LIMB
            carry >>= 32
    while end > begin and out[end - 1] == 0:
        end -= 1
    return end, sign


@kernel
def two_floats(limbs: Ints, begin: int, end: int, sign: float) -> tuple[float, float, float]:
    """Return ``(high, low, exponent)`` of a size in limbs and its sign, off by less than ``2**-100`` of it."""
    high = 0.0
    low = 0.0
    least = max(begin, end - 5)  # five limbs have at least 129 significant bits, more than two floats can hold
    for k in range(end - 1, least - 1, -1):
        high, error = sum_and_error(high * 2.0**32, np.float64(limbs[k]))
        high, low = sum_and_error(high, low * 2.0**32 + error)
    return sign * high, sign * low, 32.0 * least


@kernel
def clear(limbs: Ints, span: Ints) -> None:
    """Make a number 0."""
    limbs[span[0] : span[1] + 1] = 0
    span[0], span[1] = limbs.size, 0


@kernel
def moments(a: Ints, b: Ints, rule: int, deltas: PaneDeltas) -> Floats:
    """Return ``(high, low, exponent)`` twice for each pane, (P, 6): a number is ``(high + low) * 2**exponent``.

    The first is ``sum(a)``, the second the other sum of the rule; both have a relative error below ``2**-100``. They
    count units: the smallest float, or 1 for words, and the products of these. ``a``, ``b``: the bits of floats, int64
    (n,), finite where a pane shows them; or words (n, W), least significant first and only the last signed.
    """
    panes = len(deltas.added_at) - 1
    out = np.zeros((panes, 6), np.float64)
    total, products, second = np.zeros(_SUM, np.int64), np.zeros(_WORK, np.int64), np.zeros(_SUM, np.int64)
    span, wide, reach = np.array([_SUM, 0]), np.array([_WORK, 0]), np.array([_SUM, 0])
    left, right = np.zeros(8, np.int64), np.zeros(8, np.int64)
    one, other, work = np.zeros(_SUM, np.int64), np.zeros(_WORK, np.int64), np.zeros(_WORK, np.int64)
    two = np.zeros(_SUM, np.int64)
    held = since = 0
    for p in range(panes):
        added, removed = deltas.added_at[p + 1] - deltas.added_at[p], deltas.removed_at[p + 1] - deltas.removed_at[p]
        # Invariant: the limbs hold the exact sums of the ``held`` entries of the pane. If all entries of the last pane
        # are removed, the limbs are cleared instead: that is cheaper, and keeps ``span`` short.
        if removed == held:
            clear(total, span)
            clear(products, wide)
            clear(second, reach)
            removed = since = 0
            held = added
        else:
            held += added - removed
        for j in range(removed + added):
            entry = (
                deltas.removed[deltas.removed_at[p] + j]
                if j < removed
                else deltas.added[deltas.added_at[p] + j - removed]
            )
            sign = -1 if j < removed else 1
            minus, place, count = loaded(a, entry, left)
            put(total, span, left, count, place, minus * sign)
            if rule == SPREAD:
                _put_product(products, wide, left, count, left, count, 2 * place, sign)
            if rule in (WEIGHTED, SHARED):
                factor, shift, many = loaded(b, entry, right)
                _put_product(products, wide, left, count, right, many, place + shift, minus * factor * sign)
                if rule == SHARED:
                    put(second, reach, right, many, shift, factor * sign)
            since += 1
            if since == _OFTEN:
                propagate(total, span)
                propagate(products, wide)
                propagate(second, reach)
                since = 0
        end, side = settled(total, span, one)
        out[p, 0], out[p, 1], out[p, 2] = two_floats(one, span[0], end, side)
        if rule == SPREAD:
            _spread(one, span[0], end, one, span[0], end, 1, products, wide, held, work)
            end, side = settled(work, wide, other)
        if rule == SHARED:
            stop, half = settled(second, reach, two)
            _spread(one, span[0], end, two, reach[0], stop, int(side * half), products, wide, held, work)
            end, side = settled(work, wide, other)
        if rule == WEIGHTED:
            end, side = settled(products, wide, other)
        if rule != MEAN:
            out[p, 3], out[p, 4], out[p, 5] = two_floats(other, wide[0], end, side)
    return out
