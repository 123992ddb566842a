"""When rows enter and leave a window, as each kind says.

`windowing.emit.operator_timetable` makes calls of operators of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.arrays import Ints, Mask
from ..rows.membership import Ranges, edge_rows
from ..rows.panes import Panes

NEVER = -1


@dataclass(frozen=True, slots=True)
class RowSteps:
    """When the n rows enter and leave, and the place of the P panes between them.

    Where rows enter one by one, a pane has a *place* among the rows of its key: rows before it have done their steps.

    ``place``: int64 (P,), the place of each pane.
    ``stepping``: bool (n,), the rows with a step of their own, at which they enter.
    ``driven``: int64 (n,), the row at whose step each leaves; n or `NEVER` where none does.
    ``entering``: int64 (n,), the pane at which each enters; `NEVER` where none does.
    ``leaving``: int64 (n,), the pane after which each leaves; `NEVER` where none does.
    ``drops_unseen``: whether rows that a pane no longer shows have left by then.
    ``outdated``: int64 (n,), the pane before which each leaves; `NEVER` where none does; None: no row does.
    """

    place: Ints
    stepping: Mask
    driven: Ints
    entering: Ints
    leaving: Ints
    drops_unseen: bool = False
    outdated: Ints | None = None


def steps_of_rows(place: Ints, rows: int) -> RowSteps:
    """Return steps at which all rows enter one by one and none leaves."""
    never = np.full(rows, NEVER)
    return RowSteps(place, np.ones(rows, np.bool_), never, never, never)


def after_rows(panes: Panes) -> Ints:
    """Return the place right after the newest row of each pane: a window that is not empty holds the newest row."""
    if isinstance(panes.membership, Ranges) and panes.membership.row is None:
        return panes.membership.hi
    return edge_rows(panes.membership)[1] + 1
