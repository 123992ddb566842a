"""Presorted inputs: their chunks are the slices, and no row is moved.

On one machine each chunk is read once (`single_pass`); on a cluster twice, first only the columns that the window
depends on (`two_pass`). This module has what both share.
"""

from __future__ import annotations

import pyarrow as pa

from ...columns.arrays import combined
from ...columns.sort_keys import sorts_before
from ...ports import Executor
from ...sequences.sequence import Sequences, one_batch, order_of
from ..exchange.range_cuts import PLACE, Samples
from ..tasks.task import TaskContext

KEYED = "the rows have a key"
OUT_OF_ORDER = "the rows are not in order"
"""Why chunks cannot be scanned as they are: with a key, and where the sample or a scan shows it."""


def obstacle_of(work: TaskContext, samples: Samples, executor: Executor, may_cut_keys: bool) -> str | None:
    """Return why chunks cannot be scanned as they are, in words; None where the sampled rows are in order.

    ``may_cut_keys``: whether the window can be scanned in segments.
    """
    plan = work.plan
    if plan.key:
        return KEYED
    if not may_cut_keys:
        return "the window cannot be scanned in segments"
    if plan.takes_marks or plan.kind.overlaps:
        return "windows end at marks" if plan.takes_marks else "windows may show rows of several chunks"
    if not _is_ascending(work, samples):
        return OUT_OF_ORDER
    if not work.source.columnar and not _is_one_machine(executor):
        return "a first pass over rows of this format would read all of it"
    return None


def _is_ascending(work: TaskContext, samples: Samples) -> bool:
    rows = samples.rows
    if not rows.num_rows:
        return False
    ascending = order_of([combined(rows.column(name)) for name in (*work.plan.sort, PLACE)])
    return bool((ascending[1:] > ascending[:-1]).all())


def _is_one_machine(executor: Executor) -> bool:
    with executor.shared_folders() as folders:
        return bool(folders)


def first_and_last(work: TaskContext, rows: Sequences) -> pa.Table:
    """Return the order values of the first row and of the last."""
    return pa.Table.from_batches([rows.rows.select(list(work.plan.sort)).take(pa.array([0, len(rows) - 1]))])


def follows(after: pa.Table, before: pa.Table) -> bool:
    """Whether rows may come after others: both as `first_and_last` returns them."""
    return not sorts_before(one_batch(after.slice(0, 1)), before.slice(1, 1)).any()
