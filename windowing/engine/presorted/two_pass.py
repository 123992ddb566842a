"""Chunks that stand in order, on a cluster: one pass over what the window looks at, one over what it needs.

The first tells whether they stand in order, and summarises each chunk. Then each is read where it is and scanned on
from the one before; the rows of a window that is open at its beginning are read again.
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
from ...ports import RunTasks
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
from .sorted_input import ends_of, follows, scan_chunk


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """What the first pass tells of a chunk. ``in_order``: whether its rows stand in their total order.

    ``ends``: as `windowing.engine.presorted.sorted_input.ends_of`, and ``summary``; None where it has no row that is
    kept.
    """

    in_order: bool
    ends: pa.Table | None = None
    summary: SegmentSummary | None = None


def scan_in_two_passes(work: TaskContext, chunks: Sequence[Chunk], each: RunTasks) -> list[TaskReport] | None:
    """Scan chunks one by one, each on from the one before; None where their rows do not stand in order."""
    surveys: list[ChunkSummary] = each("look ahead", partial(summarise_chunk, work), chunks)
    if not _are_in_order(surveys):
        return None
    told = {
        str(i): (Segment(chunk.index, FIRST, str(i), None), found.summary)
        for i, (chunk, found) in enumerate(zip(chunks, surveys, strict=True))
        if found.summary is not None
    }

    def run_through_chunk(piece: Segment, value: Any) -> Exit:
        (end,) = each("follow", partial(_run_through_chunk, work, value), [chunks[int(piece.name)]])
        return end

    turns = {
        turn.segment.name: turn for turn in plan_segments(work.plan, None, list(told.values()), run_through_chunk, None)
    }
    items = []
    for i, chunk in enumerate(chunks):
        turn = turns.get(str(i))
        before = () if turn is None else turn.before
        spans = tuple((chunks[int(piece.name)], told[piece.name][1].rows - first) for piece, first, _ in before)
        items.append(_Item(chunk, turn, spans))
    return each("scan", partial(_scan, work), items)


def summarise_chunk(work: TaskContext, chunk: Chunk) -> ChunkSummary:
    """Look at the columns of a chunk that the window looks at."""
    work = replace(work, plan=panes_only(work.plan))
    rows = _sequences(work, chunk)
    if not len(rows):
        return ChunkSummary(True)
    summary, _ = summarise(work.plan, rows, no_signals(work))
    return ChunkSummary(rows.arrived_in_order, ends_of(work, rows), summary)


@dataclass(frozen=True, slots=True)
class _Item:
    """A chunk, what is to be scanned of it, and the chunks before of which so many rows at their ends belong to it."""

    chunk: Chunk
    turn: SegmentTask | None
    before: tuple[tuple[Chunk, int], ...]


def _are_in_order(surveys: Sequence[ChunkSummary]) -> bool:
    ends = [survey.ends for survey in surveys if survey.ends is not None]
    return all(survey.in_order for survey in surveys) and all(follows(after, one) for one, after in pairwise(ends))


def _scan(work: TaskContext, item: _Item) -> TaskReport:
    read = read_chunk(work, item.chunk)
    if item.turn is None:
        return TaskReport(None, read.account.counts, read.account.rejects, 0, 0)
    return scan_chunk(work, item.turn, [_last_rows(work, *told) for told in item.before], read)


def _last_rows(work: TaskContext, chunk: Chunk, rows: int) -> Sequences:
    """Read the last rows of a chunk that are kept, and no more that can be left out."""
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
