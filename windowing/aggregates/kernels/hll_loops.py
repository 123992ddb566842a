"""HyperLogLog sketches of panes, in the binary form of Apache DataSketches.

The form is that of HLL_8 with 2**12 places, Spark's default: few values are a list or a set of coupons, more are a byte
for each place. It is written as out of order, which means that readers estimate from the places alone. So the bytes are
a function of the set of values: neither their order nor how rows were cut changes them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...support.jit import kernel
from .murmur import Coupons

Bytes = npt.NDArray[np.uint8]

LG_K = 12
_PLACES = 1 << LG_K
_LIST = 7  # coupons: with one more it is a set
_SET = 3 << (LG_K - 5)  # coupons: three quarters of the largest table; with one more each place has a byte
_HEAD = 40
_TABLE = 1024  # more than twice as many slots as a set has coupons
LARGEST = _HEAD + _PLACES
"""Bytes of the largest sketch."""


@kernel
def hll_sketches(coupons: Coupons, lo: Ints, hi: Ints) -> tuple[Bytes, Ints]:
    """Return the sketches of all panes, one after the other, and where each begins: int64 (P+1,).

    ``coupons``: uint32 (E,), 0 for an entry that counts as no value.
    """
    offsets = np.zeros(lo.size + 1, np.int64)
    bound = 0
    for p in range(lo.size):
        bound += LARGEST if hi[p] - lo[p] > _SET else 12 + 4 * (hi[p] - lo[p])
    out = np.zeros(bound, np.uint8)
    table, owner = np.zeros(_TABLE, np.uint32), np.full(_TABLE, -1, np.int64)
    found = np.empty(_SET, np.uint32)
    for p in range(lo.size):
        count = 0
        for e in range(lo[p], hi[p]):
            if coupons[e] and _is_new(coupons[e], p, table, owner):
                if count == _SET:
                    count += 1
                    break
                found[count] = coupons[e]
                count += 1
        begin = offsets[p]
        if count > _SET:
            offsets[p + 1] = begin + _write_places(coupons[lo[p] : hi[p]], out[begin:])
        else:
            offsets[p + 1] = begin + _write_coupons(np.sort(found[:count]), out[begin:])
    return out[: offsets[-1]], offsets


def coupons_of(sketch: Bytes) -> Coupons:
    """Return coupons that have a sketch: its own, or one for each place; of places, more than a set has."""
    mode = sketch[7] & 3
    if mode < 2:
        count, at = (int(sketch[6]), 8) if mode == 0 else (int(sketch[8:12].view("<u4")[0]), 12)
        return sketch[at : at + 4 * count].view("<u4")
    values = sketch[_HEAD:LARGEST].astype(np.uint32)
    places = np.flatnonzero(values).astype(np.uint32)
    coupons = values[places] << np.uint32(26) | places
    # The bits between a place and its value are those of a hash that no sketch of places looks at: with other bits
    # there, one place makes the coupons that say that there are too many for a set.
    others = np.arange(1, _SET + 2, dtype=np.uint32) << np.uint32(LG_K)
    return np.concatenate([coupons, coupons[0] | others])


@kernel
def _is_new(coupon: np.uint32, pane: int, table: Coupons, owner: Ints) -> bool:
    """Put a coupon into the table, unless it is there. A slot that another pane has filled is free."""
    slot = (np.int64(coupon) * 2654435761 >> 7) & (_TABLE - 1)
    while owner[slot] == pane:
        if table[slot] == coupon:
            return False
        slot = (slot + 1) & (_TABLE - 1)
    owner[slot], table[slot] = pane, coupon
    return True


@kernel
def _write_head(out: Bytes, words: int, array: int, flags: int, count: int, mode: int) -> None:
    """Write the first 8 bytes: words of the head, version, family, size of arrays, flags, a count, mode and HLL_8."""
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = words, 1, 7, LG_K, array, flags, count, mode | 8


@kernel
def _write_coupons(coupons: Coupons, out: Bytes) -> int:
    """Write a list or a set; return the number of bytes."""
    count = coupons.size
    if count <= _LIST:
        _write_head(out, 2, 3, 8 | (4 if count == 0 else 0), count, 0)
        at = 8
    else:
        array = 5
        while 4 * count > 3 << array:
            array += 1
        _write_head(out, 3, array, 8, 0, 1)
        _write_int(out, 8, count)
        at = 12
    for i in range(count):
        _write_int(out, at + 4 * i, int(coupons[i]))
    return at + 4 * count


@kernel
def _write_places(coupons: Coupons, out: Bytes) -> int:
    """Write a byte for each place; return the number of bytes."""
    _write_head(out, 10, 0, 8 | 16, 0, 2)
    places = out[_HEAD:LARGEST]
    for coupon in coupons:
        place, value = coupon & (_PLACES - 1), np.uint8(coupon >> 26)
        places[place] = max(places[place], value)
    zeros, low, high = 0, 0.0, 0.0
    for value in places:
        zeros += value == 0
        if value < 32:
            low += 1.0 / (1 << np.int64(value))  # exact: a multiple of 2**-31 of at most 2**12
        else:
            high += 1.0 / (1 << np.int64(value))
    out[16:24] = np.array([low]).view(np.uint8)
    out[24:32] = np.array([high]).view(np.uint8)
    _write_int(out, 32, zeros)
    return LARGEST


@kernel
def _write_int(out: Bytes, at: int, value: int) -> None:
    for i in range(4):
        out[at + i] = (value >> (8 * i)) & 255
