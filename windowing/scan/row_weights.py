"""Row weights: how many rows of the input a row of a scan stands for. It is 1 unless rows have been combined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.arrays import Ints, Mask, combined
from ..panes.continued import ContinuedWindow
from ..panes.membership import Membership, Ranges, shown
from ..planning.plan import Plan
from ..sequences.sequence import Sequences


@dataclass(frozen=True, slots=True)
class RowWeights:
    """The weights of the rows of a scan.

    ``rows``: number of rows.
    ``each``: int64 (n,), how many rows of the input each stands for; None: each for itself.
    """

    rows: int
    each: Ints | None

    @property
    def total(self) -> int:
        """Number of rows of the input that all rows stand for."""
        return self.rows if self.each is None else int(self.each.sum())

    def of(self, some: Mask) -> int:
        """Return how many rows of the input some rows stand for. ``some``: bool (n,)."""
        return int(np.count_nonzero(some) if self.each is None else self.each[some].sum())

    def shown(self, membership: Membership) -> int:
        """Return how many rows of the input those rows stand for that at least one pane shows."""
        if isinstance(membership, Ranges) and membership.disjoint and self.each is None:
            return int((membership.hi - membership.lo).sum())
        return self.of(shown(membership, self.rows))


def row_weights(plan: Plan, sequences: Sequences, continued: ContinuedWindow | None = None) -> RowWeights:
    """Return the weights of the rows of some sequences. ``continued``: what the first row stands for, if for others."""
    each = None if plan.weight is None else combined(sequences.rows.column(plan.weight)).to_numpy()
    if continued is not None:
        each = np.ones(len(sequences), np.int64)
        each[0] = continued.rows
    return RowWeights(len(sequences), each)
