"""Rows that go as one: those of a key that are in the same panes, of a window on a grid, where no aggregate asks which
of them came first.

Each task combines what it has read before anything is sent on. What arrives is scanned as rows are, by a plan whose
aggregates are in their second step; the account goes by what each row stands for. Whether rows were combined, and which
of them together, changes no bit of any result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates import in_two_phases, is_mergeable, split
from ..clock.interval_grid import make_intervals
from ..clock.values import clock_values
from ..columns.arrays import Ints, combined
from ..kinds.tumbling.boundaries import change_starts, ranges
from ..kinds.tumbling.clock_windows import clock_grid
from ..language.spec import Calendar, Time, TimeInterval, Tumbling
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, take_rows
from .scan import context_of


def can_preaggregate(plan: Plan, schema: pa.Schema) -> bool:
    """Whether rows of an input of this schema may go as one.

    They may for ``time``, ``calendar`` and for ``timeInterval`` over rows in order of their event time, with aggregates
    that can be taken in two steps, and without groups.
    """
    options, spec = plan.options, plan.spec
    if plan.emits_rows or options.group_by or not all(is_mergeable(bound, schema) for bound in plan.aggregates):
        return False
    if isinstance(spec, Tumbling):
        return isinstance(spec.policy, Time | Calendar) and spec.eviction is None
    return isinstance(spec, TimeInterval) and bool(plan.order.columns)


def preaggregated_plan(plan: Plan) -> Plan:
    """Return the plan of the scan of combined rows."""
    prefix = "__of"
    while any(name.startswith(prefix) for name in plan.columns):
        prefix = f"_{prefix}"
    aggregates = tuple(in_two_phases(bound, f"{prefix}_{i}") for i, bound in enumerate(plan.aggregates))
    return replace(plan, aggregates=aggregates, weight=f"{prefix}_rows")


def preaggregate(plan: Plan, then: Plan, sequences: Sequences) -> Sequences:
    """Combine rows, read for ``plan``, into those that ``then``, its `preaggregated_plan`, is over.

    The first of the rows that go together lends its place in the order.
    """
    starts = cell_boundaries(plan, sequences)
    cells = ranges(starts, np.append(starts[1:], len(sequences)) if len(starts) else starts)
    first = [name for name in then.values if name in sequences.rows.schema.names]
    rows = take_rows(sequences.rows.select(first), starts)
    columns = dict(zip(first, rows.columns, strict=True))
    for bound, second in zip(plan.aggregates, then.aggregates, strict=True):
        columns |= zip(second.columns, split(bound, sequences.rows, cells), strict=True)
    columns[str(then.weight)] = pa.array(cells.hi - cells.lo)
    names = list(then.values)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    return replace(sequences, bounds=np.searchsorted(starts, sequences.bounds), rows=batch, pos=sequences.pos[starts])


def cell_boundaries(plan: Plan, sequences: Sequences) -> Ints:
    """Return the rows that are in other panes than the row before them of their key: int64, ascending."""
    if isinstance(plan.spec, Tumbling):
        assert isinstance(plan.spec.policy, Time | Calendar)
        values, grid = clock_grid(plan.spec.policy, sequences, context_of(plan))
        return change_starts(sequences.bounds, grid.cells(values))
    assert isinstance(plan.spec, TimeInterval)
    name = str(plan.options.event_time)
    column = combined(sequences.rows.column(name))
    return change_starts(
        sequences.bounds, make_intervals(column.type, plan.spec).grid.cells(clock_values(column, name))
    )
