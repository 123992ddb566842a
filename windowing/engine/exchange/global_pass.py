"""What can only be decided over all keys together: one ordered pass over a few columns, in one task.

Its outcome goes to all tasks that read or scan, so that everything else stays keyed and parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.watermark import Watermarks, after
from ...columns.arrays import ClockValue, Ints
from ...kinds.eviction.evictions import Evictions, evictions
from ...language.spec import Sliding, TimeInterval, Tumbling
from ...planning.plan import Plan, panes_only
from ...ports import Broadcast, RunTasks
from ...scan.lateness import assess, is_ordered_by_time, is_read_in_order, no_watermarks
from ...scan.row_validation import add_late
from ...scan.scan import context_of
from ...scan.signals import window_marks
from ...sequences.marks import all_in_order, no_marks
from ...sequences.sequence import merge, one_batch, order_of
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .map_side import chunk_summary
from .read_chunk import late_for_restore_point, no_rows, nothing, read_columns, read_rows, sequences_of
from .state_blocks import load_window_state, restore_rows


@dataclass(frozen=True, slots=True)
class GlobalDecisions:
    """``late``: int64, ascending, the arrival positions of rows late beyond repair, and ``watermarks``: all advances,
    of event-time panes, and where the watermark ``stands`` then; else ``evictions``: of keys."""

    late: Ints | None = None
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None
    watermark: ClockValue | None = None


def run_global_pass(
    work: TaskContext, chunks: Sequence[Chunk], each: RunTasks, share: Callable[[GlobalDecisions], Broadcast]
) -> tuple[TaskContext, Sequence[Chunk]]:
    """Decide first what keys cannot decide apart; return the work and its chunks that know it.

    ``each`` runs a function over items, in tasks or here; ``share`` gives a value to all tasks.
    """
    plan = work.plan
    if _needs_order(plan):
        (verdict,) = each("ordered pass", partial(_decide, work), [chunks])
        return replace(work, decisions=share(verdict), watermark=verdict.stands), chunks
    if isinstance(plan.spec, TimeInterval) and not is_ordered_by_time(plan):
        before = None if work.restore_point is None else work.restore_point.watermark
        told = each("watermark", partial(chunk_summary, work), chunks)
        stands: list[ClockValue | None] = [*accumulate([before, *told], after)]
        known = [replace(chunk, announced=reading) for chunk, reading in zip(chunks, stands, strict=False)]
        return replace(work, watermark=stands[-1]), known
    return work, chunks


def run_locally(_: str, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Run a function over items in this process."""
    return [function(item) for item in items]


def _needs_order(plan: Plan) -> bool:
    """Whether a window couples its keys in a way that rows have to be gone through in order."""
    if isinstance(plan.spec, TimeInterval):
        return not is_read_in_order(plan) and not is_ordered_by_time(plan)
    return isinstance(plan.spec, Tumbling | Sliding) and plan.spec.eviction is not None


def _decide(work: TaskContext, chunks: Sequence[Chunk]) -> GlobalDecisions:
    """Go through the rows of all chunks in their total order."""
    plan = work.plan
    if isinstance(plan.spec, Tumbling | Sliding):
        return GlobalDecisions(evictions=_evictions(replace(work, plan=panes_only(plan)), plan.spec, chunks))
    before = None if work.restore_point is None else work.restore_point.watermark
    reads = [read_columns(work, chunk, [*plan.sort, str(plan.options.event_time)]) for chunk in chunks]
    if not reads:
        return GlobalDecisions(np.empty(0, np.int64), no_watermarks(no_rows(work), plan.sort), watermark=before)
    rows = one_batch(pa.Table.from_batches([rows for rows, _ in reads]))
    pos = np.concatenate([pos for _, pos in reads])
    if plan.sort:
        ascending = order_of([rows.column(name) for name in plan.sort])
        rows, pos = rows.take(pa.array(ascending)), pos[ascending]
    judged = assess(plan, before, rows, pos)
    return GlobalDecisions(np.sort(pos[judged.late]), judged.watermarks, watermark=judged.watermark)


def _evictions(work: TaskContext, spec: Tumbling | Sliding, chunks: Sequence[Chunk]) -> Evictions:
    """Of the rows carried and of all chunks together."""
    reads = [read_rows(work, chunk) for chunk in chunks]
    reads = [replace(read, reasons=add_late(read.reasons, late_for_restore_point(work, read.rows))) for read in reads]
    found = [sequences_of(work, read.rows, read.pos, read.reasons) for read in reads]
    marks = all_in_order([read.marks for read in reads]) if reads else no_marks(no_rows(work), work.plan.sort)
    carry, since = load_window_state(work), None if work.restore_point is None else work.restore_point.clock
    sequences, past, _ = restore_rows(
        work.plan, carry, merge([nothing(work), *found]), window_marks(marks), None, since
    )
    setting = replace(context_of(work.plan), clock=since, since=since, restored=past)
    return evictions(spec, sequences, marks, setting)
