"""What a ``delta`` window makes of a piece of a sequence, whatever start value it is entered with.

The first row that rises above a start value by more than the amount is a record high of the piece. Once a window starts
at a row, all that follow are decided. So each record begins a chain of window starts to the end of the piece, and which
chain is taken is all that a start value decides. Chains merge, and those that end alike are one branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..columns.arrays import Ints, Mask, Measures
from ..kinds.sliding.kernels import evicted_by_delta, rises
from ..support.jit import kernel

MOST_BRANCHES = 1 << 12
"""A driver takes so many of each piece; where there are more, those for the largest start values are left out."""
_NEAR = 4  # rows that are looked at one by one


@dataclass(frozen=True, slots=True)
class Exit:
    """How a chain ends. ``starts``: how many windows start in the piece; ``last``: at which row the last one does, and
    its ``value``; -1 and of any value where none does."""

    starts: int
    last: int
    value: Any


@dataclass(frozen=True, slots=True)
class DeltaTransitions:
    """Branches by the start value that a piece is entered with.

    ``limit``: (B,), ascending: a start value takes the first branch whose limit rises above it by more than ``amount``,
    and no window starts where none does. ``starts``, ``last``: int64 (B,), and ``value``: (B,): see `End`. ``fresh``:
    the chain of the first row. ``whole``: whether no branch was left out at the upper end.
    """

    amount: Any
    limit: Measures
    starts: Ints
    last: Ints
    value: Measures
    fresh: Exit
    is_complete: bool


def delta_transitions(values: Measures, amount: Any, sorted_by: bool) -> DeltaTransitions:
    """Return the chains of a piece that is not empty, of which `MOST_BRANCHES` are told.

    ``sorted_by``: whether rows are sorted by these values first of all, so that no start value above that of the first
    row can come in; what only such a one would take is left out then.

    ``values``, ``amount``: as `windowing.kinds.sliding.kernels.comparable` and
    `windowing.sequences.attribute_distance.measures_and_amount` give them, no NaN among them.
    """
    if sorted_by:
        branches, last, starts = _rising_branches(values, amount)
    else:
        branches, last, starts = _branches(values, *_ends(evicted_by_delta(np.array([0, len(values)]), values, amount)))
    fresh = Exit(int(starts[0]), int(last[0]), values[last[0]])
    told, last, starts = branches[:MOST_BRANCHES], last[:MOST_BRANCHES], starts[:MOST_BRANCHES]
    return DeltaTransitions(amount, values[told], starts, last, values[last], fresh, len(told) == len(branches))


def exit_for(chains: DeltaTransitions, value: Any) -> Exit | None:
    """Return how the chain ends that ``value`` takes; None where that was left out."""
    risen = np.flatnonzero(have_risen(chains.limit, value, chains.amount))
    if not len(risen):
        return Exit(0, -1, value) if chains.is_complete else None
    taken = risen[0]
    return Exit(int(chains.starts[taken]), int(chains.last[taken]), chains.value[taken])


def have_risen(new: Measures, old: Any, amount: Any) -> Mask:
    """Return which values rise above an old one, as `windowing.kinds.sliding.kernels.rises` says, in their shape.

    The driver asks this, while no task runs: to load its first kernel would take it 0.2 s.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # differences that wrap are of values below, as inf - inf is
        return np.asarray((new >= old) & (new - old > amount))


def run_through(values: Measures, value: Any, amount: Any, sorted_by: bool) -> Exit:
    """Return how the chain of a start value ends, None: that of the first row, without any branches.

    ``sorted_by``: whether values never fall, so that most of them need not be looked at.
    """
    if value is None:
        end = run_through(values, values[0], amount, sorted_by)
        return Exit(end.starts + 1, max(end.last, 0), end.value)
    starts, last = (_run_through_rising if sorted_by else _run_through)(values, value, amount)
    return Exit(int(starts), int(last), values[last] if last >= 0 else value)


@kernel
def _ends(following: Ints) -> tuple[Ints, Ints]:
    """Of the chain of each row, the last start and how many there are."""
    n = len(following)
    last = np.arange(n)
    starts = np.ones(n, np.int64)
    for i in range(n - 1, -1, -1):
        if following[i] < n:
            last[i] = last[following[i]]
            starts[i] = starts[following[i]] + 1
    return last, starts


@kernel
def _branches(values: Measures, last: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """The records of which each is the last of those that end alike; and their ends, as `_ends` gives those of rows."""
    out = np.empty(len(values), np.int64)
    count, newest = 0, 0
    for i in range(1, len(values)):
        if values[i] > values[newest]:
            if last[i] != last[newest] or starts[i] != starts[newest]:
                out[count] = newest
                count += 1
            newest = i
    out[count] = newest
    out = out[: count + 1].copy()
    return out, last[out], starts[out]


@kernel
def _rising_branches(values: Measures, amount: Any) -> tuple[Ints, Ints, Ints]:
    """As `_branches`, where values never fall, of the records up to the first that rises above the first row.

    All chains go on start by start, side by side: none of them overtakes another, and those that meet are one from
    there on. So most rows are not looked at, and none for more than one start.
    """
    record = _records(values, amount)
    last, starts = record.copy(), np.empty(len(record), np.int64)
    begun, ended, windows = len(record), len(record), 1  # chains that go on, and from where on those stand that do not
    while begun:
        count, place = 0, last[begun - 1]  # which the row that follows the first one's comes no earlier than
        for chain in range(begun):
            place = _next_risen(values, place, values[last[chain]], amount)
            if place == len(values):
                for done in range(begun - 1, chain - 1, -1):
                    ended -= 1
                    record[ended], last[ended], starts[ended] = record[done], last[done], windows
                break
            if count == 0 or last[count - 1] != place:
                count += 1
            record[count - 1], last[count - 1] = record[chain], place
        begun, windows = count, windows + 1
    return record[ended:], last[ended:], starts[ended:]


@kernel
def _records(values: Measures, amount: Any) -> Ints:
    """Rows that are larger than all before, where values never fall, up to the one that rises above the first."""
    size = min(_next_risen(values, 0, values[0], amount) + 1, len(values))
    out = np.empty(size, np.int64)
    count = 0
    for i in range(size):
        if i == 0 or values[i] > values[i - 1]:
            out[count] = i
            count += 1
    return out[:count].copy()


@kernel
def _next_risen(values: Measures, first: int, value: Any, amount: Any) -> int:
    """The first row from ``first`` on that rises above a value, where values never fall; how many there are, if none.

    It is near as a rule, so it is looked for in steps that grow.
    """
    low, step = first, 1
    while low + step <= len(values) and not rises(values[low + step - 1], value, amount):
        low += step
        if low - first >= _NEAR:
            step *= 2
    return low if step == 1 else _first_risen(values, low, min(low + step, len(values)), value, amount)


@kernel
def _first_risen(values: Measures, low: int, high: int, value: Any, amount: Any) -> int:
    """The first of the ascending values ``[low, high)`` that rises above a value; ``high`` where none does."""
    while low < high:
        middle = (low + high) // 2
        if rises(values[middle], value, amount):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _run_through(values: Measures, value: Any, amount: Any) -> tuple[int, int]:
    starts, last = 0, -1
    for i in range(len(values)):
        if rises(values[i], value, amount):
            starts += 1
            last = i
            value = values[i]
    return starts, last


@kernel
def _run_through_rising(values: Measures, value: Any, amount: Any) -> tuple[int, int]:
    starts, last = 0, -1
    place = _next_risen(values, 0, value, amount)
    while place < len(values):
        starts += 1
        last = place
        place = _next_risen(values, place, values[place], amount)
    return starts, last
