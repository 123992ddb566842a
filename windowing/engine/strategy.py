"""The strategies of a run, and which of them is chosen: one task, presorted chunks as they are, or an exchange.

A `Sample` says what is known before: sizes, a few rows, and what a part of a split shows. A strategy never changes a
result, only what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from ..emit.partial_rows import merging_plan
from ..planning.plan import Plan
from ..ports import Executor
from ..segments.segment_scan import can_be_cut
from .exchange.range_cuts import Samples, SliceBounds, choose_bounds, no_samples
from .exchange.sampling import reduction_factor, samples_of, with_state_keys
from .presorted.sorted_input import KEYED, OUT_OF_ORDER, obstacle_of
from .tasks.sizing import Chunk, Sizes, group, pack, result_size, row_width, slice_count
from .tasks.task import TaskContext

_MIN_REDUCTION = 4.0  # rows per cell below which partial aggregation costs more than it saves
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of an input before a strategy is chosen.

    ``sizes``: bounds on the input of a task.
    ``chunks``: the chunks of the input, of about ``sizes.chunk`` bytes.
    ``rows``: number of rows of the input.
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
        """Whether one task can scan all."""
        return self.nbytes <= self.sizes.small

    @property
    def is_small_when_aggregated(self) -> bool:
        """Whether one task can scan what partial aggregation leaves."""
        return self.reduction >= _MIN_REDUCTION and self.nbytes / self.reduction <= self.sizes.small


@dataclass(frozen=True, slots=True)
class Direct:
    """One task reads, sorts and scans the whole input.

    ``reason``: why it was chosen, in words.
    ``chunks``: the input.
    """

    name: ClassVar[str] = "one task"
    reason: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Presorted:
    """Each chunk is scanned as it is, from the state that the chunks before it leave; it may find rows out of order.

    ``reason``: why it was chosen, in words.
    ``chunks``: the input.
    """

    name: ClassVar[str] = "presorted"
    reason: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Map tasks sort chunks and cut them into blocks; each slice of the total order is scanned by a task of its own.

    ``reason``: why it was chosen, in words.
    ``chunks``: the input.
    ``keys``: a sample of the rows and of the restored keys.
    ``may_cut_keys``: whether a heavy key may be cut into segments.
    ``scan_plan``: the plan of the scan tasks where map tasks aggregate partially; None: they do not.
    ``nbytes``: estimate of the bytes that scan tasks get.
    ``rows``: estimate of the rows that they get.
    ``sizes``: bounds on the input of a task.
    """

    name: ClassVar[str] = "exchange"
    reason: str
    chunks: tuple[Chunk, ...]
    keys: Samples
    may_cut_keys: bool
    scan_plan: Plan | None
    nbytes: int
    rows: int
    sizes: Sizes

    def bounds(self, plan: Plan, parallelism: int) -> SliceBounds | None:
        """Choose slices for ``parallelism`` tasks at a time; None: one slice."""
        result = result_size(self.scan_plan or plan, self.rows)
        count = slice_count(self.nbytes + result, self.sizes.slice, parallelism)
        return choose_bounds(self.keys, plan.key, count, self.may_cut_keys)

    def groups(self, chunks: Sequence[Chunk], slices: int, parallelism: int) -> list[tuple[Chunk, ...]]:
        """Choose which chunks a map task merges; ``chunks``: those of the strategy, with what was decided of them."""
        return group(chunks, self.nbytes, slices, parallelism, self.sizes)


Strategy: TypeAlias = Direct | Presorted | Exchange


def take_sample(work: TaskContext, executor: Executor, sizes: Sizes) -> Sample:
    """Look at an input: at its splits alone where it is small, else also at a few of its rows.

    The driver reads these itself, while Spark may still be starting, where the format can read a few columns alone.
    """
    splits = work.source.splits
    width, rows = row_width(work.source.schema, splits, work.columns), sum(split.rows for split in splits)
    nbytes = width * rows + (work.restore_point.nbytes if work.restore_point is not None else 0)
    sample = Sample(sizes, tuple(pack(splits, width, sizes.chunk)), rows, nbytes, no_samples())
    if sample.is_small:
        return sample
    may_cut_keys = can_be_cut(work.plan) and work.restore_point is None and work.state_files is None
    sample = replace(sample, may_cut_keys=may_cut_keys)
    if work.plan.key:  # which excludes presorted chunks
        sample = _with_reduction(work, executor, replace(sample, obstacle=KEYED))
        if sample.is_small_when_aggregated:  # no keys are needed for one slice
            return sample
    keys = samples_of(work, executor, may_cut_keys, nbytes // sizes.slice)
    obstacle = obstacle_of(work, keys, executor, may_cut_keys)
    sample = replace(sample, keys=with_state_keys(work, keys, rows), obstacle=obstacle)
    return sample if obstacle is None or work.plan.key else _with_reduction(work, executor, sample)


def without_order(work: TaskContext, executor: Executor, sample: Sample) -> Sample:
    """Return the sample of an input whose chunks turned out not to be in order."""
    return _with_reduction(work, executor, replace(sample, obstacle=OUT_OF_ORDER))


def choose_strategy(work: TaskContext, sample: Sample) -> Strategy:
    """Choose the cheapest strategy. Reads nothing."""
    if sample.is_small:
        size, most = sample.nbytes / _MIB, sample.sizes.small / _MIB
        return Direct(f"the columns it reads take about {size:.1f} MiB, no more than {most:g} MiB", sample.chunks)
    if sample.obstacle is None:
        return Presorted("there is no key, and the sampled rows are in order", sample.chunks)
    return _exchange(work, sample, sample.obstacle)


def _exchange(work: TaskContext, sample: Sample, obstacle: str) -> Exchange:
    reason, scan_plan, factor = obstacle, None, 1.0
    if sample.reduction >= _MIN_REDUCTION:
        factor, scan_plan = sample.reduction, merging_plan(work.plan)
        reason += f"; map tasks aggregate about {factor:,.0f} rows into one"
    return Exchange(
        reason,
        sample.chunks,
        sample.keys,
        sample.may_cut_keys,
        scan_plan,
        int(sample.nbytes / factor),
        int(sample.rows / factor),
        sample.sizes,
    )


def _with_reduction(work: TaskContext, executor: Executor, sample: Sample) -> Sample:
    return replace(sample, reduction=reduction_factor(work, executor))
