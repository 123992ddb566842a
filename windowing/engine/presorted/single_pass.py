"""Chunks that stand in order, on one machine: read once, each scanned on from the one before.

Tasks read chunks side by side, and hand on where the window stands at the end of each; that takes little time, so none
waits long (a single-pass scan with look-back). It takes one machine, where tasks can wait for each other.
Whether all rows stand in order is known only in the end; where they do not, nothing of it counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...errors import DataError
from ...language.spec import Tumbling
from ...ports import RunTasks
from ...segments.segment_scan import exit_through
from ...segments.summary import SegmentSummary
from ...segments.tumbling import WindowPosition, advance, entry_state, tumbling_outline
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.map_side import read_chunk
from ..exchange.read_chunk import no_signals
from ..scan.segment_plan import FIRST, Segment, SegmentTask
from ..scan.segment_store import read_rows, write_rows
from ..scan.slice_scan import TaskReport
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .sorted_input import ends_of, follows, scan_chunk
from .task_relay import RelayTurn, batch_sizes, take_turn


@dataclass(frozen=True, slots=True)
class _Handoff:
    """Where the window stands behind a chunk. ``ends``: as `windowing.engine.presorted.sorted_input.ends_of`, of the
    last chunk that has rows; None where none has.
    """

    position: WindowPosition
    ends: pa.Table | None = None


def scan_in_one_pass(
    work: TaskContext, chunks: Sequence[Chunk], each: RunTasks, folder: str, cores: int
) -> list[TaskReport] | None:
    """Scan chunks one by one, each on from the one before; None where their rows do not stand in order.

    ``folder``: an empty one that all tasks see and can lock files in. ``cores``: how many tasks run at a time.
    """
    found = each("scan", partial(_scan_some, work, tuple(chunks), folder), batch_sizes(len(chunks), cores))
    work.sink.drop_scratch()
    reports = [report for some in found for report in some]
    if len(reports) == len(chunks):
        return reports
    work.sink.discard()
    return None


def _scan_some(work: TaskContext, chunks: Sequence[Chunk], folder: str, count: int) -> list[TaskReport]:
    """Scan so many chunks, one at a time, until one is given up."""
    reports: list[TaskReport] = []
    while len(reports) < count and (report := _scan_next(work, chunks, folder)) is not None:
        reports.append(report)
    return reports


def _scan_next(work: TaskContext, chunks: Sequence[Chunk], folder: str) -> TaskReport | None:
    """Scan the chunk whose turn it is. None where one does not stand in order, or fails for its data: these might be
    no rows of one window at all, so who sorts them first shall say."""
    try:
        with take_turn(folder) as leg:
            if leg is None or leg.index >= len(chunks):  # a task tried again: the chunk of its first try is lost
                return None
            return _scan_turn(work, chunks[leg.index], leg, leg.index == len(chunks) - 1)
    except DataError:
        return None


def _scan_turn(work: TaskContext, chunk: Chunk, leg: RelayTurn, is_last: bool) -> TaskReport | None:
    read = read_chunk(work, chunk)
    rows = read.sequences
    if not rows.arrived_in_order:
        return None
    summary = _outline(work, rows)
    received = leg.receive()
    if received is None:
        return None
    before: _Handoff = pickle.loads(received) if received else _Handoff(WindowPosition())
    after = _handoff_after(work, leg.index, before, rows, summary)
    if after is None:
        return None
    leg.pass_on(pickle.dumps(after))
    entry = entry_state(before.position, leg.index, summary, after.position, is_last)
    begun = [read_rows(work, _name(index)) for index, _ in entry.before]
    piece = Segment(leg.index, FIRST, _name(leg.index), None)
    return scan_chunk(work, SegmentTask(leg.index, piece, entry, is_last), begun, read)


def _outline(work: TaskContext, rows: Sequences) -> SegmentSummary:
    assert isinstance(work.plan.spec, Tumbling)
    return (
        tumbling_outline(work.plan, work.plan.spec, rows, no_signals(work).marks)
        if len(rows)
        else SegmentSummary(0, None)
    )


def _handoff_after(
    work: TaskContext, index: int, before: _Handoff, rows: Sequences, summary: SegmentSummary
) -> _Handoff | None:
    """Go on to the end of a chunk, and keep its rows of the window that is open there; None where it does not stand
    behind what came before."""
    after = before
    if len(rows):
        ends = ends_of(work, rows)
        if before.ends is not None and not follows(ends, before.ends):
            return None
        stand = advance(
            work.plan, before.position, index, summary, lambda _, value: exit_through(work.plan, rows, value)
        )
        after = _Handoff(stand, ends)
    if after.position.open_at is not None and not after.position.closed:
        piece, first = after.position.open_at
        write_rows(work, _name(index), part_of(rows, first if piece == index else 0, len(rows)))
    return after


def _name(index: int) -> str:
    return f"open-{index:05d}"
