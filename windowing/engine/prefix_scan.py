"""The prefix scan: a sequence that is cut into segments is scanned by many tasks, to the same bits.

What the segments before one leave to it is found first, in little time; from there each segment is scanned. Where
tasks of an exchange have staged segments this takes a few rounds of tasks (`scan_staged_segments`); or it is a relay,
in which each task has its segment in hand, and hands the position on to the next (`windowing.engine.presorted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Protocol

import numpy as np

from ..columns.arrays import ClockValue, latest_clock
from ..kinds.context import Signals
from ..kinds.segment_summary import Passage
from ..ports import ChunkAccount, Executor
from ..rows.marks import epochs
from ..rows.sequence import Sequences
from ..scan.continue_scan import End, retain
from ..scan.scan import falls_of
from ..scan.segment_scan import (
    WindowPart,
    continued_before,
    count_segment,
    entry_carry,
    open_before,
    scan_segment,
    sends_partials,
    window_part,
)
from ..state.carry import Carry, Registers
from .blocks import part_of
from .map_side import no_signals
from .range_cuts import SliceBounds
from .rejects import store_rejects
from .segments import (
    ChainLink,
    Segment,
    SegmentTask,
    SummarisedSegment,
    plan_segments,
    read_carry,
    read_numbers,
    read_part,
    read_segment,
    read_signals,
    segments_by_key,
    tasks_of,
    tumbling,
    write_carry,
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
    """Scan a segment from what the segments before it leave, and write its part of the result."""
    found = source.rows(task)
    falls = falls_of(work.plan, found.rows)
    report = TaskReport((), found.account.counts, found.account.rejects, 0, falls, span=found.account.span)
    if task.entry is not None:
        report = replace(report, falls=falls + task.entry.falls)
        if not task.entry.emits:
            return report
    end = End(task.clock, is_continued=not task.is_last)
    scanned = scan_segment(work.plan, _carry(work, source, task, found), found.rows, found.signals, end)
    return replace(
        report,
        parts=write_parts(work, task.part, scanned.tables),
        counts=report.counts + counts_of(scanned, scanned.rejects),
        windows=scanned.windows,
        occupied=mark_bits(scanned.by_mark, len(found.signals)) if work.plan.takes_marks else b"",
        stored_rejects=store_rejects(work, task.part, scanned.rejects),
    )


def _carry(work: TaskContext, source: SegmentSource, task: SegmentTask, found: SegmentRows) -> Carry:
    """Return what the segments before one leave to it."""
    plan, entry, segment = work.plan, task.entry, found.rows
    if entry is None:
        return _carry_before(work, task, found.signals)
    if sends_partials(plan, work.source.schema):
        of_window = [_part(work, source, task, earlier, first) for earlier, first in task.before]
        standing, continued = continued_before(plan, of_window, entry.value, segment)
        return entry_carry(plan, entry, standing, segment, continued)
    earlier = [source.earlier_rows(earlier, first) for earlier, first in task.before]
    return entry_carry(plan, entry, open_before(earlier, segment), segment)


# Windows that overlap go on from segment to segment with the rows that they retain, as incremental runs do. How many
# panes came out before a segment, and which rows these have shown, takes a scan of each: that is done side by side.


def _go_through(work: TaskContext, segments: Sequence[Segment]) -> list[ChainLink]:
    """Go through the segments of a key, and store with which window state each begins."""
    plan = work.plan
    signals = read_signals(work) if plan.kind.needs.watermark else no_signals(work)
    carry, links, starts, before = Carry(), list[ChainLink](), [0], None
    for number, segment in enumerate(segments):
        rows = read_segment(work, segment)
        passed = signals.first(int(epochs(part_of(rows, 0, 1), signals.marks)[0]))
        if before is not None:
            carry = retain(plan, before, passed, carry)
        first = number
        if carry.state is not None:
            rank = carry.state.sequences.rank
            assert rank is not None
            first = int(np.searchsorted(starts, rank[0], side="right")) - 1 if len(rank) else number
            write_carry(work, segment.name, carry.state)
        links.append(ChainLink(number == 0, len(passed), first, carry.registers.clock))
        starts.append(starts[-1] + len(rows))
        before = rows
    return links


def _tasks_of_chain(
    cuts: SliceBounds, segments: Sequence[Segment], links: Sequence[ChainLink], clock: ClockValue | None
) -> list[SegmentTask]:
    tasks = tasks_of(cuts, segments, [link.signals for link in links], clock)
    return [
        replace(task, link=link, retained_of=tuple(segments[link.first : i]))
        for i, (task, link) in enumerate(zip(tasks, links, strict=True))
    ]


def _carry_before(work: TaskContext, task: SegmentTask, signals: Signals, is_counted: bool = True) -> Carry:
    """Return the carry with which a segment begins.

    ``is_counted``: whether the segments before have been counted; else none of their rows counts as shown yet.
    """
    link = task.link
    assert link is not None
    advances = None if signals.watermarks is None else signals.first(link.signals).watermarks
    carry = Carry(Registers(clock=link.clock, advances=advances))
    if link.is_first:
        return carry
    state = read_carry(work, task.segment.name)
    if is_counted:
        state = replace(state, key_state=replace(state.key_state, windows=np.array([task.windows])))
        if task.retained_of:
            numbers = [read_numbers(work, f"{earlier.name}-shown") for earlier in task.retained_of]
            shown = np.isin(state.sequences.pos, np.concatenate(numbers))
            state = replace(state, row_state=replace(state.row_state, shown=shown))
    return replace(carry, state=state)


def _count(work: TaskContext, source: StagedSegments, task: SegmentTask) -> int:
    found = source.rows(task)
    carry = _carry_before(work, task, found.signals, is_counted=False)
    windows, shown = count_segment(work.plan, carry, found.rows, found.signals)
    write_numbers(work, f"{task.segment.name}-shown", shown)
    return windows


def _scan_chains(
    work: TaskContext,
    source: StagedSegments,
    cuts: SliceBounds,
    by_key: Sequence[Sequence[SummarisedSegment]],
    clock: ClockValue | None,
    executor: Executor,
) -> list[TaskReport]:
    keys = [[segment for segment, _ in of_key] for of_key in by_key]
    chains = executor.map("follow", partial(_go_through, work), keys)
    by_key_tasks = [_tasks_of_chain(cuts, *of_key, clock) for of_key in zip(keys, chains, strict=True)]
    counted = [task for tasks in by_key_tasks for task in tasks[:-1]]
    windows = iter(executor.map("count", partial(_count, work, source), counted))
    tasks = list[SegmentTask]()
    for of_key in by_key_tasks:
        before = accumulate((next(windows) for _ in of_key[:-1]), initial=0)
        tasks += [replace(task, windows=number) for task, number in zip(of_key, before, strict=True)]
    return executor.map("scan", partial(scan_from_entry, work, source), sorted(tasks, key=lambda task: task.part))


# Tumbling windows: the driver composes summaries, or what running segments through has come to.


def _pass_through(work: TaskContext, segments: Sequence[Segment]) -> list[Passage]:
    """Run the segments of a key through: what is open behind one decides what the next one does."""
    kind, found, value = tumbling(work.plan), list[Passage](), None
    for segment in segments:
        found.append(kind.pass_through(read_segment(work, segment), value, work.plan.context))
        value = found[-1].value
    return found


def _with_parts(
    work: TaskContext, source: StagedSegments, tasks: Sequence[SegmentTask], executor: Executor
) -> list[SegmentTask]:
    """Let segments that a window goes through store their parts of it, each in a task of its own.

    Where all earlier rows of a window are in one segment, the task that scans the window combines them itself.
    """
    far = {task.part for task in tasks if len(task.before) > 1}
    begun = [(earlier, first, _window(task)) for task in tasks if task.part in far for earlier, first in task.before]
    if begun:
        executor.map("combine", partial(_keep_part, work, source), begun)
    return [replace(task, has_parts=task.part in far) for task in tasks]


def _keep_part(work: TaskContext, source: StagedSegments, begun: tuple[Segment, int, int]) -> None:
    segment, first, window = begun
    keep_open(work, segment.name, source.earlier_rows(segment, first), window)


def _part(work: TaskContext, source: SegmentSource, task: SegmentTask, earlier: Segment, first: int) -> WindowPart:
    if task.has_parts:
        return read_part(work, earlier.name)
    return window_part(work.plan, source.earlier_rows(earlier, first), _window(task))


def _window(task: SegmentTask) -> int:
    assert task.entry is not None
    return task.entry.windows


# Segments that the tasks of an exchange have staged: a `SegmentSource` over scratch rows.


def scan_staged_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Scan all segments that the slices have stored, side by side.

    ``cuts``: the cuts of the total order.
    """
    source = StagedSegments(work)
    by_key = segments_by_key(cuts, [segment for report in reports for segment in report.segments])
    clock = latest_clock(report.clock for report in reports)
    if work.plan.kind.needs.overlaps:
        return _scan_chains(work, source, cuts, by_key, clock, executor)
    passages: list[list[Passage]] = [[] for _ in by_key]
    if work.plan.kind.needs.run_through and by_key:
        segments = [[segment for segment, _ in of_key] for of_key in by_key]
        passages = executor.map("follow", partial(_pass_through, work), segments)
    tasks_by_key = [
        plan_segments(work.plan, cuts, of_key, through, clock) for of_key, through in zip(by_key, passages, strict=True)
    ]
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
            signals = read_signals(self.work)
            return SegmentRows(rows, signals if task.signals is None else signals.first(task.signals))
        return SegmentRows(rows, no_signals(self.work))

    def earlier_rows(self, segment: Segment, first: int) -> Sequences:
        rows = read_segment(self.work, segment)
        return rows if first <= 0 else part_of(rows, first, len(rows))
