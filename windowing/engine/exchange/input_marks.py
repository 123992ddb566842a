"""Window marks of the input: ends of files, a boolean column, or the marks of the stage before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...columns.conditions import is_true
from ...columns.sort_keys import sort_keys
from ...planning.plan import Plan
from ...ports import Batch
from ...sequences.marks import NO_FILE, Marks, no_marks, with_place
from ..tasks.sizing import Chunk
from ..tasks.task import FILES, NONE, STREAM, TaskContext


def input_marks(work: TaskContext, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch, pos: Ints) -> Marks:
    """Return the marks of a chunk.

    ``batches``: its splits as they were read; ``rows``: their rows, at arrival positions ``pos``, int64 (n,).
    """
    plan = work.plan
    if not plan.takes_marks or work.marks == NONE:
        return no_marks(rows, plan.sort)
    if work.marks == FILES:
        return _file_ends(plan, chunk, batches, rows)
    column = rows.column(work.mark_column)
    after = np.flatnonzero(is_true(column.is_valid() if work.marks == STREAM else column))
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after)) if plan.sort else order
    return with_place(Marks(at, pos[after], np.full(len(after), NO_FILE)), plan.order.columns)


def _file_ends(plan: Plan, chunk: Chunk, batches: Sequence[Batch], rows: pa.RecordBatch) -> Marks:
    """Return for each split a mark at its last row in the total order; the last of these in a file is the file's mark.

    In arrival order that is the last position of the split, row or reject, and a file without rows has a mark, too.
    With order columns a file without an ordered row has no place in the order, and so no mark.
    """
    file = np.array([split.file for split in chunk.splits], np.int64)
    if not plan.sort:
        last = np.array([split.base + split.rows - 1 for split in chunk.splits], np.int64)
        return Marks(no_marks(rows, ()).rows, last, file)
    starts = np.cumsum([0, *(len(batch.pos) for batch in batches)])
    ordered = rows.select(list(plan.sort))
    last_rows = [_last_row(plan, ordered.slice(low, high - low)) for low, high in pairwise(starts)]
    kept = np.array([i for i, row in enumerate(last_rows) if row is not None], np.int64)
    picks = np.array([starts[i] + last_rows[i] for i in kept], np.int64)
    pos = np.concatenate([batch.pos for batch in batches])
    return Marks(ordered.take(pa.array(picks)), pos[picks], file[kept])


def _last_row(plan: Plan, rows: pa.RecordBatch) -> int | None:
    """Return the index of the last row in the total order among rows with an order value, or None."""
    present = np.ones(rows.num_rows, np.bool_)
    for name in plan.order.columns:
        present &= ~rows.column(name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    picks = np.flatnonzero(present)
    if not len(picks):
        return None
    kept = rows.take(pa.array(picks))
    sort_words = [sort_keys(kept.column(name)) for name in plan.sort]
    return int(picks[np.lexsort(sort_words[::-1])[-1]])
