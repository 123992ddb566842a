"""How much of a row that lasts is inside a pane that shows it (semantics section 18)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..aggregates.table import BEGINS, UNTIL
from ..columns.arrays import Ints, Measures, combined, measures, scale_of
from ..kinds.lasting import ends_as_clock
from ..planning.pane_columns import OVERLAP, SHARE
from ..planning.plan import Plan
from ..rows.panes import Panes
from ..rows.sequence import Sequences

Instants: TypeAlias = tuple[Measures, Measures]


def instants(plan: Plan, sequences: Sequences) -> Instants:
    """Return from when to when each row lasts, in ticks of the bounds of windows, both (n,)."""
    clock, ends = plan.sort[0], plan.kind.needs.ends
    assert ends is not None
    column = combined(sequences.rows.column(clock))
    until = ends_as_clock(combined(sequences.rows.column(ends)), column.type)
    times = plan.times(column.type)
    return measures(times.to_instants(column, clock)), measures(times.to_instants(until, ends))


def insides(lasts: Instants, counts: Ints, panes: Panes) -> dict[str, pa.Array]:
    """Return the columns that say how much of each row is inside its pane; rows stand pane after pane.

    ``lasts``: `instants` of these rows. ``counts``: how many rows each pane has, int64 (P,).
    """
    assert panes.start is not None
    assert panes.end is not None
    begins, until = lasts
    low, high = (np.repeat(measures(each), counts) for each in (panes.start, panes.end))
    inside, length = (np.maximum(begins, low), np.minimum(until, high)), until - begins
    overlap, per_second = (inside[1] - inside[0]).astype(np.float64), scale_of(panes.start.type).per_second or 1
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(length == 0, 1.0, overlap / length)
    overlap = overlap * per_second.denominator / per_second.numerator
    columns = {OVERLAP: overlap, SHARE: share, BEGINS: inside[0], UNTIL: inside[1]}
    return {name: pa.array(values) for name, values in columns.items()}
