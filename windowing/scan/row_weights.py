"""How many rows of the input the rows of a scan stand for: each for itself, unless the map side has combined them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.arrays import Ints, Mask, combined
from ..panes.membership import Membership, Ranges, shown
from ..planning.plan import Plan
from ..sequences.sequence import Sequences


@dataclass(frozen=True, slots=True)
class RowWeights:
    """``rows``: how many rows there are. ``each``: int64 (n,), what each stands for; None: itself."""

    rows: int
    each: Ints | None

    @property
    def total(self) -> int:
        """What all of them stand for."""
        return self.rows if self.each is None else int(self.each.sum())

    def of(self, some: Mask) -> int:
        """Return what some of them stand for."""
        return int(np.count_nonzero(some) if self.each is None else self.each[some].sum())

    def shown(self, contents: Membership) -> int:
        """Return what those stand for that some pane shows."""
        if isinstance(contents, Ranges) and contents.disjoint and self.each is None:
            return int((contents.hi - contents.lo).sum())
        return self.of(shown(contents, self.rows))


def row_weights(plan: Plan, sequences: Sequences) -> RowWeights:
    """Return what each row of some sequences stands for."""
    each = None if plan.weight is None else combined(sequences.rows.column(plan.weight)).to_numpy()
    return RowWeights(len(sequences), each)
