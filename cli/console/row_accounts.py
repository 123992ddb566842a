"""The account of rows, of one unit and of many: every row that comes in is found again, over all runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class RowAccount:
    """``rows_in + carried = windowed + filtered + rejected + dropped_at_end + held`` of one stage.

    ``carried``: rows that the unit before held; ``held``: those that wait for the next. ``joined``: whether each of
    several units carried what the one before it held.
    """

    rows_in: int
    carried: int
    windowed: int
    filtered: int
    rejected: Mapping[str, int]
    dropped_at_end: int
    held: int
    joined: bool = True

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for."""
        out = self.windowed + self.filtered + sum(self.rejected.values()) + self.dropped_at_end + self.held
        return self.joined and self.rows_in + self.carried == out


def account_of(counts: Mapping[str, Any]) -> RowAccount:
    """Read the counts of a record or a manifest; results of wincli 0.2 and before carry nothing."""
    return RowAccount(
        counts["rows_in"],
        counts.get("carried", 0),
        counts["windowed"],
        counts["filtered"],
        counts["rejected"],
        counts["dropped_at_end"],
        counts["held"],
    )


def sum_rejected(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Sum rejected rows by reason."""
    return {
        reason: sum(each.get(reason, 0) for each in counts) for reason in sorted({key for c in counts for key in c})
    }


def sum_consecutive(accounts: Sequence[RowAccount]) -> RowAccount:
    """Sum the accounts of units that follow each other on one state, at least one: what passes between them cancels."""
    return RowAccount(
        sum(each.rows_in for each in accounts),
        accounts[0].carried,
        sum(each.windowed for each in accounts),
        sum(each.filtered for each in accounts),
        sum_rejected([each.rejected for each in accounts]),
        sum(each.dropped_at_end for each in accounts),
        accounts[-1].held,
        all(one.held == other.carried for one, other in pairwise(accounts)),
    )


def sum_independent(accounts: Sequence[RowAccount]) -> RowAccount:
    """Sum the accounts of units that know nothing of each other."""
    return RowAccount(
        sum(each.rows_in for each in accounts),
        sum(each.carried for each in accounts),
        sum(each.windowed for each in accounts),
        sum(each.filtered for each in accounts),
        sum_rejected([each.rejected for each in accounts]),
        sum(each.dropped_at_end for each in accounts),
        sum(each.held for each in accounts),
    )
