"""The prefix scan: a sequence that is cut into segments is scanned by many tasks, to the same bits.

Each segment is summarised by itself, or run through behind the one before; that is composed, in order, into the
entry state of each segment; from there each segment is scanned. The driver composes where the tasks of an exchange have
staged segments, between two rounds of tasks (`scan_staged_segments`); or it is a relay, in which each task has its
segment in hand, and hands the position on to the next (`windowing.engine.presorted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..columns.arrays import combined, latest_clock
from ..kinds.context import Signals
from ..kinds.segment_summary import Passage
from ..ports import ChunkAccount, Executor
from ..rows.sequence import Sequences, take_rows
from ..scan.continue_scan import End
from ..scan.scan import falls_of
from ..scan.segment_scan import (
    WindowPart,
    continued_before,
    count_segment,
    entry_carry,
    open_before,
    retained_before,
    scan_segment,
    sends_partials,
    window_part,
)
from ..state.carry import Carry
from .blocks import part_of
from .map_side import no_signals
from .range_cuts import SliceBounds
from .rejects import store_rejects
from .segments import (
    Segment,
    SegmentTask,
    plan_segments,
    read_numbers,
    read_part,
    read_segment,
    read_signals,
    segments_by_key,
    with_window_numbers,
    write_numbers,
    write_part,
    write_rows,
)
from .slice_scan import TaskReport, counts_of, mark_bits, write_parts
from .task import TaskContext


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """The rows of a segment, when its task has them.

    ``rows``: the rows; there may be none.
    ``signals``: the signals before the next segment.
    ``account``: the row accounting of the input that was read for it, where no other task reports that.
    """

    rows: Sequences
    signals: Signals
    account: ChunkAccount = field(default_factory=ChunkAccount)


class SegmentSource(Protocol):
    """Where the rows of segments are: staged, or in hand."""

    def rows(self, task: SegmentTask) -> SegmentRows:
        """Return the rows of the segment that a task scans, with all columns that the plan needs."""
        ...

    def earlier_rows(self, segment: Segment, first: int) -> Sequences:
        """Return the rows of an earlier segment from row ``first`` on."""
        ...


def keep_open(work: TaskContext, name: str, rows: Sequences, window: int) -> None:
    """Store rows of a window that is open at the end of a segment: combined, or as they are.

    ``window``: its number.
    """
    if sends_partials(work.plan, work.source.schema):
        write_part(work, name, window_part(work.plan, rows, window))
    else:
        write_rows(work, name, rows)


def scan_from_entry(work: TaskContext, source: SegmentSource, task: SegmentTask) -> TaskReport:
    """Scan a segment from its entry state, and write its part of the result."""
    found = source.rows(task)
    carry = _carry(work, source, task, found)
    if task.since_then and work.plan.kind.needs.overlaps and carry.state is not None:
        numbers = [read_numbers(work, f"{earlier.name}-shown") for earlier in task.since_then]
        shown = np.isin(carry.state.sequences.pos, np.concatenate(numbers))
        carry = replace(carry, state=replace(carry.state, row_state=replace(carry.state.row_state, shown=shown)))
    end = End(task.clock, is_continued=not task.is_last)
    scanned = scan_segment(work.plan, task.entry, carry, found.rows, found.signals, end)
    parts = write_parts(work, task.part, scanned.tables)
    counts = counts_of(scanned, scanned.rejects) + found.account.counts
    occupied = mark_bits(scanned.by_mark, len(found.signals)) if work.plan.takes_marks else b""
    falls = falls_of(work.plan, found.rows) + task.entry.falls
    report = TaskReport(parts, counts, found.account.rejects, scanned.windows, falls, occupied, span=found.account.span)
    return replace(report, stored_rejects=store_rejects(work, task.part, scanned.rejects))


def _count(work: TaskContext, source: StagedSegments, task: SegmentTask) -> int:
    found = source.rows(task)
    carry = _carry(work, source, task, found)
    windows, shown = count_segment(work.plan, task.entry, carry, found.rows, found.signals)
    write_numbers(work, f"{task.segment.name}-shown", shown)
    return windows


def _pass_through(work: TaskContext, segments: Sequence[Segment]) -> list[Passage]:
    """Run the segments of a key through: what is open behind one decides what the next one does."""
    kind, found, value = work.plan.kind, list[Passage](), None
    for segment in segments:
        found.append(kind.pass_through(read_segment(work, segment), value, work.plan.context))
        value = found[-1].value
    return found


def _carry(work: TaskContext, source: SegmentSource, task: SegmentTask, found: SegmentRows) -> Carry:
    """Return what the segments before one leave to it. No row of them counts as shown yet."""
    plan, entry, segment = work.plan, task.entry, found.rows
    carry_of = partial(entry_carry, plan, entry, segment=segment, signals=found.signals)
    if sends_partials(plan, work.source.schema):
        of_window = [_part(work, source, task, earlier, first) for earlier, first, _ in task.before]
        standing, continued = continued_before(plan, of_window, entry.value, segment)
        return carry_of(standing, continued=continued)
    if not plan.kind.needs.overlaps:
        earlier = [source.earlier_rows(earlier, first) for earlier, first, _ in task.before]
        return carry_of(open_before(earlier, segment))
    parts, ranks = [], [np.empty(0, np.int64)]
    for one, _, rows in task.before:
        retained = read_numbers(work, f"{one.name}-held")
        parts.append(_rows_at(source.earlier_rows(one, 0), retained))
        ranks.append(rows + retained)
    before, baseline = retained_before(plan, entry, parts, np.concatenate(ranks), found.signals, segment), None
    if task.baseline is not None:
        one, row = task.baseline
        column = combined(source.earlier_rows(one, 0).rows.column(str(plan.kind.needs.baseline)))
        baseline = column.slice(row, 1)
    return carry_of(before, baseline=baseline)


def _with_parts(
    work: TaskContext, source: StagedSegments, tasks: Sequence[SegmentTask], executor: Executor
) -> list[SegmentTask]:
    """Let segments that a window goes through store their parts of it, each in a task of its own.

    Where all earlier rows of a window are in one segment, the task that scans the window combines them itself.
    """
    far = {task.part for task in tasks if len(task.before) > 1}
    begun = [
        (earlier, first, task.entry.windows) for task in tasks if task.part in far for earlier, first, _ in task.before
    ]
    if begun:
        executor.map("combine", partial(_keep_part, work, source), begun)
    return [replace(task, has_parts=task.part in far) for task in tasks]


def _keep_part(work: TaskContext, source: StagedSegments, begun: tuple[Segment, int, int]) -> None:
    segment, first, window = begun
    keep_open(work, segment.name, source.earlier_rows(segment, first), window)


def _part(work: TaskContext, source: SegmentSource, task: SegmentTask, earlier: Segment, first: int) -> WindowPart:
    if task.has_parts:
        return read_part(work, earlier.name)
    return window_part(work.plan, source.earlier_rows(earlier, first), task.entry.windows)


def _rows_at(segment: Sequences, picks: Any) -> Sequences:
    bounds = np.array([0, len(picks)])
    return replace(segment, bounds=bounds, rows=take_rows(segment.rows, picks), pos=segment.pos[picks])


# Segments that the tasks of an exchange have staged: a `SegmentSource` over scratch rows.


def scan_staged_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Scan all segments that the slices have stored: compose the summaries of each key's on the driver, scan in tasks.

    ``cuts``: the cuts of the total order.
    """
    source = StagedSegments(work)
    by_key = segments_by_key(cuts, [segment for report in reports for segment in report.segments])
    clock = latest_clock(report.clock for report in reports)
    passages: list[list[Passage]] = [[] for _ in by_key]
    if work.plan.kind.needs.run_through and by_key:
        segments = [[segment for segment, _ in of_key] for of_key in by_key]
        passages = executor.map("follow", partial(_pass_through, work), segments)
    tasks_by_key = [
        plan_segments(work.plan, cuts, of_key, through, clock) for of_key, through in zip(by_key, passages, strict=True)
    ]
    if work.plan.kind.needs.overlaps:
        counted = [task for tasks in tasks_by_key for task in tasks[:-1]]
        windows = iter(executor.map("count", partial(_count, work, source), counted))
        tasks_by_key = [with_window_numbers(tasks, [next(windows) for _ in tasks[:-1]]) for tasks in tasks_by_key]
    tasks = sorted((task for tasks in tasks_by_key for task in tasks), key=lambda task: task.part)
    if sends_partials(work.plan, work.source.schema):
        tasks = _with_parts(work, source, tasks, executor)
    return executor.map("scan", partial(scan_from_entry, work, source), tasks)


@dataclass(frozen=True, slots=True)
class StagedSegments:
    """Segments in scratch files, with the signals that all share.

    ``work``: the context of the tasks.
    """

    work: TaskContext

    def rows(self, task: SegmentTask) -> SegmentRows:
        plan = self.work.plan
        rows = read_segment(self.work, task.segment)  # they stay on disk until they are used
        if plan.takes_marks or plan.kind.needs.watermark:
            return SegmentRows(rows, read_signals(self.work, not plan.takes_marks, task.marks))
        return SegmentRows(rows, no_signals(self.work))

    def earlier_rows(self, segment: Segment, first: int) -> Sequences:
        rows = read_segment(self.work, segment)
        return rows if first <= 0 else part_of(rows, first, len(rows))
