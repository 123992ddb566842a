"""How much memory the largest window may take whose rows cannot be combined: an estimate by the sample of a run.

Where all aggregates of a tumbling window merge, a task holds no more of it than a segment. Else one task holds all of
its rows: this says before the run what that may come to (docs/decisions/061).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.arrays import combined
from ..emit.partial_rows import calls_over_all_rows
from ..sequences.sequence import build, group_codes, one_batch
from .exchange.range_cuts import PLACE
from .strategy import Sample
from .tasks.sizing import row_width
from .tasks.task import TaskContext

_COPIES = 3  # measured: 20 M rows of 32 bytes take 1.8 GiB
_GRANTED = 4  # times the size of a slice: what any task may need


@dataclass(frozen=True, slots=True)
class LargestWindow:
    """The largest window of a run, as far as a sample knows it.

    ``calls``: why one task holds all its rows: the aggregates that need them, in words.
    ``rows``: about how many rows it has, at most.
    ``nbytes``: about how much memory a task needs for them.
    """

    calls: tuple[str, ...]
    rows: int
    nbytes: int


def largest_window(work: TaskContext, sample: Sample) -> LargestWindow | None:
    """Return the largest tumbling window, where one task holds all its rows and needs more memory than for a slice."""
    plan, rows = work.plan, sample.rows
    if sample.is_small or plan.kind.overlaps:
        return None
    calls = calls_over_all_rows(plan, work.source.schema)
    if not calls:
        return None
    if sample.keys.rows.num_rows:
        rows = min(_rows_of_heaviest_key(work, sample), _rows_by_policy(work, sample))
    nbytes = _COPIES * rows * row_width(work.source.schema, work.source.splits, work.columns)
    return LargestWindow(calls, rows, nbytes) if nbytes > _GRANTED * sample.sizes.slice else None


def _rows_of_heaviest_key(work: TaskContext, sample: Sample) -> int:
    if not work.plan.key:
        return sample.rows
    codes, _ = group_codes([combined(sample.keys.rows.column(name)) for name in work.plan.key])
    weights = np.bincount(codes, sample.keys.weights)
    return int(sample.rows * weights.max() / weights.sum())


def _rows_by_policy(work: TaskContext, sample: Sample) -> int:
    """Return how many rows a window has at most where its policy or the order of the sampled rows says it."""
    plan, rows = work.plan, one_batch(sample.keys.rows)
    if PLACE not in rows.schema.names:
        return sample.rows
    sampled = build(rows, combined(rows.column(PLACE)).to_numpy(), plan.key, plan.sort, rows.schema.names)
    most = plan.kind.most_rows(sampled, sample.rows / len(sampled), plan.context)
    return sample.rows if most is None else most
