"""The row account in words, of one unit and of many: each row that comes in is counted once, over all runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING

from ...windowing.support.amounts import count_of

if TYPE_CHECKING:  # it loads Arrow, which messages do not need
    from ...windowing.ports import Counts

WORDS = {
    "rows_in": "rows in",
    "carried": "carried in",
    "windowed": "windowed",
    "filtered": "filtered",
    "rejected": "rejected",
    "dropped_at_end": "dropped at the end",
    "held": "held",
}
"""The counts of a row account (`Counts`), by their keys in manifests and records, in words for people."""


def equation(account: Counts) -> str:
    """Return the row account as a line: what came in, and what became of it."""
    came = f"{count_of(account.rows_in, 'row')} in"
    came += f" + {account.carried:,} {WORDS['carried']}" if account.carried else ""
    out = (account.windowed, account.filtered, sum(account.rejected.values()), account.dropped_at_end, account.held)
    became = [f"{count:,} {word}" for count, word in zip(out, list(WORDS.values())[2:], strict=True)]
    return f"{came} = {' + '.join(became)}"


def is_mostly_late(rejected: Mapping[str, int], rows_in: int) -> bool:
    """Whether more than half of the rows that a stage read came late: the clock may have been moved by mistake."""
    return 2 * rejected.get("late", 0) > rows_in


def sum_consecutive(accounts: Sequence[Counts]) -> Counts:
    """Sum accounts of consecutive units on one state, at least one: rows that pass from unit to unit cancel out."""
    return replace(reduce(add, accounts), carried=accounts[0].carried, held=accounts[-1].held)


def are_joined(accounts: Sequence[Counts]) -> bool:
    """Whether each of consecutive units carried as many rows as the unit before it held."""
    return all(one.held == other.carried for one, other in pairwise(accounts))
