"""One window over one input on Spark: plan, sample, exchange, scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from windowing.combining import can_be_combined, combined_plan
from windowing.engine.carrying import carry_blobs_of, sampled_keys
from windowing.engine.cuts import Cuts, Samples, cut_points, slices_of
from windowing.engine.exchange import blobs_of
from windowing.engine.in_order import may_be_in_order, scan_in_order
from windowing.engine.ports import Counts, Part
from windowing.engine.reading import rows_a_cell, sample_rows
from windowing.engine.resuming import scan_pieces
from windowing.engine.scanning import Report, empty_marks_of, scan_directly, scan_slice
from windowing.engine.session import Session, guarded
from windowing.engine.slices import Chunk, Sizes, lines_size, pack, row_width, slice_count
from windowing.engine.standing import CarryPart, Standing, leave
from windowing.engine.verdict import decided
from windowing.engine.work import Work
from windowing.errors import InputError
from windowing.pieces import can_be_cut

T = TypeVar("T")
_SAMPLED_SPLITS = 16
_SAMPLED_ROWS = 4000
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


def run_window(work: Work, session: Callable[[], Session], sizes: Sizes) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``session`` waits for Spark; it is not called before Spark is needed. Raises what the tasks raise: `InputError`,
    `DataError`, `OutputError`, or `SparkError`.
    """
    width = row_width(work.source.schema, work.source.splits, work.columns)
    rows = sum(split.rows for split in work.source.splits)
    size = width * rows + (work.start.nbytes if work.start is not None else 0)
    chunks = pack(work.source.splits, width, sizes.chunk)
    clock = _Stopwatch()
    if size <= sizes.small:
        reports = session().each("scan", partial(scan_directly, work), [tuple(chunks)])
        return _outcome(work, reports, len(chunks), 1, clock.lap("scan"))
    may_cut_keys = can_be_cut(work.plan) and work.start is None and work.carry is None
    samples = _samples(work, session, may_cut_keys)
    clock.lap("sample")
    spark = session()
    clock.lap("Spark")
    if may_cut_keys and may_be_in_order(work, samples):
        told = scan_in_order(work, chunks, spark.each)
        if told is not None:
            return _outcome(work, told, len(chunks), len(chunks), clock.lap("scan"))
    samples = _with_carried(work, samples, rows)
    work, decided_chunks = decided(work, chunks, spark.each, spark.broadcast)
    together = _rows_together(work, spark)
    if together >= _WORTH_COMBINING:
        work, size, rows = replace(work, combined=combined_plan(work.plan)), int(size / together), int(rows / together)
    count = slice_count(size + lines_size(work.plan, rows), sizes.slice, spark.parallelism)
    cuts = cut_points(samples, work.plan.key, count, may_cut_keys)
    reports = _exchange(work, spark, decided_chunks, cuts)
    if cuts is not None and any(report.pieces for report in reports):
        reports += scan_pieces(work.scanning, cuts, reports, spark.each)
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


def _samples(work: Work, session: Callable[[], Session], with_order: bool) -> Samples:
    """Evenly spaced rows of evenly spaced splits; none where there is no key, and no order to cut.

    The driver reads them itself, while Spark starts, where the format lets it read a few columns alone.
    """
    splits = [split for split in work.source.splits if split.rows]
    if not (work.plan.key or with_order) or not splits:
        return Samples(pa.table({}), np.empty(0))
    sample = partial(sample_rows, work, _SAMPLED_ROWS, with_order)
    picked = _spread(splits)
    found = [sample(split) for split in picked] if work.source.columnar else session().each("sample", sample, picked)
    rows = pa.concat_tables(found)
    return Samples(rows, np.ones(rows.num_rows))


def _rows_together(work: Work, session: Session) -> float:
    """About how many rows go as one, where rows can be combined: fewer than in a whole chunk, if anything."""
    if work.start is not None or work.carry is not None or not can_be_combined(work.plan, work.source.schema):
        return 1.0
    splits = [split for split in work.source.splits if split.rows]
    middle = splits[len(splits) // 2]
    if work.source.columnar:
        return rows_a_cell(work, middle)
    (found,) = session.each("sample", partial(rows_a_cell, work), [middle])
    return found


def _with_carried(work: Work, samples: Samples, rows: int) -> Samples:
    """Add the keys of evenly spaced parts of the carry, which weigh as much as those of as many of the rows read."""
    if work.start is None or not work.plan.key:
        return samples
    parts = [part for part in work.start.parts if part.rows is not None]
    picked = _spread(parts)
    share = samples.rows.num_rows / rows if rows else 1.0
    share *= len(parts) / len(picked) if picked else 1
    found = [sampled_keys(work, part, share) for part in picked]
    tables = [samples.rows, *(keys for keys, _ in found)]
    weights = [samples.weights, *(weights for _, weights in found)]
    return Samples(pa.concat_tables(table for table in tables if table.num_columns), np.concatenate(weights))


def _spread(items: Sequence[T]) -> list[T]:
    picks = np.unique(np.linspace(0, len(items) - 1, min(len(items), _SAMPLED_SPLITS)).astype(int))
    return [items[i] for i in picks]


def _exchange(work: Work, session: Session, chunks: Sequence[Chunk], cuts: Cuts | None) -> list[Report]:
    slices = slices_of(cuts)
    send = guarded(partial(_blobs_of_all, work, cuts))
    receive = guarded(partial(_scan_partition, work.scanning, cuts))
    items: list[Chunk | CarryPart] = [*chunks, *(work.start.parts if work.start is not None else ())]

    def collected() -> list[Report]:
        blobs = session.context.parallelize(items, len(items)).mapPartitions(send)
        found: list[Report] = blobs.partitionBy(slices, _identity).mapPartitionsWithIndex(receive).collect()
        return found

    return session.run("exchange and scan", collected)  # all that speaks to Java, so that its end is told as such


def _blobs_of_all(work: Work, cuts: Cuts | None, items: Any) -> Any:
    for item in items:
        send = carry_blobs_of if isinstance(item, CarryPart) else blobs_of
        yield from send(work, cuts, item)


def _scan_partition(work: Work, cuts: Cuts | None, index: int, pairs: Any) -> Any:
    yield scan_slice(work, index, cuts, (blob for _, blob in pairs))


def _identity(index: int) -> int:
    return index


def _outcome(work: Work, reports: Sequence[Report], chunks: int, slices: int, seconds: dict[str, float]) -> Outcome:
    parts = [report.part for report in reports if report.part is not None]
    parts.sort(key=lambda part: (len(part.name), part.name))
    if slices > 1 and work.plan.takes_marks and not work.plan.options.plain:
        rows = empty_marks_of(work, reports)
        parts += [work.sink.write_part(3 * slices, [rows])] if rows.num_rows else []
    if not parts:
        parts = [work.sink.write_part(0, [])]
    counts = sum((report.counts for report in reports), Counts())
    if not counts.balanced:
        raise InputError(f"the account of the rows does not add up: {counts}", "report this: nothing was written")
    windows, falls = sum(report.windows for report in reports), sum(report.falls for report in reports)
    stands = next((report.stands for report in reports if report.stands is not None), work.stands)
    left = [report.left for report in reports]
    standing = None if work.carry is None else leave(work.carry, work.start, left, stands)
    rejects = tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name))
    return Outcome(tuple(parts), rejects, counts, windows, falls, chunks, slices, seconds, standing)
