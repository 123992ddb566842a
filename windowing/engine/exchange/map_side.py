"""The map side: read chunks, reject rows that no window can place, sort, cut, and write a block for each slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from ...columns.arrays import ClockValue, Ints, latest_clock
from ...ports import ChunkAccount, Counts
from ...scan.lateness import LatenessResult, assess, highest_reading, no_watermarks
from ...scan.preaggregate import preaggregate
from ...scan.row_validation import add_late
from ...scan.scan import latest
from ...sequences.marks import Marks, all_marks
from ...sequences.merge import merge
from ...sequences.sequence import Sequences
from ..tasks.rejects import reject
from ..tasks.row_checks import span_of
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .block_transport import Fill
from .blocks import ShuffleBlock, part_of, write
from .range_cuts import SliceBounds, slice_offsets, slices_of
from .read_chunk import ChunkRows, read_columns, read_rows, sequences_of


@dataclass(frozen=True, slots=True)
class MappedChunk:
    """One chunk, or several neighbours merged, after reading, row validation and sorting.

    ``sequences``: the rows.
    ``marks``: window marks, or watermark advances.
    ``level``: int64 (marks,), as in `ShuffleBlock`.
    ``clock``: the largest measure of the clock, or None.
    ``account``: row accounting of the chunk.
    """

    sequences: Sequences
    marks: Marks
    level: Ints
    clock: int | float | None
    account: ChunkAccount


def blocks_of(work: TaskContext, cuts: SliceBounds | None, chunks: Sequence[Chunk]) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, function that writes its block) for each slice that needs anything of neighbouring chunks."""
    read = _merged([_for_scan(work, chunk) for chunk in chunks])
    offsets = slice_offsets(read.sequences, cuts)
    slices, first = slices_of(cuts), chunks[0]
    account_slice = first.index % slices
    for i in range(slices):
        part = part_of(read.sequences, int(offsets[i]), int(offsets[i + 1]))
        account = read.account if i == account_slice else None
        if len(part) or len(read.marks) or read.clock is not None or account:
            block = ShuffleBlock(first.index, part, read.marks, read.level, read.clock, account)
            yield i, partial(write, block, first.base)


def _for_scan(work: TaskContext, chunk: Chunk) -> MappedChunk:
    """Read a chunk, and aggregate it partially where the scan expects that."""
    read = read_chunk(work, chunk)
    if work.scan_plan is None:
        return read
    return replace(read, sequences=preaggregate(work.plan, work.scan_plan, read.sequences, read.marks))


def _merged(reads: Sequence[MappedChunk]) -> MappedChunk:
    """Merge chunks in the order of their positions, as the scan would merge their blocks, which sorts the marks."""
    if len(reads) == 1:
        return reads[0]
    return MappedChunk(
        merge([read.sequences for read in reads]),
        all_marks([read.marks for read in reads]),
        np.concatenate([read.level for read in reads]),
        latest_clock([read.clock for read in reads]),
        sum((read.account for read in reads), ChunkAccount()),
    )


def read_chunk(work: TaskContext, chunk: Chunk) -> MappedChunk:
    """Read all splits of a chunk, write its rejects, and sort the other rows into sequences."""
    read, level = read_assessed(work, chunk)
    reasons, marks = read.reasons, read.marks
    rows_in = chunk.rows - read.mark_only - sum(batch.elsewhere for batch in read.batches)
    counts = Counts(rows_in=rows_in, filtered=read.filtered)
    sequences = sequences_of(work, read.rows, read.pos, reasons)
    span = span_of(work.plan, sequences.rows) if work.asks_span else None
    account = reject(work, chunk, read.batches, read.pos, reasons) + ChunkAccount(counts, span=span)
    return MappedChunk(sequences, marks, level, latest(work.plan, sequences.rows), account)


def read_assessed(work: TaskContext, chunk: Chunk) -> tuple[ChunkRows, Ints]:
    """Read all splits of a chunk, with reject reasons and signals; also return the levels of these, int64 (marks,).

    The signals stand in `ChunkRows.marks`: window marks, or the advances of the watermark.
    """
    read = read_rows(work, chunk)
    if not work.plan.kind.has_watermark:
        return read, np.zeros(len(read.marks), np.int64)
    lateness = _assess_lateness(work, chunk, read.rows, read.pos)
    advances = lateness.watermarks
    return replace(read, reasons=add_late(read.reasons, lateness.late), marks=advances.marks), advances.level


def chunk_reading(work: TaskContext, chunk: Chunk) -> ClockValue | None:
    """Return the largest event time of a chunk: all that a watermark without ``--min-gap`` needs of it."""
    return highest_reading(work.plan, read_columns(work, chunk, [str(work.plan.options.event_time)])[0])


def _assess_lateness(work: TaskContext, chunk: Chunk, rows: pa.RecordBatch, pos: Ints) -> LatenessResult:
    """Return the lateness of a chunk, computed here or taken from the global pass."""
    if work.decisions is None:
        return assess(work.plan, chunk.announced, rows, pos)
    late: Ints = work.decisions.value.late
    return LatenessResult(np.isin(pos, late, assume_unique=True), no_watermarks(rows, work.plan.sort))
