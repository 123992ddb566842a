"""Where one window ends by its rows, as far as one looks ahead: what partition eviction asks (semantics section 12).

A partition eviction may cut a window anywhere, so the pass over all keys cannot take windows from `walk`. It asks,
where a window begins, how it ends if nothing evicts its key. Marks and ticks are not asked: they end the windows of
all keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....columns.arrays import Ints
from ....rows.sequence import rises
from ....support.jit import kernel
from .reach import Reaches, begin_sums, inlined, is_reached, see
from .walk import AFTER, BEFORE, NEVER, Counts, Deltas, Flags, Window


class RowRules(NamedTuple):
    """What rules say of n rows, as `walk` takes it.

    ``window``: what is kept of a window while one looks; it is written to.
    ``scratch``: int64 (.,), as wide as a sum in limbs.
    """

    flags: Flags
    deltas: Deltas
    counts: Counts
    reaches: Reaches
    window: Window
    scratch: Ints


@kernel
def first_end(rules: RowRules, begin: int, stop: int) -> tuple[int, int]:
    """Return how a window that begins at row ``begin`` ends, looking at its key's rows below ``stop``.

    The row behind its last row, and `BEFORE` if it ends when that row comes, `AFTER` if with its last row; or ``stop``
    and `NEVER` where none of these rows ends it.
    """
    _, before, after, _ = rules.flags
    _, bits, place, integers, amounts, floats, float_amounts = rules.deltas
    count_rule, most = rules.counts
    reach_rule, function, floating, source, high, low, least, ticks, offset, values, valid = rules.reaches
    _, first, first_float, amount, float_amount, limit, sums = rules.window
    words, state, limbs = sums
    for j in range(len(first)):
        first[j], amount[j] = integers[j, begin], amounts[j, min(begin, amounts.shape[1] - 1)]
    for j in range(len(first_float)):
        first_float[j] = floats[j, begin]
        float_amount[j] = float_amounts[j, min(begin, float_amounts.shape[1] - 1)]
    for c in range(len(limit)):
        limit[c] = most[c, min(begin, most.shape[1] - 1)]
    if len(reach_rule):
        begin_sums(words, state, limbs, begin)
    for i in range(begin, stop):
        if i > begin and (
            before[i] >= 0 or _has_risen(bits, place, integers, first, amount, floats, first_float, float_amount, i)
        ):
            return i, BEFORE
        ends = after[i] >= 0
        for c in range(len(count_rule)):
            ends |= i + 1 - begin >= limit[c]
        for r in range(len(reach_rule)):
            if valid[r, i]:
                see(words, state, r, function[r], floating[r], ticks, values, source[r], offset[r], i)
            ends |= is_reached(
                words, state, r, function[r], floating[r], high[r], low[r], least[r], offset[r],
                values, source[r], limbs, rules.scratch, i,
            )  # fmt: skip
        if ends:
            return i + 1, AFTER
    return stop, NEVER


@inlined
def _has_risen(
    bits: Ints, place: Ints, integers: Any, first: Any, amount: Any, floats: Any, first_float: Any, float_amount: Any,
    row: int,
) -> bool:  # fmt: skip
    """Return whether a row rises above the first one of the window by more than an amount of it."""
    risen = False
    for d in range(len(bits)):
        j = place[d]
        if bits[d] == 0:
            risen |= rises(integers[j, row], first[j], amount[j])
        elif bits[d] == 32:
            risen |= rises(np.float32(floats[j, row]), np.float32(first_float[j]), np.float32(float_amount[j]))
        else:
            risen |= rises(floats[j, row], first_float[j], float_amount[j])
    return risen
