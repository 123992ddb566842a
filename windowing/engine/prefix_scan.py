"""The prefix scan: a sequence that is cut into segments is scanned by many tasks, to the same bits.

What the segments before one leave to it is found first, in little time; from there each segment is scanned. Where
tasks of an exchange have staged segments this takes a few rounds of tasks (`scan_staged_segments`); or it is a relay,
in which each task has its segment in hand, and hands the position on to the next (`windowing.engine.presorted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import ClockValue, latest_clock
from ..kinds.context import Signals
from ..kinds.segment_summary import EntryState, Passage
from ..ports import ChunkAccount, Executor
from ..rows.marks import epochs
from ..rows.sequence import Sequences
from ..scan.continue_scan import End
from ..scan.scan import falls_of
from ..scan.segment_scan import (
    carry_behind,
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
    read_carry,
    read_part,
    read_segment,
    read_signals,
    segments_by_key,
    tasks_of,
    tumbling,
    write_carry,
    write_part,
    write_rows,
)
from .slice_scan import TaskReport, counts_of, mark_bits, write_parts
from .task import TaskContext

EarlierRows: TypeAlias = Callable[[Segment, int], Sequences]
"""A function that returns the rows of an earlier segment from some row on."""


def keep_open(work: TaskContext, name: str, rows: Sequences, window: int) -> None:
    """Store rows of a window that is open at the end of a segment: combined, or as they are.

    ``window``: its number.
    """
    if sends_partials(work.plan, work.source.schema):
        write_part(work, name, window_part(work.plan, rows, window))
    else:
        write_rows(work, name, rows)


def scan_from_entry(
    work: TaskContext,
    task: SegmentTask,
    rows: Sequences,
    signals: Signals,
    earlier_rows: EarlierRows,
    account: ChunkAccount | None = None,
) -> TaskReport:
    """Scan a segment from what the segments before it leave, and write its part of the result.

    ``rows``: there may be none. ``signals``: those before the next segment. ``account``: the row accounting of the
    input that was read for it, where no other task reports that.
    """
    account, falls = account or ChunkAccount(), falls_of(work.plan, rows)
    report = TaskReport((), account.counts, account.rejects, 0, falls, span=account.span)
    if isinstance(task.entry, EntryState):
        report = replace(report, falls=falls + task.entry.falls)
        if not task.entry.emits:
            return report
        carry = _carry_of_window(work, task, task.entry, rows, earlier_rows)
    else:
        carry = _carry_of_chain(work, task, task.entry, signals)
    end = End(task.clock, is_continued=not task.is_last)
    scanned = scan_segment(work.plan, carry, rows, signals, end)
    return replace(
        report,
        parts=write_parts(work, task.part, scanned.tables),
        counts=report.counts + counts_of(scanned, scanned.rejects),
        windows=scanned.windows,
        occupied=mark_bits(scanned.by_mark, len(signals)) if work.plan.takes_marks else b"",
        stored_rejects=store_rejects(work, task.part, scanned.rejects),
    )


# Windows that overlap go on from segment to segment with the rows that they retain, as incremental runs do. How many
# panes came out before a segment, and which rows these have shown, takes a scan of each: that is done side by side,
# unless what windows retain or show goes by what came out before (`Needs.in_turn`).


def _go_through(work: TaskContext, segments: Sequence[Segment]) -> list[ChainLink]:
    """Go through the segments of a key, and store with which window state each begins."""
    plan, signals = work.plan, _signals_of(work)
    carry, links, starts, before = Carry(), list[ChainLink](), [0], None
    for number, segment in enumerate(segments):
        rows = read_segment(work, segment)
        passed = signals.first(int(epochs(part_of(rows, 0, 1), signals.marks)[0]))
        if before is not None:
            carry = carry_behind(plan, carry, before, passed)
        first = number
        if carry.state is not None:
            rank = carry.state.sequences.rank
            assert rank is not None
            if len(rank) and not plan.kind.needs.in_turn:
                first = int(np.searchsorted(starts, rank[0], side="right")) - 1
            write_carry(work, segment.name, carry.state)
        retained_of = tuple((earlier, 0) for earlier in range(first, number))
        links.append(ChainLink(number == 0, len(passed), retained_of, carry.registers.clock))
        starts.append(starts[-1] + len(rows))
        before = rows
    return links


def _carry_of_chain(
    work: TaskContext, task: SegmentTask, link: ChainLink, signals: Signals, is_counted: bool = True
) -> Carry:
    """Return the carry with which a segment begins.

    ``is_counted``: whether the segments before have been counted; else none of their rows counts as shown yet.
    """
    advances = None if signals.watermarks is None else signals.first(link.signals).watermarks
    carry = Carry(Registers(clock=link.clock, advances=advances))
    if link.is_first:
        return carry
    state = read_carry(work, task.segment.name)
    if is_counted and not work.plan.kind.needs.in_turn:
        state = replace(state, key_state=replace(state.key_state, windows=np.array([link.windows])))
        if task.before:
            counted = [work.sink.read_scratch(f"{earlier.name}-shown") for earlier, _ in task.before]
            numbers = np.concatenate([found.column(0).to_numpy() for found in counted])
            shown = np.isin(state.sequences.pos, numbers)
            state = replace(state, row_state=replace(state.row_state, shown=shown))
    return replace(carry, state=state)


def _count(work: TaskContext, task: SegmentTask) -> int:
    assert isinstance(task.entry, ChainLink)
    rows, signals = _staged(work, task)
    carry = _carry_of_chain(work, task, task.entry, signals, is_counted=False)
    windows, shown = count_segment(work.plan, carry, rows, signals)
    numbers = pa.RecordBatch.from_arrays([pa.array(shown)], names=["pos"])
    work.sink.write_scratch(f"{task.segment.name}-shown", numbers)
    return windows


def _chained_tasks(
    work: TaskContext,
    cuts: SliceBounds,
    keys: Sequence[Sequence[Segment]],
    clock: ClockValue | None,
    executor: Executor,
) -> list[SegmentTask]:
    chains = executor.map("follow", partial(_go_through, work), keys)
    known = [
        tasks_of(cuts, segments, links, [link.signals for link in links], clock)
        for segments, links in zip(keys, chains, strict=True)
    ]
    if work.plan.kind.needs.in_turn:
        return [task for tasks in known for task in tasks]
    windows = iter(executor.map("count", partial(_count, work), [task for tasks in known for task in tasks[:-1]]))
    tasks = list[SegmentTask]()
    for segments, links in zip(keys, chains, strict=True):
        before = accumulate((next(windows) for _ in links[:-1]), initial=0)
        numbered = [replace(link, windows=number) for link, number in zip(links, before, strict=True)]
        tasks += tasks_of(cuts, segments, numbered, [link.signals for link in links], clock)
    return tasks


# Tumbling windows: the driver composes summaries, or what running segments through has come to.


def _pass_through(work: TaskContext, segments: Sequence[Segment]) -> list[Passage]:
    """Run the segments of a key through: what is open behind one decides what the next one does."""
    kind, found, value = tumbling(work.plan), list[Passage](), None
    for segment in segments:
        found.append(kind.pass_through(read_segment(work, segment), value, work.plan.context))
        value = found[-1].value
    return found


def _with_parts(work: TaskContext, tasks: Sequence[SegmentTask], executor: Executor) -> list[SegmentTask]:
    """Let segments that a window goes through store their parts of it, each in a task of its own.

    Where all earlier rows of a window are in one segment, the task that scans the window combines them itself.
    """
    far = {task.part for task in tasks if len(task.before) > 1}
    begun = [
        (earlier, first, task.entry.windows) for task in tasks if task.part in far for earlier, first in task.before
    ]
    if begun:
        executor.map("combine", partial(_keep_part, work), begun)
    return [replace(task, has_parts=task.part in far) for task in tasks]


def _keep_part(work: TaskContext, begun: tuple[Segment, int, int]) -> None:
    segment, first, window = begun
    keep_open(work, segment.name, _staged_from(work, segment, first), window)


def _carry_of_window(
    work: TaskContext, task: SegmentTask, entry: EntryState, segment: Sequences, earlier_rows: EarlierRows
) -> Carry:
    plan, before = work.plan, task.before
    if not sends_partials(plan, work.source.schema):
        return entry_carry(plan, entry, open_before([earlier_rows(*each) for each in before], segment), segment)
    if task.has_parts:
        parts = [read_part(work, earlier.name) for earlier, _ in before]
    else:
        parts = [window_part(plan, earlier_rows(*each), entry.windows) for each in before]
    standing, continued = continued_before(plan, parts, entry.value, segment)
    return entry_carry(plan, entry, standing, segment, continued)


# Segments that the tasks of an exchange have staged in scratch files, with the signals that all share.


def scan_staged_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Scan all segments that the slices have stored, side by side.

    ``cuts``: the cuts of the total order.
    """
    by_key = segments_by_key(cuts, [segment for report in reports for segment in report.segments])
    keys = [[segment for segment, _ in of_key] for of_key in by_key]
    clock, plan = latest_clock(report.clock for report in reports), work.plan
    if plan.kind.needs.is_chained:
        tasks = _chained_tasks(work, cuts, keys, clock, executor)
    else:
        passages: list[list[Passage]] = [[] for _ in keys]
        if plan.kind.needs.run_through and keys:
            passages = executor.map("follow", partial(_pass_through, work), keys)
        tasks = []
        for of_key, segments, through in zip(by_key, keys, passages, strict=True):
            summaries = [summary for _, summary in of_key if summary is not None]
            entries = tumbling(plan).entry_states(summaries, through, plan.context)
            tasks += tasks_of(cuts, segments, entries, [summary.epochs[0] for summary in summaries], clock)
        if sends_partials(plan, work.source.schema):
            tasks = _with_parts(work, tasks, executor)
    return executor.map("scan", partial(_scan_staged, work), sorted(tasks, key=lambda task: task.part))


def _scan_staged(work: TaskContext, task: SegmentTask) -> TaskReport:
    return scan_from_entry(work, task, *_staged(work, task), partial(_staged_from, work))


def _staged(work: TaskContext, task: SegmentTask) -> tuple[Sequences, Signals]:
    """Return the rows of a segment, which stay on disk until they are used, and the signals before the next one."""
    rows = read_segment(work, task.segment)
    signals = _signals_of(work)
    return rows, signals if task.signals is None else signals.first(task.signals)


def _signals_of(work: TaskContext) -> Signals:
    has_any = work.plan.takes_marks or work.plan.kind.needs.watermark
    return read_signals(work) if has_any else no_signals(work)


def _staged_from(work: TaskContext, segment: Segment, first: int) -> Sequences:
    rows = read_segment(work, segment)
    return rows if first <= 0 else part_of(rows, first, len(rows))
