"""Partial aggregates as rows: each stands for some rows of one window, and the second phase of aggregates reads it.

Map tasks combine rows before an exchange (`windowing.scan.preaggregate`), and segments combine those of the window that
is open at their end (`windowing.segments.open_windows`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates import PaneFailed, in_two_phases, is_mergeable, split
from ..columns.arrays import combined
from ..errors import DataError
from ..panes.membership import Ranges
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, group_codes, take_rows
from .groups import grouped
from .key_text import key_text


def can_combine(plan: Plan, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether rows of one window of an input with this schema can be combined: each aggregate has two phases.

    ``are_neighbours``: whether rows are combined that follow one another, and are merged in their order.
    """
    if plan.emits_rows or plan.weight is not None:
        return False
    return all(is_mergeable(bound, schema, are_neighbours) for bound in plan.aggregates)


def calls_over_all_rows(plan: Plan, schema: pa.Schema) -> tuple[str, ...]:
    """Return what needs all rows of a window at once, as users wrote it; none where its rows can be combined."""
    if plan.emits_rows:
        return (f"--emit {plan.options.emit}" if plan.options.operator is None else "the operator",)
    return tuple(bound.text for bound in plan.aggregates if not is_mergeable(bound, schema, are_neighbours=True))


def merging_plan(plan: Plan) -> Plan:
    """Return the plan that scans combined rows: its aggregates take their second phase."""
    prefix = "__of"
    while any(name.startswith(prefix) for name in plan.columns):
        prefix = f"_{prefix}"
    aggregates = tuple(in_two_phases(bound, f"{prefix}_{i}") for i, bound in enumerate(plan.aggregates))
    return replace(plan, aggregates=aggregates, weight=f"{prefix}_rows")


def combine(plan: Plan, merging: Plan, rows: pa.RecordBatch, cells: Ranges) -> pa.RecordBatch:
    """Combine the rows of each cell, all of one window, into a row of ``merging``, the `merging_plan`.

    A combined row has the other values of the first row of its cell. ``cells``: disjoint, none of them empty.
    """
    begins = cells.lo if cells.row is None else cells.row[cells.lo]
    first = [name for name in merging.values if name in rows.schema.names]
    columns = dict(zip(first, take_rows(rows.select(first), begins).columns, strict=True))
    for bound, final in zip(plan.aggregates, merging.aggregates, strict=True):
        columns |= zip(final.columns, split(bound, rows, cells), strict=True)
    columns[str(merging.weight)] = pa.array(np.asarray(cells.hi - cells.lo))
    names = list(merging.values)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def combine_window(plan: Plan, sequences: Sequences, first: int, stop: int, window: int) -> pa.RecordBatch:
    """Combine the rows ``[first, stop)``, all of one window, into one row for each group; none where there are none.

    ``sequences``: one sequence. ``window``: the number of the window, for messages. Raises `DataError` where a user
    function fails.
    """
    rows = sequences.rows
    lo, hi = (np.array([edge] if first < stop else [], np.int64) for edge in (first, stop))
    cells = Ranges(lo, hi, lo, True)
    if plan.options.group_by and first < stop:
        codes, _ = group_codes([combined(rows.column(name)) for name in plan.options.group_by])
        of_groups = grouped(cells, codes.astype(np.int64), touched=False).membership
        assert isinstance(of_groups, Ranges)
        cells = of_groups
    try:
        return combine(plan, merging_plan(plan), rows, cells)
    except PaneFailed as failed:
        where = f"window {window}{key_text(sequences, 0)}"
        raise DataError(f"{failed.call} failed in {where}: {failed.reason}") from failed
