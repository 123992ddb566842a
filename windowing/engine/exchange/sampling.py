"""Samples of a few rows, to choose slice bounds and whether partial aggregation pays. They change no result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ...ports import Executor, Split
from ...scan.preaggregate import can_preaggregate
from ..tasks.task import TaskContext
from .range_cuts import Samples, no_samples
from .read_chunk import rows_per_cell, sample_rows
from .state_blocks import sampled_keys

T = TypeVar("T")
SAMPLED_SPLITS = 16
"""At most so many splits are sampled."""
_SAMPLED_ROWS = 4000  # of a split, at least
_FEW_BYTES = 2 << 20  # of a local file, which the driver reads sooner than Spark starts a task
_ROWS_OF_SLICE = 200  # else the largest of thousands of slices has twice the rows of the mean


def samples_of(work: TaskContext, executor: Executor, with_order: bool, slices: int = 1) -> Samples:
    """Sample evenly spaced rows of evenly spaced splits; no rows where there is neither a key nor an order to cut.

    ``slices``: about how many there will be at least. The driver reads the rows itself where the format can read a few
    columns alone, which it does while Spark starts, or where they are few bytes of local files.
    """
    splits = work.source.splits
    filled = [at for at, split in enumerate(splits) if split.rows]
    if not (work.plan.key or with_order) or not filled:
        return no_samples()
    sample = partial(sample_rows, work, rows_of_split(slices), with_order)
    picked = [splits[at] for at in _spread(filled)]
    is_quick = work.source.columnar or all(_has_few_bytes(work, split) for split in picked)
    per_split = [sample(split) for split in picked] if is_quick else executor.map("sample", sample, picked)
    rows = pa.concat_tables(per_split)
    return Samples(rows, np.ones(rows.num_rows))


def _has_few_bytes(work: TaskContext, split: Split) -> bool:
    return work.source.is_local(split) and sum(look.nbytes for look in work.source.looks_of(split)) <= _FEW_BYTES


def rows_of_split(slices: int) -> int:
    """Return how many rows of a split are sampled: thousands of slices need more than a few to be of one size."""
    return max(_SAMPLED_ROWS, _ROWS_OF_SLICE * slices // SAMPLED_SPLITS)


def reduction_factor(work: TaskContext, executor: Executor) -> float:
    """Estimate the rows per cell of partial aggregation, rather low than high; 1 where rows cannot be combined."""
    if (
        work.restore_point is not None
        or work.state_files is not None
        or not can_preaggregate(work.plan, work.source.schema)
    ):
        return 1.0
    filled = [at for at, split in enumerate(work.source.splits) if split.rows]
    middle = work.source.splits[filled[len(filled) // 2]]
    if work.source.columnar:
        return rows_per_cell(work, middle)
    (per_split,) = executor.map("sample", partial(rows_per_cell, work), [middle])
    return per_split


def with_state_keys(work: TaskContext, samples: Samples, rows: int) -> Samples:
    """Add the keys of evenly spaced parts of the restored state.

    A restored row weighs as much as a row of the input, of which ``rows`` are ``samples``.
    """
    if work.restore_point is None or not work.plan.key:
        return samples
    parts = [part for part in work.restore_point.parts if part.rows is not None]
    picked = _spread(parts)
    weight = samples.rows.num_rows / rows if rows else 1.0
    weight *= len(parts) / len(picked) if picked else 1
    per_split = [sampled_keys(work, part, weight) for part in picked]
    tables = [samples.rows, *(keys for keys, _ in per_split)]
    weights = [samples.weights, *(weights for _, weights in per_split)]
    return Samples(pa.concat_tables(table for table in tables if table.num_columns), np.concatenate(weights))


def _spread(items: Sequence[T]) -> list[T]:
    picks = np.unique(np.linspace(0, len(items) - 1, min(len(items), SAMPLED_SPLITS)).astype(int))
    return [items[i] for i in picks]
