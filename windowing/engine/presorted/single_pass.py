"""The single-pass scan with look-back: presorted chunks on one machine, each read once.

Tasks read chunks in parallel and pass on the position of the window at the end of each, in order. That takes little
time, so no task waits long. It needs one machine, where tasks can wait for each other. Only the end shows whether all
rows were in order; where they were not, the results are discarded.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...errors import DataError
from ...language.spec import Tumbling
from ...ports import Executor
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
from .sorted_input import first_and_last, follows, scan_chunk
from .task_relay import RelayTurn, batch_sizes, take_turn


@dataclass(frozen=True, slots=True)
class _Handoff:
    """The position of the window after a chunk.

    ``position``: the position.
    ``ends``: `windowing.engine.presorted.sorted_input.first_and_last` of the last chunk with rows; None: no rows yet.
    """

    position: WindowPosition
    ends: pa.Table | None = None


def scan_in_one_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor, folder: str
) -> list[TaskReport] | None:
    """Scan presorted chunks, each from the entry state that the one before passes on; None where rows are not in order.

    ``folder``: an empty folder that all tasks see and can lock files in.
    """
    batches = executor.map(
        "scan", partial(_scan_some, work, tuple(chunks), folder), batch_sizes(len(chunks), executor.parallelism)
    )
    work.sink.drop_scratch()
    reports = [report for batch in batches for report in batch]
    if len(reports) == len(chunks):
        return reports
    work.sink.discard()
    return None


def _scan_some(work: TaskContext, chunks: Sequence[Chunk], folder: str, count: int) -> list[TaskReport]:
    """Scan ``count`` chunks, one at a time, or fewer where one gives up."""
    reports: list[TaskReport] = []
    while len(reports) < count and (report := _scan_next(work, chunks, folder)) is not None:
        reports.append(report)
    return reports


def _scan_next(work: TaskContext, chunks: Sequence[Chunk], folder: str) -> TaskReport | None:
    """Scan the next chunk; None where it gives up because its rows are not in order or its data fails.

    Data that fails may be no rows of one window at all, so the exchange, which sorts them, shall raise the error.
    """
    try:
        with take_turn(folder) as turn:
            if turn is None or turn.index >= len(
                chunks
            ):  # Spark retries a task: the chunk of its first attempt is lost
                return None
            return _scan_turn(work, chunks[turn.index], turn, turn.index == len(chunks) - 1)
    except DataError:
        return None


def _scan_turn(work: TaskContext, chunk: Chunk, turn: RelayTurn, is_last: bool) -> TaskReport | None:
    read = read_chunk(work, chunk)
    rows = read.sequences
    if not rows.arrived_in_order:
        return None
    summary = _outline(work, rows)
    message = turn.receive()
    if message is None:
        return None
    before: _Handoff = pickle.loads(message) if message else _Handoff(WindowPosition())
    after = _handoff_after(work, turn.index, before, rows, summary)
    if after is None:
        return None
    turn.pass_on(pickle.dumps(after))
    entry = entry_state(before.position, turn.index, summary, after.position, is_last)
    open_rows = [read_rows(work, _name(index)) for index, _ in entry.before]
    segment = Segment(turn.index, FIRST, _name(turn.index), None)
    return scan_chunk(work, SegmentTask(turn.index, segment, entry, is_last), open_rows, read)


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
    """Return the position after a chunk, and store its rows of the window that is open there.

    None where the chunk's rows do not sort after those of the chunks before.
    """
    after = before
    if len(rows):
        ends = first_and_last(work, rows)
        if before.ends is not None and not follows(ends, before.ends):
            return None
        position = advance(
            work.plan, before.position, index, summary, lambda _, value: exit_through(work.plan, rows, value)
        )
        after = _Handoff(position, ends)
    if after.position.open_at is not None and not after.position.closed:
        segment, first = after.position.open_at
        write_rows(work, _name(index), part_of(rows, first if segment == index else 0, len(rows)))
    return after


def _name(index: int) -> str:
    return f"open-{index:05d}"
