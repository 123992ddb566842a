"""The strategies of a run, and which of them is chosen: one task, presorted chunks as they are, or an exchange.

A `Sample` says what is known before: sizes, a few rows, and what a part of a split shows. A strategy never changes a
result, only what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa

from ..columns.arrays import combined
from ..emit.aggregate_rows import calls_over_all_rows, merging_plan
from ..planning.plan import Plan
from ..ports import Executor
from ..rows.sequence import build, group_codes, one_batch
from ..scan.scan import can_preaggregate
from ..scan.segment_scan import can_be_cut
from .blocks import sampled_keys
from .map_side import rows_per_cell, sample_rows
from .presorted import KEYED, obstacle_of
from .range_cuts import PLACE, Samples, SliceBounds, choose_bounds
from .segments import tumbling
from .task import Chunk, Sizes, TaskContext, pack, result_size, row_width, slice_count

# Samples of a few rows, to choose slice bounds and whether partial aggregation pays. They change no result.


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
        return Samples()
    sample = partial(sample_rows, work, rows_of_split(slices), with_order)
    picked = [splits[at] for at in _spread(filled)]
    is_quick = work.source.columnar or all(
        work.source.is_local(split) and sum(look.nbytes for look in work.source.looks_of(split)) <= _FEW_BYTES
        for split in picked
    )
    per_split = [sample(split) for split in picked] if is_quick else executor.map("sample", sample, picked)
    rows = pa.concat_tables(per_split)
    return Samples(rows, np.ones(rows.num_rows))


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
    weight = samples.rows.num_rows / rows if samples.rows.num_rows else 1.0  # a condition may leave out all rows
    weight *= len(parts) / len(picked) if picked else 1
    per_split = [sampled_keys(work, part, weight) for part in picked]
    tables = [table for table in (samples.rows, *(keys for keys, _ in per_split)) if table.num_columns]
    if not tables:  # neither the input nor the state has rows
        return samples
    weights = [samples.weights, *(weights for _, weights in per_split)]
    return Samples(pa.concat_tables(tables), np.concatenate(weights))


def _spread(items: Sequence[T]) -> list[T]:
    picks = np.unique(np.linspace(0, len(items) - 1, min(len(items), SAMPLED_SPLITS)).astype(int))
    return [items[i] for i in picks]


_MIN_REDUCTION = 4.0  # rows per cell below which partial aggregation costs more than it saves
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of an input before a strategy is chosen.

    ``chunks``: the chunks of the input, of about ``sizes.chunk`` bytes.
    ``nbytes``: estimate of the bytes of their columns that are needed, and of the restored state.
    ``keys``: keys and order of a few rows, to choose slices; none of a small input.
    ``may_cut_keys``: whether a heavy key may be cut into segments.
    ``obstacle``: why chunks cannot be scanned as they are, in words; None where they may be presorted.
    ``reduction``: rows per cell of partial aggregation; 1 where it is impossible, or no use to the strategy.
    """

    sizes: Sizes
    chunks: tuple[Chunk, ...]
    rows: int
    nbytes: int
    keys: Samples
    may_cut_keys: bool = False
    obstacle: str | None = None
    reduction: float = 1.0

    @property
    def is_small(self) -> bool:
        return self.nbytes <= self.sizes.small

    @property
    def is_small_when_aggregated(self) -> bool:
        return self.reduction >= _MIN_REDUCTION and self.nbytes / self.reduction <= self.sizes.small


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a window is run.

    ``name``: "one task" reads, sorts and scans the whole input. "presorted" scans each chunk as it is, from the state
        that the chunks before it leave; it may find rows out of order. By an "exchange" map tasks sort chunks and cut
        them into blocks; each slice of the total order is scanned by a task of its own.
    ``reason``: why it was chosen, in words.
    ``sample``: what it was chosen by.
    ``scan_plan``: of an exchange, the plan of the scan tasks where map tasks aggregate partially; None: they do not.
    """

    name: Literal["one task", "presorted", "exchange"]
    reason: str
    sample: Sample
    scan_plan: Plan | None = None

    @property
    def factor(self) -> float:
        """How many rows of the input are one row that scan tasks get."""
        return 1.0 if self.scan_plan is None else self.sample.reduction

    @property
    def nbytes(self) -> int:
        """About how many bytes scan tasks get."""
        return int(self.sample.nbytes / self.factor)

    def bounds(self, plan: Plan, parallelism: int) -> SliceBounds | None:
        """Choose slices of an exchange for ``parallelism`` tasks at a time; None: one slice."""
        sample = self.sample
        result = result_size(self.scan_plan or plan, int(sample.rows / self.factor))
        count = slice_count(self.nbytes + result, sample.sizes.slice, parallelism)
        return choose_bounds(sample.keys, plan.key, count, sample.may_cut_keys)


def take_sample(work: TaskContext, executor: Executor, sizes: Sizes) -> Sample:
    """Look at an input: at its splits alone where it is small, else also at a few of its rows.

    The driver reads these itself, while Spark may still be starting, where the format can read a few columns alone.
    """
    splits = work.source.splits
    width, rows = row_width(work.source.schema, splits, work.columns), sum(split.rows for split in splits)
    nbytes = width * rows + (work.restore_point.nbytes if work.restore_point is not None else 0)
    sample = Sample(sizes, tuple(pack(splits, width, sizes.chunk)), rows, nbytes, Samples())
    if sample.is_small:
        return sample
    may_cut_keys = can_be_cut(work.plan) and work.restore_point is None and work.state_files is None
    sample = replace(sample, may_cut_keys=may_cut_keys)
    if work.plan.key:  # which excludes presorted chunks
        sample = replace(sample, obstacle=KEYED, reduction=reduction_factor(work, executor))
        if sample.is_small_when_aggregated:  # no keys are needed for one slice
            return sample
    keys = samples_of(work, executor, may_cut_keys, nbytes // sizes.slice)
    obstacle = obstacle_of(work, keys, executor, may_cut_keys)
    sample = replace(sample, keys=with_state_keys(work, keys, rows), obstacle=obstacle)
    if obstacle is None or work.plan.key:
        return sample
    return replace(sample, reduction=reduction_factor(work, executor))


def choose_strategy(work: TaskContext, sample: Sample) -> Strategy:
    """Choose the cheapest strategy. Reads nothing."""
    if sample.is_small:
        size, most = sample.nbytes / _MIB, sample.sizes.small / _MIB
        return Strategy(
            "one task", f"the columns it reads take about {size:.1f} MiB, no more than {most:g} MiB", sample
        )
    if sample.obstacle is None:
        return Strategy("presorted", "there is no key, and the sampled rows are in order", sample)
    if sample.reduction < _MIN_REDUCTION:
        return Strategy("exchange", sample.obstacle, sample)
    reason = f"{sample.obstacle}; map tasks aggregate about {sample.reduction:,.0f} rows into one"
    return Strategy("exchange", reason, sample, merging_plan(work.plan))


# How much memory the largest window may take whose rows cannot be combined: an estimate by the sample of a run.
#
# Where all aggregates of a tumbling window merge, a task holds no more of it than a segment. Else one task holds all
# of its rows: this says before the run what that may come to (decision 061).


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
    if sample.is_small or plan.kind.needs.is_chained:
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
    plan, rows = work.plan, one_batch(sample.keys.rows)
    if PLACE not in rows.schema.names:
        return sample.rows
    sampled = build(rows, combined(rows.column(PLACE)).to_numpy(), plan.key, plan.sort, rows.schema.names)
    most = tumbling(plan).most_rows(sampled, sample.rows / len(sampled), plan.context)
    return sample.rows if most is None else most
