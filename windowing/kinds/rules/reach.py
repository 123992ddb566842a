"""What rules have seen of the rows of a window so far: exact, as aggregates are (sections 9 and 12).

Integers, decimals and times are ticks, which are summed in two words; of floats the sum that counts is the float
nearest to the true sum. A running sum and its errors decide nearly every row. Where they do not, all rows that came
since are added to a sum in limbs, so each row of a window is added to limbs at most once.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs, nearest_of
from ...aggregates.loops import LIMB, Floats, sum_and_error
from ...aggregates.quotients import mean_of
from ...columns.arrays import Ints
from ...support.jit import inline, kernel

COUNT, SUM, MEAN, MIN, MAX, FIRST, LAST, RANGE = range(8)
"""The aggregates, as `Kept.function` numbers them."""
FUNCTIONS: Final = {
    "count": COUNT, "sum": SUM, "mean": MEAN, "min": MIN, "max": MAX, "first": FIRST, "last": LAST, "range": RANGE,
}  # fmt: skip

_SEEN, _HIGH, _LOW, _LEAST, _MOST, _ADDED, _IN_LIMBS = range(7)
_TOTAL, _REST, _LOST, _LEAST_FLOAT, _MOST_FLOAT, _SPECIAL = range(6)
WORDS: Final = 7
"""The words of a `Sum`, and its floats."""


class Kept(NamedTuple):
    """The A aggregates that are kept while a window is open.

    ``function``: int64 (A,), one of `COUNT` .. `RANGE`.
    ``floating``: bool (A,), whether it looks at floats; ``narrow``: bool (A,), whether these have 32 bits.
    ``row``: int64 (A,), its row of ``ticks`` or ``floats``.
    ``ticks``: int64 (., n), values; ``offset``: int64 (A,), what each lacks, in units of 2**32.
    ``floats``: float64 (., n), values, 0 at nulls.
    ``valid``: bool (A, n), which rows have a value.
    ``digits``: int64 (A,), the digits of ticks that are behind the point: a mean is of values, not of ticks.
    """

    function: Ints
    floating: npt.NDArray[np.bool_]
    narrow: npt.NDArray[np.bool_]
    row: Ints
    ticks: npt.NDArray[np.int64]
    offset: Ints
    floats: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]
    digits: Ints


class Reaches(NamedTuple):
    """The R rules that fire where an aggregate is large enough.

    ``kept``: their aggregates, one of each.
    ``rule``: int64 (R,), the place of each in the spec.
    ``high``, ``low``: int64 (R,), the least whole number that is large enough, as ``high * 2**32 + low``.
    ``least``: float64 (R,), the least float that is large enough.
    """

    kept: Kept
    rule: Ints
    high: Ints
    low: Ints
    least: Floats


class Sums(NamedTuple):
    """What A aggregates have seen of a window.

    ``words``: int64 (A, 7), number of values, the two words of the sum, least, most, the rows added to limbs, and
        whether there are such. The first value is where others have the least, the last where they have the most.
    ``floats``: float64 (A, 7), the sum, its errors, a bound on their errors, least, most, and infinities and NaN.
    ``limbs``: int64 (A, `LIMBS`), the sum of floats up to the row in ``words``; (A, 0) where none sums floats.
    ``old_words``, ``old_floats``: as they were before the last row, where it may have to be taken back.
    ``scratch``: int64 (`LIMBS`,) or (0,), and ``parts``: float64 (3,), of any value.
    """

    words: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]
    limbs: npt.NDArray[np.int64]
    old_words: npt.NDArray[np.int64]
    old_floats: npt.NDArray[np.float64]
    scratch: npt.NDArray[np.int64]
    parts: npt.NDArray[np.float64]


def no_sums(kept: Kept | None) -> Sums:
    """Return what aggregates have seen before any row."""
    size, width = 0, 0
    if kept is not None:
        size, is_mean = len(kept.function), kept.function == MEAN
        width = LIMBS if (is_mean | (kept.floating & (kept.function == SUM))).any() else 0
    words, floats = (np.zeros((size, WORDS), kind) for kind in (np.int64, np.float64))
    limbs, scratch = np.zeros((size, width), np.int64), np.zeros(width, np.int64)
    return Sums(words, floats, limbs, words.copy(), floats.copy(), scratch, np.zeros(3))  # type: ignore[arg-type]


@inline
def begin_sums(sums: Sums, row: int) -> None:
    """Forget all, because a window begins at a row."""
    words, state = sums.words, sums.floats
    for r in range(words.shape[0]):
        if words[r, _IN_LIMBS]:
            sums.limbs[r, :] = 0
        for f in range(WORDS):
            words[r, f] = 0
            state[r, f] = 0.0
        words[r, _ADDED] = row


@inline
def resume_sums(sums: Sums, row: int) -> None:
    """Go on at a row, of other rows than those that the limbs hold."""
    for r in range(sums.words.shape[0]):
        sums.words[r, _ADDED] = row


@kernel
def _add(sums: Sums, kept: Kept, r: int, stop: int) -> None:
    words, state = sums.words, sums.floats
    state[r, _SPECIAL] += add_to_limbs(kept.floats[kept.row[r]], words[r, _ADDED], stop, sums.limbs[r])
    words[r, _ADDED] = stop
    words[r, _IN_LIMBS] = 1


@inline
def settle_sums(sums: Sums, kept: Kept, stop: int) -> None:
    """Add all rows up to ``stop`` to the limbs, so that the values are needed no longer."""
    for r in range(sums.words.shape[0]):
        if kept.floating[r] and SUM <= kept.function[r] <= MEAN and sums.words[r, _ADDED] < stop:
            _add(sums, kept, r, stop)


@inline
def save_sums(sums: Sums) -> None:
    """Note what aggregates have seen, before a row that may have to be taken back."""
    for r in range(sums.words.shape[0]):
        for f in range(WORDS):
            sums.old_words[r, f] = sums.words[r, f]
            sums.old_floats[r, f] = sums.floats[r, f]


@inline
def take_back(sums: Sums) -> None:
    """Forget the last row. The limbs never hold it, and what they hold stays."""
    for r in range(sums.words.shape[0]):
        for f in range(_ADDED):
            sums.words[r, f] = sums.old_words[r, f]
        for f in range(_SPECIAL):
            sums.floats[r, f] = sums.old_floats[r, f]


@inline
def pass_over(sums: Sums, kept: Kept, row: int) -> None:
    """Go on behind a row that is in no window: ranges of rows are added to the limbs."""
    for r in range(sums.words.shape[0]):
        if kept.floating[r] and SUM <= kept.function[r] <= MEAN:
            if sums.words[r, _ADDED] < row:
                _add(sums, kept, r, row)
            sums.words[r, _ADDED] = row + 1


@inline
def _see_ticks(words: Ints, r: int, function: int, value: int, offset: int) -> None:
    is_first = words[r, _SEEN] == 1
    if function <= MEAN:
        low = words[r, _LOW] + (value & LIMB)
        words[r, _HIGH] += (value >> 32) + offset + (low >> 32)
        words[r, _LOW] = low & LIMB
        return
    if is_first or (value < words[r, _LEAST] if function != FIRST else False):
        words[r, _LEAST] = value
    if is_first or function == LAST or value > words[r, _MOST]:
        words[r, _MOST] = value


@inline
def _see_float(words: Ints, state: Floats, r: int, function: int, value: float) -> None:
    if function <= MEAN:
        total, error = sum_and_error(state[r, _TOTAL], value)
        rest, further = sum_and_error(state[r, _REST], error)
        state[r, _TOTAL] = total
        state[r, _REST] = rest
        state[r, _LOST] += abs(further)
    elif function in (FIRST, LAST):
        if words[r, _SEEN] == 1:
            state[r, _LEAST_FLOAT] = value
        state[r, _MOST_FLOAT] = value
    elif value == value:  # noqa: PLR0124 - only NaN is not itself; the extremes skip it
        is_first = words[r, _LEAST] == 0  # here it says whether there is an extreme yet
        if is_first or value < state[r, _LEAST_FLOAT]:
            state[r, _LEAST_FLOAT] = value
        if is_first or value > state[r, _MOST_FLOAT]:
            state[r, _MOST_FLOAT] = value
        words[r, _LEAST] = 1


@inline
def see(sums: Sums, kept: Kept, row: int) -> None:
    """Add the values of a row to what aggregates have seen."""
    for r in range(sums.words.shape[0]):
        if kept.valid[r, row]:
            sums.words[r, _SEEN] += 1
            function = kept.function[r]
            if kept.floating[r]:
                _see_float(sums.words, sums.floats, r, function, kept.floats[kept.row[r], row])
            elif function != COUNT:
                _see_ticks(sums.words, r, function, kept.ticks[kept.row[r], row], kept.offset[r])


@inline
def _ticks_reach(words: Ints, r: int, function: int, least_high: int, least_low: int, offset: int) -> bool:
    if function == SUM:
        high, low = words[r, _HIGH], words[r, _LOW]
    elif function == COUNT:
        high, low = words[r, _SEEN] >> 32, words[r, _SEEN] & LIMB
    elif function == RANGE:
        # the difference wraps to the 64 unsigned bits of the distance
        spread = np.uint64(words[r, _MOST]) - np.uint64(words[r, _LEAST])
        high, low = np.int64(spread >> np.uint64(32)), np.int64(spread & np.uint64(LIMB))
    else:
        value = words[r, _LEAST] if function == MIN else words[r, _MOST]
        high, low = (value >> 32) + offset, value & LIMB
    is_enough = high > least_high or (high == least_high and low >= least_low)
    return is_enough and (words[r, _SEEN] > 0 or function == COUNT)


@kernel
def _into_scratch(sums: Sums, kept: Kept, r: int, stop: int) -> float:
    """Put the sum of the rows before ``stop`` into the scratch; return that of its infinities and NaN.

    The last row is not added to the limbs, for it may be taken back.
    """
    if sums.words[r, _ADDED] < stop - 1:
        _add(sums, kept, r, stop - 1)
    for limb in range(len(sums.scratch)):  # numba compiles an assignment of arrays for longer than all of this function
        sums.scratch[limb] = sums.limbs[r, limb]
    begin = sums.words[r, _ADDED]
    return sums.floats[r, _SPECIAL] + add_to_limbs(kept.floats[kept.row[r]], begin, stop, sums.scratch)


@kernel
def _nearest_sum(sums: Sums, kept: Kept, r: int, stop: int) -> float:
    found: float = nearest_in_limbs(sums.scratch, _into_scratch(sums, kept, r, stop))
    return found


@inline
def is_reached(sums: Sums, reaches: Reaches, r: int, row: int) -> bool:
    """Return whether what rule r has seen is enough. ``row``: the last that it has seen."""
    kept = reaches.kept
    words, state, function = sums.words, sums.floats, kept.function[r]
    if kept.floating[r] and function == SUM:
        found, _, is_proven = nearest_of(state[r, _TOTAL], state[r, _REST], state[r, _LOST])
        if not is_proven:
            found = _nearest_sum(sums, kept, r, row + 1)
        is_enough = words[r, _SEEN] > 0 and found >= reaches.least[r]
    elif kept.floating[r]:
        extreme = state[r, _LEAST_FLOAT] if function == MIN else state[r, _MOST_FLOAT]
        if function == RANGE:
            extreme -= state[r, _LEAST_FLOAT]
        is_enough = words[r, _LEAST] > 0 and extreme >= reaches.least[r]
    else:
        is_enough = _ticks_reach(words, r, function, reaches.high[r], reaches.low[r], kept.offset[r])
    return is_enough


# The mean of one window, inside of a loop: the float nearest to the true result, as aggregates have it.


_SMALLEST: Final = -1074  # the binary exponent of the smallest float
_EXACT: Final = 2.0**53  # integers up to it are floats


@kernel
def _small_quotient(limbs: Ints, rest: int) -> float:
    whole = (limbs[3] << 32) | limbs[2]
    half = 1 << 31
    is_half = limbs[1] == half and limbs[0] == 0 and rest == 0
    if (is_half and whole & 1) or (not is_half and limbs[1] >= half):
        whole += 1
    return math.ldexp(np.float64(whole), _SMALLEST)


@kernel
def mean_in_limbs(limbs: Ints, special: float, count: int) -> float:
    """Return the float nearest to a sum in limbs, which are overwritten, divided by ``count``.

    ``special``: as in `nearest_in_limbs`.
    """
    total = nearest_in_limbs(limbs, special)  # leaves the magnitude in the limbs
    if special != 0.0:
        return special / np.float64(count)
    sign = -1.0 if total < 0.0 else 1.0
    rest = 0
    for k in range(LIMBS - 1, -1, -1):
        part = (rest << 32) | limbs[k]
        limbs[k] = part // count
        rest = part - limbs[k] * count
    is_small = limbs[3] < 2**21
    for k in range(4, LIMBS):
        is_small &= limbs[k] == 0
    if is_small:
        return sign * _small_quotient(limbs, rest)
    limbs[0] |= 1 if rest else 0
    return sign * nearest_in_limbs(limbs, 0.0)


@kernel
def _shift_digits(limbs: Ints, digits: int) -> None:
    """Divide a number that is not negative by ``10**digits``, up to 38.

    Where that cuts off anything, the last bit is set. It stands 800 bits below the bits that decide how a mean is
    rounded, and divisors are even, so a number that is cut off never looks like one that is not: ties stay ties.
    """
    while digits > 0:
        divisor, rest = 1, 0
        for _ in range(min(digits, 9)):
            divisor *= 10
        for k in range(LIMBS - 1, -1, -1):
            part = (rest << 32) | limbs[k]
            limbs[k] = part // divisor
            rest = part - limbs[k] * divisor
        limbs[0] |= 1 if rest else 0
        digits -= 9


@kernel
def mean_of_ints(high: int, low: int, count: int, digits: int, parts: Floats, limbs: Ints) -> float:
    """Return the float nearest to ``(high * 2**32 + low) / (count * 10**digits)``.

    ``parts``: (3,), and ``limbs``: of any value.
    """
    total, divisor = np.float64(high) * 2.0**32 + np.float64(low), np.float64(count)
    for _ in range(digits):
        divisor *= 10.0
    if abs(total) < _EXACT and divisor <= _EXACT:
        return total / divisor
    parts[0] = np.float64(high >> 32) * 2.0**64
    parts[1] = np.float64(high & LIMB) * 2.0**32
    parts[2] = np.float64(low)
    for limb in range(len(limbs)):
        limbs[limb] = 0
    add_to_limbs(parts, 0, 3, limbs)
    if digits == 0:
        return mean_in_limbs(limbs, 0.0, count)
    sign = -1.0 if nearest_in_limbs(limbs, 0.0) < 0.0 else 1.0  # leaves the magnitude in the limbs
    _shift_digits(limbs, digits)
    return sign * mean_in_limbs(limbs, 0.0, count)


@kernel
def _mean(sums: Sums, kept: Kept, r: int, stop: int) -> float:
    words, state, count = sums.words, sums.floats, sums.words[r, _SEEN]
    if not kept.floating[r]:
        return mean_of_ints(words[r, _HIGH], words[r, _LOW], count, kept.digits[r], sums.parts, sums.scratch)
    near, residual, is_proven = nearest_of(state[r, _TOTAL], state[r, _REST], state[r, _LOST])
    if is_proven:
        found, is_in_doubt = mean_of(near, residual, count)
        if not is_in_doubt:
            return found
    return mean_in_limbs(sums.scratch, _into_scratch(sums, kept, r, stop), count)


@inline
def float_kept(sums: Sums, kept: Kept, r: int, stop: int) -> tuple[float, bool]:
    """Return an aggregate of the rows before ``stop`` as a float, and whether it is not null."""
    words, state, function = sums.words, sums.floats, kept.function[r]
    is_there = words[r, _SEEN] > 0
    found = 0.0
    if function in (FIRST, MIN):
        found = state[r, _LEAST_FLOAT]
    elif function in (LAST, MAX):
        found = state[r, _MOST_FLOAT]
    elif function == RANGE:
        found = state[r, _MOST_FLOAT] - state[r, _LEAST_FLOAT]
        found = np.float64(np.float32(found)) if kept.narrow[r] else found
    elif function == SUM:
        found, _, is_proven = nearest_of(state[r, _TOTAL], state[r, _REST], state[r, _LOST])
        if is_there and not is_proven:
            found = _nearest_sum(sums, kept, r, stop)
    elif is_there:
        found = _mean(sums, kept, r, stop)
    if function in (MIN, MAX, RANGE):
        is_there = words[r, _LEAST] > 0
    return found, is_there


@inline
def int_kept(sums: Sums, kept: Kept, r: int) -> tuple[int, bool, bool]:
    """Return an aggregate as an integer, whether it is not null, and whether it fits 64 bits."""
    words, function = sums.words, kept.function[r]
    is_there, fits = bool(words[r, _SEEN] > 0), True
    if function == COUNT:
        found, is_there = words[r, _SEEN], True
    elif function == SUM:
        fits = bool(-(2**31) <= words[r, _HIGH] < 2**31)
        found = (words[r, _HIGH] << 32) | words[r, _LOW]
    elif function == RANGE:
        spread = np.uint64(words[r, _MOST]) - np.uint64(words[r, _LEAST])
        fits = bool(spread <= np.uint64(2**63 - 1))
        found = np.int64(spread)
    else:
        found = words[r, _LEAST] if function in (MIN, FIRST) else words[r, _MOST]
    return found, is_there, fits
