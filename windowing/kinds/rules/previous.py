"""Amounts that ask for the window before, computed while the loop finds windows (semantics section 13).

Where a window opens, the aggregates of the window before are computed over its rows, so each row is looked at once
more. Then each amount is: a program over these values and those of one row. Sums and means are those of the
aggregates: exact for integers, else the float nearest to the true result.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.exact_sums import LIMBS, add_to_limbs, nearest_sums
from ...aggregates.loops import LIMB, Floats
from ...aggregates.quotients import means
from ...columns.arrays import Ints, Mask
from ...support.jit import kernel
from .machine import Machine, run, sum_is_far
from .reach import COUNT, FIRST, MAX, MEAN, MIN, RANGE, SUM, mean_in_limbs, mean_of_ints

MOST_TICKS: Final = np.uint64(2**64 - 1)


@kernel
def ticks_of_float(number: float) -> np.uint64:
    """Round down; an amount beyond 64 bits becomes the largest."""
    whole = math.floor(number) if number < 2.0**53 else number
    if whole >= 2.0**64:
        return MOST_TICKS
    return np.uint64(min(np.float64(whole), 2.0**64 - 2048))


@kernel
def sum_or_mean(values: Floats, lo: int, hi: int, count: int, is_mean: bool) -> float:
    """Return the float nearest to the sum or mean of values, of which those that are not there are 0."""
    sums, residuals = nearest_sums(values, np.array([lo]), np.array([hi]))
    if not is_mean:
        return sums[0]
    found, in_doubt = means(sums, residuals, np.array([count]))
    if not in_doubt[0]:
        return found[0]
    limbs = np.zeros(LIMBS, np.int64)
    special = add_to_limbs(values, lo, hi, limbs)
    return mean_in_limbs(limbs, special, count)


TICKS, NUMBERS, ROWS = range(3)
"""What an amount is compared with: ticks, floats, or a number of rows."""
FINE, NEGATIVE, NAN, OVERFLOW = range(4)
"""How the amounts of a row went: well, one is negative or NaN, or an integer did not fit 64 bits."""

_MOST_ROWS: Final = np.uint64(2**63 - 1)


class Earlier(NamedTuple):
    """P amounts, and A aggregates of the window before, of n rows.

    ``machine``: its first P programs are the amounts.
    ``kind``: int64 (P,), `TICKS` .. `ROWS`; ``place``: int64 (P,), the row of each among those of its kind.
    ``moves``: bool (P,), whether it is taken from each row anew, for ``gap``, and not from the first of a window.
    ``scale``: float64 (P,), ticks of one unit of an amount; also as a fraction, uint64 (P,) ``over`` and ``under``.
    ``floating``: bool (P,), whether a float comes out; ``is_known``: bool (P,), whether each row says it already.
    ``function``: int64 (A,), `COUNT` ..; ``of_floats``: bool (A,), whether of floats; ``narrow``: bool (A,), whether
        these have 32 bits; ``source``: int64 (A,), the row of the columns of the machine; ``valid``: bool (A, n).
    ``at``: int64 (A,), the register of each; ``is_absolute``: bool (A,), whether it loses its sign.
    ``too_far``: bool (A,), which integers do not fit 64 bits; ``asked``: bool (A, P + conditions), by which programs.
    ``share``: float64 (A,), the share of the last window in a smoothed value, 0 where the last window alone counts;
        ``default``: float64 (A,), what counts for a window without a value.
    ``smoothed``: float64 (2, A), the smoothed value, and the one before the last window.
    ``begun``: float64 (A, K), smoothed values at the first row of each key, and in the end those behind its windows.
    ``looked``: int64 (2,), the rows of the window before of which the aggregates are.
    ``problem``: int64 (n,), `FINE` .. of each row; other rows are rejected. ``amount_at_fault``: int64 (n,).
    """

    machine: Machine
    kind: Ints
    place: Ints
    moves: npt.NDArray[np.bool_]
    scale: Floats
    over: npt.NDArray[np.uint64]
    under: npt.NDArray[np.uint64]
    floating: npt.NDArray[np.bool_]
    is_known: npt.NDArray[np.bool_]
    function: Ints
    of_floats: npt.NDArray[np.bool_]
    narrow: npt.NDArray[np.bool_]
    source: Ints
    valid: npt.NDArray[np.bool_]
    at: Ints
    is_absolute: npt.NDArray[np.bool_]
    too_far: npt.NDArray[np.bool_]
    asked: npt.NDArray[np.bool_]
    share: Floats
    default: Floats
    smoothed: npt.NDArray[np.float64]
    begun: npt.NDArray[np.float64]
    looked: Ints
    problem: Ints
    amount_at_fault: Ints


@kernel
def _note(earlier: Earlier, a: int, value: int) -> None:
    at = earlier.at[a]
    earlier.machine.is_there[at] = True
    earlier.machine.int_at[at] = value
    earlier.machine.float_at[at] = np.float64(value)


@kernel
def _count(valid: Mask, lo: int, hi: int) -> int:
    count = 0
    for i in range(lo, hi):
        count += valid[i]
    return count


@kernel
def _aggregate_ints(earlier: Earlier, a: int, lo: int, hi: int) -> None:
    """Aggregate integers: sums in two words, so that only a result may overflow."""
    values, valid = earlier.machine.ints[earlier.source[a]], earlier.valid[a]
    seen, high, low = 0, 0, 0
    least, most, first, last = 0, 0, 0, 0
    for i in range(lo, hi):
        if valid[i]:
            value = values[i]
            high += value >> 32
            low += value & LIMB
            least = value if seen == 0 or value < least else least
            most = value if seen == 0 or value > most else most
            first = value if seen == 0 else first
            last = value
            seen += 1
    if seen == 0:
        return
    function = earlier.function[a]
    high, low = high + (low >> 32), low & LIMB
    if function == SUM:
        earlier.too_far[a] = not -(2**31) <= high < 2**31
        _note(earlier, a, (high << 32) | low)
    elif function == MEAN:
        earlier.machine.is_there[earlier.at[a]] = True
        parts, limbs = np.zeros(3), np.zeros(LIMBS, np.int64)
        earlier.machine.float_at[earlier.at[a]] = mean_of_ints(high, low, seen, 0, parts, limbs)
    elif function == RANGE:
        earlier.too_far[a] = sum_is_far(most, least, True)
        _note(earlier, a, 0 if earlier.too_far[a] else most - least)
    elif function in (MIN, MAX):
        _note(earlier, a, least if function == MIN else most)
    else:
        _note(earlier, a, first if function == FIRST else last)


@kernel
def _aggregate_floats(earlier: Earlier, a: int, lo: int, hi: int) -> None:
    """Aggregate floats; extremes skip NaN, and are null where there is nothing else."""
    values, valid = earlier.machine.floats[earlier.source[a]], earlier.valid[a]
    is_there, float_at, at = earlier.machine.is_there, earlier.machine.float_at, earlier.at[a]
    seen, numbers = 0, 0
    least, most, first, last = 0.0, 0.0, 0.0, 0.0
    for i in range(lo, hi):
        if valid[i]:
            value = values[i]
            first = value if seen == 0 else first
            last = value
            seen += 1
            if value == value:  # noqa: PLR0124 - only NaN is not itself
                least = value if numbers == 0 or value < least else least
                most = value if numbers == 0 or value > most else most
                numbers += 1
    function = earlier.function[a]
    if function in (SUM, MEAN):
        is_there[at] = seen > 0
        if seen > 0:
            float_at[at] = sum_or_mean(values, lo, hi, seen, function == MEAN)
    elif function not in (MIN, MAX, RANGE):
        is_there[at] = seen > 0
        float_at[at] = first if function == FIRST else last
    else:
        is_there[at] = numbers > 0
        spread = np.float64(np.float32(most - least)) if earlier.narrow[a] else most - least
        float_at[at] = least if function == MIN else most if function == MAX else spread


@kernel
def _without_sign(earlier: Earlier, a: int) -> None:
    machine, at = earlier.machine, earlier.at[a]
    machine.float_at[at] = abs(machine.float_at[at])
    if machine.is_there[at] and machine.int_at[at] == -(2**63) and not earlier.of_floats[a]:
        earlier.too_far[a] = True
    machine.int_at[at] = abs(machine.int_at[at])


@kernel
def _smooth(earlier: Earlier, a: int) -> None:
    """Take the window before into a smoothed value: one rounding for each operation."""
    machine, at, share = earlier.machine, earlier.at[a], earlier.share[a]
    value = machine.float_at[at] if machine.is_there[at] else earlier.default[a]
    earlier.smoothed[0, a] = share * value + (1.0 - share) * earlier.smoothed[0, a]


@kernel
def begin_key(earlier: Earlier, key: int) -> None:
    """Begin with the rows of a key: its smoothed values are those that it had before."""
    earlier.looked[0] = earlier.looked[1] = -1
    for a in range(len(earlier.function)):
        earlier.smoothed[0, a] = earlier.smoothed[1, a] = earlier.begun[a, key]


@kernel
def end_key(earlier: Earlier, key: int, lo: int, hi: int) -> None:
    """Note the smoothed values behind the windows of a key, without the last that has ended: its rows are kept.

    ``lo``, ``hi``: its rows.
    """
    has_looked = lo == earlier.looked[0] and hi == earlier.looked[1]
    for a in range(len(earlier.function)):
        earlier.begun[a, key] = earlier.smoothed[1 if has_looked else 0, a]


@kernel
def look_at_window_before(earlier: Earlier, lo: int, hi: int) -> None:
    """Compute the aggregates of the window before, whose rows are ``[lo, hi)``; no rows: there is none."""
    if lo == earlier.looked[0] and hi == earlier.looked[1]:  # a row that was rejected has asked already
        return
    earlier.looked[0], earlier.looked[1] = lo, hi
    for a in range(len(earlier.function)):
        earlier.machine.is_there[earlier.at[a]] = earlier.too_far[a] = False
        if lo < hi and earlier.function[a] == COUNT:
            _note(earlier, a, _count(earlier.valid[a], lo, hi))
        elif lo < hi and earlier.of_floats[a]:
            _aggregate_floats(earlier, a, lo, hi)
        elif lo < hi:
            _aggregate_ints(earlier, a, lo, hi)
        if earlier.is_absolute[a]:
            _without_sign(earlier, a)
        if earlier.share[a] > 0.0:
            earlier.smoothed[1, a] = earlier.smoothed[0, a]
            if lo < hi and not earlier.too_far[a]:
                _smooth(earlier, a)
            earlier.machine.is_there[earlier.at[a]] = True
            earlier.machine.float_at[earlier.at[a]] = earlier.smoothed[0, a]
    fails = earlier.machine.fails
    for p in range(len(fails)):
        fails[p] = False
        for a in range(len(earlier.function)):
            fails[p] |= earlier.too_far[a] and earlier.asked[a, p]


@kernel
def _fail(earlier: Earlier, why: int, p: int, row: int) -> None:
    if earlier.problem[row] == FINE:
        earlier.problem[row] = why
        earlier.amount_at_fault[row] = p


@kernel
def _ticks(earlier: Earlier, p: int, count: int) -> np.uint64:
    over, exact = earlier.over[p], np.uint64(count)
    if exact > MOST_TICKS // over:
        return MOST_TICKS
    return exact * over // earlier.under[p]


@kernel
def _write(earlier: Earlier, p: int, row: int, ticks: npt.NDArray[np.uint64], numbers: Floats, rows: Ints) -> None:
    at = earlier.machine.result[p]
    number, count = earlier.machine.float_at[at], earlier.machine.int_at[at]
    kind, place = earlier.kind[p], earlier.place[p]
    if (not number >= 0.0) if earlier.floating[p] else count < 0:
        is_nan = earlier.floating[p] and number != number  # noqa: PLR0124 - only NaN is not itself
        _fail(earlier, NAN if is_nan else NEGATIVE, p, row)
    elif kind == NUMBERS:
        numbers[place, row] = number if earlier.floating[p] else np.float64(count)
    else:
        found = ticks_of_float(number * earlier.scale[p]) if earlier.floating[p] else _ticks(earlier, p, count)
        if kind == TICKS:
            ticks[place, row] = found
        else:
            rows[place, row] = np.int64(found if found < _MOST_ROWS else _MOST_ROWS)


@kernel
def take_amounts(
    earlier: Earlier, row: int, all_of_them: bool, ticks: npt.NDArray[np.uint64], numbers: Floats, rows: Ints
) -> bool:
    """Write the amounts of a row to those of each kind; return whether all can be, else the row is rejected.

    ``all_of_them``: else those alone that move.
    """
    for p in range(len(earlier.kind)):
        if (all_of_them or earlier.moves[p]) and not earlier.is_known[p]:
            if not run(earlier.machine, p, row, None, None, 0):
                _fail(earlier, OVERFLOW, p, row)
            _write(earlier, p, row, ticks, numbers, rows)
            if earlier.problem[row] != FINE:
                return False
    return True


@kernel
def leave_out(earlier: Earlier, row: int) -> None:
    """Take a row that is rejected out of what is summed over a range of rows."""
    earlier.valid[:, row] = False
    earlier.machine.floats[:, row] = 0.0
