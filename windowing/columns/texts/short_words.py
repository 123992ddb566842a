"""Short texts as numbers that sort as they do: the eight bytes or less that follow the prefix which all texts share.

By these numbers 2.5 M keys like ``u01234567`` are sorted in 0.03 s, and 40 runs of 125,000 such keys are merged in 0.16
s; by the words of `sort`, which are made byte by byte, in 0.12 s and 0.30 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...support.jit import kernel, word_at
from ..arrays import Ints
from ..radix_sort import Words, are_sorted_at_once
from .buffers import Bytes

_WORD = 8  # bytes
_ONES = np.uint64(0x0101010101010101)
_LOW = np.uint64(ord("-"))  # names of things mostly have no bytes below: digits, letters, -, ., /, : and _


def short_words(offsets: Ints, data: Bytes) -> Words | None:
    """Return for each text a number that sorts as the text does, uint64 (n,); None if texts are too long for that."""
    if len(offsets) < 2:
        return None
    depth, least, most = _extent(offsets, data)
    if most - depth > _WORD:
        return None
    words, has_zero, has_low = _rests(offsets, data, depth)
    # a text that ends has zeros where others go on: these sort first, unless others have zeros there as well
    if has_zero and least < most:
        return None
    if not has_low:
        _lower(words)
    return words if are_sorted_at_once(words) else None


@kernel
def _extent(offsets: Ints, data: Bytes) -> tuple[int, int, int]:
    """Length of the common prefix of all texts, and of the shortest and the longest; of some, if one is too long."""
    begin = offsets[0]
    least = most = depth = offsets[1] - begin
    for i in range(1, len(offsets) - 1):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        least, most = min(least, size), max(most, size)
        shared, depth = min(depth, size), 0
        while depth < shared and data[at + depth] == data[begin + depth]:
            depth += 1
        if most - depth > _WORD:  # what is shared only gets shorter, and the longest only longer
            break
    return depth, least, most


@kernel
def _rests(offsets: Ints, data: Bytes, depth: int) -> tuple[Words, bool, bool]:
    """The bytes of each text after ``depth``, the first as the highest and zeros behind.

    Also whether any of these bytes is zero, and whether any is less than `_LOW`.
    """
    out, last = np.empty(len(offsets) - 1, np.uint64), len(data) - _WORD
    zero = low = np.uint64(0)
    for i in range(len(out)):
        begin, size = offsets[i] + depth, offsets[i + 1] - offsets[i] - depth
        word = behind = np.uint64(0)
        if size < _WORD:
            behind = ~np.uint64(0) >> np.uint64(8 * size)
        if begin <= last:
            word = _reversed(word_at(data, begin)) & ~behind
        else:
            for place in range(size):
                word |= np.uint64(data[begin + place]) << np.uint64(8 * (_WORD - 1 - place))
        out[i] = word
        # the highest bit of a byte is borrowed where a byte below 128 is less than what is subtracted
        word |= behind
        zero |= (word - _ONES) & ~word
        low |= (word - _ONES * _LOW) & ~word
    highest = _ONES << np.uint64(7)
    return out, zero & highest != 0, low & highest != 0


@kernel
def _lower(words: Words) -> None:
    """Subtract as much from all bytes but zeros, in place, that the least may be 1: digits then vary in four bits."""
    highest = _ONES << np.uint64(7)
    for i in range(len(words)):
        used = ((words[i] & ~highest) + ~highest | words[i]) & highest
        words[i] -= (used >> np.uint64(7)) * (_LOW - np.uint64(1))


@kernel
def _reversed(word: Any) -> Any:
    """The eight bytes of a number the other way round: LLVM has one instruction for these lines."""
    bytes_ = np.uint64(0x00FF00FF00FF00FF)
    pairs = np.uint64(0x0000FFFF0000FFFF)
    word = (word & bytes_) << np.uint64(8) | (word >> np.uint64(8)) & bytes_
    word = (word & pairs) << np.uint64(16) | (word >> np.uint64(16)) & pairs
    return word << np.uint64(32) | word >> np.uint64(32)
