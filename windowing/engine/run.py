"""One window over one input on Spark: plan, sample, exchange, scan."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
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
from .tasks.sizing import Chunk, Sizes, lines_size, pack, row_width, slice_count
from .tasks.snapshot import RunSnapshot, StatePart, write_snapshot
from .tasks.task import TaskContext

_WORTH_COMBINING = 4.0  # rows that go as one


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. ``seconds``: per phase. ``slices`` and ``chunks``: how the work was cut.

    ``standing``: what the next run goes on from, where there is going to be one.
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


def run_window(work: TaskContext, session: Callable[[], Executor], sizes: Sizes) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``session`` waits for Spark; it is not called before Spark is needed. Raises what the tasks raise: `InputError`,
    `DataError`, `OutputError`, or `SparkError`.
    """
    width = row_width(work.source.schema, work.source.splits, work.columns)
    rows = sum(split.rows for split in work.source.splits)
    if work.source.stream is None:  # a result holds mark-only rows, too
        check_rows(work.plan, rows)
    size = width * rows + (work.restore_point.nbytes if work.restore_point is not None else 0)
    chunks = pack(work.source.splits, width, sizes.chunk)
    clock = _Stopwatch()
    if size <= sizes.small:
        reports = session().map("scan", partial(scan_directly, work), [tuple(chunks)])
        return _outcome(work, reports, len(chunks), 1, clock.lap("scan"))
    may_cut_keys = can_be_cut(work.plan) and work.restore_point is None and work.state_files is None
    samples = samples_of(work, session, may_cut_keys)
    is_in_order = may_cut_keys and may_be_presorted(work, samples)
    together = 1.0 if is_in_order else reduction_factor(work, session)
    clock.lap("sample")
    spark = session()
    clock.lap("Spark")
    if is_in_order:
        told = _scan_in_order(work, chunks, spark)
        if told is not None:
            return _outcome(work, told, len(chunks), len(chunks), clock.lap("scan"))
        together = reduction_factor(work, session)
    samples = with_state_keys(work, samples, rows)
    work, decided_chunks = run_global_pass(work, chunks, spark.map, spark.broadcast)
    if together >= _WORTH_COMBINING:
        work, size, rows = (
            replace(work, scan_plan=preaggregated_plan(work.plan)),
            int(size / together),
            int(rows / together),
        )
    count = slice_count(size + lines_size(work.plan, rows), sizes.slice, spark.parallelism)
    cuts = choose_bounds(samples, work.plan.key, count, may_cut_keys)
    reports = _exchange(work, spark, decided_chunks, cuts)
    if cuts is not None and any(report.segments for report in reports):
        reports += scan_segments(work.for_scan, cuts, reports, spark.map)
        work.sink.drop_scratch()
    return _outcome(work, reports, len(chunks), slices_of(cuts), clock.lap("scan"))


class _Stopwatch:
    """Seconds of phases that follow each other."""

    def __init__(self) -> None:
        self._laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> dict[str, float]:
        """End a phase; return all that have ended."""
        now = time.perf_counter()
        self._laps[phase], self._last = now - self._last, now
        return dict(self._laps)


def _scan_in_order(work: TaskContext, chunks: Sequence[Chunk], session: Executor) -> list[TaskReport] | None:
    with session.shared_folders() as folders:
        if folders:
            return scan_in_one_pass(work, chunks, session.map, folders[0], session.parallelism)
    if not work.source.columnar:  # looking ahead would cost as much as all that it saves
        return None
    return scan_in_two_passes(work, chunks, session.map)


def _exchange(
    work: TaskContext, session: Executor, chunks: Sequence[Chunk], cuts: SliceBounds | None
) -> list[TaskReport]:
    slices = slices_of(cuts)
    items: list[Chunk | StatePart] = [*chunks, *(work.restore_point.parts if work.restore_point is not None else ())]
    with session.shared_folders() as folders:
        way = partial(through_files, folders) if folders else through_shuffle
        send, receive = partial(_blocks_of_all, work, cuts, way), partial(_scan_partition, work.for_scan, cuts)
        reports = session.shuffle("exchange and scan", send, receive, items, slices)
    return [pickle.loads(report) for report in reports]


def _blocks_of_all(work: TaskContext, cuts: SliceBounds | None, way: Transport, items: Any) -> Any:
    for item in items:
        blobs_of_item = state_blocks if isinstance(item, StatePart) else blocks_of
        yield from way(blobs_of_item(work, cuts, item))


def _scan_partition(work: TaskContext, cuts: SliceBounds | None, index: int, pairs: Any) -> Any:
    parcels = [parcel for _, parcel in pairs]
    yield pickle.dumps(scan_slice(work, index, cuts, open_blocks(parcels)))  # a report may hold views of blobs
    release(parcels)


def _outcome(
    work: TaskContext, reports: Sequence[TaskReport], chunks: int, slices: int, seconds: dict[str, float]
) -> Outcome:
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
        raise InputError(f"the account of the rows does not add up: {counts}", "report this: nothing was written")
    windows, falls = sum(report.windows for report in reports), sum(report.falls for report in reports)
    stands = next((report.watermark for report in reports if report.watermark is not None), work.watermark)
    left = [report.snapshot for report in reports]
    standing = None if work.state_files is None else write_snapshot(work.state_files, work.restore_point, left, stands)
    rejects = tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name))
    return Outcome(tuple(parts), rejects, counts, windows, falls, chunks, slices, seconds, standing)
