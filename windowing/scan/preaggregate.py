"""Map-side partial aggregation: rows of one key and cell are combined in the map task, before the exchange.

A cell is the set of rows that are in the same panes of a window on a grid. Where rows may be late, those of a cell are
combined that have the same watermark behind them, for an event-time pane comes out again with late rows. Rows are
combined only where no aggregate depends on which of them came first. The scan treats combined rows as rows, with a plan
whose aggregates do their final step; row accounting counts what each row stands for. Which rows were combined changes
no bit of any result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..emit.partial_rows import can_combine, combine
from ..kinds.tumbling.boundaries import change_starts, ranges
from ..planning.plan import Plan
from ..sequences.marks import Marks, epochs
from ..sequences.sequence import Sequences
from .lateness import is_ordered_by_time, is_read_in_order


def can_preaggregate(plan: Plan, schema: pa.Schema) -> bool:
    """Whether rows of an input with this schema may be combined.

    They may for windows that the clock ends, and for ``timeInterval``, with aggregates that have a partial and a final
    step, look at no rows before, and without groups. Not where a global pass decides which rows are late.
    """
    if plan.lag_columns or plan.options.group_by:
        return False
    if plan.kind.has_watermark and not (is_ordered_by_time(plan) or is_read_in_order(plan)):
        return False
    return can_combine(plan, schema, are_neighbours=False) and plan.kind.has_cells(plan.context)


def preaggregate(plan: Plan, scan_plan: Plan, sequences: Sequences, marks: Marks) -> Sequences:
    """Combine rows that were read for ``plan`` into rows of ``scan_plan``, its `merging_plan`.

    A combined row takes the place in the order of the first of its rows. ``marks``: as in `cell_boundaries`.
    """
    starts = cell_boundaries(plan, sequences, marks)
    cells = ranges(starts, np.append(starts[1:], len(sequences)) if len(starts) else starts)
    rows = combine(plan, scan_plan, sequences.rows, cells)
    return replace(sequences, bounds=np.searchsorted(starts, sequences.bounds), rows=rows, pos=sequences.pos[starts])


def cell_boundaries(plan: Plan, sequences: Sequences, marks: Marks) -> Ints:
    """Return the rows that are in other panes than the row before them of their key: int64, ascending.

    ``marks``: the advances of the watermark among the rows, in order, where there is one. Between two of them all rows
    of a cell are late for the same panes, and come out with the same advances.
    """
    starts = change_starts(sequences.bounds, plan.kind.cells(sequences, plan.context))
    if not plan.kind.has_watermark or is_ordered_by_time(plan):
        return starts
    return np.union1d(starts, change_starts(sequences.bounds, epochs(sequences, marks)))
