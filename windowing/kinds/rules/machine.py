"""The machine that computes conditions and amounts that look at windows, row by row, while the loop finds windows.

A program is a few steps over registers, whose types are known before: integers of 64 bits, floats, and conditions,
which are integers. Each register may be null. Constants, and aggregates of the window before, are in registers of
their own; columns of the row and aggregates of the open window are loaded (semantics sections 12 and 13).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.loops import Floats
from ...columns.arrays import Ints, Mask
from ...support.jit import inline, kernel
from .reach import Kept, Sums, float_kept, int_kept

(LOAD, LOAD_FLOAT, FETCH, FETCH_FLOAT, TO_FLOAT, NARROW, IS_NULL, NOT, AND, OR) = range(10)
"""What a step does: ``(step, register of the result, first, second)``. The columns of a row and the aggregates of the
open window are numbers of columns and aggregates, all else are registers."""
(ADD, SUBTRACT, MULTIPLY, DIVIDE, LESS, AT_MOST, EQUAL, DISTINCT, NEGATE, ABS, LEAST, GREATEST, COALESCE) = range(
    10, 23
)
"""Of two integers, or `OF_FLOATS` more of two floats; what is distinct, or compared, is a condition."""
OF_FLOATS: Final = 20
LEAST_IN_AMOUNTS, GREATEST_IN_AMOUNTS = 24, 25
"""Of floats alone, with `OF_FLOATS`: NaN where one of them is."""

FAILED: Final = -2
"""In place of a rule that fires."""

LEAST_WORD, MOST_WORD = -(2**63), 2**63 - 1
_MOST_INT: Final = np.uint64(2**63 - 1)


class Machine(NamedTuple):
    """P programs with S steps in all, over the columns of n rows.

    ``code``: int64 (S, 4); ``start``: int64 (P + 1,), the steps of each; ``result``: int64 (P,), its register.
    ``ints``: int64 (., n), ``floats``: float64 (., n), columns; ``has_int`` and ``has_float``: bool, where not null.
    ``int_at``: int64 (R,), ``float_at``: float64 (R,), ``is_there``: bool (R,), the registers.
    ``fails``: bool (P,), which programs ask for an integer of the window before that does not fit 64 bits.
    """

    code: Ints
    start: Ints
    result: Ints
    ints: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]
    has_int: npt.NDArray[np.bool_]
    has_float: npt.NDArray[np.bool_]
    int_at: Ints
    float_at: Floats
    is_there: Mask
    fails: Mask


class Conditions(NamedTuple):
    """The rules whose conditions look at windows: C programs, those before a row first.

    ``machine``: its programs from ``first`` on are the conditions, (1,).
    ``rule``: int64 (C,), the place of each in the spec; ``befores``: int64 (1,), how many are asked before the row.
    ``kept``: the aggregates of the open window. ``may_fail``: bool (1,), whether a row may have to be taken back.
    ``problem``: int64 (n,), 1 + the condition that failed for a row, which is rejected; 0: none did.
    """

    machine: Machine
    first: Ints
    rule: Ints
    befores: Ints
    kept: Kept
    may_fail: Mask
    problem: Ints


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
    found, fits = a, True
    if step in (ADD, SUBTRACT):
        fits = not sum_is_far(a, b, step == SUBTRACT)
        found = 0 if not fits else a + b if step == ADD else a - b
    elif step == MULTIPLY:
        fits = not _product_is_far(a, b)
        found = a * b if fits else 0
    elif step == NEGATE or (step == ABS and a < 0):
        found, fits = -max(a, -MOST_WORD), a != LEAST_WORD
    elif step == LEAST:
        found = min(a, b)
    elif step == GREATEST:
        found = max(a, b)
    return found, fits


@kernel
def of_floats(step: int, a: float, b: float) -> float:  # noqa: PLR0911 - one for each step
    """Return the result as IEEE has it, but that NaN is larger than all others, for the least and the greatest."""
    if step == SUBTRACT:
        return a - b
    if step == ADD:
        return a + b
    if step == MULTIPLY:
        return a * b
    if step == DIVIDE:
        return a / b
    if step == ABS:
        return abs(a)
    if step == NEGATE:
        return -a
    if a != a or b != b:  # noqa: PLR0124 - only NaN is not itself
        if step in (LEAST_IN_AMOUNTS, GREATEST_IN_AMOUNTS):
            return np.nan
        has_a = a == a  # noqa: PLR0124
        return a if has_a == (step == LEAST) else b
    return min(a, b) if step in (LEAST, LEAST_IN_AMOUNTS) else max(a, b)


@inline
def _compared_ints(step: int, a: int, b: int) -> bool:
    return a < b if step == LESS else a <= b if step == AT_MOST else (a == b) == (step == EQUAL)


@inline
def _compared_floats(step: int, a: float, b: float) -> bool:
    """Compare floats, where NaN equals NaN and is larger than all others."""
    has_a, has_b = a == a, b == b  # noqa: PLR0124 - only NaN is not itself
    if step == LESS:
        return a < b or (has_a and not has_b)
    if step == AT_MOST:
        return a <= b or not has_b
    return (a == b or (not has_a and not has_b)) == (step == EQUAL)


@inline
def run(  # noqa: PLR0912, PLR0915 - one loop, with a branch for each step
    machine: Machine, program: int, row: int, kept: Kept | None, sums: Any, stop: int
) -> bool:
    """Run a program for a row; return whether all integers fit 64 bits.

    ``kept``, ``sums``: what `Sums` know of the open window, of its rows before ``stop``; None: no step asks for it.
    """
    code, int_at, float_at, is_there = machine.code, machine.int_at, machine.float_at, machine.is_there
    fits = not machine.fails[program]
    for s in range(machine.start[program], machine.start[program + 1]):
        step, out, a, b = code[s, 0], code[s, 1], code[s, 2], code[s, 3]
        if step == LOAD:
            int_at[out] = machine.ints[a, row]
            is_there[out] = machine.has_int[a, row]
        elif step == LOAD_FLOAT:
            float_at[out] = machine.floats[a, row]
            is_there[out] = machine.has_float[a, row]
        elif kept is not None and step == FETCH_FLOAT:
            float_at[out], is_there[out] = float_kept(sums, kept, a, stop)
        elif kept is not None and step == FETCH:
            int_at[out], is_there[out], is_near = int_kept(sums, kept, a)
            fits &= is_near
        elif step == TO_FLOAT:
            float_at[out] = np.float64(int_at[a])
            is_there[out] = is_there[a]
        elif step == NARROW:
            float_at[out] = np.float64(np.float32(float_at[a]))
            is_there[out] = is_there[a]
        elif step == IS_NULL:
            int_at[out] = not is_there[a]
            is_there[out] = True
        elif step == NOT:
            int_at[out] = 1 - int_at[a]
            is_there[out] = is_there[a]
        elif step <= OR:  # a value that decides, or two values
            decides = 0 if step == AND else 1
            has_a, has_b = is_there[a] and int_at[a] == decides, is_there[b] and int_at[b] == decides
            is_decided = has_a or has_b
            is_there[out] = is_decided or (is_there[a] and is_there[b])
            int_at[out] = decides if is_decided else 1 - decides
        else:
            is_float = step >= OF_FLOATS + ADD
            step -= OF_FLOATS * is_float
            both = is_there[a] and is_there[b]
            if not both and step >= DISTINCT and step not in (NEGATE, ABS):
                if step == DISTINCT:  # null equals null
                    int_at[out] = is_there[a] != is_there[b]
                    both = True
                else:  # the one that is there
                    other = a if is_there[a] else b
                    int_at[out], float_at[out], both = int_at[other], float_at[other], is_there[other]
            elif step == COALESCE:
                int_at[out], float_at[out] = int_at[a], float_at[a]
            elif LESS <= step <= DISTINCT:
                if is_float:
                    int_at[out] = _compared_floats(step, float_at[a], float_at[b])
                else:
                    int_at[out] = _compared_ints(step, int_at[a], int_at[b])
            elif is_float:
                float_at[out] = of_floats(step, float_at[a], float_at[b])
            elif both:
                int_at[out], is_near = of_ints(step, int_at[a], int_at[b])
                fits &= is_near
            is_there[out] = both
    return fits


@inline
def first_true(conditions: Conditions, low: int, high: int, fired: int, row: int, sums: Sums, stop: int) -> int:
    """Return the first rule that fires, of ``fired`` (-1: none) and some conditions; `FAILED` where one failed.

    Conditions of rules behind one that fires are not asked.
    """
    machine = conditions.machine
    for c in range(low, high):
        if fired == -1 or conditions.rule[c] < fired:
            p = conditions.first[0] + c
            if not run(machine, p, row, conditions.kept, sums, stop):
                conditions.problem[row] = c + 1
                return FAILED
            at = machine.result[p]
            if machine.is_there[at] and machine.int_at[at] == 1:
                fired = conditions.rule[c]
    return fired
