"""Quotients of sums, and square roots of them: for each the float nearest to the exact value (semantics section 9).

Numerators and denominators are sums of two floats with a small error. The error bound nearly always proves the nearest
float. Where it does not, sums in limbs replace them (`moments`). Where these do not prove it either, as half way
between two floats, Python's integers decide. Means that are half way are common; there the two floats are usually the
exact sum, and decide by themselves.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..rows.membership import Membership, Ranges, gathered, sizes, take
from ..support.jit import kernel
from .exact_sums import (
    LIMBS,
    add_to_limbs,
    is_whole,
    nearest_root,
    nearest_sums,
    parts_of,
    to_float,
    write_limbs,
)
from .inputs import (
    Dense,
    Inputs,
    as_ranges,
    dense,
    entries_of,
    exact_numbers,
    filtered,
    frozen,
    list_array,
    masked,
    number_halves,
    scale_of,
)
from .loops import Floats, Numbers, error_of_product, product_error, products_and_errors, times
from .moments import FLOAT_UNIT, KURTOSIS, MEAN, SHARED, SKEWNESS, SPREAD, WEIGHTED, moments
from .pane_deltas import pane_deltas
from .shapes import shape_of, whole_shapes

# Rounding of quotients of sums of two floats, and of their square roots, with a proof or a doubt (`quotients`).
#
# The first loop over all panes has no branches, so the compiler vectorises it; the second handles the panes in doubt.


Four: TypeAlias = tuple[float, float, float, float]
"""A numerator and a denominator, each as a sum of two floats."""

_OFF = 2.0**-71  # bound on the relative error of a quotient, unless the caller gives one
_NORMAL = 2.0**-1022  # the smallest normal float: smaller results round at another bit
_LEAST = 2.0**-900  # a smaller numerator might lose rounding errors to underflow


@kernel
def quotient(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Quotient of two sums of two floats, with a relative error of a few ``2**-106``."""
    near = a / b
    product = near * b
    left = ((a - product) - product_error(near, b, product)) + (a_low - near * b_low)
    return near, left / b


@kernel
def _root(a: float, a_low: float) -> tuple[float, float]:
    """Square root of the size of a sum of two floats, with its sign: one step of Newton after the float root."""
    size, side = abs(a), math.copysign(1.0, a)
    near = math.sqrt(size)
    square = near * near
    more = (((size - square) - product_error(near, near, square)) + side * a_low) / (2.0 * near)
    return side * near, side * more


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
def _remainder(total: float, near: float, count: float) -> float:
    """``total - count * near``, exactly, for a float next to the mean."""
    product = near * count
    return (total - product) - product_error(near, count, product)


@kernel
def _mean(total: float, residual: float, count: float) -> tuple[float, float, float]:
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
def mean_of(total: float, residual: float, count: int) -> tuple[float, bool]:
    """A mean, and whether it is in doubt."""
    _, low, high = _mean(total, residual, np.float64(count))
    if low == high and _LEAST < abs(high) < np.inf:
        return high, False
    return _settled(total, residual, count)


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


TwoFloats: TypeAlias = tuple[Floats, Floats]
FourFloats: TypeAlias = tuple[Floats, Floats, Floats, Floats]

_OFF_IN_LIMBS = 2.0**-98
_WHOLE = 2**53  # floats hold all whole numbers up to it
NOTHING: Floats = frozen(np.empty(0, np.float64))


@dataclass(frozen=True, slots=True)
class Quotients:
    """Definition of one quotient for each of P panes.

    `MEAN` is ``sum(a) / n``; `WEIGHTED` is ``sum(a * b) / sum(a)``, or with ``unit`` ``sum(a * b) / unit``; `SPREAD` is
    ``(n * sum(a * a) - sum(a)**2) / (n * (n - sample))``; `SHARED` is ``unit * (n * sum(a * b) - sum(a) * sum(b)) /
    (n * sum(a * a) - sum(a)**2)``. Decimals are unscaled, and the result is divided by ``10**places``. `SKEWNESS` and
    `KURTOSIS` are those of `shapes`, without places; the root of a skewness has the sign of its quotient.

    ``rule``: as in `moments`.
    ``a``, ``b``: the columns, one value for each entry of the panes.
    ``membership``: the panes.
    ``sizes``: int64 (P,), n.
    ``places``: decimal places of the values.
    ``sample``: 1 for a sample, 0 for a population.
    ``root``: whether the result is the square root of the quotient.
    ``unit``: a whole number below 2**53; 0: none.
    """

    rule: int
    a: pa.Array
    b: pa.Array
    membership: Membership
    sizes: Ints
    places: int = 0
    sample: int = 0
    root: bool = False
    unit: int = 0


def nearest(wanted: Quotients, numerator: TwoFloats, denominator: TwoFloats, off: Floats = NOTHING) -> Floats:
    """Return the nearest floats (P,), given approximate numerators and denominators without ``10**places``.

    ``off``: a bound on the relative error of each quotient; ``2**-71`` for all if it is empty. If the bound is NaN, or
    the lower of two floats is not finite, nothing is known, and exact sums decide. The result is NaN where the
    denominator is 0, and where a pane holds an infinity or NaN.
    """
    found, in_doubt = round_quotients((*numerator, *denominator), NOTHING, off, wanted)
    picks = np.flatnonzero(in_doubt)
    if len(picks):
        found[picks] = exactly(wanted, picks)
    return found


def nearest_means(wanted: Quotients, sums: Floats, residuals: Floats) -> Floats:
    """Return the floats nearest to means of floats, (P,), given `sums_and_residuals`; NaN for an empty pane."""
    found, in_doubt = means(sums, residuals, wanted.sizes)
    picks = np.flatnonzero(in_doubt)
    if len(picks):
        exact = exactly(wanted, picks)
        found[picks] = np.where(np.isnan(exact), found[picks], exact)  # with infinities or NaN the sum decides
    return found


def exactly(wanted: Quotients, picks: Ints) -> Floats:
    """Return the nearest floats for the panes at ``picks``, from sums in limbs."""
    a = exact_numbers(wanted.a)
    b = a if wanted.b is wanted.a else exact_numbers(wanted.b)
    membership, a, b = _take_panes(wanted.membership, a, b, picks)
    non_finite = _has_non_finite(a, membership)
    whole = np.flatnonzero(~(non_finite if b is a else non_finite | _has_non_finite(b, membership)))
    membership, a, b = _take_panes(membership, a, b, whole)
    some = replace(wanted, membership=membership, sizes=wanted.sizes[picks[whole]])
    found = np.full(len(picks), np.nan)
    found[whole], in_doubt = round_quotients(*_in_limbs(some, a, b), wanted)
    for i in np.flatnonzero(in_doubt):
        found[whole[i]] = _in_full(some, a, b, int(i))
    return found


def round_quotients(numbers: FourFloats, exponents: Floats, off: Floats, wanted: Quotients) -> tuple[Floats, Mask]:
    """Return quotients times ``2**exponents``, rounded once, and which are in doubt. ``off``: as in `nearest`."""
    high, low, over, over_low = map(frozen, numbers)  # so that the kernel is compiled for one type
    whole = 10 ** (wanted.places * (2 if wanted.rule == SPREAD else 1))
    scale, scale_low = float(whole), float(whole - int(float(whole)))
    return quotients(high, low, over, over_low, scale, scale_low, frozen(exponents), frozen(off), wanted.root)


def _take_panes(membership: Membership, a: Numbers, b: Numbers, picks: Ints) -> tuple[Membership, Numbers, Numbers]:
    if len(picks) == len(membership):
        return membership, a, b
    membership = take(membership, picks)
    if membership.row is None:
        return membership, a, b
    left = a[membership.row]
    return entries_of(membership), left, left if b is a else b[membership.row]


def _has_non_finite(values: Numbers, membership: Membership) -> Mask:
    if values.dtype.kind != "f":
        return np.zeros(len(membership), np.bool_)
    if isinstance(membership, Ranges) and sizes(membership).sum() < len(values):
        few: Mask = _any_non_finite(values.astype(np.float64, copy=False), frozen(membership.lo), frozen(membership.hi))
        return few
    if (finite := np.isfinite(values)).all():
        return np.zeros(len(membership), np.bool_)
    bad: Mask = sizes(filtered(membership, ~finite)) > 0
    return bad


@kernel
def _any_non_finite(values: Floats, lo: Ints, hi: Ints) -> Mask:
    out = np.zeros(lo.size, np.bool_)
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            out[p] |= not np.isfinite(values[i])
    return out


def spread_counts(counts: Ints, sample: int) -> TwoFloats:
    """Return ``counts * (counts - sample)``, exactly."""
    if int(counts.max(initial=0)) ** 2 < _WHOLE:
        return counts.astype(np.float64) * (counts - sample), NOTHING
    high, low = products_and_errors(counts.astype(np.float64), (counts - sample).astype(np.float64))
    return high, low


def whole_floats(counts: Ints) -> TwoFloats:
    """Return counts as sums of two floats; the empty second array means zeros."""
    return counts.astype(np.float64), NOTHING


def _in_limbs(wanted: Quotients, a: Numbers, b: Numbers) -> tuple[FourFloats, Floats, Floats]:
    """Return what `round_quotients` takes."""
    if wanted.rule in (SKEWNESS, KURTOSIS):
        bits = frozen(a.view(np.int64))
        *numbers, bound = whole_shapes(bits, wanted.rule, wanted.sample, pane_deltas(wanted.membership)).T
        return (numbers[0], numbers[1], numbers[2], numbers[3]), NOTHING, bound
    off = np.full(len(wanted.sizes), _OFF_IN_LIMBS)
    left, right = (frozen(values.view(np.int64)) for values in (a, b))
    high, low, exponent, more, more_low, more_exponent = moments(
        left, right, wanted.rule, pane_deltas(wanted.membership)
    ).T
    unit, other = (FLOAT_UNIT * (values.dtype.kind == "f") for values in (a, b))
    if wanted.rule == MEAN:
        return (high, low, *whole_floats(wanted.sizes)), exponent + unit, off
    if wanted.rule == SPREAD:
        return (more, more_low, *spread_counts(wanted.sizes, wanted.sample)), more_exponent + 2 * unit, off
    if wanted.rule == SHARED:
        over, over_low, over_exponent = moments(left, left, SPREAD, pane_deltas(wanted.membership)).T[3:]
        more, error = products_and_errors(frozen(more), frozen(np.full(len(more), float(wanted.unit))))
        shared = (more, error + more_low * wanted.unit, over, over_low)
        return shared, more_exponent - over_exponent + other - unit, off
    if wanted.unit:
        return (more, more_low, *whole_floats(np.full(len(more), wanted.unit))), more_exponent + unit + other, off
    return (more, more_low, high, low), more_exponent - exponent + other, off


def _in_full(wanted: Quotients, left: Numbers, right: Numbers, pane: int) -> float:
    rows, _ = gathered(wanted.membership, pane, pane + 1)
    a, unit = _whole_numbers(left[rows])
    b, other = (a, unit) if wanted.rule not in (WEIGHTED, SHARED) else _whole_numbers(right[rows])
    scale, count = 10**wanted.places, int(wanted.sizes[pane])
    if wanted.rule == MEAN:
        return to_float(Fraction(sum(a), unit * scale * count))
    if wanted.rule in (SKEWNESS, KURTOSIS):
        return shape_of(wanted.rule, wanted.sample, count, [sum(v**power for v in a) for power in range(1, 5)])
    products = sum(map(operator.mul, a, b))
    if wanted.rule == SHARED:
        over = count * sum(map(operator.mul, a, a)) - sum(a) ** 2
        return to_float(Fraction((count * products - sum(a) * sum(b)) * unit * wanted.unit, over * other * scale))
    if wanted.rule == WEIGHTED:
        return to_float(Fraction(products, (wanted.unit * unit if wanted.unit else sum(a)) * other * scale))
    squares = count * products - sum(a) ** 2
    exact = Fraction(squares, (unit * scale) ** 2 * count * (count - wanted.sample))
    return to_float(nearest_root(exact) if wanted.root else exact)


def _whole_numbers(values: Numbers) -> tuple[list[int], int]:
    if values.ndim == 1:
        unit = 1 << -FLOAT_UNIT
        return [top * (unit // bottom) for top, bottom in map(float.as_integer_ratio, values.tolist())], unit
    return [int.from_bytes(words.tobytes(), "little", signed=True) for words in values], 1


# Variances in two phases: a few floats with the sum of some numbers, and a few with the sum of their squares.
#
# A square of a float is the sum of two floats, unless they are too large or too small to be floats. Numbers with such
# squares are kept as they are, and so are infinities and NaN. So both sums are exact, whatever the numbers, and the
# variance of any number of parts is the float nearest to the exact one.


_SPREAD_LEAST, _SPREAD_MOST = 2.0**-480, 2.0**480
"""Between them, squares and the errors of these are floats, and sums of fewer than 2**60 squares, too."""
_SPREAD_OFF = (
    2.0**-68
)  # more than what both sums lose, of the larger one: `nearest_sums` leaves less than 2**-72 of each
_SOME = 256  # numbers whose squares wait to be added

COLUMNS = 4
"""Columns of the first phase: how many numbers there are, the floats of both sums, and the numbers that are kept."""


def split_spread(inputs: Inputs) -> list[pa.Array]:
    """Return, for each pane, the number of values and what is left of them: lists of floats, and of values."""
    present = dense(inputs)
    column, ranges = present.columns[0], present.ranges
    high, low = number_halves(column)
    size = np.abs(high)
    is_kept = ~((high == 0.0) | ((size > _SPREAD_LEAST) & (size < _SPREAD_MOST)))
    if is_kept.any():
        high = frozen(np.where(is_kept, 0.0, high))
        low = frozen(np.where(is_kept, 0.0, low)) if low.size else low
    if low.size:
        sums = list_array(*parts_of(np.stack([high, low], axis=1).ravel(), 2 * ranges.lo, 2 * ranges.hi))
    else:
        sums = list_array(*parts_of(high, ranges.lo, ranges.hi))
    squares = list_array(*_square_parts(high, low, frozen(ranges.lo), frozen(ranges.hi)))
    return [pa.array(present.sizes), sums, squares, _kept(column, is_kept, ranges)]


def merge_spread(root: bool, sample: int) -> Callable[[Inputs], pa.Array]:
    """Return the second phase of a variance, or of its root, of a sample (1) or of a population (0)."""

    def merge(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        counts, _, _, kept = present.columns
        before = np.concatenate([[0], np.cumsum(counts.to_numpy())])
        sizes = before[present.ranges.hi] - before[present.ranges.lo]
        values = kept.flatten()
        wanted = Quotients(SPREAD, values, values, present.ranges, sizes, scale_of(values), sample, root)
        high, low, off = _two_floats(present, sizes)
        over, over_low = spread_counts(sizes, sample)
        found, in_doubt = round_quotients((high, low, over, over_low), NOTHING, off, wanted)
        for pane in np.flatnonzero(in_doubt & (sizes > sample)).tolist():
            spread, count = _exact_spread(present, pane), int(sizes[pane])
            if spread is None:
                found[pane] = math.nan
            else:
                exact = spread / (count * (count - sample))
                found[pane] = to_float(nearest_root(exact) if root else exact)
        return masked(found, sizes <= sample, inputs.type)

    return merge


def _two_floats(present: Dense, counts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return ``count * sum(x * x) - sum(x)**2`` as two floats, and a bound on their relative error; NaN: unknown."""
    _, sums, squares, kept = present.columns
    (total, rest), (of_squares, more) = (_sums_of_items(lists, present.ranges) for lists in (sums, squares))
    many = frozen(counts.astype(np.float64))
    with np.errstate(all="ignore"):
        whole, error = products_and_errors(many, of_squares)
        square, lost = products_and_errors(total, total)
        high = whole - square
        part = high - whole  # the error of this difference, as in `loops.sum_and_error`
        low = (whole - (high - part)) - (square + part) + (error + many * more) - (lost + 2.0 * total * rest)
        near = high + low
        low -= near - high
        has_bound = (near > 0.0) & (of_squares > 2.0**-900) & (whole < 2.0**960)
        off = np.where(has_bound, _SPREAD_OFF * (whole / near), np.nan)
    before = np.concatenate([[0], np.cumsum(kept.value_lengths().to_numpy())])
    return near, low, np.where((before[present.ranges.hi] - before[present.ranges.lo]) > 0, np.nan, off)


def _sums_of_items(lists: pa.Array, ranges: Ranges) -> tuple[Floats, Floats]:
    before = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())])
    items = frozen(lists.flatten().to_numpy())
    found: tuple[Floats, Floats] = nearest_sums(items, frozen(before[ranges.lo]), frozen(before[ranges.hi]))
    return found


def _exact_spread(present: Dense, pane: int) -> Fraction | None:
    """Return ``count * sum(x * x) - sum(x)**2`` of a pane; None where a value is not finite."""
    counts, sums, squares, kept = present.columns
    unit = Fraction(1, 10 ** scale_of(kept.values))
    lo, size = int(present.ranges.lo[pane]), int(present.ranges.hi[pane] - present.ranges.lo[pane])
    count, some = sum(counts.slice(lo, size).to_pylist()), kept.slice(lo, size).flatten()
    if pa.types.is_floating(some.type) and not np.isfinite(some.to_numpy(zero_copy_only=False)).all():
        return None
    values = [Fraction(value) for value in some.to_pylist()]
    total, of_squares = (
        sum(map(Fraction, lists.slice(lo, size).flatten().to_pylist()), Fraction(0)) for lists in (sums, squares)
    )
    total, of_squares = total * unit + sum(values), of_squares * unit * unit + sum(v * v for v in values)
    return count * of_squares - total * total


def _kept(column: pa.Array, is_kept: Mask, ranges: Ranges) -> pa.Array:
    """Return the lists of values that are kept; of disjoint panes, in their order."""
    before = np.concatenate([[0], np.cumsum(is_kept)])
    sizes = before[ranges.hi] - before[ranges.lo]
    shown = np.zeros(len(is_kept) + 1, np.int64)
    np.add.at(shown, ranges.lo, 1)
    np.add.at(shown, ranges.hi, -1)
    picks = np.flatnonzero(is_kept & (np.cumsum(shown)[:-1] > 0))
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return list_array(bounds, column.take(pa.array(picks)))


@kernel
def _add_product(a: float, b: float, waiting: Floats, filled: int) -> int:
    """Write a product as two floats behind others; return how many there are."""
    product = a * b
    waiting[filled] = product
    waiting[filled + 1] = error_of_product(a, b, product)
    return filled + 2


@kernel
def _square_parts(high: Floats, low: Floats, lo: Ints, hi: Ints) -> tuple[Ints, Floats]:
    bounds = np.zeros(lo.size + 1, np.int64)
    parts = np.empty(lo.size * LIMBS, np.float64)  # most of it is never written, so it takes no memory
    limbs = np.zeros(LIMBS, np.int64)
    waiting = np.empty(6 * _SOME, np.float64)
    count = 0
    for p in range(lo.size):
        limbs[:] = 0
        for begin in range(lo[p], hi[p], _SOME):
            filled = 0
            for i in range(begin, min(begin + _SOME, hi[p])):
                filled = _add_product(high[i], high[i], waiting, filled)
                if low.size and low[i] != 0.0:
                    filled = _add_product(2.0 * high[i], low[i], waiting, filled)
                    filled = _add_product(low[i], low[i], waiting, filled)
            add_to_limbs(waiting, 0, filled, limbs)
        count = write_limbs(limbs, parts, count)
        bounds[p + 1] = count
    return bounds, parts[:count].copy()
