"""One window over one input, distributed: sample, choose a strategy, exchange, scan."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..emit.row_counts import check_rows, check_written
from ..errors import InputError
from ..ports import Counts, Executor, Part
from ..scan.preaggregate import preaggregated_plan
from ..segments.summary import can_be_cut
from .exchange.block_transport import Transport, open_blocks, release, through_files, through_shuffle
from .exchange.global_pass import run_global_pass
from .exchange.map_side import blocks_of
from .exchange.range_cuts import SliceBounds, choose_bounds, slices_of
from .exchange.sampling import reduction_factor, samples_of, with_state_keys
from .exchange.state_blocks import state_blocks
from .presorted.single_pass import scan_in_one_pass
from .presorted.sorted_input import may_be_presorted
from .presorted.two_pass import scan_in_two_passes
from .scan.segment_scan import scan_segments
from .scan.slice_scan import TaskReport, empty_marks_of, scan_directly, scan_slice
from .tasks.sizing import Chunk, Sizes, pack, result_size, row_width, slice_count
from .tasks.snapshot import RunSnapshot, StatePart, write_snapshot
from .tasks.task import TaskContext

_MIN_REDUCTION = 4.0  # rows per cell below which partial aggregation costs more than it saves


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    ``parts``: files of the result, in the order of keys and rows.
    ``rejects``: files of rejected rows.
    ``counts``: the row accounting of the whole run.
    ``windows``: number of panes that came out.
    ``falls``: how often the watched attribute is smaller than in the row before.
    ``chunks``: number of chunks, the inputs of map tasks.
    ``slices``: number of slices, the inputs of scan tasks.
    ``seconds``: wall-clock seconds by phase.
    ``snapshot``: the state for the next run; None without a state.
    """

    parts: tuple[Part, ...]
    rejects: tuple[Part, ...]
    counts: Counts
    windows: int
    falls: int
    chunks: int
    slices: int
    seconds: dict[str, float] = field(default_factory=dict)
    snapshot: RunSnapshot | None = None


def run_window(work: TaskContext, executor: Executor, sizes: Sizes) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``executor`` may wait until tasks can run; it is not used before they are needed. Raises what the tasks raise:
    `InputError`, `DataError`, `OutputError`, or `SparkError`.
    """
    width = row_width(work.source.schema, work.source.splits, work.columns)
    rows = sum(split.rows for split in work.source.splits)
    if work.source.stream is None:  # a stream counts mark-only rows among its rows, too
        check_rows(work.plan, rows)
    size = width * rows + (work.restore_point.nbytes if work.restore_point is not None else 0)
    chunks = pack(work.source.splits, width, sizes.chunk)
    stopwatch = _Stopwatch()
    if size <= sizes.small:
        reports = executor.map("scan", partial(scan_directly, work), [tuple(chunks)])
        return outcome_of(work, reports, len(chunks), 1, stopwatch.lap("scan"))
    may_cut_keys = can_be_cut(work.plan) and work.restore_point is None and work.state_files is None
    samples = samples_of(work, executor, may_cut_keys)
    is_presorted = may_cut_keys and may_be_presorted(work, samples)
    reduction = 1.0 if is_presorted else reduction_factor(work, executor)
    stopwatch.lap("sample")
    parallelism = executor.parallelism
    stopwatch.lap("Spark")
    if is_presorted:
        presorted_reports = _scan_presorted(work, chunks, executor)
        if presorted_reports is not None:
            return outcome_of(work, presorted_reports, len(chunks), len(chunks), stopwatch.lap("scan"))
        reduction = reduction_factor(work, executor)
    samples = with_state_keys(work, samples, rows)
    work, chunks_with_watermarks = run_global_pass(work, chunks, executor)
    if reduction >= _MIN_REDUCTION:
        work, size, rows = (
            replace(work, scan_plan=preaggregated_plan(work.plan)),
            int(size / reduction),
            int(rows / reduction),
        )
    count = slice_count(size + result_size(work.plan, rows), sizes.slice, parallelism)
    cuts = choose_bounds(samples, work.plan.key, count, may_cut_keys)
    reports = exchange_and_scan(work, chunks_with_watermarks, cuts, executor)
    return outcome_of(work, reports, len(chunks), slices_of(cuts), stopwatch.lap("scan"))


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


def _scan_presorted(work: TaskContext, chunks: Sequence[Chunk], executor: Executor) -> list[TaskReport] | None:
    with executor.shared_folders() as folders:
        if folders:
            return scan_in_one_pass(work, chunks, executor, folders[0])
    if not work.source.columnar:  # a first pass over row formats would cost as much as the exchange that it saves
        return None
    return scan_in_two_passes(work, chunks, executor)


def exchange_and_scan(
    work: TaskContext, chunks: Sequence[Chunk], cuts: SliceBounds | None, executor: Executor
) -> list[TaskReport]:
    """Send the rows of all chunks, and of the restored state, to their slices, and scan these."""
    slices = slices_of(cuts)
    items: list[Chunk | StatePart] = [*chunks, *(work.restore_point.parts if work.restore_point is not None else ())]
    with executor.shared_folders() as folders:
        transport_way = partial(through_files, folders) if folders else through_shuffle
        send, receive = (
            partial(_blocks_of_all, work, cuts, transport_way),
            partial(_scan_partition, work.for_scan, cuts),
        )
        reports = executor.shuffle("exchange and scan", send, receive, items, slices)
    found: list[TaskReport] = [pickle.loads(report) for report in reports]
    if cuts is not None and any(report.segments for report in found):
        found += scan_segments(work.for_scan, cuts, found, executor)
        work.sink.drop_scratch()
    return found


def _blocks_of_all(work: TaskContext, cuts: SliceBounds | None, transport_way: Transport, items: Any) -> Any:
    for item in items:
        blocks_of_item = state_blocks if isinstance(item, StatePart) else blocks_of
        yield from transport_way(blocks_of_item(work, cuts, item))


def _scan_partition(work: TaskContext, cuts: SliceBounds | None, index: int, pairs: Any) -> Any:
    refs = [ref for _, ref in pairs]
    yield pickle.dumps(scan_slice(work, index, cuts, open_blocks(refs)))  # a report may hold views of the blocks
    release(refs)


def outcome_of(
    work: TaskContext, reports: Sequence[TaskReport], chunks: int, slices: int, seconds: dict[str, float]
) -> Outcome:
    """Sum up the reports of all tasks, and write what concerns all of them. Raises where rows are not accounted for."""
    parts = [report.part for report in reports if report.part is not None]
    parts.sort(key=lambda part: (len(part.name), part.name))
    if slices > 1 and work.plan.takes_marks and not work.plan.options.plain:
        rows = empty_marks_of(work, reports)
        parts += [work.sink.write_part(3 * slices, [rows])] if rows.num_rows else []
    if not parts:
        parts = [work.sink.write_part(0, [])]
    check_written(work.plan, sum(part.rows for part in parts))
    counts = sum((report.counts for report in reports), Counts())
    if not counts.balanced:
        raise InputError(f"the row accounting does not balance: {counts}", "report this: nothing was written")
    windows, falls = sum(report.windows for report in reports), sum(report.falls for report in reports)
    watermark = next((report.watermark for report in reports if report.watermark is not None), work.watermark)
    snapshots = [report.snapshot for report in reports]
    snapshot = (
        None if work.state_files is None else write_snapshot(work.state_files, work.restore_point, snapshots, watermark)
    )
    rejects = tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name))
    return Outcome(tuple(parts), rejects, counts, windows, falls, chunks, slices, seconds, snapshot)
