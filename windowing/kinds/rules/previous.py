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

from ...aggregates.loops import Floats
from ...columns.arrays import Ints
from ...support.jit import kernel
from .machine import Machine, run
from .reach import MEAN, Kept, Sums, begin_sums, float_kept, int_kept, see

MOST_TICKS: Final = np.uint64(2**64 - 1)


@kernel
def ticks_of_float(number: float) -> np.uint64:
    """Round down; an amount beyond 64 bits becomes the largest."""
    whole = math.floor(number) if number < 2.0**53 else number
    if whole >= 2.0**64:
        return MOST_TICKS
    return np.uint64(min(np.float64(whole), 2.0**64 - 2048))


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
    ``kept``, ``sums``: the aggregates, and what they have seen of the rows of the window before.
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
    kept: Kept
    sums: Sums
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
def _aggregate(earlier: Earlier, lo: int, hi: int) -> None:
    """Put the aggregates of the rows ``[lo, hi)`` into their registers; of no rows all are null."""
    kept, sums, machine = earlier.kept, earlier.sums, earlier.machine
    begin_sums(sums, lo)
    for row in range(lo, hi):
        see(sums, kept, row)
    for a in range(len(kept.function)):
        at, fits = earlier.at[a], True
        machine.is_there[at] = False
        if lo < hi and (kept.floating[a] or kept.function[a] == MEAN):
            machine.float_at[at], machine.is_there[at] = float_kept(sums, kept, a, hi)
        elif lo < hi:
            machine.int_at[at], machine.is_there[at], fits = int_kept(sums, kept, a)
            machine.float_at[at] = np.float64(machine.int_at[at])
        earlier.too_far[a] = not fits


@kernel
def _without_sign(earlier: Earlier, a: int) -> None:
    machine, at = earlier.machine, earlier.at[a]
    machine.float_at[at] = abs(machine.float_at[at])
    if machine.is_there[at] and machine.int_at[at] == -(2**63) and not earlier.kept.floating[a]:
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
    for a in range(len(earlier.at)):
        earlier.smoothed[0, a] = earlier.smoothed[1, a] = earlier.begun[a, key]


@kernel
def end_key(earlier: Earlier, key: int, lo: int, hi: int) -> None:
    """Note the smoothed values behind the windows of a key, without the last that has ended: its rows are kept.

    ``lo``, ``hi``: its rows.
    """
    has_looked = lo == earlier.looked[0] and hi == earlier.looked[1]
    for a in range(len(earlier.at)):
        earlier.begun[a, key] = earlier.smoothed[1 if has_looked else 0, a]


@kernel
def look_at_window_before(earlier: Earlier, lo: int, hi: int) -> None:
    """Compute the aggregates of the window before, whose rows are ``[lo, hi)``; no rows: there is none."""
    if lo == earlier.looked[0] and hi == earlier.looked[1]:  # a row that was rejected has asked already
        return
    earlier.looked[0], earlier.looked[1] = lo, hi
    _aggregate(earlier, lo, hi)
    for a in range(len(earlier.at)):
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
        for a in range(len(earlier.at)):
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
    earlier.kept.valid[:, row] = False
    earlier.machine.floats[:, row] = 0.0
