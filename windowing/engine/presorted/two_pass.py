"""The two-pass scan of presorted chunks on a cluster.

The first pass reads the columns that the window depends on; it shows whether rows are in order, and summarises each
chunk. The second reads each chunk and scans it from its entry state, and reads the rows of the window that is open at
its beginning once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import pyarrow as pa

from ...errors import InputError
from ...kinds.segment_summary import EntryState, SegmentSummary
from ...planning.plan import panes_only
from ...ports import Executor
from ...segments.segment_scan import concatenate, summarise
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.map_side import read_chunk
from ..exchange.read_chunk import no_signals, read_sequences
from ..scan.prefix_scan import SegmentRows, scan_segments
from ..scan.segment_plan import FIRST, Segment, SegmentTask
from ..scan.slice_scan import TaskReport, with_rejects
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .sorted_input import first_and_last, follows


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """What the first pass reports of a chunk.

    ``in_order``: whether its rows are in their total order.
    ``ends``: as in `windowing.engine.presorted.sorted_input.first_and_last`; None where all rows are rejected.
    ``summary``: the summary of its rows; None where all rows are rejected.
    """

    in_order: bool
    ends: pa.Table | None = None
    summary: SegmentSummary | None = None


@dataclass(frozen=True, slots=True)
class ChunksReadAgain:
    """Chunks as segments, of which each task reads what it needs from the input.

    ``work``: the context of the tasks.
    ``chunks``: all chunks.
    ``sizes``: number of rows of each that are not rejected.
    """

    work: TaskContext
    chunks: tuple[Chunk, ...]
    sizes: tuple[int, ...]

    def rows(self, task: SegmentTask) -> SegmentRows:
        """Read a chunk with all columns, and write its rejected rows."""
        read = read_chunk(self.work, self.chunks[task.segment.index])
        return SegmentRows(read.sequences, no_signals(self.work), read.account)

    def earlier_rows(self, segment: Segment, first: int) -> Sequences:
        """Read the rows of an earlier chunk from row ``first`` on, and as few others as possible."""
        return _last_rows(self.work, self.chunks[segment.index], self.sizes[segment.index] - first)

    def window_rows(self, segment: Segment) -> Sequences:
        """Read the columns of a chunk that the window depends on."""
        return read_sequences(replace(self.work, plan=panes_only(self.work.plan)), self.chunks[segment.index])


def scan_in_two_passes(work: TaskContext, chunks: Sequence[Chunk], executor: Executor) -> list[TaskReport] | None:
    """Scan presorted chunks, each from its entry state; None where their rows are not in order."""
    surveys = executor.map("look ahead", partial(summarise_chunk, work), chunks)
    if not _are_in_order(surveys):
        return None
    segments = [Segment(i, FIRST, str(i), None) for i in range(len(chunks))]
    found = [(segment, survey.summary) for segment, survey in zip(segments, surveys, strict=True)]
    summarised = [(segment, summary) for segment, summary in found if summary is not None]
    idle = [_idle(segment) for segment, summary in found if summary is None]
    sizes = tuple(0 if summary is None else summary.rows for _, summary in found)
    source = ChunksReadAgain(work, tuple(chunks), sizes)
    reports = scan_segments(work, source, [summarised] if summarised else [], executor, idle=idle)
    work.sink.drop_scratch()
    return with_rejects(work, chunks, reports, executor)


def summarise_chunk(work: TaskContext, chunk: Chunk) -> ChunkSummary:
    """Summarise a chunk from the columns that the window depends on."""
    work = replace(work, plan=panes_only(work.plan))
    rows = read_sequences(work, chunk)
    if not len(rows):
        return ChunkSummary(True)
    summary, _ = summarise(work.plan, rows, no_signals(work))
    return ChunkSummary(rows.arrived_in_order, first_and_last(work, rows), summary)


def _idle(segment: Segment) -> SegmentTask:
    """Return the task of a chunk of which all rows are rejected: it writes these and reports their account."""
    return SegmentTask(segment.index, segment, EntryState(0, 0, emits=False), False)


def _are_in_order(surveys: Sequence[ChunkSummary]) -> bool:
    ends = [survey.ends for survey in surveys if survey.ends is not None]
    return all(survey.in_order for survey in surveys) and all(follows(after, one) for one, after in pairwise(ends))


def _last_rows(work: TaskContext, chunk: Chunk, rows: int) -> Sequences:
    """Read the last ``rows`` rows of a chunk that are not rejected, and as few others as possible."""
    found: list[Sequences] = []
    for split in reversed(chunk.splits):
        for part in reversed(work.source.parts_of(split)):
            found.insert(0, read_sequences(work, replace(chunk, splits=(part,))))
            rows -= len(found[0])
            if rows <= 0:
                return concatenate([part_of(found[0], -rows, len(found[0])), *found[1:]])
    raise InputError("the input has fewer rows than when the run began", "run it again when nothing writes to it")
