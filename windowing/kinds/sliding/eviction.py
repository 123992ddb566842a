"""What partition eviction knows of sliding windows: when rows leave them, and which ticks find a key."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from ...clock.interval_grid import clock_values, time_grid
from ...columns.arrays import Ints, combined
from ...language.spec import Sliding
from ...rows.marks import Marks
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..eviction.events import Events, tick_events
from ..eviction.evictions import NO_PLACES, Evictions, WindowFacts, evictions
from ..eviction.kernels import Windows
from .evict import evict_of
from .panes import evicted_at, lost_at
from .triggers import trigger_of


def sliding_evictions(spec: Sliding, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
    """Return all partition evictions of a sliding window."""
    assert spec.eviction is not None
    counts_rows, empties = spec.eviction.kind == "tupleCount", evict_of(spec.evict).needs_clock

    def facts(order: Ints) -> WindowFacts:
        leaves = _evicted_places(spec, sequences, order) if counts_rows or empties else NO_PLACES
        lost = partial(lost_at, spec, sequences, context) if empties else None
        return WindowFacts(
            Windows(False, NO_PLACES, False, leaves, empties), _ticks(spec, sequences, context), False, lost
        )

    return evictions(spec.eviction, facts, sequences, marks, context.restored)


def _evicted_places(spec: Sliding, sequences: Sequences, order: Ints) -> Ints:
    """Return for each row the place in the total order at which it leaves its window, n where it never does."""
    n = len(sequences)
    leaves = np.empty(n, np.int64)
    if evict_of(spec.evict).needs_clock:  # one clock for all keys: any row of any key may evict it
        rows = sequences.rows.select(list(sequences.order)).take(pa.array(order))
        leaves[order] = evicted_at(spec, replace(sequences, bounds=np.array([0, n]), rows=rows))
        return leaves
    leaves[order] = np.arange(n)
    return np.append(leaves, n)[evicted_at(spec, sequences)]


def _ticks(spec: Sliding, sequences: Sequences, context: WindowContext) -> Events | None:
    """Return the ticks that trigger."""
    period = trigger_of(spec.trigger).period
    if period is None:
        return None
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    grid = time_grid(column.type, period, context.origin)
    return tick_events(clock_values(column, name), grid, sequences, context.clock)
