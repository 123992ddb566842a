"""MurmurHash3 of 128 bits, for x64, with the seed that Apache DataSketches has for sketches of distinct values.

Each kernel returns coupons: the low 26 bits of the first half of the hash name a place, and the number of zeros at the
head of the second half, plus one, stands above them. So DataSketches of every language see equal values as equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...support.jit import kernel

Coupons = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.uint64]

_SEED = np.uint64(9001)
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_A1, _A2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)
_U33 = np.uint64(33)
_PLACE = np.uint64((1 << 26) - 1)


@kernel
def _turned(x: np.uint64, by: int) -> np.uint64:
    return np.uint64((x << np.uint64(by)) | (x >> np.uint64(64 - by)))


@kernel
def _first(x: np.uint64) -> np.uint64:
    return np.uint64(_turned(x * _C1, 31) * _C2)


@kernel
def _second(x: np.uint64) -> np.uint64:
    return np.uint64(_turned(x * _C2, 33) * _C1)


@kernel
def _mixed(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _U33)) * _M1
    x = (x ^ (x >> _U33)) * _M2
    return np.uint64(x ^ (x >> _U33))


@kernel
def _coupon(h1: np.uint64, h2: np.uint64, length: int) -> np.uint32:
    """Finish the hash of a value of ``length`` bytes, and return its coupon."""
    h1, h2 = h1 ^ np.uint64(length), h2 ^ np.uint64(length)
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = h1 + h2
    h2 = h2 + h1
    zeros = 0
    while zeros < 62 and not (h2 >> np.uint64(63 - zeros)) & np.uint64(1):
        zeros += 1
    return np.uint32((np.uint64(zeros + 1) << np.uint64(26)) | (h1 & _PLACE))


@kernel
def number_coupons(bits: Bits) -> Coupons:
    """Return the coupons of numbers, each hashed as its 8 bytes, little end first. ``bits``: uint64 (n,)."""
    out = np.empty(bits.size, np.uint32)
    for i in range(bits.size):
        out[i] = _coupon(_SEED ^ _first(bits[i]), _SEED, 8)
    return out


@kernel
def _word(data: npt.NDArray[np.uint8], at: int, stop: int) -> np.uint64:
    """Read up to 8 bytes, little end first; bytes from ``stop`` on are zero."""
    word = np.uint64(0)
    for i in range(min(8, stop - at)):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@kernel
def bytes_coupons(offsets: Ints, data: npt.NDArray[np.uint8]) -> Coupons:
    """Return the coupons of byte strings; 0, which is no coupon, for an empty one: DataSketches skips it.

    ``offsets``: int64 (n+1,), where each begins in ``data``.
    """
    out = np.zeros(offsets.size - 1, np.uint32)
    for i in range(out.size):
        at, stop = offsets[i], offsets[i + 1]
        length = stop - at
        if length == 0:
            continue
        h1, h2 = _SEED, _SEED
        while stop - at >= 16:
            h1 = (_turned(h1 ^ _first(_word(data, at, stop)), 27) + h2) * _FIVE + _A1
            h2 = (_turned(h2 ^ _second(_word(data, at + 8, stop)), 31) + h1) * _FIVE + _A2
            at += 16
        if stop - at > 8:
            h2 ^= _second(_word(data, at + 8, stop))
        if stop > at:
            h1 ^= _first(_word(data, at, stop))
        out[i] = _coupon(h1, h2, length)
    return out
