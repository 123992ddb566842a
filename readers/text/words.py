"""Loops over bytes that take eight of them at a time, as one number in which the first byte is the lowest.

A byte that a loop looks for becomes one whose highest bit is set; a borrow or a carry can make others so only behind
it, and only the first one counts. The last bytes of the data, fewer than eight, are taken one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...windowing.support.jit import first_one, inline, word_at

Bytes = npt.NDArray[np.uint8]

_WORD = 8
_LF, _CR, _SPACE, _QUOTE, _ZERO, _NINE, _BACKSLASH = 10, 13, 32, 34, 48, 57, 92
_ONES = np.uint64(0x0101010101010101)
_HIGHEST = np.uint64(0x8080808080808080)
_LFS, _CRS, _SPACES, _QUOTES, _BACKSLASHES = (
    _ONES * np.uint64(byte) for byte in (_LF, _CR, _SPACE, _QUOTE, _BACKSLASH)
)
_BELOW_ZERO = _ONES * np.uint64(_ZERO)
_ABOVE_NINE = _ONES * np.uint64(127 - _NINE)


@inline
def digits_end(data: Bytes, i: int, n: int) -> int:
    """Return where digits that begin at ``i`` end; ``n``: where the data end, exclusive."""
    while i + _WORD <= n:
        word = word_at(data, i)
        others = ((word + _ABOVE_NINE) | (word - _BELOW_ZERO) | word) & _HIGHEST
        if others != 0:
            return i + (first_one(others) >> 3)
        i += _WORD
    while i < n and _ZERO <= data[i] <= _NINE:
        i += 1
    return i


@inline
def field_end(data: Bytes, i: int, n: int, delimiter: int) -> int:
    """Return where the first ``delimiter``, LF or CR stands at or behind ``i``; ``n`` where there is none."""
    delimiters = _ONES * np.uint64(delimiter)
    while i + _WORD <= n:
        word = word_at(data, i)
        found = (_zeros(word ^ delimiters) | _zeros(word ^ _LFS) | _zeros(word ^ _CRS)) & _HIGHEST
        if found != 0:
            return i + (first_one(found) >> 3)
        i += _WORD
    while i < n and data[i] not in (delimiter, _LF, _CR):
        i += 1
    return i


@inline
def quoted_end(data: Bytes, i: int, n: int) -> int:
    """Return where the first quote, LF or CR stands at or behind ``i``; ``n`` where there is none."""
    return field_end(data, i, n, _QUOTE)


@inline
def plain_end(data: Bytes, i: int, n: int) -> int:
    """Return where the first quote, backslash or control character stands at or behind ``i``; ``n`` for none."""
    while i + _WORD <= n:
        word = word_at(data, i)
        controls = (word - _SPACES) & ~word
        found = (_zeros(word ^ _QUOTES) | _zeros(word ^ _BACKSLASHES) | controls) & _HIGHEST
        if found != 0:
            return i + (first_one(found) >> 3)
        i += _WORD
    while i < n and data[i] not in (_QUOTE, _BACKSLASH) and data[i] >= _SPACE:
        i += 1
    return i


@inline
def _zeros(word: np.uint64) -> np.uint64:
    """Return a word whose first byte with the highest bit is the first zero of ``word``."""
    return (word - _ONES) & ~word
