"""The map side: read a chunk, set aside what has no place, sort, cut, and send one blob to each slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from ...clock.values import clock_values
from ...columns.arrays import ClockValue, Ints, combined
from ...language.spec import TimeInterval, needs_clock
from ...planning.plan import Plan
from ...ports import ChunkAccount, Counts
from ...scan.lateness import LatenessResult, assess, no_watermarks, rows_summary
from ...scan.preaggregate import preaggregate
from ...scan.row_validation import add_late
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences
from ..tasks.rejects import reject
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .block_transport import Fill
from .blocks import ShuffleBlock, part_of, write
from .range_cuts import SliceBounds, slice_offsets, slices_of
from .read_chunk import late_for_restore_point, read_columns, read_rows, sequences_of


@dataclass(frozen=True, slots=True)
class MappedChunk:
    """One chunk, read, screened and sorted."""

    sequences: Sequences
    marks: Marks
    level: Ints
    clock: int | float | None
    account: ChunkAccount


def blocks_of(work: TaskContext, cuts: SliceBounds | None, chunk: Chunk) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, what writes its blob) for each slice that the chunk has anything to tell."""
    read = read_chunk(work, chunk)
    sequences = read.sequences if work.scan_plan is None else preaggregate(work.plan, work.scan_plan, read.sequences)
    places = slice_offsets(sequences, cuts)
    slices = slices_of(cuts)
    home = chunk.index % slices
    for i in range(slices):
        part = part_of(sequences, int(places[i]), int(places[i + 1]))
        account = read.account if i == home else None
        if len(part) or len(read.marks) or read.clock is not None or account:
            yield (
                i,
                partial(
                    write, ShuffleBlock(chunk.index, part, read.marks, read.level, read.clock, account), chunk.base
                ),
            )


def read_chunk(work: TaskContext, chunk: Chunk) -> MappedChunk:
    """Read all splits of a chunk, write its rejects, and sort the rest into sequences."""
    read = read_rows(work, chunk)
    reasons = add_late(read.reasons, late_for_restore_point(work, read.rows))
    marks, level = read.marks, np.zeros(len(read.marks), np.int64)
    if isinstance(work.plan.spec, TimeInterval):
        judged = _assess_lateness(work, chunk, read.rows, read.pos)
        reasons = add_late(reasons, judged.late)
        marks, level = judged.watermarks.marks, judged.watermarks.level
    only_marks = sum(len(batch.pos) for batch in read.batches) - len(read.pos)
    rows_in = chunk.rows - only_marks - sum(batch.elsewhere for batch in read.batches)
    account = reject(work, chunk, read.batches, read.pos, reasons) + ChunkAccount(Counts(rows_in=rows_in))
    sequences = sequences_of(work, read.rows, read.pos, reasons)
    return MappedChunk(sequences, marks, level, _clock(work.plan, sequences), account)


def chunk_summary(work: TaskContext, chunk: Chunk) -> ClockValue | None:
    """All that a chunk does to a watermark that takes every rise: its largest event time."""
    return rows_summary(work.plan, read_columns(work, chunk, [str(work.plan.options.event_time)])[0])


def _assess_lateness(work: TaskContext, chunk: Chunk, rows: pa.RecordBatch, pos: Ints) -> LatenessResult:
    """What the watermark makes of a chunk, here or in the ordered pass before."""
    if work.decisions is None:
        return assess(work.plan, chunk.announced, rows, pos)
    late: Ints = work.decisions.value.late
    return LatenessResult(np.isin(pos, late, assume_unique=True), no_watermarks(rows, work.plan.sort))


def _clock(plan: Plan, sequences: Sequences) -> int | float | None:
    """Where the chunk has brought the clock, for windows that look at it."""
    if not needs_clock(plan.spec) or not len(sequences):
        return None
    column = combined(sequences.rows.column(plan.sort[0]))
    return clock_values(column, plan.sort[0]).max().item()
