"""The global pass: one ordered pass over a few columns of all keys, in one task, for what couples keys.

Its decisions are broadcast to all tasks that read or scan, so that everything else stays keyed and parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa

from ...clock.watermark import Watermarks, after
from ...columns.arrays import ClockValue, Ints
from ...kinds.eviction.evictions import Evictions
from ...kinds.signals import window_marks
from ...planning.plan import Plan, panes_only
from ...ports import Executor
from ...scan.lag_rows import with_lag_columns
from ...scan.lateness import assess, is_ordered_by_time, is_read_in_order, no_watermarks
from ...scan.restore import restore_rows
from ...sequences.marks import all_in_order, no_marks
from ...sequences.merge import merge
from ...sequences.sequence import one_batch, order_of
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .map_side import chunk_reading
from .read_chunk import no_rows, no_sequences, read_columns, read_rows, sequences_of
from .state_blocks import load_window_state


@dataclass(frozen=True, slots=True)
class GlobalDecisions:
    """What the global pass decides for all keys together.

    ``late``: int64, ascending, the arrival positions of rows too late for any pane; None: not event time.
    ``watermarks``: all watermark advances; None: not event time.
    ``evictions``: partition evictions; None: none in the spec.
    ``watermark``: the watermark after all rows, as a reading; None: no row yet, or not event time.
    """

    late: Ints | None = None
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None
    watermark: ClockValue | None = None


def run_global_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor
) -> tuple[TaskContext, Sequence[Chunk]]:
    """Decide what couples keys; return the context and the chunks that carry the decisions."""
    plan = work.plan
    if _needs_order(plan):
        (decisions,) = executor.map("ordered pass", partial(_decide, work), [chunks])
        return replace(work, decisions=executor.broadcast(decisions), watermark=decisions.watermark), chunks
    if plan.kind.has_watermark and not is_ordered_by_time(plan):
        watermark = None if work.restore_point is None else work.restore_point.watermark
        highest_readings = executor.map("watermark", partial(chunk_reading, work), chunks)
        readings: list[ClockValue | None] = [*accumulate([watermark, *highest_readings], after)]
        with_watermarks = [replace(chunk, announced=reading) for chunk, reading in zip(chunks, readings, strict=False)]
        return replace(work, watermark=readings[-1]), with_watermarks
    return work, chunks


def _needs_order(plan: Plan) -> bool:
    """Whether a window couples its keys, so that rows must be read in order by one task."""
    if plan.kind.has_watermark:
        return not is_read_in_order(plan) and not is_ordered_by_time(plan)
    return plan.kind.eviction is not None


def _decide(work: TaskContext, chunks: Sequence[Chunk]) -> GlobalDecisions:
    """Read the rows of all chunks in their total order and decide."""
    plan = work.plan
    if plan.kind.eviction is not None:
        needed = plan if plan.lag_columns else panes_only(plan)  # any column with lag may reject rows
        return GlobalDecisions(evictions=_evictions(replace(work, plan=needed), chunks))
    watermark = None if work.restore_point is None else work.restore_point.watermark
    reads = [read_columns(work, chunk, [*plan.sort, str(plan.options.event_time)]) for chunk in chunks]
    if not reads:
        return GlobalDecisions(np.empty(0, np.int64), no_watermarks(no_rows(work), plan.sort), watermark=watermark)
    rows = one_batch(pa.Table.from_batches([rows for rows, _ in reads]))
    pos = np.concatenate([pos for _, pos in reads])
    if plan.sort:
        ascending = order_of([rows.column(name) for name in plan.sort])
        rows, pos = rows.take(pa.array(ascending)), pos[ascending]
    lateness = assess(plan, watermark, rows, pos)
    return GlobalDecisions(np.sort(pos[lateness.late]), lateness.watermarks, watermark=lateness.watermark)


def _evictions(work: TaskContext, chunks: Sequence[Chunk]) -> Evictions:
    """Return the evictions over restored rows and the rows of all chunks."""
    reads = [read_rows(work, chunk) for chunk in chunks]
    sequences_by_chunk = [sequences_of(work, read.rows, read.pos, read.reasons) for read in reads]
    marks = all_in_order([read.marks for read in reads]) if reads else no_marks(no_rows(work), work.plan.sort)
    state, since = load_window_state(work), None if work.restore_point is None else work.restore_point.clock
    new = with_lag_columns(work.plan, merge([no_sequences(work), *sequences_by_chunk]), state).sequences
    sequences, restored, _ = restore_rows(work.plan, state, new, window_marks(marks), None, since)
    context = replace(work.plan.context, clock=since, since=since, restored=restored)
    return work.plan.kind.evictions(sequences, marks, context)
