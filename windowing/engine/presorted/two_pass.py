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
from typing import Any

import pyarrow as pa

from ...errors import InputError
from ...planning.plan import panes_only
from ...ports import Executor
from ...segments.delta_chains import Exit
from ...segments.segment_scan import concatenate, exit_through, summarise
from ...segments.summary import SegmentSummary
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.map_side import read_chunk
from ..exchange.read_chunk import no_signals, read_rows, sequences_of
from ..scan.segment_plan import FIRST, Segment, SegmentTask, plan_segments
from ..scan.slice_scan import TaskReport
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .sorted_input import first_and_last, follows, scan_chunk


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


def scan_in_two_passes(work: TaskContext, chunks: Sequence[Chunk], executor: Executor) -> list[TaskReport] | None:
    """Scan presorted chunks, each from its entry state; None where their rows are not in order."""
    summaries: list[ChunkSummary] = executor.map("look ahead", partial(summarise_chunk, work), chunks)
    if not _are_in_order(summaries):
        return None
    segments = {
        str(i): (Segment(chunk.index, FIRST, str(i), None), found.summary)
        for i, (chunk, found) in enumerate(zip(chunks, summaries, strict=True))
        if found.summary is not None
    }

    def run_through_chunk(segment: Segment, value: Any) -> Exit:
        (end,) = executor.map("follow", partial(_run_through_chunk, work, value), [chunks[int(segment.name)]])
        return end

    tasks = {
        turn.segment.name: turn
        for turn in plan_segments(work.plan, None, list(segments.values()), run_through_chunk, None)
    }
    chunk_tasks = []
    for i, chunk in enumerate(chunks):
        turn = tasks.get(str(i))
        before = () if turn is None else turn.before
        earlier_chunks = tuple(
            (chunks[int(segment.name)], segments[segment.name][1].rows - first) for segment, first, _ in before
        )
        chunk_tasks.append(_ChunkTask(chunk, turn, earlier_chunks))
    return executor.map("scan", partial(_scan, work), chunk_tasks)


def summarise_chunk(work: TaskContext, chunk: Chunk) -> ChunkSummary:
    """Summarise a chunk from the columns that the window depends on."""
    work = replace(work, plan=panes_only(work.plan))
    rows = _sequences(work, chunk)
    if not len(rows):
        return ChunkSummary(True)
    summary, _ = summarise(work.plan, rows, no_signals(work))
    return ChunkSummary(rows.arrived_in_order, first_and_last(work, rows), summary)


@dataclass(frozen=True, slots=True)
class _ChunkTask:
    """The input of a task of the second pass.

    ``chunk``: the chunk.
    ``turn``: how its segment is scanned; None where all its rows are rejected.
    ``before``: earlier chunks, each with the number of rows at its end that the chunk's first window shows.
    """

    chunk: Chunk
    turn: SegmentTask | None
    before: tuple[tuple[Chunk, int], ...]


def _are_in_order(summaries: Sequence[ChunkSummary]) -> bool:
    ends = [survey.ends for survey in summaries if survey.ends is not None]
    return all(survey.in_order for survey in summaries) and all(follows(after, one) for one, after in pairwise(ends))


def _scan(work: TaskContext, chunk_task: _ChunkTask) -> TaskReport:
    read = read_chunk(work, chunk_task.chunk)
    if chunk_task.turn is None:
        return TaskReport(None, read.account.counts, read.account.rejects, 0, 0)
    return scan_chunk(work, chunk_task.turn, [_last_rows(work, *segments) for segments in chunk_task.before], read)


def _last_rows(work: TaskContext, chunk: Chunk, rows: int) -> Sequences:
    """Read the last ``rows`` rows of a chunk that are not rejected, and as few others as possible."""
    found: list[Sequences] = []
    for split in reversed(chunk.splits):
        for part in reversed(work.source.parts_of(split)):
            found.insert(0, _sequences(work, replace(chunk, splits=(part,))))
            rows -= len(found[0])
            if rows <= 0:
                return concatenate([part_of(found[0], -rows, len(found[0])), *found[1:]])
    raise InputError("the input has fewer rows than when the run began", "run it again when nothing writes to it")


def _run_through_chunk(work: TaskContext, value: Any, chunk: Chunk) -> Exit:
    work = replace(work, plan=panes_only(work.plan))
    return exit_through(work.plan, _sequences(work, chunk), value)


def _sequences(work: TaskContext, chunk: Chunk) -> Sequences:
    read = read_rows(work, chunk)
    return sequences_of(work, read.rows, read.pos, read.reasons)
