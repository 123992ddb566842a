"""HyperLogLog sketches of panes, in the binary form of Apache DataSketches.

The form is that of HLL_8 with 2**12 places, Spark's default: few values are a list or a set of coupons, more are a byte
for each place. It is written as out of order, which means that readers estimate from the places alone. So the bytes are
a function of the set of values: neither their order nor how rows were cut changes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints
from ..support.jit import kernel

# MurmurHash3 of 128 bits, for x64, with the seed that Apache DataSketches has for sketches of distinct values.
#
# Each kernel returns coupons: the low 26 bits of the first half of the hash name a place, and the number of zeros at
# the head of the second half, plus one, stands above them. So DataSketches of every language see equal values as
# equal.


Coupons = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.uint64]

_MURMUR_SEED = np.uint64(9001)
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
        out[i] = _coupon(_MURMUR_SEED ^ _first(bits[i]), _MURMUR_SEED, 8)
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
        h1, h2 = _MURMUR_SEED, _MURMUR_SEED
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
def _write_int(out: Bytes, at: int, value: int) -> None:
    for i in range(4):
        out[at + i] = (value >> (8 * i)) & 255


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


# KLL sketches of panes, in the binary form of Apache DataSketches, with 200 as the size, which is Spark's default.
#
# A sketch has levels of values; a value of level h stands for 2**h rows. Where all levels together are full, the
# lowest one that is full is halved: every second value of it, from the first or the second, goes one level up.
# DataSketches takes that bit from a generator that cannot be seeded. Here it comes from a generator that begins anew
# with each pane. So the bytes are a function of the values of a pane in their order, and no sketches are merged on
# the way.


Numbers = npt.NDArray[Any]

K = 200
_LEAST = 8  # values that each level has room for
_LEVELS = 60
_SEED = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _room(levels: int, level: int) -> int:
    """How many values a level of several has room for: two thirds of that of the level above, from 200 at the top."""
    size, depth = K, levels - level - 1
    while depth > 0:
        step = min(depth, 30)
        power = 1
        for _ in range(step):
            power *= 3
        size = ((2 * size << step) // power + 1) >> 1
        depth -= step
    return max(_LEAST, size)


@kernel
def _room_of_all(levels: int) -> int:
    total = 0
    for level in range(levels):
        total += _room(levels, level)
    return total


@kernel
def _halve(items: Numbers, held: Ints, level: int, start: int) -> None:
    """Move every second value of a level one level up, from ``start``, 0 or 1; of an odd number the first stays."""
    count = held[level]
    odd = count & 1
    run = items[level, odd:count]
    if level == 0:
        run = np.sort(run)
    moved, above = count >> 1, held[level + 1]
    target = items[level + 1]
    # From the largest down, so that the level above is merged in place.
    i, j = moved - 1, above - 1
    for at in range(above + moved - 1, -1, -1):
        if i < 0:
            break
        if j >= 0 and target[j] > run[2 * i + start]:
            target[at] = target[j]
            j -= 1
        else:
            target[at] = run[2 * i + start]
            i -= 1
    held[level + 1] += moved
    held[level] = odd


@kernel
def _fill(values: Numbers, items: Numbers, held: Ints) -> int:
    """Put the values of a pane, in their order, into levels; return the number of levels."""
    held[:] = 0
    levels, stored, room = 1, 0, _room_of_all(1)
    bits = _SEED
    for value in values:
        if stored == room:
            level = 0
            while held[level] < _room(levels, level):
                level += 1
            if level == levels - 1:
                levels += 1
                room = _room_of_all(levels)
            bits ^= bits << np.uint64(13)
            bits ^= bits >> np.uint64(7)
            bits ^= bits << np.uint64(17)
            stored -= held[level] >> 1
            _halve(items, held, level, int(bits >> np.uint64(63)))
        items[0, held[0]] = value
        held[0] += 1
        stored += 1
    return levels


@kernel
def _write_values(out: Bytes, at: int, values: Numbers) -> int:
    # numba takes a second to compile an assignment of arrays
    for byte in values.view(np.uint8):
        out[at] = byte
        at += 1
    return at


@kernel
def _write_sized_int(out: Bytes, at: int, value: int, size: int) -> None:
    for i in range(size):
        out[at + i] = (value >> (8 * i)) & 255


@kernel
def _write(pane: Numbers, items: Numbers, held: Ints, levels: int, out: Bytes) -> int:
    """Write a sketch; return the number of bytes. Level 0 is sorted, so that equal sets of few values are equal."""
    items[0, : held[0]].sort()
    few = pane.size < 2
    out[0], out[1], out[2] = 2 if few else 5, 2 if pane.size == 1 else 1, 15
    out[3] = 3 if pane.size == 0 else 6 if pane.size == 1 else 2
    out[4], out[5], out[6], at = K & 255, K >> 8, _LEAST, 8
    if not few:
        _write_sized_int(out, 8, pane.size, 8)
        out[16], out[17], out[18], at = K & 255, K >> 8, levels, 20
        first = _room_of_all(levels) - held[:levels].sum()
        for level in range(levels):
            _write_sized_int(out, at, first, 4)
            first += held[level]
            at += 4
        at = _write_values(out, at, np.array([pane.min(), pane.max()]))
    for level in range(levels):
        at = _write_values(out, at, items[level, : held[level]])
    return at


@kernel
def kll_sketches(values: Numbers, lo: Ints, hi: Ints) -> tuple[Bytes, Ints]:
    """Return the sketches of all panes, one after the other, and where each begins: int64 (P+1,).

    ``values``: int64 or float64 (E,), without NaN.
    """
    offsets, room = np.zeros(lo.size + 1, np.int64), _room_of_all(_LEVELS)
    bound = 0
    for p in range(lo.size):
        size = hi[p] - lo[p]
        bound += 40 + 8 * size if size <= K else 40 + 4 * _LEVELS + 8 * min(size, room)
    out = np.zeros(bound, np.uint8)
    items, held = np.empty((_LEVELS, room), values.dtype), np.zeros(_LEVELS, np.int64)
    for p in range(lo.size):
        pane = values[lo[p] : hi[p]]
        levels = _fill(pane, items, held)
        offsets[p + 1] = offsets[p] + _write(pane, items, held, levels, out[offsets[p] :])
    return out[: offsets[-1]], offsets


@kernel
def _value_at(items: Numbers, held: Ints, levels: int, rank: int) -> Any:
    stored = held[:levels].sum()
    kept, weights, at = np.empty(stored, items.dtype), np.empty(stored, np.int64), 0
    for level in range(levels):
        for i in range(held[level]):
            kept[at + i], weights[at + i] = items[level, i], 1 << level
        at += held[level]
    before = 0
    order = np.argsort(kept, kind="mergesort")
    for i in order:
        before += weights[i]
        if before >= rank:
            return kept[i]
    return kept[order[-1]]


@kernel
def kll_quantiles(values: Numbers, numerator: int, denominator: int, lo: Ints, hi: Ints) -> Numbers:
    """Return of each pane's sketch the smallest value with at least a share of all rows up to it; NaN of an empty pane.

    ``numerator``, ``denominator``: the share, from 0 to 1.
    """
    out = np.full(lo.size, np.nan)
    items, held = np.empty((_LEVELS, _room_of_all(_LEVELS)), values.dtype), np.zeros(_LEVELS, np.int64)
    for p in range(lo.size):
        if hi[p] > lo[p]:
            levels = _fill(values[lo[p] : hi[p]], items, held)
            rank = -(-(hi[p] - lo[p]) * numerator // denominator)
            out[p] = _value_at(items, held, levels, rank)
    return out
