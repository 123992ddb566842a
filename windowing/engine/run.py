"""One window over one input, distributed: sample, choose a strategy, run it, sum up what its tasks report."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from ..emit.result_tables import check_rows, check_written
from ..errors import InputError
from ..ports import CheckedPart, Counts, Executor, Part, RowCheck, joined_span
from ..scan.rows_ahead import LatestRows
from .blocks import Transport, open_blocks, release, state_blocks, through_files, through_shuffle
from .map_side import blocks_of
from .prefix_scan import scan_staged_segments
from .presorted import OUT_OF_ORDER, scan_in_one_pass
from .range_cuts import SliceBounds, slices_of
from .rejects import told_ahead
from .slice_scan import (
    TaskReport,
    empty_marks_of,
    run_global_pass,
    scan_directly,
    scan_slice,
    with_cut,
    with_rejects,
)
from .snapshot import Snapshot, StatePart, write_snapshot
from .strategy import LargestWindow, Sample, Strategy, choose_strategy, largest_window, reduction_factor, take_sample
from .task import Chunk, Reached, Sizes, TaskContext, group, with_projection, with_windows


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    ``parts``: files of the result, in the order of keys and rows.
    ``falls``: how often the watched attribute is smaller than in the row before.
    ``slices``: number of slices, the inputs of scan tasks.
    ``seconds``: wall-clock seconds by phase.
    ``snapshot``: the state for the next run; None without a state.
    ``span``: the smallest and the largest order value of the rows read, where the run asks for them.
    ``checks``: what each condition over rows of the result has come to.
    ``latest``: the rows with the latest event times; none where nothing looked for them.
    ``ahead``: how many rows were ahead of their time, and the first of them, as `told_ahead` says it.
    ``windows_late``: how many windows a table has brought after the clock had passed their starts; None: of no table.
    """

    parts: tuple[Part, ...]
    rejects: tuple[Part, ...]
    counts: Counts
    windows: int
    falls: int
    strategy: Strategy
    slices: int
    seconds: dict[str, float] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    span: tuple[float, float] | None = None
    checks: tuple[RowCheck, ...] = ()
    latest: LatestRows = LatestRows()  # noqa: RUF009 - frozen
    ahead: dict[str, Any] | None = None
    windows_late: int | None = None


def run_window(
    work: TaskContext, executor: Executor, sizes: Sizes, announce: Callable[[LargestWindow], None] | None = None
) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``executor`` may wait until tasks can run; it is not used before they are needed. Raises what the tasks raise:
    `InputError`, `DataError`, `OutputError`, or `SparkError`. ``announce``: is told of a window that needs more memory
    than other tasks, before any task begins.
    """
    stopwatch = _Stopwatch()
    work, sample, strategy = prepare_window(work, executor, sizes)
    if announce is not None and (largest := largest_window(work, sample)) is not None:
        announce(largest)
    if strategy.name == "one task":
        reports = executor.map("scan", partial(scan_directly, work), [sample.chunks])
        return outcome_of(work, strategy, reports, 1, stopwatch.lap("scan"))
    stopwatch.lap("sample")
    with executor.shared_folders() as folders:  # waits until tasks can run
        stopwatch.lap("Spark")
        work = with_cut(work, sample.chunks, executor)
        if strategy.name == "presorted":
            in_order = scan_in_one_pass(work, sample.chunks, executor, folders[0])
            if in_order is not None:
                return outcome_of(work, strategy, in_order, len(sample.chunks), stopwatch.lap("scan"))
            reduction = reduction_factor(work, executor)
            strategy = choose_strategy(work, replace(sample, obstacle=OUT_OF_ORDER, reduction=reduction))
        work, chunks = run_global_pass(work, sample.chunks, executor)
        work = replace(work, scan_plan=strategy.scan_plan)
        tasks = executor.parallelism
        cuts = strategy.bounds(work.plan, tasks)
        slices = slices_of(cuts)
        groups = group(chunks, strategy.nbytes, slices, tasks, sizes)
        reports = exchange_and_scan(work, groups, cuts, executor, folders)
    return outcome_of(work, strategy, reports, slices, stopwatch.lap("scan"))


def prepare_window(work: TaskContext, executor: Executor, sizes: Sizes) -> tuple[TaskContext, Sample, Strategy]:
    """Return the context of the tasks, a sample of the input, and the strategy that it suggests; nothing is computed.

    Raises `DataError` where the result would have more rows than the job allows.
    """
    work = with_windows(with_projection(work))
    if work.source.stream is None:  # a stream counts mark-only rows among its rows, too
        check_rows(work.plan, sum(split.rows for split in work.source.splits))
    sample = take_sample(work, executor, sizes)
    return work, sample, choose_strategy(work, sample)


class _Stopwatch:
    """Wall-clock seconds of consecutive phases."""

    def __init__(self) -> None:
        self._laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> dict[str, float]:
        """End a phase; return the seconds of all phases so far."""
        now = time.perf_counter()
        self._laps[phase], self._last = now - self._last, now
        return dict(self._laps)


def outcome_of(
    work: TaskContext, strategy: Strategy, reports: Sequence[TaskReport], slices: int, seconds: dict[str, float]
) -> Outcome:
    """Sum up the reports of all scan tasks, and write what concerns all of them.

    ``work``: the context of these tasks, with what was decided for all keys together. Raises where rows are not
    accounted for.
    """
    parts = sorted((part for report in reports for part in report.parts), key=lambda part: part.rank)
    if slices > 1 and work.plan.takes_marks and not work.plan.options.plain:
        rows = empty_marks_of(work, reports)
        parts += work.sink.write_parts(3 * slices, [rows]) if rows.num_rows else ()
    if not parts:
        parts += work.sink.write_parts(0, [])
    check_written(work.plan, sum(part.rows for part in parts))
    counts = sum((report.counts for report in reports), Counts())
    if not counts.balanced:
        raise InputError(f"the row accounting does not balance: {counts}", "report this: nothing was written")
    snapshot, reached = None, next((report.reached for report in reports if report.reached != Reached()), work.reached)
    if work.state_files is not None:
        written = [report.snapshot for report in reports]
        windows = work.plan.windows
        snapshot = write_snapshot(
            work.state_files, work.restore_point, written, reached.watermark, reached.belief, windows
        )
    checked = [part.checks for part in parts if isinstance(part, CheckedPart)]  # mark-only rows alone have none
    return Outcome(
        tuple(parts),
        tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name)),
        counts,
        sum(report.windows for report in reports),
        sum(report.falls for report in reports),
        strategy,
        slices,
        seconds,
        snapshot,
        joined_span([report.span for report in reports if report.span is not None]),
        tuple(sum((checks[at] for checks in checked), RowCheck()) for at in range(len(work.conditions))),
        reached.latest,
        told_ahead(work.plan, work.source, reached.ahead),
        None if work.plan.windows is None else work.plan.windows.late,
    )
