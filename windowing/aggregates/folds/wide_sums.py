"""Integers wider than 64 bit, one per pane, as limbs in base 2**32: exact sums without big integers in the loop.

`Limbs` are int64 arrays (P,), the least significant limb first. Before `propagate_carries` a limb may hold any int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...panes.membership import Membership
from ...support.jit import kernel
from ..kernels import loops, pane_deltas
from ..kernels.loops import LIMB, Floats, sum_and_error
from .inputs import Dense, is_disjoint
from .values import decimal_words, integers, is_unsigned

Limbs = list[Ints]
_DECIMAL_END = 10**38  # decimal128 holds up to 38 digits


def exact_sums(present: Dense) -> Limbs:
    """Return the exact sum of each pane of integers, booleans, ticks or decimals (unscaled)."""
    column = present.columns[0]
    words = decimal_words(column) if pa.types.is_decimal(column.type) else [integers(column)]
    return pane_sums(words, present.membership, is_unsigned(column.type))


def pane_sums(words: Sequence[Ints], membership: Membership, unsigned: bool = False) -> Limbs:
    """Return the exact sum of each pane of 64 bit words, least significant first; at most the last word is signed."""
    limb_sums = _summing(membership)
    limbs = []
    for i, word in enumerate(words):
        signed = i == len(words) - 1 and not unsigned
        high, low = limb_sums(word, -1 if signed else LIMB)
        limbs += [low, high]
    return propagate_carries(limbs)


def _summing(membership: Membership) -> Callable[[Ints, int], tuple[Ints, Ints]]:
    """Return the function that sums the words of each pane as limbs, given the mask for the upper halves."""
    if is_disjoint(membership):
        lo, hi = membership.lo, membership.hi
        return lambda word, high_mask: loops.limb_sums(word, high_mask, lo, hi)
    moving = pane_deltas.pane_deltas(membership)
    return lambda word, high_mask: pane_deltas.limb_sums(word, high_mask, moving)


def split(words: Sequence[Ints]) -> Limbs:
    """Return the limbs of single numbers, given as 64 bit words, least significant first, only the last signed."""
    limbs = [limb for word in words for limb in (word & LIMB, (word >> 32) & LIMB)]
    limbs[-1] = words[-1] >> 32
    return limbs


def propagate_carries(limbs: Limbs) -> Limbs:
    """Return one more limb, such that all limbs but the last are in ``[0, 2**32)`` and the last has the sign."""
    out, carry = [], np.zeros_like(limbs[0])
    for limb in limbs:
        total = limb + carry
        out.append(total & LIMB)
        carry = total >> 32
    return [*out, carry]


def as_int64(limbs: Limbs) -> tuple[Ints, Mask]:
    """Return limbs after `propagate_carries` as int64, and which numbers do not fit."""
    low = limbs[0] | (limbs[1] << 32)
    return low, _beyond(limbs[2:], low >> 63)


def two_floats(limbs: Limbs) -> tuple[Floats, Floats]:
    """Return limbs after `propagate_carries` as two floats each, with a relative error of a few ``2**-106``."""
    both: tuple[Floats, Floats] = _two_floats(np.stack(limbs))
    return both


@kernel
def _two_floats(limbs: Ints) -> tuple[Floats, Floats]:
    out = np.empty((2, limbs.shape[1]), np.float64)
    for p in range(limbs.shape[1]):
        # Horner's rule from the most significant limb on: each step keeps its own rounding error in ``low``.
        high = low = 0.0
        for k in range(limbs.shape[0] - 1, -1, -1):
            high, error = sum_and_error(high * 2.0**32, np.float64(limbs[k, p]))
            high, low = sum_and_error(high, low * 2.0**32 + error)
        out[0, p], out[1, p] = high, low
    return out[0], out[1]


def as_decimal(limbs: Limbs, scale: int, null: Mask) -> tuple[pa.Array, Mask]:
    """Return limbs after `propagate_carries` as decimal128(38, scale), and which numbers do not fit."""
    low = limbs[0] | (limbs[1] << 32)
    high = limbs[2] | (limbs[3] << 32)
    over = _beyond(limbs[4:], high >> 63)
    over |= ~_below(high, low, _DECIMAL_END) | _below(high, low, 1 - _DECIMAL_END)
    return _decimals([low, high], pa.decimal128(38, scale), null), over


def as_wide(limbs: Limbs, dtype: pa.DataType, null: Mask) -> pa.Array:
    """Return limbs after `propagate_carries` as decimals of a type that is wide enough, null where ``null`` is true."""
    *lower, last = limbs
    sign = last >> 63
    lower += [last & LIMB, (last >> 32) & LIMB]
    lower += [sign & LIMB] * (dtype.bit_width // 32 - len(lower))
    return _decimals([low | (high << 32) for low, high in zip(lower[::2], lower[1::2], strict=True)], dtype, null)


def _decimals(words: Sequence[Ints], dtype: pa.DataType, null: Mask) -> pa.Array:
    """Decimals from unscaled values given as 64 bit words, least significant first."""
    validity = pa.array(~null).buffers()[1]  # a boolean column's values are a bitmap, as validity is
    return pa.Array.from_buffers(dtype, len(null), [validity, pa.py_buffer(np.stack(words, axis=1))])


def _beyond(upper: Limbs, sign: Ints) -> Mask:
    """Which numbers do not fit below ``upper``: some upper limb is not the extension of the sign (0 or -1)."""
    over: Mask = upper[-1] != sign
    for limb in upper[:-1]:
        over |= limb != (sign & LIMB)
    return over


def _below(high: Ints, low: Ints, bound: int) -> Mask:
    """Where the 128 bit number of a signed high and an unsigned low word is less than ``bound``."""
    bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
    unsigned: npt.NDArray[np.uint64] = low.view(np.uint64)
    below: Mask = (high < bound_high) | ((high == bound_high) & (unsigned < bound_low))
    return below
