"""The loop over the rows of each key that finds windows under several rules (semantics section 12).

Whatever single rows or two neighbours decide is computed before, over whole columns (`Flags`). The loop keeps what
depends on the row where a window began: values and amounts of ``delta``, a count, and what ``reaches`` has added up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...aggregates.loops import Floats
from ...columns.arrays import Ints, Mask
from ...rows.panes import AT_END
from ...rows.sequence import rises
from ...support.jit import frugal_kernel, inline, kernel
from .machine import FAILED, Conditions, first_true
from .previous import TICKS, Earlier, begin_key, end_key, leave_out, look_at_window_before, take_amounts
from .reach import (
    Reaches,
    Sums,
    begin_sums,
    is_reached,
    no_sums,
    pass_over,
    resume_sums,
    save_sums,
    see,
    settle_sums,
    take_back,
)

_MOST = np.iinfo(np.int64).max  # asked for in a kernel, numba imports 16 ms of modules where it is loaded

Rules = npt.NDArray[np.int16]
"""Places of rules in their spec; -1: none."""


class Flags(NamedTuple):
    """What rules say of single rows, whatever window is open: the first rule that fires, int16 (n,), -1: none.

    Arrays are of length 0 where no rule says anything of the kind.

    ``opens``: bool (n,), at which rows a window may begin; else at any.
    ``before``: rules that end a window before the row.
    ``after``: rules that end it with the row.
    ``event``: rules whose mark or tick comes between the row and the next of its key, or the end of all.
    ``cause``: int64 (n,), that mark or tick, as in `windowing.rows.panes.Panes`.
    ``why``: int8 (rules + 1,), the close reason of each rule, and of a window that none has ended.
    """

    opens: Mask
    before: Rules
    after: Rules
    event: Rules
    cause: Ints
    why: npt.NDArray[np.int8]


class Deltas(NamedTuple):
    """The rules that compare a row with the first of its window, integers as `measures` returns them, then floats.

    ``rule``, ``float_rule``: int64 (D,) and (F,), the place of each in the spec.
    ``integers``: int64 (D, n); ``amounts``: uint64 (D, n), or (D, 1) where amounts are constant.
    ``bits``: int64 (F,), the width of the floats that are compared.
    ``floats``: float64 (F, n); ``float_amounts``: float64 (F, n) or (F, 1).
    """

    rule: Ints
    integers: npt.NDArray[np.int64]
    amounts: npt.NDArray[np.uint64]
    float_rule: Ints
    bits: Ints
    floats: npt.NDArray[np.float64]
    float_amounts: npt.NDArray[np.float64]


class Counts(NamedTuple):
    """The C rules that end a window that is full.

    ``rule``: int64 (C,), the place of each in the spec.
    ``most``: int64 (C, n), how many rows a window that begins at the row may hold; or (C, 1).
    """

    rule: Ints
    most: npt.NDArray[np.int64]


class Window(NamedTuple):
    """What the loop keeps of an open window; arrays, because the loop writes to them.

    ``held``: int64 (1,), number of its rows; 0: no window is open.
    ``first``: int64 (.,) and ``first_float``: float64 (.,), the values of its first row, for `Deltas`.
    ``amount``: uint64 (.,) and ``float_amount``: float64 (.,), the amounts that were taken from that row.
    ``most``: int64 (C,), for `Counts`.
    ``sums``: for `Reaches`; ``kept``: for `Conditions`.
    """

    held: Ints
    first: Ints
    first_float: Floats
    amount: npt.NDArray[np.uint64]
    float_amount: Floats
    most: Ints
    sums: Sums
    kept: Sums


class RowRules(NamedTuple):
    """What rules say of n rows, and the window that is open before the first, which the loop writes to.

    What ``reaches`` adds up, and conditions, stand beside it: loops are compiled without where there is no such rule.
    """

    flags: Flags
    deltas: Deltas
    counts: Counts
    window: Window


class Windows(NamedTuple):
    """The W windows that began, in order, and how many rows are in none.

    ``key``, ``number``, ``cause``, ``closed_by``: as in `windowing.rows.panes.Panes`.
    ``lo``, ``hi``: int64 (W,), the rows of each.
    ``skipped``: number of rows in no window.
    """

    key: Ints
    number: Ints
    lo: Ints
    hi: Ints
    cause: Ints
    closed_by: npt.NDArray[np.int8]
    skipped: int


def walk(
    bounds: Ints,
    begin: Ints,
    rules: RowRules,
    reaches: Reaches | None,
    conditions: Conditions | None,
    earlier: Earlier | None,
) -> Windows:
    """Return the windows of K keys; the rows of key k are those from ``begin[k]`` on, below ``bounds[k + 1]``.

    A window may be open before the first row only where there is one key, whose row before ``begin[0]`` is its last
    row, and where the window then begins. It is left as the last row leaves it, with all rows in its sums.
    ``earlier``: amounts that ask for the window before, which are written to those of ``deltas`` and ``counts``. The
    rows of a key before ``begin[k]`` are then those of the window before its first one. Rows that these amounts, or
    ``conditions``, reject are noted there: they lie between windows, or inside of ranges of rows. None where no amount
    does so, as ``reaches`` and ``conditions`` are where there are no such rules: the loop is compiled for each case,
    without what is asked of None.
    """
    size = int(bounds[-1]) + 1  # at most one window a row, and the one that was open before the first
    key, number, lo, hi, cause = (np.empty(size, np.int64) for _ in range(5))
    closed_by = np.empty(size, np.int8)
    loop = _walk_alone if earlier is None else _walk_looking_back
    made, skipped = loop(bounds, begin, rules, reaches, conditions, earlier, key, number, lo, hi, cause, closed_by)
    found = Windows(key[:made], number[:made], lo[:made], hi[:made], cause[:made], closed_by[:made], skipped)
    if 2 * made > size:
        return found
    # gives the memory for other windows back; where there are many, a copy would need more than that
    return Windows(*(array.copy() for array in found[:-1]), skipped)  # type: ignore[arg-type, call-arg]


def _walk(  # noqa: PLR0912, PLR0915 - one loop, which follows the rule step by step
    bounds: Ints, begin: Ints, rules: RowRules, reaches: Reaches | None, conditions: Conditions | None,
    earlier: Earlier | None, key: Ints, number: Ints, lo: Ints, hi: Ints, cause: Ints,
    closed_by: npt.NDArray[np.int8],
) -> tuple[int, int]:  # fmt: skip
    opens, before, after, event, causes, why = rules.flags
    delta_rule, integers, amounts, float_rule, bits, floats, float_amounts = rules.deltas
    count_rule, most = rules.counts
    held, first, first_float, amount, float_amount, limit, sums, kept = rules.window
    # All that a pane says of a window is noted while its key, rows and cause are at hand: to look for them afterwards
    # took as long as the loop where windows have one row or two.
    made, skipped, rows = 0, 0, held[0]
    least_limit = _least(limit)
    has_opener, has_events, has_before, has_after = len(opens) > 0, len(event) > 0, len(before) > 0, len(after) > 0
    has_flags = has_events or has_before or has_after
    only_counts = not (has_flags or len(first) or len(first_float))
    only_one_delta = not (has_flags or len(first_float)) and len(first) == 1
    has_moving = False
    if earlier is not None:
        for p in range(len(earlier.moves)):
            has_moving |= earlier.moves[p]
    if rows > 0:
        resume_sums(sums, begin[0])
        resume_sums(kept, begin[0])
    # Invariant: while a window is open, it is number ``made - 1``, and its last row is the one before ``i``.
    for k in range(len(bounds) - 1):
        start, stop = begin[k], bounds[k + 1]
        is_open, first_made = rows > 0, made
        if earlier is not None:
            begin_key(earlier, k)
        if is_open:
            key[made], number[made], lo[made] = k, 0, start - 1
            made += 1
        i = start - 1
        while i + 1 < stop:
            i += 1
            if is_open:
                fired, ended_by = -1, i
                if has_events and event[i - 1] >= 0:
                    fired, ended_by = int(event[i - 1]), causes[i - 1]
                else:
                    if has_before:
                        fired = int(before[i])
                    fired = first_risen(delta_rule, integers, first, amount, fired, i)
                    fired = first_risen_float(float_rule, bits, floats, first_float, float_amount, fired, i)
                    if conditions is not None:
                        fired = first_true(conditions, 0, conditions.befores[0], fired, i, kept, i)
                        if fired == FAILED:
                            pass_over(kept, conditions.kept, i)
                            if reaches is not None:
                                pass_over(sums, reaches.kept, i)
                            if earlier is not None:
                                leave_out(earlier, i)
                            continue
                if fired >= 0:
                    hi[made - 1], cause[made - 1], closed_by[made - 1] = i, ended_by, why[fired]
                    is_open = False
            if not is_open:
                if has_opener and not opens[i]:
                    skipped += 1
                    continue
                if earlier is not None:
                    old_lo, old_hi = _window_before(lo, hi, first_made, made, bounds[k], start)
                    look_at_window_before(earlier, old_lo, old_hi)
                    if not take_amounts(earlier, i, True, amounts, float_amounts, most):
                        leave_out(earlier, i)
                        continue
                key[made], number[made], lo[made] = k, made - first_made, i
                made, is_open, rows = made + 1, True, 0
                _take_values(first, amount, integers, amounts, i)
                _take_values(first_float, float_amount, floats, float_amounts, i)
                for c in range(len(limit)):
                    limit[c] = most[c, min(i, most.shape[1] - 1)]
                least_limit = _least(limit)
                begin_sums(sums, i)
                begin_sums(kept, i)
            elif (
                earlier is not None and has_moving and not take_amounts(earlier, i, False, amounts, float_amounts, most)
            ):
                leave_out(earlier, i)
                if reaches is not None:
                    pass_over(sums, reaches.kept, i)
                if conditions is not None:
                    pass_over(kept, conditions.kept, i)
                continue
            rows += 1
            fired = int(after[i]) if has_after else -1
            if rows >= least_limit:  # one number in a register, for the others are read from memory at each row
                fired = first_full(count_rule, limit, rows, fired)
            if conditions is not None and conditions.may_fail[0]:
                save_sums(sums)
                save_sums(kept)
            if reaches is not None:
                see(sums, reaches.kept, i)
                for r in range(len(reaches.rule)):
                    if (fired < 0 or reaches.rule[r] < fired) and is_reached(sums, reaches, r, i):
                        fired = reaches.rule[r]
            if conditions is not None:
                see(kept, conditions.kept, i)
                fired = first_true(conditions, conditions.befores[0], len(conditions.rule), fired, i, kept, i + 1)
                if fired == FAILED:  # the row is in no window: one that it has opened has never been
                    rows -= 1
                    if rows == 0:
                        made, is_open = made - 1, False
                    take_back(kept)
                    pass_over(kept, conditions.kept, i)
                    if reaches is not None:
                        take_back(sums)
                        pass_over(sums, reaches.kept, i)
                    if earlier is not None:
                        leave_out(earlier, i)
                    continue
            if earlier is not None and has_moving and rows > 1:
                move_first(
                    earlier, first, amount, integers, amounts, first_float, float_amount, floats, float_amounts, i
                )
            if fired >= 0:
                hi[made - 1], cause[made - 1], closed_by[made - 1] = i + 1, i, why[fired]
                is_open = False
            elif reaches is None and conditions is None and earlier is None:
                # Rows at which no rule fires are passed over in a loop of few steps: it takes half the time in long
                # windows. Where only counts end them, nothing is asked of a row.
                last = min(stop - i, least_limit - rows) + i
                ahead = max(i + 1, last) if only_counts else i + 1
                if only_one_delta:  # with its values in registers a third of the time
                    ahead = _first_rise(integers[0], first[0], amount[0], ahead, last)
                while (
                    ahead < last
                    and not (has_events and event[ahead - 1] >= 0)
                    and not (has_before and before[ahead] >= 0)
                    and not (has_after and after[ahead] >= 0)
                    and not has_risen(integers, first, amount, bits, floats, first_float, float_amount, ahead)
                ):
                    ahead += 1
                rows += ahead - 1 - i
                i = ahead - 1
        if is_open:
            is_ended = has_events and event[stop - 1] >= 0
            hi[made - 1], cause[made - 1] = stop, causes[stop - 1] if is_ended else AT_END
            closed_by[made - 1] = why[event[stop - 1]] if is_ended else why[-1]
        if earlier is not None:
            ended = made - 1 if made > first_made and cause[made - 1] == AT_END else made
            old_lo, old_hi = _window_before(lo, hi, first_made, ended, bounds[k], start)
            end_key(earlier, k, old_lo, old_hi)
        if not is_open or k < len(bounds) - 2:
            rows = 0
    held[0] = rows
    if reaches is not None:
        settle_sums(sums, reaches.kept, bounds[-1])
    if conditions is not None:
        settle_sums(kept, conditions.kept, bounds[-1])
    return made, skipped


@inline
def _first_rise(values: Any, first: int, amount: int, ahead: int, last: int) -> int:
    while ahead < last and not rises(values[ahead], first, amount):
        ahead += 1
    return ahead


@inline
def _window_before(lo: Ints, hi: Ints, first_made: int, made: int, old: int, start: int) -> tuple[int, int]:
    """Return the rows of the window before the next one of a key: its last one, else the rows before its first new."""
    old_lo, old_hi = old, start
    if made > first_made:
        old_lo, old_hi = lo[made - 1], hi[made - 1]
    return old_lo, old_hi


@inline
def _take_values(first: Any, amount: Any, values: Any, amounts: Any, row: int) -> None:
    for j in range(len(first)):
        first[j], amount[j] = values[j, row], amounts[j, min(row, amounts.shape[1] - 1)]


@inline
def _least(limit: Ints) -> int:
    least = _MOST
    for c in range(len(limit)):
        least = min(least, limit[c])
    return least


@inline
def first_full(rules: Ints, limit: Ints, rows: int, fired: int) -> int:
    """Return the first rule that fires: ``fired``, or one of `Counts` whose window is full."""
    for c in range(len(limit)):
        if rows >= limit[c] and (fired < 0 or rules[c] < fired):
            fired = rules[c]
    return fired


@kernel
def move_first(
    earlier: Earlier, first: Any, amount: Any, integers: Any, amounts: Any, first_float: Any, float_amount: Any,
    floats: Any, float_amounts: Any, row: int,
) -> None:  # fmt: skip
    """Take the values of a row in place of those of the first of its window, for amounts that move."""
    for p in range(len(earlier.kind)):
        j = earlier.place[p]
        if earlier.moves[p] and earlier.kind[p] == TICKS:
            first[j], amount[j] = integers[j, row], amounts[j, min(row, amounts.shape[1] - 1)]
        elif earlier.moves[p]:
            first_float[j], float_amount[j] = floats[j, row], float_amounts[j, min(row, float_amounts.shape[1] - 1)]


@inline
def first_risen(rules: Ints, values: Any, first: Any, amount: Any, fired: int, row: int) -> int:
    """Return the first rule that fires: ``fired``, or one of `Deltas` of integers."""
    for d in range(len(rules)):
        if (fired < 0 or rules[d] < fired) and rises(values[d, row], first[d], amount[d]):
            fired = rules[d]
    return fired


@inline
def float_rises(bits: int, new: float, old: float, amount: float) -> bool:
    """Whether a float `rises`, in the width of its column."""
    narrow = rises(np.float32(new), np.float32(old), np.float32(amount))
    return narrow if bits == 32 else rises(new, old, amount)


@inline
def first_risen_float(rules: Ints, bits: Ints, values: Any, first: Any, amount: Any, fired: int, row: int) -> int:
    """Return the first rule that fires: ``fired``, or one of `Deltas` of floats."""
    for d in range(len(rules)):
        if (fired < 0 or rules[d] < fired) and float_rises(bits[d], values[d, row], first[d], amount[d]):
            fired = rules[d]
    return fired


@inline
def has_risen(
    integers: Any, first: Any, amount: Any, bits: Ints, floats: Any, first_float: Any, float_amount: Any, row: int
) -> bool:
    """Whether a row rises above the first of a window under one of the rules of `Deltas`."""
    risen = False
    for d in range(len(first)):
        risen |= rises(integers[d, row], first[d], amount[d])
    for d in range(len(first_float)):
        risen |= float_rises(bits[d], floats[d, row], first_float[d], float_amount[d])
    return risen


def no_window(
    deltas: Deltas, counts: Counts, reaches: Reaches | None = None, conditions: Conditions | None = None
) -> Window:
    """Return the window of a key that has none."""
    integers, floats = len(deltas.integers), len(deltas.floats)
    return Window(
        np.zeros(1, np.int64),
        np.zeros(integers, np.int64),
        np.zeros(floats),
        np.zeros(integers, np.uint64),
        np.zeros(floats),
        np.zeros(len(counts.rule), np.int64),
        no_sums(None if reaches is None else reaches.kept),
        no_sums(None if conditions is None else conditions.kept),
    )


# The loop, compiled in two ways. What looks at the window before allocates, for exact sums, so that one counts
# references to its arrays.
_walk_alone, _walk_looking_back = frugal_kernel(_walk), kernel(_walk)
