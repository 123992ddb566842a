"""Exact sums of numbers and of their products, for numbers of any size and type: integers in limbs of 32 bit.

Added entries are added and removed entries subtracted, which is exact for integers, so panes that overlap cost no more
than their changes, with holes or without. `quotients` needs these sums where sums of two floats do not prove the
nearest float, and for all decimals of more than 64 bit.
"""

from __future__ import annotations

import numpy as np

from ..columns.arrays import Ints
from ..support.jit import kernel
from .loops import LIMB, Floats, sum_and_error
from .pane_deltas import PaneDeltas

MEAN, WEIGHTED, SPREAD = range(3)
"""Rules: only ``sum(a)``; also ``sum(a * b)``; also ``n * sum(a * a) - sum(a)**2`` of n values."""

FLOAT_UNIT = -1074
"""Binary exponent of the smallest float. All floats are multiples of that float; words are multiples of 1."""

_SUM = 72  # limbs of a sum: 64 places for floats of 3 limbs, or 8 limbs of a decimal, and room for carries
_WORK = 2 * _SUM + 16  # limbs of a sum of products, and of the square of a sum
_OFTEN = 2**24  # changes between two carries: a product adds less than 2**37 to each limb


@kernel
def moments(a: Ints, b: Ints, rule: int, deltas: PaneDeltas) -> Floats:
    """Return ``(high, low, exponent)`` twice for each pane, (P, 6): a number is ``(high + low) * 2**exponent``.

    The first is ``sum(a)``, the second the other sum of the rule; both have a relative error below ``2**-100``. They
    count units: the smallest float, or 1 for words, and the products of these. ``a``, ``b``: the bits of floats, int64
    (n,), finite where a pane shows them; or words (n, W), least significant first and only the last signed.
    """
    panes = len(deltas.added_at) - 1
    out = np.zeros((panes, 6), np.float64)
    total, products = np.zeros(_SUM, np.int64), np.zeros(_WORK, np.int64)
    span, wide = np.array([_SUM, 0]), np.array([_WORK, 0])
    left, right = np.zeros(8, np.int64), np.zeros(8, np.int64)
    one, other, work = np.zeros(_SUM, np.int64), np.zeros(_WORK, np.int64), np.zeros(_WORK, np.int64)
    held = since = 0
    for p in range(panes):
        added, removed = deltas.added_at[p + 1] - deltas.added_at[p], deltas.removed_at[p + 1] - deltas.removed_at[p]
        # Invariant: the limbs hold the exact sums of the ``held`` entries of the pane. If all entries of the last pane
        # are removed, the limbs are cleared instead: that is cheaper, and keeps ``span`` short.
        if removed == held:
            _clear(total, span)
            _clear(products, wide)
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
            minus, place, count = _loaded(a, entry, left)
            _put(total, span, left, count, place, minus * sign)
            if rule == SPREAD:
                _put_product(products, wide, left, count, left, count, 2 * place, sign)
            if rule == WEIGHTED:
                factor, shift, many = _loaded(b, entry, right)
                _put_product(products, wide, left, count, right, many, place + shift, minus * factor * sign)
            since += 1
            if since == _OFTEN:
                _propagate(total, span)
                _propagate(products, wide)
                since = 0
        end, side = _settled(total, span, one)
        out[p, 0], out[p, 1], out[p, 2] = _two_floats(one, span[0], end, side)
        if rule == SPREAD:
            _spread(one, span[0], end, products, wide, held, work)
            end, side = _settled(work, wide, other)
        if rule == WEIGHTED:
            end, side = _settled(products, wide, other)
        if rule != MEAN:
            out[p, 3], out[p, 4], out[p, 5] = _two_floats(other, wide[0], end, side)
    return out


@kernel
def _put(total: Ints, span: Ints, limbs: Ints, count: int, place: int, sign: int) -> None:
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
def _loaded(values: Ints, i: int, limbs: Ints) -> tuple[int, int, int]:
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
def _spread(sums: Ints, begin: int, end: int, squares: Ints, span: Ints, count: int, work: Ints) -> None:
    """``count * squares - sums**2``; ``sums``: limbs of a magnitude; ``span``: of the squares, then of the result."""
    _propagate(squares, span)
    work[span[0] : span[1] + 3] = 0
    for k in range(span[0], span[1]):
        work[k] += (squares[k] & 0xFFFF) * count
        more = (squares[k] >> 16) * count
        work[k] += (more & 0xFFFF) << 16
        work[k + 1] += more >> 16
    for j in range(begin, end):
        for k in range(begin, end):
            product = np.uint64(sums[j]) * np.uint64(sums[k])
            work[j + k] -= np.int64(product & np.uint64(LIMB))
            work[j + k + 1] -= np.int64(product >> np.uint64(32))


@kernel
def _settled(total: Ints, span: Ints, out: Ints) -> tuple[int, float]:
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
def _two_floats(limbs: Ints, begin: int, end: int, sign: float) -> tuple[float, float, float]:
    high = 0.0
    low = 0.0
    least = max(begin, end - 5)  # five limbs have at least 129 significant bits, more than two floats can hold
    for k in range(end - 1, least - 1, -1):
        high, error = sum_and_error(high * 2.0**32, np.float64(limbs[k]))
        high, low = sum_and_error(high, low * 2.0**32 + error)
    return sign * high, sign * low, 32.0 * least


@kernel
def _clear(limbs: Ints, span: Ints) -> None:
    limbs[span[0] : span[1] + 1] = 0
    span[0], span[1] = limbs.size, 0


@kernel
def _propagate(limbs: Ints, span: Ints) -> None:
    """Propagate carries: all limbs but the last, which has the sign, keep 32 bit."""
    end = min(span[1] + 2, limbs.size - 1)
    for k in range(span[0], end):
        limbs[k + 1] += limbs[k] >> 32
        limbs[k] &= LIMB
    while end >= span[0] and limbs[end] == 0:
        end -= 1
    span[1] = end + 1
