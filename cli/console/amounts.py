"""Counts and values as messages write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it loads Arrow, which messages do not need
    from ...windowing.ports import Counts

_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def count_of(count: int, thing: str) -> str:
    """Return a count and its noun: ``1 row``, ``1,234 rows``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def size(nbytes: int) -> str:
    """Return a number of bytes in words: ``812 bytes``, ``1.4 GiB``."""
    unit, name = next(((unit, name) for unit, name in _SIZES if nbytes >= unit), (1, ""))
    return f"{nbytes / unit:.1f} {name}" if name else count_of(nbytes, "byte")


def reason_counts(rejected: Mapping[str, int]) -> str:
    """Return counts by reason, sorted: ``late 3, null_key 1``."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def span(seconds: float) -> str:
    """Return a time in two units at most: ``40 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


# Row accounting, of one unit and of many: every row that comes in is counted once, over all runs together.


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
