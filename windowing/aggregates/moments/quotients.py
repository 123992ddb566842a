"""Quotients of sums, and square roots of them: for each the float nearest to the exact value (semantics section 9).

Numerators and denominators are sums of two floats with a small error. The error bound nearly always proves the nearest
float. Where it does not, sums in limbs replace them (`exact_moments`). Where these do not prove it either, as half way
between two floats, Python's integers decide. Means that are half way are common; there the two floats are usually the
exact sum, and decide by themselves.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...panes.membership import Membership, Ranges, gathered, sizes, take
from ...support.jit import kernel
from ..folds.inputs import entries_of, filtered
from ..folds.values import exact_numbers, frozen
from ..kernels.loops import Floats, Numbers, products_and_errors
from ..kernels.pane_deltas import pane_deltas
from .exact_moments import FLOAT_UNIT, MEAN, SPREAD, WEIGHTED, moments
from .rounding import means, quotients, whole_products

TwoFloats: TypeAlias = tuple[Floats, Floats]
FourFloats: TypeAlias = tuple[Floats, Floats, Floats, Floats]

_OFF_IN_LIMBS = 2.0**-98
_WHOLE = 2**53  # floats hold all whole numbers up to it
_NOTHING: Floats = frozen(np.empty(0, np.float64))


@dataclass(frozen=True, slots=True)
class Quotients:
    """Definition of one quotient for each of P panes.

    `MEAN` is ``sum(a) / n``; `WEIGHTED` is ``sum(a * b) / sum(a)``; `SPREAD` is ``(n * sum(a * a) - sum(a)**2) /
    (n * (n - sample))``. Decimals are unscaled, and the result is divided by ``10**places``.

    ``rule``: `MEAN`, `WEIGHTED` or `SPREAD`, as in `exact_moments`.
    ``a``, ``b``: the columns, one value for each entry of the panes.
    ``membership``: the panes.
    ``sizes``: int64 (P,), n.
    ``places``: decimal places of the values.
    ``sample``: 1 for a sample, 0 for a population.
    ``root``: whether the result is the square root of the quotient.
    """

    rule: int
    a: pa.Array
    b: pa.Array
    membership: Membership
    sizes: Ints
    places: int = 0
    sample: int = 0
    root: bool = False


def nearest(wanted: Quotients, numerator: TwoFloats, denominator: TwoFloats, off: Floats = _NOTHING) -> Floats:
    """Return the nearest floats (P,), given approximate numerators and denominators without ``10**places``.

    ``off``: a bound on the relative error of each quotient; ``2**-71`` for all if it is empty. If the bound is NaN, or
    the lower of two floats is not finite, nothing is known, and exact sums decide. The result is NaN where the
    denominator is 0, and where a pane holds an infinity or NaN.
    """
    found, in_doubt = round_quotients((*numerator, *denominator), _NOTHING, off, wanted)
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
    found[whole], in_doubt = round_quotients(*_in_limbs(some, a, b), np.full(len(whole), _OFF_IN_LIMBS), wanted)
    for i in np.flatnonzero(in_doubt):
        found[whole[i]] = _in_full(some, a, b, int(i))
    return found


def round_quotients(numbers: FourFloats, exponents: Floats, off: Floats, wanted: Quotients) -> tuple[Floats, Mask]:
    """Return quotients times ``2**exponents``, rounded once, and which are in doubt. ``off``: as in `nearest`."""
    high, low, over, over_low = map(frozen, numbers)  # so that the kernel is compiled for one type
    return quotients(high, low, over, over_low, *_scale(wanted), frozen(exponents), frozen(off), wanted.root)


def _take_panes(membership: Membership, a: Numbers, b: Numbers, picks: Ints) -> tuple[Membership, Numbers, Numbers]:
    """The panes at ``picks``, and the numbers of their entries."""
    if len(picks) == len(membership):
        return membership, a, b
    membership = take(membership, picks)
    if membership.row is None:
        return membership, a, b
    left = a[membership.row]
    return entries_of(membership), left, left if b is a else b[membership.row]


def _has_non_finite(values: Numbers, membership: Membership) -> Mask:
    """Which panes hold an infinity or NaN."""
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
        return whole_products(frozen(counts), sample), _NOTHING
    high, low = products_and_errors(counts.astype(np.float64), (counts - sample).astype(np.float64))
    return high, low


def whole_floats(counts: Ints) -> TwoFloats:
    """Return counts as sums of two floats; the empty second array means zeros."""
    return counts.astype(np.float64), _NOTHING


def _scale(wanted: Quotients) -> tuple[float, float]:
    """The factor of the denominator for decimal places, as two floats."""
    whole = 10 ** (wanted.places * (2 if wanted.rule == SPREAD else 1))
    return float(whole), float(whole - int(float(whole)))


def _in_limbs(wanted: Quotients, a: Numbers, b: Numbers) -> tuple[FourFloats, Floats]:
    """Numerators, denominators and exponents of quotients, from sums in limbs."""
    left, right = (frozen(values.view(np.int64)) for values in (a, b))
    high, low, exponent, more, more_low, more_exponent = moments(
        left, right, wanted.rule, pane_deltas(wanted.membership)
    ).T
    unit, other = (FLOAT_UNIT * (values.dtype.kind == "f") for values in (a, b))
    if wanted.rule == MEAN:
        return (high, low, *whole_floats(wanted.sizes)), exponent + unit
    if wanted.rule == SPREAD:
        return (more, more_low, *spread_counts(wanted.sizes, wanted.sample)), more_exponent + 2 * unit
    return (more, more_low, high, low), more_exponent - exponent + other


def _in_full(wanted: Quotients, left: Numbers, right: Numbers, pane: int) -> float:
    """The result of one pane, computed with Python's integers."""
    rows, _ = gathered(wanted.membership, pane, pane + 1)
    a, unit = _whole_numbers(left[rows])
    b, other = (a, unit) if wanted.rule != WEIGHTED else _whole_numbers(right[rows])
    scale, count = 10**wanted.places, int(wanted.sizes[pane])
    if wanted.rule == MEAN:
        return to_float(Fraction(sum(a), unit * scale * count))
    products = sum(map(operator.mul, a, b))
    if wanted.rule == WEIGHTED:
        return to_float(Fraction(products, sum(a) * other * scale))
    squares = count * products - sum(a) ** 2
    exact = Fraction(squares, (unit * scale) ** 2 * count * (count - wanted.sample))
    return to_float(nearest_root(exact) if wanted.root else exact)


def _whole_numbers(values: Numbers) -> tuple[list[int], int]:
    """Values as integers, and the divisor that turns these into the values."""
    if values.ndim == 1:
        unit = 1 << -FLOAT_UNIT
        return [top * (unit // bottom) for top, bottom in map(float.as_integer_ratio, values.tolist())], unit
    return [int.from_bytes(words.tobytes(), "little", signed=True) for words in values], 1


def nearest_root(exact: Fraction) -> Fraction:
    """Return a fraction that rounds to the same float as the square root of ``exact``.

    It has at least 80 bits; its last bit is set if the root is not exact, so it is never half way by mistake.
    """
    bits = max(0, 160 + exact.denominator.bit_length() - exact.numerator.bit_length()) // 2 + 1
    square, rest = divmod(exact.numerator << 2 * bits, exact.denominator)
    root = math.isqrt(square)
    return Fraction(2 * root + (rest > 0 or root * root != square), 2 << bits)


def to_float(exact: Fraction) -> float:
    """Return the nearest float, infinite beyond the largest one."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
