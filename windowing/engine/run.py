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
from ..scan.preaggregate import combined_plan
from ..segments.summary import can_be_cut
from .exchange.block_transport import Way, give_back, in_a_file, in_spark, received
from .exchange.global_pass import decided
from .exchange.map_side import blobs_of
from .exchange.range_cuts import Cuts, cut_points, slices_of
from .exchange.sampling import rows_together, samples_of, with_carried
from .exchange.state_blocks import carry_blobs_of
from .presorted.single_pass import scan_in_one_pass
from .presorted.sorted_input import may_be_in_order
from .presorted.two_pass import scan_in_two_passes
from .scan.segment_scan import scan_pieces
from .scan.slice_scan import Report, empty_marks_of, scan_directly, scan_slice
from .tasks.sizing import Chunk, Sizes, lines_size, pack, row_width, slice_count
from .tasks.snapshot import CarryPart, Standing, leave
from .tasks.task import Work

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
    standing: Standing | None = None


def run_window(work: Work, session: Callable[[], Executor], sizes: Sizes) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``session`` waits for Spark; it is not called before Spark is needed. Raises what the tasks raise: `InputError`,
    `DataError`, `OutputError`, or `SparkError`.
    """
    width = row_width(work.source.schema, work.source.splits, work.columns)
    rows = sum(split.rows for split in work.source.splits)
    if work.source.stream is None:  # a result holds mark-only rows, too
        check_rows(work.plan, rows)
    size = width * rows + (work.start.nbytes if work.start is not None else 0)
    chunks = pack(work.source.splits, width, sizes.chunk)
    clock = _Stopwatch()
    if size <= sizes.small:
        reports = session().map("scan", partial(scan_directly, work), [tuple(chunks)])
        return _outcome(work, reports, len(chunks), 1, clock.lap("scan"))
    may_cut_keys = can_be_cut(work.plan) and work.start is None and work.carry is None
    samples = samples_of(work, session, may_cut_keys)
    is_in_order = may_cut_keys and may_be_in_order(work, samples)
    together = 1.0 if is_in_order else rows_together(work, session)
    clock.lap("sample")
    spark = session()
    clock.lap("Spark")
    if is_in_order:
        told = _scan_in_order(work, chunks, spark)
        if told is not None:
            return _outcome(work, told, len(chunks), len(chunks), clock.lap("scan"))
        together = rows_together(work, session)
    samples = with_carried(work, samples, rows)
    work, decided_chunks = decided(work, chunks, spark.map, spark.broadcast)
    if together >= _WORTH_COMBINING:
        work, size, rows = replace(work, combined=combined_plan(work.plan)), int(size / together), int(rows / together)
    count = slice_count(size + lines_size(work.plan, rows), sizes.slice, spark.parallelism)
    cuts = cut_points(samples, work.plan.key, count, may_cut_keys)
    reports = _exchange(work, spark, decided_chunks, cuts)
    if cuts is not None and any(report.pieces for report in reports):
        reports += scan_pieces(work.scanning, cuts, reports, spark.map)
        work.sink.forget()
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


def _scan_in_order(work: Work, chunks: Sequence[Chunk], session: Executor) -> list[Report] | None:
    with session.shared_folders() as folders:
        if folders:
            return scan_in_one_pass(work, chunks, session.map, folders[0], session.parallelism)
    if not work.source.columnar:  # looking ahead would cost as much as all that it saves
        return None
    return scan_in_two_passes(work, chunks, session.map)


def _exchange(work: Work, session: Executor, chunks: Sequence[Chunk], cuts: Cuts | None) -> list[Report]:
    slices = slices_of(cuts)
    items: list[Chunk | CarryPart] = [*chunks, *(work.start.parts if work.start is not None else ())]
    with session.shared_folders() as folders:
        way = partial(in_a_file, folders) if folders else in_spark
        send, receive = partial(_blobs_of_all, work, cuts, way), partial(_scan_partition, work.scanning, cuts)
        reports = session.shuffle("exchange and scan", send, receive, items, slices)
    return [pickle.loads(report) for report in reports]


def _blobs_of_all(work: Work, cuts: Cuts | None, way: Way, items: Any) -> Any:
    for item in items:
        blobs_of_item = carry_blobs_of if isinstance(item, CarryPart) else blobs_of
        yield from way(blobs_of_item(work, cuts, item))


def _scan_partition(work: Work, cuts: Cuts | None, index: int, pairs: Any) -> Any:
    parcels = [parcel for _, parcel in pairs]
    yield pickle.dumps(scan_slice(work, index, cuts, received(parcels)))  # a report may hold views of blobs
    give_back(parcels)


def _outcome(work: Work, reports: Sequence[Report], chunks: int, slices: int, seconds: dict[str, float]) -> Outcome:
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
    stands = next((report.stands for report in reports if report.stands is not None), work.stands)
    left = [report.left for report in reports]
    standing = None if work.carry is None else leave(work.carry, work.start, left, stands)
    rejects = tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name))
    return Outcome(tuple(parts), rejects, counts, windows, falls, chunks, slices, seconds, standing)
