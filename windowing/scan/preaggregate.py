"""Map-side partial aggregation: rows of one key and cell are combined in the map task, before the exchange.

A cell is the set of rows that are in the same panes of a window on a grid. Rows are combined only where no aggregate
depends on which of them came first. The scan treats combined rows as rows, with a plan whose aggregates do their final
step; row accounting counts what each row stands for. Which rows were combined changes no bit of any result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates import in_two_phases, is_mergeable, split
from ..columns.arrays import Ints
from ..kinds.tumbling.boundaries import change_starts, ranges
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, take_rows


def can_preaggregate(plan: Plan, schema: pa.Schema) -> bool:
    """Whether rows of an input with this schema may be combined.

    They may for windows that the clock ends, and for ``timeInterval`` over rows ordered by event time, with aggregates
    that have a partial and a final step, look at no rows before, and without groups.
    """
    options = plan.options
    if plan.emits_rows or plan.lag_columns:
        return False
    if options.group_by or not all(is_mergeable(bound, schema) for bound in plan.aggregates):
        return False
    return plan.kind.has_cells(plan.context)


def preaggregated_plan(plan: Plan) -> Plan:
    """Return the plan that scans combined rows."""
    prefix = "__of"
    while any(name.startswith(prefix) for name in plan.columns):
        prefix = f"_{prefix}"
    aggregates = tuple(in_two_phases(bound, f"{prefix}_{i}") for i, bound in enumerate(plan.aggregates))
    return replace(plan, aggregates=aggregates, weight=f"{prefix}_rows")


def preaggregate(plan: Plan, scan_plan: Plan, sequences: Sequences) -> Sequences:
    """Combine rows that were read for ``plan`` into rows of ``scan_plan``, its `preaggregated_plan`.

    A combined row takes the place in the order of the first of its rows.
    """
    starts = cell_boundaries(plan, sequences)
    cells = ranges(starts, np.append(starts[1:], len(sequences)) if len(starts) else starts)
    first = [name for name in scan_plan.values if name in sequences.rows.schema.names]
    rows = take_rows(sequences.rows.select(first), starts)
    columns = dict(zip(first, rows.columns, strict=True))
    for bound, final in zip(plan.aggregates, scan_plan.aggregates, strict=True):
        columns |= zip(final.columns, split(bound, sequences.rows, cells), strict=True)
    columns[str(scan_plan.weight)] = pa.array(cells.hi - cells.lo)
    names = list(scan_plan.values)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    return replace(sequences, bounds=np.searchsorted(starts, sequences.bounds), rows=batch, pos=sequences.pos[starts])


def cell_boundaries(plan: Plan, sequences: Sequences) -> Ints:
    """Return the rows that are in other panes than the row before them of their key: int64, ascending."""
    return change_starts(sequences.bounds, plan.kind.cells(sequences, plan.context))
