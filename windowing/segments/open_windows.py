"""What travels of a tumbling window that is open at the end of a segment: partial aggregates, where these merge.

A window that goes through many segments may have more rows than fit into memory. So each segment combines its rows of
the window into one, or one for each group, and the segment in which the window comes out merges these. Where the window
ends says one of its rows (its first, or its last) and what its policy keeps; the bounds of its pane are its first and
its last row. Aggregates that need all rows make the rows travel (docs/decisions/061).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from ..emit.partial_rows import can_combine, combine_window, merging_plan
from ..panes.continued import ContinuedWindow
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, concatenate, take_rows
from .segment_scan import EarlierRows, open_before


@dataclass(frozen=True, slots=True)
class WindowPart:
    """The rows of an open window in one segment.

    ``edges``: the first of them and the last; none where there are none.
    ``edges_pos``: int64, their arrival positions.
    ``partials``: their partial aggregates, with their number as weights.
    """

    edges: pa.RecordBatch
    edges_pos: Ints
    partials: pa.RecordBatch


def sends_partials(plan: Plan, schema: pa.Schema) -> bool:
    """Whether open windows of an input with this schema travel as partial aggregates; else as rows."""
    return not plan.kind.overlaps and can_combine(plan, schema, are_neighbours=True)


def window_part(plan: Plan, rows: Sequences, window: int) -> WindowPart:
    """Combine the rows of an open window; ``rows``: those of one segment, there may be none.

    ``window``: its number. Raises `DataError` where a user function fails.
    """
    size = len(rows)
    ends = np.array([0, size - 1] if size else [], np.int64)
    return WindowPart(take_rows(rows.rows, ends), rows.pos[ends], combine_window(plan, rows, 0, size, window))


def continued_before(plan: Plan, parts: Sequence[WindowPart], value: Any, segment: Sequences) -> EarlierRows:
    """Return the window that is open where a segment begins. ``value``: as in `ContinuedWindow`."""
    filled = [part for part in parts if len(part.edges_pos)]
    if not filled:
        return open_before([], segment)
    first, last = filled[0], filled[-1]
    edges = concatenate([pa.Table.from_batches([first.edges.slice(0, 1), last.edges.slice(1, 1)])])
    at = 0 if plan.kind.first_row_decides else 1
    pos = (first.edges_pos[:1], last.edges_pos[1:])[at]
    standing = replace(segment, bounds=np.array([0, 1]), rows=edges.slice(at, 1), pos=pos)
    partials = concatenate([pa.Table.from_batches([part.partials]) for part in filled])
    rows = int(combined(partials.column(str(merging_plan(plan).weight))).to_numpy().sum())
    continued = ContinuedWindow(rows, edges, partials, value)
    return EarlierRows(standing, np.zeros(1, np.int64), np.zeros(1, np.bool_), continued=continued)
