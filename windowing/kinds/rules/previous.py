"""Amounts that ask for the window before, computed while the loop finds windows (semantics section 13).

Where a window opens, the aggregates of the window before are computed over its rows, so each row is looked at once
more. Then each amount is: a few steps for a stack, over these values and those of one row. Sums and means are those of
the aggregates: exact for integers, else the float nearest to the true result.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.exact_sums import LIMBS, add_to_limbs, nearest_in_limbs, nearest_sums
from ...aggregates.loops import LIMB, Floats
from ...aggregates.quotients import means
from ...columns.arrays import Ints, Mask
from ...support.jit import kernel
from .reach import Reaches

# Signs between the integers or floats of an amount: what they give, and whether it fits 64 bits (section 13).


INT, FLOAT, INT_COLUMN, FLOAT_COLUMN, TO_FLOAT, OLD_INT, OLD_FLOAT, ADD, SUBTRACT, MULTIPLY, DIVIDE = range(11)
"""What a step does; from `ADD` on of two integers, or `OF_FLOATS` more of two floats."""
NEGATE, LEAST, GREATEST, OF_FLOATS = 11, 12, 13, 10

MOST_TICKS: Final = np.uint64(2**64 - 1)
LEAST_WORD, MOST_WORD = -(2**63), 2**63 - 1
_MOST_INT: Final = np.uint64(2**63 - 1)


@kernel
def sum_is_far(a: int, b: int, subtract: bool) -> bool:
    """Whether ``a + b`` or ``a - b`` does not fit 64 bits."""
    if subtract:
        return a > MOST_WORD + b if b < 0 else a < LEAST_WORD + b
    return a < LEAST_WORD - b if b < 0 else a > MOST_WORD - b


@kernel
def _magnitude(a: int) -> np.uint64:
    return np.uint64(-(a + 1)) + np.uint64(1) if a < 0 else np.uint64(a)


@kernel
def _product_is_far(a: int, b: int) -> bool:
    """Whether ``a * b`` does not fit 64 bits."""
    if a == 0 or b == 0:
        return False
    most = _MOST_INT if (a < 0) == (b < 0) else _MOST_INT + np.uint64(1)
    return bool(_magnitude(a) > most // _magnitude(b))


@kernel
def of_ints(step: int, a: int, b: int) -> tuple[int, bool]:
    """Return the result, and whether it fits 64 bits."""
    # Checked before, because the compiler may take it that integers do not overflow.
    if step == LEAST:
        return min(a, b), True
    if step == GREATEST:
        return max(a, b), True
    if step == MULTIPLY:
        fits = not _product_is_far(a, b)
        return (a * b if fits else 0), fits
    fits = not sum_is_far(a, b, step == SUBTRACT)
    if not fits:
        return 0, False
    return (a + b if step == ADD else a - b), True


@kernel
def of_floats(step: int, a: float, b: float) -> float:
    """Return the result as IEEE has it; the least and the greatest of NaN and another are NaN."""
    if step == ADD:
        return a + b
    if step == SUBTRACT:
        return a - b
    if step == MULTIPLY:
        return a * b
    if step == DIVIDE:
        return a / b
    if a != a or b != b:  # noqa: PLR0124 - only NaN is not itself
        return np.nan
    return min(a, b) if step == LEAST else max(a, b)


@kernel
def ticks_of_float(number: float) -> np.uint64:
    """Round down; an amount beyond 64 bits becomes the largest."""
    whole = math.floor(number) if number < 2.0**53 else number
    if whole >= 2.0**64:
        return MOST_TICKS
    return np.uint64(min(np.float64(whole), 2.0**64 - 2048))


# The sum or mean of one window inside of a loop: the float nearest to the true result, as aggregates have it.


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
def _mean_in_limbs(values: Floats, lo: int, hi: int, count: int) -> float:
    limbs = np.zeros(LIMBS, np.int64)
    special = add_to_limbs(values, lo, hi, limbs)
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
def sum_or_mean(values: Floats, lo: int, hi: int, count: int, is_mean: bool) -> float:
    """Return the float nearest to the sum or mean of values, of which those that are not there are 0."""
    sums, residuals = nearest_sums(values, np.array([lo]), np.array([hi]))
    if not is_mean:
        return sums[0]
    found, in_doubt = means(sums, residuals, np.array([count]))
    return _mean_in_limbs(values, lo, hi, count) if in_doubt[0] else found[0]


@kernel
def mean_of_ints(high: int, low: int, count: int) -> float:
    """Return the float nearest to ``(high * 2**32 + low) / count``."""
    total = np.float64(high) * 2.0**32 + np.float64(low)
    if abs(total) < _EXACT:
        return total / np.float64(count)
    parts = np.array([np.float64(high >> 32) * 2.0**64, np.float64(high & LIMB) * 2.0**32, np.float64(low)])
    return _mean_in_limbs(parts, 0, 3, count)


COUNT, SUM, MEAN, MIN, MAX, FIRST, LAST, RANGE = range(8)
"""The aggregates, as `Earlier.function` numbers them."""
TICKS, NUMBERS, ROWS = range(3)
"""What an amount is compared with: ticks, floats, or a number of rows."""
FINE, NEGATIVE, NAN, OVERFLOW = range(4)
"""How the amounts of a row went: well, one is negative or NaN, or an integer did not fit 64 bits."""

_MOST_ROWS: Final = np.uint64(2**63 - 1)


class Earlier(NamedTuple):
    """P amounts with S steps over A aggregates of the window before, of n rows.

    ``kind``: int64 (P,), `TICKS` .. `ROWS`; ``place``: int64 (P,), the row of each among those of its kind.
    ``moves``: bool (P,), whether it is taken from each row anew, for ``gap``, and not from the first of a window.
    ``scale``: float64 (P,), ticks of one unit of an amount; also as a fraction, uint64 (P,) ``over`` and ``under``.
    ``start``: int64 (P + 1,), the steps of each; ``code``: int64 (S, 2), what a step does, and its number, the bits of
        its float, its column, its aggregate or the place below the top of the stack; ``floating``: bool (P,), whether
        a float comes out.
    ``function``: int64 (A,), `COUNT` ..; ``of_floats``: bool (A,), whether of floats; ``narrow``: bool (A,), whether
        these have 32 bits; ``source``: int64 (A,), the row of ``ints`` or ``floats``, which is 0 at nulls; ``valid``:
        bool (A, n).
    ``ints``: int64 (., n); ``floats``: float64 (., n), columns.
    ``looked``: int64 (2,), the rows of the window before of which the aggregates are.
    ``found``: bool (A,), ``int_found``: int64 (A,) and ``float_found``: float64 (A,), aggregates of the window before;
        ``too_far``: bool (A,), which integers do not fit 64 bits.
    ``int_stack``: int64 (S,) and ``float_stack``: float64 (S,).
    ``problem``: int64 (n,), `FINE` .. of each row; other rows are rejected. ``amount_at_fault``: int64 (n,).
    """

    kind: Ints
    place: Ints
    moves: npt.NDArray[np.bool_]
    scale: Floats
    over: npt.NDArray[np.uint64]
    under: npt.NDArray[np.uint64]
    start: Ints
    code: Ints
    floating: npt.NDArray[np.bool_]
    function: Ints
    of_floats: npt.NDArray[np.bool_]
    narrow: npt.NDArray[np.bool_]
    source: Ints
    valid: npt.NDArray[np.bool_]
    ints: Ints
    floats: Floats
    looked: Ints
    found: npt.NDArray[np.bool_]
    too_far: npt.NDArray[np.bool_]
    int_found: Ints
    float_found: Floats
    int_stack: Ints
    float_stack: Floats
    problem: Ints
    amount_at_fault: Ints


@kernel
def _note(earlier: Earlier, a: int, value: int) -> None:
    earlier.found[a] = True
    earlier.int_found[a] = value
    earlier.float_found[a] = np.float64(value)


@kernel
def _count(valid: Mask, lo: int, hi: int) -> int:
    count = 0
    for i in range(lo, hi):
        count += valid[i]
    return count


@kernel
def _aggregate_ints(earlier: Earlier, a: int, lo: int, hi: int) -> None:
    """Aggregate integers: sums in two words, so that only a result may overflow."""
    values, valid = earlier.ints[earlier.source[a]], earlier.valid[a]
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
        earlier.found[a] = True
        earlier.float_found[a] = mean_of_ints(high, low, seen)
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
    values, valid = earlier.floats[earlier.source[a]], earlier.valid[a]
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
        earlier.found[a] = seen > 0
        if seen > 0:
            earlier.float_found[a] = sum_or_mean(values, lo, hi, seen, function == MEAN)
    elif function in (FIRST, LAST):
        earlier.found[a] = seen > 0
        earlier.float_found[a] = first if function == FIRST else last
    else:
        earlier.found[a] = numbers > 0
        spread = np.float64(np.float32(most - least)) if earlier.narrow[a] else most - least
        earlier.float_found[a] = least if function == MIN else most if function == MAX else spread


@kernel
def look_at_window_before(earlier: Earlier, lo: int, hi: int) -> None:
    """Compute the aggregates of the window before, whose rows are ``[lo, hi)``; no rows: there is none."""
    if lo == earlier.looked[0] and hi == earlier.looked[1]:  # a row that was rejected has asked already
        return
    earlier.looked[0], earlier.looked[1] = lo, hi
    for a in range(len(earlier.function)):
        earlier.found[a] = earlier.too_far[a] = False
        if lo < hi and earlier.function[a] == COUNT:
            _note(earlier, a, _count(earlier.valid[a], lo, hi))
        elif lo < hi and earlier.of_floats[a]:
            _aggregate_floats(earlier, a, lo, hi)
        elif lo < hi:
            _aggregate_ints(earlier, a, lo, hi)


@kernel
def _push(earlier: Earlier, s: int, row: int, top: int) -> None:
    step, what = earlier.code[s, 0], earlier.code[s, 1]
    if step == INT:
        earlier.int_stack[top] = what
    elif step == FLOAT:
        earlier.float_stack[top] = earlier.code[s : s + 1, 1].copy().view(np.float64)[0]
    elif step == INT_COLUMN:
        earlier.int_stack[top] = earlier.ints[what, row]
    else:
        earlier.float_stack[top] = earlier.floats[what, row]


@kernel
def _fail(earlier: Earlier, why: int, p: int, row: int) -> None:
    if earlier.problem[row] == FINE:
        earlier.problem[row] = why
        earlier.amount_at_fault[row] = p


@kernel
def _run(earlier: Earlier, p: int, row: int) -> None:
    """Run the steps of an amount for a row; the result is the lowest value of one of the stacks."""
    ints, floats, top = earlier.int_stack, earlier.float_stack, -1
    for s in range(earlier.start[p], earlier.start[p + 1]):
        step, what = earlier.code[s, 0], earlier.code[s, 1]
        if step < TO_FLOAT:
            top += 1
            _push(earlier, s, row, top)
        elif step == TO_FLOAT:
            floats[top - what] = np.float64(ints[top - what])
        elif step == OLD_INT:
            if earlier.too_far[what]:
                _fail(earlier, OVERFLOW, p, row)
            ints[top] = earlier.int_found[what] if earlier.found[what] else ints[top]
        elif step == OLD_FLOAT:
            floats[top] = earlier.float_found[what] if earlier.found[what] else floats[top]
        elif step == NEGATE:
            if ints[top] == LEAST_WORD:
                _fail(earlier, OVERFLOW, p, row)
            ints[top] = -max(ints[top], -MOST_WORD)
        elif step == NEGATE + OF_FLOATS:
            floats[top] = -floats[top]
        elif step < OF_FLOATS + ADD:
            top -= 1
            ints[top], fits = of_ints(step, ints[top], ints[top + 1])
            if not fits:
                _fail(earlier, OVERFLOW, p, row)
        else:
            top -= 1
            floats[top] = of_floats(step - OF_FLOATS, floats[top], floats[top + 1])


@kernel
def _ticks(earlier: Earlier, p: int, count: int) -> np.uint64:
    over, exact = earlier.over[p], np.uint64(count)
    if exact > MOST_TICKS // over:
        return MOST_TICKS
    return exact * over // earlier.under[p]


@kernel
def _write(earlier: Earlier, p: int, row: int, ticks: npt.NDArray[np.uint64], numbers: Floats, rows: Ints) -> None:
    number, count = earlier.float_stack[0], earlier.int_stack[0]
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
        if (all_of_them or earlier.moves[p]) and earlier.start[p] < earlier.start[p + 1]:
            _run(earlier, p, row)
            _write(earlier, p, row, ticks, numbers, rows)
            if earlier.problem[row] != FINE:
                return False
    return True


@kernel
def leave_out(earlier: Earlier, row: int, reaches: Reaches | None) -> None:
    """Take a row that is rejected out of what is summed over a range of rows."""
    earlier.valid[:, row] = False
    earlier.ints[:, row] = 0
    earlier.floats[:, row] = 0.0
    if reaches is not None:
        reaches.floats[:, row] = 0.0
