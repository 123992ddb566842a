"""What ``reaches`` has added up of the rows of a window so far: exact, as the sums of aggregates are (section 12).

Integers, decimals and times are ticks, which are summed in two words; of floats the sum that counts is the float
nearest to the true sum. A running sum and its errors decide nearly every row. Where they do not, all rows that came
since are added to a sum in limbs, so each row of a window is added to limbs at most once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs, nearest_of
from ...aggregates.loops import LIMB, Floats, sum_and_error
from ...columns.arrays import Ints
from ...support.jit import inline, kernel

COUNT, SUM, MIN, MAX, RANGE = range(5)
"""The aggregates, as `Reaches.function` numbers them."""
FUNCTIONS: Final = {"count": COUNT, "sum": SUM, "min": MIN, "max": MAX, "range": RANGE}

_SEEN, _HIGH, _LOW, _LEAST, _MOST, _ADDED, _IN_LIMBS = range(7)
_TOTAL, _REST, _LOST, _LEAST_FLOAT, _MOST_FLOAT, _SPECIAL = range(6)
WORDS: Final = 7
"""The words of a `Sum`, and its floats."""


class Reaches(NamedTuple):
    """The R rules that fire where an aggregate is large enough.

    ``rule``: int64 (R,), the place of each in the spec.
    ``function``: int64 (R,), one of `COUNT` .. `RANGE`.
    ``floating``: bool (R,), whether it looks at floats.
    ``row``: int64 (R,), its row of ``ticks`` or ``floats``.
    ``high``, ``low``: int64 (R,), the least whole number that is large enough, as ``high * 2**32 + low``.
    ``least``: float64 (R,), the least float that is large enough.
    ``ticks``: int64 (., n), values; ``offset``: int64 (R,), what each lacks, in units of 2**32.
    ``floats``: float64 (., n), values.
    ``valid``: bool (R, n), which rows have a value.
    """

    rule: Ints
    function: Ints
    floating: npt.NDArray[np.bool_]
    row: Ints
    high: Ints
    low: Ints
    least: Floats
    ticks: npt.NDArray[np.int64]
    offset: Ints
    floats: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]


class Sums(NamedTuple):
    """What R rules have seen of a window.

    ``words``: int64 (R, 7), number of values, the two words of the sum, least, most, the rows added to limbs, and
        whether there are such.
    ``floats``: float64 (R, 7), the sum, its errors, a bound on their errors, least, most, and infinities and NaN.
    ``limbs``: int64 (R, `LIMBS`), the sum of floats up to the row in ``words``; (R, 0) where no rule sums floats.
    ``scratch``: int64 (`LIMBS`,) or (0,), of any value.
    """

    words: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]
    limbs: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.int64]


def no_sums(reaches: Reaches | None) -> Sums:
    """Return what rules have seen before any row."""
    rules = 0 if reaches is None else len(reaches.rule)
    width = LIMBS if reaches is not None and (reaches.floating & (reaches.function == SUM)).any() else 0
    words, floats = np.zeros((rules, WORDS), np.int64), np.zeros((rules, WORDS))
    return Sums(words, floats, np.zeros((rules, width), np.int64), np.zeros(width, np.int64))


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
def _add(sums: Sums, reaches: Reaches, r: int, stop: int) -> None:
    words, state = sums.words, sums.floats
    state[r, _SPECIAL] += add_to_limbs(reaches.floats[reaches.row[r]], words[r, _ADDED], stop, sums.limbs[r])
    words[r, _ADDED] = stop
    words[r, _IN_LIMBS] = 1


@inline
def settle_sums(sums: Sums, reaches: Reaches, stop: int) -> None:
    """Add all rows up to ``stop`` to the limbs, so that the values are needed no longer."""
    for r in range(sums.words.shape[0]):
        if reaches.function[r] == SUM and reaches.floating[r]:
            _add(sums, reaches, r, stop)


@inline
def _see_ticks(words: Ints, r: int, value: int, offset: int) -> None:
    low = words[r, _LOW] + (value & LIMB)
    words[r, _HIGH] += (value >> 32) + offset + (low >> 32)
    words[r, _LOW] = low & LIMB
    is_first = words[r, _SEEN] == 1
    if is_first or value < words[r, _LEAST]:
        words[r, _LEAST] = value
    if is_first or value > words[r, _MOST]:
        words[r, _MOST] = value


@inline
def _see_float(words: Ints, state: Floats, r: int, value: float) -> None:
    total, error = sum_and_error(state[r, _TOTAL], value)
    rest, further = sum_and_error(state[r, _REST], error)
    state[r, _TOTAL] = total
    state[r, _REST] = rest
    state[r, _LOST] += abs(further)
    if value == value:  # noqa: PLR0124 - only NaN is not itself; the extremes skip it
        is_first = words[r, _LEAST] == 0  # here it says whether there is an extreme yet
        if is_first or value < state[r, _LEAST_FLOAT]:
            state[r, _LEAST_FLOAT] = value
        if is_first or value > state[r, _MOST_FLOAT]:
            state[r, _MOST_FLOAT] = value
        words[r, _LEAST] = 1


@inline
def see(sums: Sums, reaches: Reaches, r: int, row: int) -> None:
    """Add the value of a row to what rule r has seen."""
    sums.words[r, _SEEN] += 1
    if reaches.floating[r]:
        _see_float(sums.words, sums.floats, r, reaches.floats[reaches.row[r], row])
    elif reaches.function[r] != COUNT:
        _see_ticks(sums.words, r, reaches.ticks[reaches.row[r], row], reaches.offset[r])


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
def _nearest_sum(sums: Sums, reaches: Reaches, r: int, row: int) -> float:
    _add(sums, reaches, r, row + 1)
    for limb in range(len(sums.scratch)):  # numba compiles an assignment of arrays for longer than all of this function
        sums.scratch[limb] = sums.limbs[r, limb]
    found: float = nearest_in_limbs(sums.scratch, sums.floats[r, _SPECIAL])
    return found


@inline
def is_reached(sums: Sums, reaches: Reaches, r: int, row: int) -> bool:
    """Return whether what rule r has seen is enough. ``row``: the last that it has seen."""
    words, state, function = sums.words, sums.floats, reaches.function[r]
    if reaches.floating[r] and function == SUM:
        found, _, is_proven = nearest_of(state[r, _TOTAL], state[r, _REST], state[r, _LOST])
        if not is_proven:
            found = _nearest_sum(sums, reaches, r, row)
        is_enough = words[r, _SEEN] > 0 and found >= reaches.least[r]
    elif reaches.floating[r]:
        extreme = state[r, _LEAST_FLOAT] if function == MIN else state[r, _MOST_FLOAT]
        if function == RANGE:
            extreme -= state[r, _LEAST_FLOAT]
        is_enough = words[r, _LEAST] > 0 and extreme >= reaches.least[r]
    else:
        is_enough = _ticks_reach(words, r, function, reaches.high[r], reaches.low[r], reaches.offset[r])
    return is_enough
