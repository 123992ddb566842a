"""Loops over rows that add the hash of one column to the hash of each row.

A value is mixed with the salt of its column (folded, multiplied, folded), and the hashes of the columns are added, so
that the order of the columns says nothing. Each row is mixed once more at its end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..support.jit import kernel
from .arrays import Ints

Flags = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_SHIFT = np.uint64(29)
_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.uint64((1 << 63) - 1)
_INFINITE = np.uint64(0x7FF0000000000000)
_NAN = np.uint64(0x7FF8000000000000)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31, _U33 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(33)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_BYTE = np.uint64(8)


@kernel
def _salted(word: np.uint64, salt: np.uint64) -> np.uint64:
    """Mix a word with an odd salt; high bits reach the low ones before and after the product."""
    product = (word ^ (word >> _HALF)) * salt
    return np.uint64(product ^ (product >> _SHIFT))


@kernel
def _chained(found: np.uint64, word: np.uint64) -> np.uint64:
    """Take one more word into the word of a sequence, whose order counts."""
    found = (found ^ _salted(word, _FIRST)) * _SECOND
    return np.uint64(found ^ (found >> _HALF))


@kernel
def _mixed(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _U30)) * _FIRST
    x = (x ^ (x >> _U27)) * _SECOND
    return np.uint64(x ^ (x >> _U31))


@kernel
def _remixed(x: np.uint64) -> np.uint64:
    """Mix in another way than `_mixed`, so that the two halves of a digest are independent."""
    x = ((x + _STEP) ^ ((x + _STEP) >> _U33)) * _M1
    x = (x ^ (x >> _U33)) * _M2
    return np.uint64(x ^ (x >> _U33))


@kernel
def _float_word(bits: np.uint64) -> np.uint64:
    word = _NAN if (bits & _MAGNITUDE) > _INFINITE else bits
    return np.uint64(0) if word == _SIGN else np.uint64(word)


@kernel
def add_words(sums: Words, words: Words, salt: np.uint64) -> None:
    """Add the hashes of words to those of rows. ``sums``, ``words``: uint64 (n,)."""
    for i in range(sums.size):
        sums[i] += _salted(words[i], salt)


@kernel
def add_two_words(sums: Words, one: Words, other: Words, salts: tuple[np.uint64, np.uint64]) -> None:
    """Add the hashes of two columns at once, which reads and writes the sums half as often."""
    for i in range(sums.size):
        sums[i] += _salted(one[i], salts[0]) + _salted(other[i], salts[1])


@kernel
def add_two_floats(sums: Words, one: Words, other: Words, salts: tuple[np.uint64, np.uint64]) -> None:
    """Add the hashes of two columns of floats at once, from their bits."""
    for i in range(sums.size):
        sums[i] += _salted(_float_word(one[i]), salts[0]) + _salted(_float_word(other[i]), salts[1])


@kernel
def add_valid_words(sums: Words, words: Words, valid: Flags, salt: np.uint64) -> None:
    """Add the hashes of words where ``valid``, uint8 (n,), is 1; a null adds the salt. Without a branch it is fast."""
    for i in range(sums.size):
        sums[i] += salt + ((_salted(words[i], salt) - salt) & (np.uint64(0) - np.uint64(valid[i])))


@kernel
def add_coded(sums: Words, codes: npt.NDArray[np.int32], hashes: Words) -> None:
    """Add to the row ``i`` the hash of its value in a dictionary, ``hashes[codes[i]]``."""
    for i in range(sums.size):
        sums[i] += hashes[codes[i]]


@kernel
def float_words(bits: Words) -> Words:
    """Return the words of floats from their bits, uint64 (n,): one for all NaN, one for both zeros."""
    words = np.empty(bits.size, np.uint64)
    for i in range(bits.size):
        words[i] = _float_word(bits[i])
    return words


@kernel
def add_floats(sums: Words, bits: Words, salt: np.uint64) -> None:
    """Add the hashes of floats, as `float_words` gives their words, to those of rows."""
    for i in range(sums.size):
        sums[i] += _salted(_float_word(bits[i]), salt)


@kernel
def text_words(offsets: Ints, data: npt.NDArray[np.uint8]) -> Words:
    """Return a word for each byte string: uint64 (n,). ``offsets``: int64 (n + 1,), where each begins in ``data``."""
    words = np.empty(offsets.size - 1, np.uint64)
    for i in range(words.size):
        at, stop = offsets[i], offsets[i + 1]
        found = np.uint64(stop - at) * _STEP
        while at < stop:
            word, end = np.uint64(0), min(stop, at + 8)
            for place in range(end - at):
                word |= np.uint64(data[at + place]) << (_BYTE * np.uint64(place))
            found = _chained(found, word)
            at = end
        words[i] = found
    return words


@kernel
def joined_words(starts: Ints, stops: Ints, items: Words) -> Words:
    """Return a word for each list from the words of its items, in their order: uint64 (n,).

    ``starts``, ``stops``: int64 (n,), where the items of each list begin and end.
    """
    words = np.empty(starts.size, np.uint64)
    for i in range(words.size):
        found = np.uint64(stops[i] - starts[i]) * _STEP
        for at in range(starts[i], stops[i]):
            found = _chained(found, items[at])
        words[i] = found
    return words


@kernel
def finished(sums: Words) -> Words:
    """Return the hashes of rows, once all columns are added."""
    hashes = np.empty(sums.size, np.uint64)
    for i in range(sums.size):
        hashes[i] = _mixed(sums[i])
    return hashes


@kernel
def digest_of(sums: Words) -> tuple[np.uint64, np.uint64]:
    """Return the sums, modulo 2**64, of two independent hashes of each row."""
    low = high = np.uint64(0)
    for i in range(sums.size):
        low += _mixed(sums[i])
        high += _remixed(sums[i])
    return low, high


@kernel
def digests_by_code(sums: Words, codes: Ints, count: int) -> Words:
    """Return what `digest_of` returns for the rows of each code in ``[0, count)``: uint64 (count, 2)."""
    out = np.zeros((count, 2), np.uint64)
    for i in range(sums.size):
        out[codes[i], 0] += _mixed(sums[i])
        out[codes[i], 1] += _remixed(sums[i])
    return out
