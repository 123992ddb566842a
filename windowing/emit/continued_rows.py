"""Result rows of panes whose first pane goes on from earlier segments: its partial aggregates are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..panes.membership import Ranges
from ..panes.panes import Panes
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, concatenate
from .aggregate_rows import aggregate_rows
from .partial_rows import combine_window, merging_plan


def continued_rows(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield what `aggregate_rows` yields; ``panes`` have a window that is `Panes.continued`."""
    contents, continued = panes.membership, panes.continued
    assert isinstance(contents, Ranges)
    assert continued is not None
    own = combine_window(plan, sequences, int(contents.lo[0]) + 1, int(contents.hi[0]), int(panes.number[0]))
    rows = concatenate([pa.Table.from_batches([part]) for part in (continued.partials, own)])
    edges = np.array([0, rows.num_rows])
    whole = Ranges(edges[:1], edges[1:], edges[:1], True)
    first = replace(panes.take(np.zeros(1, np.int64)), membership=whole)
    merged = replace(sequences, bounds=edges, rows=rows, pos=np.zeros(rows.num_rows, np.int64))
    yield from aggregate_rows(merging_plan(plan), merged, first, pane_columns.slice(0, 1))
    if len(panes) > 1:
        yield from aggregate_rows(plan, sequences, panes.take(np.arange(1, len(panes))), pane_columns.slice(1))
