"""What ``reaches`` has added up of the rows of a window so far: exact, as the sums of aggregates are (section 12).

Integers, decimals and times are ticks, which are summed in two words; of floats the sum that counts is the float
nearest to the true sum. A running sum and its errors decide nearly every row. Where they do not, all rows that came
since are added to a sum in limbs, so each row of a window is added to limbs at most once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ....aggregates.folds.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs, nearest_of
from ....aggregates.kernels.loops import LIMB, Floats, sum_and_error
from ....columns.arrays import Ints
from ....support.jit import kernel

COUNT, SUM, MIN, MAX, RANGE = range(5)
"""The aggregates, as `Reaches.function` numbers them."""
FUNCTIONS: Final = {"count": COUNT, "sum": SUM, "min": MIN, "max": MAX, "range": RANGE}

_SEEN, _HIGH, _LOW, _LEAST, _MOST, _ADDED = range(6)
_TOTAL, _REST, _LOST, _LEAST_FLOAT, _MOST_FLOAT, _SPECIAL = range(6)
WORDS: Final = 6
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

    ``words``: int64 (R, 6), number of values, the two words of the sum, least, most, and the rows added to limbs.
    ``floats``: float64 (R, 6), the sum, its errors, a bound on their errors, least, most, and infinities and NaN.
    ``limbs``: int64 (R, `LIMBS`), the sum of floats up to the row in ``words``; (R, 0) where no rule sums floats.
    """

    words: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]
    limbs: npt.NDArray[np.int64]


def no_sums(rules: int, sums_floats: bool) -> Sums:
    """Return what some rules have seen before any row."""
    limbs = np.zeros((rules, LIMBS if sums_floats else 0), np.int64)
    return Sums(np.zeros((rules, WORDS), np.int64), np.zeros((rules, WORDS)), limbs)


@kernel
def begin_sums(sums: Sums, row: int) -> None:
    """Forget all, because a window begins at a row."""
    for r in range(len(sums.words)):
        sums.words[r, :] = 0
        sums.floats[r, :] = 0.0
        sums.words[r, _ADDED] = row
        sums.limbs[r, :] = 0


@kernel
def resume_sums(sums: Sums, row: int) -> None:
    """Go on at a row, of other rows than those that the limbs hold."""
    for r in range(len(sums.words)):
        sums.words[r, _ADDED] = row


@kernel
def settle_sums(reaches: Reaches, sums: Sums, stop: int) -> None:
    """Add all rows up to ``stop`` to the limbs, so that the values are needed no longer."""
    for r in range(len(sums.words)):
        if reaches.function[r] == SUM and reaches.floating[r]:
            values = reaches.floats[reaches.row[r]]
            sums.floats[r, _SPECIAL] += add_to_limbs(values, sums.words[r, _ADDED], stop, sums.limbs[r])
        sums.words[r, _ADDED] = stop


@kernel
def first_reached(reaches: Reaches, sums: Sums, scratch: Ints, row: int) -> int:
    """Add a row to what the rules have seen; return the first rule that it makes fire, or -1."""
    fired = -1
    for r in range(len(reaches.rule)):
        if reaches.valid[r, row]:
            sums.words[r, _SEEN] += 1
            if reaches.floating[r]:
                _add_float(sums.floats[r], reaches.floats[reaches.row[r], row], sums.words[r])
            elif reaches.function[r] != COUNT:
                _add_ticks(sums.words[r], reaches.ticks[reaches.row[r], row], reaches.offset[r])
        if (fired < 0 or reaches.rule[r] < fired) and _is_reached(reaches, sums, scratch, r, row):
            fired = reaches.rule[r]
    return fired


@kernel
def _add_ticks(words: Ints, value: int, offset: int) -> None:
    words[_LOW] += value & LIMB
    words[_HIGH] += (value >> 32) + offset + (words[_LOW] >> 32)
    words[_LOW] &= LIMB
    if words[_SEEN] == 1 or value < words[_LEAST]:
        words[_LEAST] = value
    if words[_SEEN] == 1 or value > words[_MOST]:
        words[_MOST] = value


@kernel
def _add_float(floats: Floats, value: float, words: Ints) -> None:
    total, error = sum_and_error(floats[_TOTAL], value)
    rest, further = sum_and_error(floats[_REST], error)
    floats[_TOTAL], floats[_REST] = total, rest
    floats[_LOST] += abs(further)
    if value == value:  # noqa: PLR0124 - only NaN is not itself; the extremes skip it
        first = words[_LEAST] == 0  # here it says whether there is an extreme yet
        if first or value < floats[_LEAST_FLOAT]:
            floats[_LEAST_FLOAT] = value
        if first or value > floats[_MOST_FLOAT]:
            floats[_MOST_FLOAT] = value
        words[_LEAST] = 1


@kernel
def _is_reached(reaches: Reaches, sums: Sums, scratch: Ints, r: int, row: int) -> bool:  # noqa: PLR0911
    function, words, floats = reaches.function[r], sums.words[r], sums.floats[r]
    high, low = reaches.high[r], reaches.low[r]
    if function == COUNT:
        return _at_least(words[_SEEN] >> 32, words[_SEEN] & LIMB, high, low)
    if words[_SEEN] == 0:
        return False
    if not reaches.floating[r]:
        if function == SUM:
            return _at_least(words[_HIGH], words[_LOW], high, low)
        if function == RANGE:
            spread = np.uint64(words[_MOST]) - np.uint64(words[_LEAST])  # wraps to the 64 unsigned bits of the distance
            return _at_least(int(spread >> np.uint64(32)), int(spread & np.uint64(LIMB)), high, low)
        value = words[_LEAST] if function == MIN else words[_MOST]
        return _at_least((value >> 32) + reaches.offset[r], value & LIMB, high, low)
    if function == SUM:
        return _nearest_sum(reaches, sums, scratch, r, row) >= reaches.least[r]
    if words[_LEAST] == 0:
        return False
    if function == RANGE:
        return floats[_MOST_FLOAT] - floats[_LEAST_FLOAT] >= reaches.least[r]
    return (floats[_LEAST_FLOAT] if function == MIN else floats[_MOST_FLOAT]) >= reaches.least[r]


@kernel
def _at_least(high: int, low: int, least_high: int, least_low: int) -> bool:
    return high > least_high or (high == least_high and low >= least_low)


@kernel
def _nearest_sum(reaches: Reaches, sums: Sums, scratch: Ints, r: int, row: int) -> float:
    """Return the float nearest to the sum of the window's values up to a row."""
    floats = sums.floats[r]
    nearest, _, is_proven = nearest_of(floats[_TOTAL], floats[_REST], floats[_LOST])
    if is_proven:
        return nearest
    values = reaches.floats[reaches.row[r]]
    floats[_SPECIAL] += add_to_limbs(values, sums.words[r, _ADDED], row + 1, sums.limbs[r])
    sums.words[r, _ADDED] = row + 1
    scratch[:] = sums.limbs[r]
    found: float = nearest_in_limbs(scratch, floats[_SPECIAL])
    return found
