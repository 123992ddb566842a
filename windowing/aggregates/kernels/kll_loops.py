"""KLL sketches of panes, in the binary form of Apache DataSketches, with 200 as the size, which is Spark's default.

A sketch has levels of values; a value of level h stands for 2**h rows. Where all levels together are full, the lowest
one that is full is halved: every second value of it, from the first or the second, goes one level up. DataSketches
takes that bit from a generator that cannot be seeded. Here it comes from a generator that begins anew with each pane.
So the bytes are a function of the values of a pane in their order, and no sketches are merged on the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints
from ...support.jit import kernel

Bytes = npt.NDArray[np.uint8]
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


@kernel
def _value_at(items: Numbers, held: Ints, levels: int, rank: int) -> Any:
    """Return the smallest value such that it and smaller ones stand for at least ``rank`` rows."""
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
def _write(pane: Numbers, items: Numbers, held: Ints, levels: int, out: Bytes) -> int:
    """Write a sketch; return the number of bytes. Level 0 is sorted, so that equal sets of few values are equal."""
    items[0, : held[0]].sort()
    few = pane.size < 2
    out[0], out[1], out[2] = 2 if few else 5, 2 if pane.size == 1 else 1, 15
    out[3] = 3 if pane.size == 0 else 6 if pane.size == 1 else 2
    out[4], out[5], out[6], at = K & 255, K >> 8, _LEAST, 8
    if not few:
        _write_int(out, 8, pane.size, 8)
        out[16], out[17], out[18], at = K & 255, K >> 8, levels, 20
        first = _room_of_all(levels) - held[:levels].sum()
        for level in range(levels):
            _write_int(out, at, first, 4)
            first += held[level]
            at += 4
        at = _write_values(out, at, np.array([pane.min(), pane.max()]))
    for level in range(levels):
        at = _write_values(out, at, items[level, : held[level]])
    return at


@kernel
def _write_values(out: Bytes, at: int, values: Numbers) -> int:
    # numba takes a second to compile an assignment of arrays
    for byte in values.view(np.uint8):
        out[at] = byte
        at += 1
    return at


@kernel
def _write_int(out: Bytes, at: int, value: int, size: int) -> None:
    for i in range(size):
        out[at + i] = (value >> (8 * i)) & 255
