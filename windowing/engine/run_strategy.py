"""Running a strategy: one task, presorted chunks as they are, or an exchange of blocks between map and scan tasks."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from ..ports import Executor
from .exchange.block_transport import Transport, open_blocks, release, through_files, through_shuffle
from .exchange.global_pass import run_global_pass
from .exchange.map_side import blocks_of
from .exchange.range_cuts import SliceBounds, slices_of
from .exchange.state_blocks import state_blocks
from .presorted.single_pass import scan_in_one_pass
from .presorted.two_pass import scan_in_two_passes
from .scan.slice_scan import TaskReport, scan_directly, scan_slice, with_rejects
from .scan.staged_segments import scan_staged_segments
from .strategy import Direct, Exchange, Presorted, Strategy
from .tasks.sizing import Chunk
from .tasks.snapshot import StatePart
from .tasks.task import TaskContext


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """A strategy that has run.

    ``strategy``: the strategy.
    ``work``: the context of its scan tasks, with what was decided for all keys together.
    ``reports``: the reports of all scan tasks.
    ``slices``: number of slices, the inputs of scan tasks.
    """

    strategy: Strategy
    work: TaskContext
    reports: Sequence[TaskReport]
    slices: int


def run_strategy(
    work: TaskContext, strategy: Strategy, executor: Executor, folders: Sequence[str]
) -> StrategyRun | None:
    """Run a strategy; None where chunks are not presorted: then nothing is left of what was written.

    ``folders``: as `Executor.shared_folders` gives them, without files.
    """
    match strategy:
        case Direct():
            reports = executor.map("scan", partial(scan_directly, work), [strategy.chunks])
            return StrategyRun(strategy, work, reports, 1)
        case Presorted():
            found = _scan_presorted(work, strategy.chunks, executor, folders)
            return None if found is None else StrategyRun(strategy, work, found, len(strategy.chunks))
        case Exchange():
            return _run_exchange(work, strategy, executor, folders)


def _scan_presorted(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor, folders: Sequence[str]
) -> list[TaskReport] | None:
    """Scan each chunk once on one machine, where tasks can wait for each other; twice on a cluster."""
    if folders:
        return scan_in_one_pass(work, chunks, executor, folders[0])
    return scan_in_two_passes(work, chunks, executor)


def _run_exchange(work: TaskContext, strategy: Exchange, executor: Executor, folders: Sequence[str]) -> StrategyRun:
    work, chunks = run_global_pass(work, strategy.chunks, executor)
    work = replace(work, scan_plan=strategy.scan_plan)
    tasks = executor.parallelism
    cuts = strategy.bounds(work.plan, tasks)
    groups = strategy.groups(chunks, slices_of(cuts), tasks)
    return StrategyRun(strategy, work, exchange_and_scan(work, groups, cuts, executor, folders), slices_of(cuts))


def exchange_and_scan(
    work: TaskContext,
    groups: Sequence[tuple[Chunk, ...]],
    cuts: SliceBounds | None,
    executor: Executor,
    folders: Sequence[str],
) -> list[TaskReport]:
    """Send the rows of all chunks, and of the restored state, to their slices, and scan these.

    ``groups``: the chunks, those together that one map task merges. ``folders``: as `Executor.shared_folders` gives
    them.
    """
    parts = work.restore_point.parts if work.restore_point is not None else ()
    items: list[tuple[Chunk, ...] | StatePart] = [*groups, *parts]
    transport = partial(through_files, folders) if folders else through_shuffle
    send = partial(_blocks_of_all, work, cuts, transport)
    receive = partial(_scan_partition, work.for_scan, cuts)
    pickled = executor.shuffle("exchange and scan", send, receive, items, slices_of(cuts))
    reports: list[TaskReport] = [pickle.loads(report) for report in pickled]
    has_segments = any(report.segments for report in reports)
    if cuts is not None and has_segments:
        reports += scan_staged_segments(work.for_scan, cuts, reports, executor)
    reports = with_rejects(work, [*chain.from_iterable(groups)], reports, executor)
    if has_segments:
        work.sink.drop_scratch()
    return reports


def _blocks_of_all(work: TaskContext, cuts: SliceBounds | None, transport: Transport, items: Any) -> Any:
    for item in items:
        blocks_of_item = state_blocks if isinstance(item, StatePart) else blocks_of
        yield from transport(blocks_of_item(work, cuts, item))


def _scan_partition(work: TaskContext, cuts: SliceBounds | None, index: int, pairs: Any) -> Any:
    refs = [ref for _, ref in pairs]
    yield pickle.dumps(scan_slice(work, index, cuts, open_blocks(refs)))  # a report may hold views of the blocks
    release(refs)
