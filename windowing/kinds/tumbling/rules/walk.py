"""The loop over the rows of each key that finds windows under several rules (semantics section 12).

Whatever single rows or two neighbours decide is computed before, over whole columns (`Flags`). The loop keeps what
depends on the row where a window began: values and amounts of ``delta``, a count, and what ``reaches`` has added up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....aggregates.kernels.loops import Floats
from ....columns.arrays import Ints, Mask
from ....sequences.attribute_distance import rises
from ....support.jit import kernel
from .reach import Reaches, Sums, begin_sums, first_reached, resume_sums, settle_sums

BEFORE, AFTER, EVENT, NEVER = range(4)
"""What ended a window: the row behind it, its own last row, a mark or a tick, or nothing yet."""

Rules = npt.NDArray[np.int16]
"""Places of rules in their spec; -1: none."""


class Flags(NamedTuple):
    """What rules say of single rows, whatever window is open: the first rule that fires, int16 (n,), -1: none.

    ``opens``: bool (n,), at which rows a window may begin; of length 0 where at any.
    ``before``: rules that end a window before the row.
    ``after``: rules that end it with the row.
    ``event``: rules whose mark or tick comes between the row and the next of its key, or the end of all.
    """

    opens: Mask
    before: Rules
    after: Rules
    event: Rules


class Deltas(NamedTuple):
    """The D rules that compare a row with the first of its window; integers as `comparable` returns them.

    ``rule``: int64 (D,), the place of each in the spec.
    ``bits``: int64 (D,), 0 for integers, else the width of the floats that are compared.
    ``row``: int64 (D,), its row among the values.
    ``integers``: uint64 (., n); ``amounts``: uint64 (., n), or (., 1) where amounts are constant.
    ``floats``: float64 (., n); ``float_amounts``: float64 (., n) or (., 1).
    """

    rule: Ints
    bits: Ints
    row: Ints
    integers: npt.NDArray[np.uint64]
    amounts: npt.NDArray[np.uint64]
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
    ``first``: uint64 (.,) and ``first_float``: float64 (.,), the values of its first row, for `Deltas`.
    ``amount``: uint64 (.,) and ``float_amount``: float64 (.,), the amounts that were taken from that row.
    ``most``: int64 (C,), for `Counts`.
    ``sums``: for `Reaches`.
    """

    held: Ints
    first: npt.NDArray[np.uint64]
    first_float: Floats
    amount: npt.NDArray[np.uint64]
    float_amount: Floats
    most: Ints
    sums: Sums


class Windows(NamedTuple):
    """The W windows that began, in order, and how the last row was left.

    ``lo``, ``hi``: int64 (W,), the rows of each.
    ``rule``: int16 (W,), the rule that ended it; -1: none has.
    ``how``: int8 (W,), `BEFORE` .. `NEVER`.
    ``skipped``: number of rows in no window.
    """

    lo: Ints
    hi: Ints
    rule: Rules
    how: npt.NDArray[np.int8]
    skipped: int


@kernel
def walk(  # noqa: PLR0912 - one loop, which follows the rule step by step
    bounds: Ints, begin: Ints, flags: Flags, deltas: Deltas, counts: Counts, reaches: Reaches, window: Window
) -> Windows:
    """Return the windows of K keys; the rows of key k are those from ``begin[k]`` on, below ``bounds[k + 1]``.

    ``window``: the window that is open before the first row; only where there is one key, whose row before
    ``begin[0]`` is its last row. It is left as the last row leaves it, with all rows in its sums.
    """
    n = bounds[-1]
    lo, hi = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    rule, how = np.empty(n + 1, np.int16), np.empty(n + 1, np.int8)
    scratch = np.zeros(window.sums.limbs.shape[1], np.int64)
    made, skipped = 0, 0
    has_opener = len(flags.opens) > 0
    if window.held[0] > 0:
        resume_sums(window.sums, begin[0])
    for k in range(len(bounds) - 1):
        is_open = window.held[0] > 0
        if is_open and begin[k] < bounds[k + 1]:  # it goes on: a place for it, at the front
            lo[made], hi[made], rule[made], how[made] = begin[k], begin[k], -1, NEVER
            made += 1
        for i in range(begin[k], bounds[k + 1]):
            if is_open:
                fired, ended = int(flags.event[i - 1]), EVENT
                if fired < 0:
                    fired, ended = _first_risen(deltas, window, int(flags.before[i]), i), BEFORE
                if fired >= 0:
                    hi[made - 1], rule[made - 1], how[made - 1] = i, fired, ended
                    is_open = False
            if not is_open:
                if has_opener and not flags.opens[i]:
                    skipped += 1
                    continue
                is_open = True
                lo[made], hi[made], rule[made], how[made] = i, bounds[k + 1], -1, NEVER
                made += 1
                _open(deltas, counts, window, i)
            window.held[0] += 1
            fired = _first_full(counts, reaches, window, scratch, int(flags.after[i]), i)
            if fired >= 0:
                hi[made - 1], rule[made - 1], how[made - 1] = i + 1, fired, AFTER
                is_open = False
        if is_open and k < len(bounds) - 2:
            hi[made - 1] = bounds[k + 1]
        if is_open and begin[k] < bounds[k + 1]:
            fired = int(flags.event[bounds[k + 1] - 1])
            hi[made - 1] = bounds[k + 1]
            if fired >= 0:
                rule[made - 1], how[made - 1] = fired, EVENT
        if not is_open or k < len(bounds) - 2:
            window.held[0] = 0
    settle_sums(reaches, window.sums, n)
    return Windows(lo[:made].copy(), hi[:made].copy(), rule[:made].copy(), how[:made].copy(), skipped)


@kernel
def _open(deltas: Deltas, counts: Counts, window: Window, row: int) -> None:
    """Take from a row what the window that begins there compares with."""
    for j in range(len(window.first)):
        window.first[j] = deltas.integers[j, row]
        window.amount[j] = deltas.amounts[j, min(row, deltas.amounts.shape[1] - 1)]
    for j in range(len(window.first_float)):
        window.first_float[j] = deltas.floats[j, row]
        window.float_amount[j] = deltas.float_amounts[j, min(row, deltas.float_amounts.shape[1] - 1)]
    for c in range(len(counts.rule)):
        window.most[c] = counts.most[c, min(row, counts.most.shape[1] - 1)]
    window.held[0] = 0
    begin_sums(window.sums, row)


@kernel
def _first_risen(deltas: Deltas, window: Window, fired: int, row: int) -> int:
    """Return the first rule that ends the window before a row; ``fired``: the first of those that flags decide."""
    for d in range(len(deltas.rule)):
        if fired >= 0 and deltas.rule[d] > fired:
            break
        j = deltas.row[d]
        if deltas.bits[d] == 0:
            risen = rises(deltas.integers[j, row], window.first[j], window.amount[j])
        elif deltas.bits[d] == 32:
            new, old = np.float32(deltas.floats[j, row]), np.float32(window.first_float[j])
            risen = rises(new, old, np.float32(window.float_amount[j]))
        else:
            risen = rises(deltas.floats[j, row], window.first_float[j], window.float_amount[j])
        if risen:
            return int(deltas.rule[d])
    return fired


@kernel
def _first_full(counts: Counts, reaches: Reaches, window: Window, scratch: Ints, fired: int, row: int) -> int:
    """Return the first rule that ends the window with a row; ``fired``: the first of those that flags decide."""
    for c in range(len(counts.rule)):
        if window.held[0] >= window.most[c]:
            if fired < 0 or counts.rule[c] < fired:
                fired = counts.rule[c]
            break
    if len(reaches.rule):
        reached = first_reached(reaches, window.sums, scratch, row)
        if reached >= 0 and (fired < 0 or reached < fired):
            fired = reached
    return fired


def no_window(deltas: Deltas, counts: Counts, sums: Sums) -> Window:
    """Return the window of a key that has none."""
    integers, floats = len(deltas.integers), len(deltas.floats)
    nothing: Any = np.zeros(integers, np.uint64)
    return Window(
        np.zeros(1, np.int64),
        nothing,
        np.zeros(floats),
        nothing.copy(),
        np.zeros(floats),
        np.zeros(len(counts.rule), np.int64),
        sums,
    )
