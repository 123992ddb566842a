"""What a ``delta`` window makes of a piece of a sequence, whatever start value it is entered with.

The first row that rises above a start value by more than the amount is a record high of the piece. Once a window starts
at a row, all that follow are decided. So each record begins a chain of window starts to the end of the piece, and which
chain is taken is all that a start value decides. Chains merge, and those that end alike are one branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windowing.columns import Ints, Measures
from windowing.jit import kernel
from windowing.sliding_kernels import driven_out, rises

MOST_BRANCHES = 1 << 12
"""A driver takes so many of each piece; where there are more, those for the largest start values are left out."""


@dataclass(frozen=True, slots=True)
class End:
    """How a chain ends. ``starts``: how many windows start in the piece; ``last``: at which row the last one does, and
    its ``value``; -1 and of any value where none does."""

    starts: int
    last: int
    value: Any


@dataclass(frozen=True, slots=True)
class Chains:
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
    fresh: End
    whole: bool


def chains(values: Measures, amount: Any, sorted_by: bool) -> Chains:
    """Return the chains of a piece that is not empty, of which `MOST_BRANCHES` are told.

    ``sorted_by``: whether rows are sorted by these values first of all, so that no start value above that of the first
    row can come in; what only such a one would take is left out then.

    ``values``, ``amount``: as `windowing.sliding_kernels.comparable` and `windowing.distance.measured` give them, no
    NaN among them.
    """
    if sorted_by:
        last, starts = _rising_ends(values, amount)
    else:
        last, starts = _ends(driven_out(np.array([0, len(values)]), values, amount))
    branches, whole = _branches(values, last, starts, amount, sorted_by, MOST_BRANCHES)
    fresh = End(int(starts[0]), int(last[0]), values[last[0]])
    ends = last[branches]
    return Chains(amount, values[branches], starts[branches], ends, values[ends], fresh, bool(whole))


def end_of(chains: Chains, value: Any) -> End | None:
    """Return how the chain ends that ``value`` takes; None where that was left out."""
    taken = _first_risen(chains.limit, value, chains.amount)
    if taken == len(chains.limit):
        return End(0, -1, value) if chains.whole else None
    return End(int(chains.starts[taken]), int(chains.last[taken]), chains.value[taken])


def follow(values: Measures, value: Any, amount: Any) -> End:
    """Return how the chain of a start value ends, without any branches: row by row."""
    starts, last = _followed(values, value, amount)
    return End(int(starts), int(last), values[last] if last >= 0 else value)


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
def _rising_ends(values: Measures, amount: Any) -> tuple[Ints, Ints]:
    """As `_ends`, where values never fall: the row that rises above a row comes no later than that of the next row."""
    n = len(values)
    last = np.empty(n, np.int64)
    starts = np.empty(n, np.int64)
    following = n
    for i in range(n - 1, -1, -1):
        while following - 1 > i and rises(values[following - 1], values[i], amount):
            following -= 1
        if following < n:
            last[i] = last[following]
            starts[i] = starts[following] + 1
        else:
            last[i] = i
            starts[i] = 1
    return last, starts


@kernel
def _branches(values: Measures, last: Ints, starts: Ints, amount: Any, sorted_by: bool, most: int) -> tuple[Ints, bool]:
    """The records of which each is the last of those that end alike, the first ``most``; and whether these are all.

    With ``sorted_by`` the last is the first that rises above the first row.
    """
    out = np.empty(min(most, len(values)), np.int64)
    count, newest = 0, 0
    for i in range(1, len(values)):
        if not values[i] > values[newest]:
            continue
        if last[i] != last[newest] or starts[i] != starts[newest]:
            if count == most:
                return out, False
            out[count] = newest
            count += 1
        newest = i
        if sorted_by and rises(values[i], values[0], amount):
            break
    if count == most:
        return out, False
    out[count] = newest
    return out[: count + 1], True


@kernel
def _first_risen(limits: Measures, value: Any, amount: Any) -> int:
    """The first of ascending limits that rises above a value; how many there are, where none does."""
    low, high = 0, len(limits)
    while low < high:
        middle = (low + high) // 2
        if rises(limits[middle], value, amount):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _followed(values: Measures, value: Any, amount: Any) -> tuple[int, int]:
    starts, last = 0, -1
    for i in range(len(values)):
        if rises(values[i], value, amount):
            starts += 1
            last = i
            value = values[i]
    return starts, last
