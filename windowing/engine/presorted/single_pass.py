"""The single-pass scan with look-back: presorted chunks on one machine, each read once.

Tasks read chunks in parallel and pass on the position of the window at the end of each, in order. That takes little
time, so no task waits long. It needs one machine, where tasks can wait for each other. Only the end shows whether all
rows were in order; where they were not, the results are discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...errors import DataError
from ...ports import Executor
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.map_side import read_chunk
from ..exchange.read_chunk import no_signals
from ..scan.prefix_scan import SegmentRows, keep_open, relay_segment, scan_in_turn
from ..scan.segment_plan import Segment, SegmentTask
from ..scan.segment_store import read_rows
from ..scan.slice_scan import TaskReport, with_rejects
from ..tasks.sizing import Chunk
from ..tasks.task import TaskContext
from .sorted_input import first_and_last, follows
from .task_relay import batch_sizes, take_turn


def scan_in_one_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor, folder: str
) -> list[TaskReport] | None:
    """Scan presorted chunks, each from the entry state that the one before passes on; None where rows are not in order.

    ``folder``: an empty folder that all tasks see and can lock files in.
    """
    counts = batch_sizes(len(chunks), executor.parallelism)
    batches = executor.map("scan", partial(_scan_some, work, tuple(chunks), folder), counts)
    reports = [report for batch in batches for report in batch]
    is_whole = len(reports) == len(chunks)
    if is_whole:
        reports = with_rejects(work, chunks, reports, executor)
    else:
        work.sink.discard()
    work.sink.drop_scratch()
    return reports if is_whole else None


@dataclass(frozen=True, slots=True)
class ChunkInHand:
    """A chunk that its task has read, as a segment; what is kept of the open window of earlier chunks is in files.

    ``work``: the context of the tasks.
    ``index``: the number of the chunk.
    ``segment_rows``: its rows.
    """

    work: TaskContext
    index: int
    segment_rows: SegmentRows

    def rows(self, _: SegmentTask) -> SegmentRows:
        """Return the rows in hand."""
        return self.segment_rows

    def earlier_rows(self, segment: Segment, _: int) -> Sequences:
        """Return what an earlier turn has stored: the rows of the window that was open at its end."""
        return read_rows(self.work, segment.name)

    def window_rows(self, _: Segment) -> Sequences:
        """Return the rows in hand."""
        return self.segment_rows.rows

    def ends_after(self, before: pa.Table | None) -> pa.Table | None:
        """Return the order values of the first row and the last; None where the first sorts before those ``before``."""
        ends = first_and_last(self.work, self.segment_rows.rows)
        return ends if before is None or follows(ends, before) else None

    def keep_open(self, first: int, window: int) -> None:
        """Store, for later turns, what is kept of the rows from ``first`` on, which are in the numbered window."""
        rows, name = self.segment_rows.rows, relay_segment(self.index).name
        keep_open(self.work, name, part_of(rows, first, len(rows)), window)


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
            if turn is None or turn.index >= len(chunks):  # the chunk of a task that runs again is lost
                return None
            read = read_chunk(work, chunks[turn.index])
            rows = SegmentRows(read.sequences, no_signals(work), read.account)
            return scan_in_turn(work, ChunkInHand(work, turn.index, rows), turn, turn.index == len(chunks) - 1)
    except DataError:
        return None
