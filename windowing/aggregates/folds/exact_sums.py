"""Sums of floats: of each pane the float nearest to the true sum, however the sum associates (semantics section 9).

A sum of two floats with the error of each step beside it, and the errors of that, is nearly always enough to tell the
nearest float; where it is not (a tie that errors too small to see would decide, or numbers beyond all floats on the
way) the sum is taken once more as a whole number of the smallest float's size, in limbs of 32 bit.
"""

from __future__ import annotations

import math

import numpy as np

from ...columns.arrays import Ints
from ...support.jit import kernel
from ..kernels.loops import LIMB, Floats, sum_and_error
from .values import frozen

_PADDING = 2  # limbs of zeros below all others, so that the 53 bits of a float are always there to be looked at
_LIMBS = _PADDING + 69  # 2**-1074 .. 2**1024, and 2**31 of these
_OFTEN = 2**28 - 1  # rows after which limbs hand on what they have above 32 bit: each row adds less than 2**34
_SPECIAL = 0x7FF  # the exponent of what is infinite or no number
_TINY = 2.0**-51
_SMALL = 2.0**-73
_SMALLEST = -1074  # binary exponent of the smallest float


@kernel
def nearest_sums(values: Floats, lo: Ints, hi: Ints) -> tuple[Floats, Floats]:
    """Return the float nearest to the true sum of each pane, half way to the even one, and what it lacks of that sum.

    0.0 for an empty pane. The lack is as `nearest_of` has it, NaN where the sum was taken in limbs.
    """
    out = np.empty(lo.size, np.float64)
    lacks = np.empty(lo.size, np.float64)
    limbs = np.zeros(_LIMBS, np.int64)
    for p in range(lo.size):
        total, rest, lost = _with_errors(values, lo[p], hi[p])
        nearest, lack, sure = nearest_of(total, rest, lost)
        out[p] = nearest if sure else _nearest_whole(values, lo[p], hi[p], limbs)
        lacks[p] = lack if sure else np.nan
    return out, lacks


@kernel
def whole_sums(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Return what `nearest_sums` does, in limbs from the start."""
    out = np.empty(lo.size, np.float64)
    limbs = np.zeros(_LIMBS, np.int64)
    for p in range(lo.size):
        out[p] = _nearest_whole(values, lo[p], hi[p], limbs)
    return out


@kernel
def nearest_of(total: float, rest: float, lost: float) -> tuple[float, float, bool]:
    """Return the float nearest to a sum that is ``total + rest`` but for errors of at most ``lost`` (itself not exact),
    what that lacks of the sum, and whether it is sure to be the nearest. Anything but a finite number is not.

    The lack is off by less than ``2**-72`` of the sum, or else no finite number; where it `is_whole`, it is not off.
    """
    nearest, lack = sum_and_error(total, rest)
    if not np.isfinite(rest):  # what came after an infinity is no rest
        return total, np.nan, lost == 0.0 and np.isfinite(total)
    if lost == 0.0:
        return nearest, lack, np.isfinite(nearest)
    room = 2.0 * lost + _TINY * abs(rest)
    low = total + (rest - room)
    lack = _with_odd_last_bit(lack) if room <= _SMALL * abs(nearest) else np.inf
    return nearest, lack, low == total + (rest + room) and np.isfinite(low)


@kernel
def is_whole(lack: float) -> bool:
    """Whether a float is sure to be all that a sum lacks: its last bit is 0."""
    last: bool = np.float64(lack).view(np.int64) & 1 == 0
    return last


@kernel
def _with_odd_last_bit(lack: float) -> float:
    """The same with 1 for its last bit."""
    odd: float = np.int64(np.float64(lack).view(np.int64) | 1).view(np.float64)
    return odd


def parts_of(values: Floats, lo: Ints, hi: Ints) -> tuple[Ints, Floats]:
    """Return for each pane a few floats whose true sum is that of the pane: int64 (P+1,), their bounds, and the floats.

    At least one of each pane that has a row, and no more than that has rows.
    """
    bounds, parts = _parts(frozen(values), frozen(lo), frozen(hi))
    return bounds, parts[: bounds[-1]]


@kernel
def _with_errors(values: Floats, begin: int, end: int) -> tuple[float, float, float]:
    """A sum, the errors of its steps added up, and how much the errors of that are at most, all together."""
    total = 0.0
    rest = 0.0
    lost = 0.0
    for i in range(begin, end):
        total, error = sum_and_error(total, values[i])
        rest, further = sum_and_error(rest, error)
        lost += abs(further)
    return total, rest, lost


@kernel
def _parts(values: Floats, lo: Ints, hi: Ints) -> tuple[Ints, Floats]:
    bounds = np.zeros(lo.size + 1, np.int64)
    parts = np.empty((hi - lo).sum(), np.float64)
    limbs = np.zeros(_LIMBS, np.int64)
    count = 0
    for p in range(lo.size):
        total, rest, lost = _with_errors(values, lo[p], hi[p])
        if lost == 0.0 and np.isfinite(total):
            if lo[p] < hi[p]:
                parts[count] = total
                count += 1
            if rest != 0.0:
                parts[count] = rest
                count += 1
        else:
            count = _parts_in_limbs(values, lo[p], hi[p], limbs, parts, count)
        bounds[p + 1] = count
    return bounds, parts


@kernel
def _parts_in_limbs(values: Floats, begin: int, end: int, limbs: Ints, parts: Floats, count: int) -> int:
    """Write a sum limb by limb, or all values where these are fewer or a limb is beyond all floats; count on."""
    special = _fill(values, begin, end, limbs)
    if special != 0.0:
        parts[count] = special
        return count + 1
    sign = _settled(limbs)
    first = count
    for i in range(_PADDING, _LIMBS):
        if limbs[i]:
            part = math.ldexp(sign * limbs[i], 32 * (i - _PADDING) + _SMALLEST)
            if count - first == end - begin or not np.isfinite(part):
                parts[first : first + end - begin] = values[begin:end]
                return first + end - begin
            parts[count] = part
            count += 1
    if count == first:
        parts[count] = 0.0
        count += 1
    return count


@kernel
def _nearest_whole(values: Floats, begin: int, end: int, limbs: Ints) -> float:
    """The float nearest to the sum of some values."""
    special = _fill(values, begin, end, limbs)
    if special != 0.0:
        return special
    sign = _settled(limbs)
    top = _LIMBS - 1
    while top > _PADDING and limbs[top] == 0:
        top -= 1
    if limbs[top] == 0:
        return 0.0
    bits = 0
    while limbs[top] >> bits:
        bits += 1
    # the 64 bits from the highest one on
    head = np.uint64(limbs[top]) << np.uint64(64 - bits)
    head |= np.uint64(limbs[top - 1]) << np.uint64(32 - bits)
    head |= np.uint64(limbs[top - 2]) >> np.uint64(bits)
    below = (limbs[top - 2] & ((1 << bits) - 1)) != 0
    for i in range(top - 2):
        below |= limbs[i] != 0
    kept, cut = head >> np.uint64(11), head & np.uint64(0x7FF)
    half = np.uint64(0x400)
    if cut > half or (cut == half and (below or (kept & np.uint64(1)) != 0)):
        kept += np.uint64(1)
    exponent = 32 * (top - _PADDING) + bits - 53 + _SMALLEST
    return sign * math.ldexp(np.float64(kept), exponent)


@kernel
def _fill(values: Floats, begin: int, end: int, limbs: Ints) -> float:
    """Add values up in limbs; return the sum of those that are no finite numbers, 0.0 where all are."""
    limbs[:] = 0
    special = 0.0
    bits = values.view(np.int64)
    for i in range(begin, end):
        word = bits[i]
        exponent = (word >> 52) & _SPECIAL
        if exponent == _SPECIAL:
            special += values[i]
            continue
        digits = word & ((1 << 52) - 1)
        if exponent:
            digits |= 1 << 52
            exponent -= 1
        k, shift = _PADDING + (exponent >> 5), exponent & 31
        low, high = (digits & LIMB) << shift, (digits >> 32) << shift
        sign = -1 if word < 0 else 1
        limbs[k] += sign * (low & LIMB)
        limbs[k + 1] += sign * ((low >> 32) + (high & LIMB))
        limbs[k + 2] += sign * (high >> 32)
        if (i - begin) & _OFTEN == _OFTEN:
            _hand_on(limbs)
    return special


@kernel
def _settled(limbs: Ints) -> float:
    """Bring all limbs into ``[0, 2**32)``; return the sign of the whole."""
    _hand_on(limbs)
    if limbs[-1] >= 0:
        return 1.0
    for i in range(limbs.size):
        limbs[i] = -limbs[i]
    _hand_on(limbs)
    return -1.0


@kernel
def _hand_on(limbs: Ints) -> None:
    """Leave 32 bit in all limbs but the last, which has the sign."""
    for i in range(limbs.size - 1):
        limbs[i + 1] += limbs[i] >> 32
        limbs[i] &= LIMB
