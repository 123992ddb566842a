"""The kind of one value by its bytes, where these leave no doubt: what inference would say, without building a column.

A kernel answers with the bits of `readers.values.kinds`, or with `UNSURE`: then Arrow is asked. It never guesses, so a
pattern here may be narrower than what Arrow reads, and never wider.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...windowing.support.jit import first_one, inline, word_at
from .kinds import BOOL, DATE, FLOAT, INT, STAMP, TEXT, ZONED

# Kernels here do without ``in``: where a kernel that has it is loaded, numba imports 10 ms of modules.
#
# Loops over bytes that take eight of them at a time, as one number in which the first byte is the lowest.
#
# A byte that a loop looks for becomes one whose highest bit is set; a borrow or a carry can make others so only
# behind it, and only the first one counts. The last bytes of the data, fewer than eight, are taken one by one.


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
def _zeros(word: np.uint64) -> np.uint64:
    return (word - _ONES) & ~word


@inline
def field_end(data: Bytes, i: int, n: int, delimiter: int) -> int:
    """Return where the first ``delimiter``, LF or CR stands at or behind ``i``; ``n`` where there is none."""
    # Invariant: none of the three stands from where the search began up to i; nor in the loops of the functions beside.
    delimiters = _ONES * np.uint64(delimiter)
    while i + _WORD <= n:
        word = word_at(data, i)
        found = (_zeros(word ^ delimiters) | _zeros(word ^ _LFS) | _zeros(word ^ _CRS)) & _HIGHEST
        if found != 0:
            return i + (first_one(found) >> 3)
        i += _WORD
    while i < n and data[i] != delimiter and data[i] != _LF and data[i] != _CR:
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
    while i < n and data[i] != _QUOTE and data[i] != _BACKSLASH and data[i] >= _SPACE:
        i += 1
    return i


UNSURE = 1 << 20
"""Stands beside the bits of kinds: only Arrow can tell."""

_PLUS, _MINUS, _POINT, _COLON, _LOW_LINE = 43, 45, 46, 58, 95
_A, _E, _F, _I, _N, _T, _Z = 97, 101, 102, 105, 110, 116, 122
_UPPER_T, _UPPER_Z = 84, 90
_LOWER = 32  # the bit by which small letters differ from capital ones
_NOT_ASCII = 128
_MOST_DIGITS = 18  # of an integer that 64 bits hold, whatever its digits
_MOST_EXPONENT = 2  # digits of an exponent that no float overflows by
_MOST_FRACTION = 6  # digits behind the second that a timestamp in microseconds keeps
_FIRST_YEAR, _LAST_YEAR = 1700, 2200  # inside what 64 bits of nanoseconds reach
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_TRUES = 4
_FALSES = 5
_INF, _INFINITY = 3, 8
_NO_NUMBER = -(1 << 20)


@inline
def _is_word(data: Bytes, lo: int, small: bytes, capital: bytes) -> bool:
    is_small, is_capital = True, True
    for at in range(1, len(small)):
        is_small = is_small and data[lo + at] == small[at]
        is_capital = is_capital and data[lo + at] == capital[at]
    return (is_small and (data[lo] == small[0] or data[lo] == capital[0])) or (is_capital and data[lo] == capital[0])


@inline
def _digits_end(data: Bytes, i: int, hi: int) -> int:
    return min(digits_end(data, i, data.size), hi)  # a whole word may be read behind the value


@inline
def kind_of_number(data: Bytes, lo: int, hi: int) -> int:
    """Return `INT` or `FLOAT` for digits with a minus, a point or a short exponent, else `UNSURE`."""
    # Invariant: data[lo:i] is the beginning of a number by the grammar of JSON, but for zeros in front.
    i = lo + 1 if lo < hi and data[lo] == _MINUS else lo
    start, i = i, _digits_end(data, i, hi)
    digits = i - start
    if digits == 0:
        return UNSURE
    if i == hi:
        return INT if digits <= _MOST_DIGITS else UNSURE
    if data[i] == _POINT:
        start, i = i + 1, _digits_end(data, i + 1, hi)
        if i == start:
            return UNSURE
    if i < hi and data[i] | _LOWER == _E:
        i += 1
        if i < hi and (data[i] == _PLUS or data[i] == _MINUS):
            i += 1
        start = i
        while i < hi and _ZERO <= data[i] <= _NINE:
            i += 1
        if not 1 <= i - start <= _MOST_EXPONENT:
            return UNSURE
    return FLOAT if i == hi else UNSURE


@inline
def _two(data: Bytes, at: int) -> int:
    """Return the number of two digits; far below 0 where they are none."""
    high, low = np.int64(data[at]) - _ZERO, np.int64(data[at + 1]) - _ZERO
    return int(high * 10 + low) if (high >= 0) & (high <= 9) & (low >= 0) & (low <= 9) else _NO_NUMBER


@inline
def kind_of_time(data: Bytes, lo: int, hi: int) -> int:  # noqa: PLR0911 - a question for each part
    """Return `DATE`, `STAMP` or `ZONED` for a usual date or timestamp of ISO 8601, else `UNSURE`."""
    if hi - lo < 10 or data[lo + 4] != _MINUS or data[lo + 7] != _MINUS:
        return UNSURE
    year = _two(data, lo) * 100 + _two(data, lo + 2)
    month, day = _two(data, lo + 5), _two(data, lo + 8)
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and 1 <= month <= len(_DAYS) and day >= 1):
        return UNSURE
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + (month == 2 and is_leap):
        return UNSURE
    i = lo + 10
    if i == hi:
        return DATE
    if hi - i < 9 or (data[i] != _SPACE and data[i] != _UPPER_T) or data[i + 3] != _COLON or data[i + 6] != _COLON:
        return UNSURE
    hour, minute, second = _two(data, i + 1), _two(data, i + 4), _two(data, i + 7)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return UNSURE
    i += 9
    if i < hi and data[i] == _POINT:
        i += 1
        start = i
        while i < hi and _ZERO <= data[i] <= _NINE:
            i += 1
        if not 1 <= i - start <= _MOST_FRACTION:
            return UNSURE
    if i == hi:
        return STAMP
    return ZONED if i + 1 == hi and data[i] == _UPPER_Z else UNSURE


@inline
def kind_of_field(data: Bytes, lo: int, hi: int) -> int:  # noqa: PLR0911 - a question for each first byte
    """Return the kind of a field of CSV, ``data[lo:hi]`` without quotes around it; 0 for an empty one."""
    if lo == hi:
        return 0
    first = data[lo]
    if _ZERO <= first <= _NINE or first == _MINUS:
        number = kind_of_number(data, lo, hi)
        return number if number != UNSURE else kind_of_time(data, lo, hi)
    letter = first | _LOWER
    if first >= _NOT_ASCII or first == _LOW_LINE:
        return TEXT
    if not _A <= letter <= _Z:
        return UNSURE
    size = hi - lo
    if letter == _N:  # nan, and nan(..) of any length
        return UNSURE if size > 1 and data[lo + 1] | _LOWER == _A else TEXT
    if letter == _I:
        return UNSURE if (size == _INF) | (size == _INFINITY) else TEXT
    if letter == _T and size == _TRUES:
        return BOOL if _is_word(data, lo, b"true", b"TRUE") else UNSURE
    if letter == _F and size == _FALSES:
        return BOOL if _is_word(data, lo, b"false", b"FALSE") else UNSURE
    return TEXT
