"""Rows ahead of their time in the order of a run, one row at a time (section 19).

amount 3          1 2 4 5 6 | 60 61      fewer than ten rows are left behind the jump: 60 and 61 are ahead
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

ENOUGH = 10


def rows_ahead(clocks: Sequence[Fraction | None], amount: Fraction, last: Fraction | None = None) -> list[int]:
    """Return which rows are ahead, in order.

    ``clocks``: of each row; None: it is not in the order of the run. ``last``: of the last row of earlier units.
    """
    in_order = sorted((clock, row) for row, clock in enumerate(clocks) if clock is not None)
    before = last
    for place, (clock, _) in enumerate(in_order):
        left = len(in_order) - place
        if before is not None and clock - before > amount and left < ENOUGH:
            return sorted(row for _, row in in_order[place:])
        before = clock
    return []
