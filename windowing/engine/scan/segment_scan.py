"""Scan of keys that are cut, segment by segment, each from its entry state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...columns.arrays import combined
from ...language.spec import Delta, Sliding, TimeInterval
from ...ports import Counts, Executor
from ...scan.scan import RunExtent, falls_of
from ...scan.signals import Signals
from ...segments.delta_chains import Exit
from ...segments.segment_scan import (
    EarlierRows,
    count_segment,
    exit_through,
    open_before,
    retained_before,
    scan_segment,
)
from ...segments.summary import shows_earlier_segments
from ...sequences.sequence import Sequences, take_rows
from ..exchange.blocks import part_of
from ..exchange.range_cuts import SliceBounds
from ..exchange.read_chunk import no_signals
from ..tasks.task import TaskContext
from .segment_plan import Segment, SegmentTask, plan_segments, segments_by_key, with_window_numbers
from .segment_store import read_numbers, read_segment, read_signals, write_numbers
from .slice_scan import TaskReport, mark_bits, write_part


def scan_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Scan all segments that the slices have stored."""
    segments = [segment for report in reports for segment in report.segments]
    clock = max((report.clock for report in reports if report.clock is not None), default=None)

    def run_through_segment(segment: Segment, value: Any) -> Exit:
        (found,) = executor.map("follow", partial(_run_through_segment, work, value), [segment])
        return found

    by_key = [
        plan_segments(work.plan, cuts, of_key, run_through_segment, clock) for of_key in segments_by_key(cuts, segments)
    ]
    if shows_earlier_segments(work.plan):
        windows = iter(executor.map("count", partial(_count, work), [task for tasks in by_key for task in tasks[:-1]]))
        by_key = [with_window_numbers(tasks, [next(windows) for _ in tasks[:-1]]) for tasks in by_key]
    return executor.map("scan", partial(_scan, work), [task for tasks in by_key for task in tasks])


def scan_rows(
    work: TaskContext, task: SegmentTask, before: EarlierRows, segment: Sequences, signals: Signals
) -> TaskReport:
    """Scan a segment after the earlier rows that it may show, and write its part of the result."""
    scanned = scan_segment(work.plan, task.entry, before, segment, signals, RunExtent(task.clock), task.is_last)
    part = write_part(work, task.part, scanned.tables)
    counts = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held)
    occupied = mark_bits(scanned.by_mark, len(signals)) if work.plan.takes_marks else b""
    falls = falls_of(work.plan, segment) + task.entry.falls
    return TaskReport(part, counts, (), scanned.windows, falls, occupied)


def _scan(work: TaskContext, task: SegmentTask) -> TaskReport:
    signals, segment = _signals(work, task), read_segment(work, task.segment)
    before = _before(work, task, signals, segment)
    if len(task.since_then) and shows_earlier_segments(work.plan):
        shown = [read_numbers(work, f"{earlier.name}-shown") for earlier in task.since_then]
        before = replace(before, row_state=np.isin(before.rows.pos, np.concatenate(shown)))
    return scan_rows(work, task, before, segment, signals)


def _count(work: TaskContext, task: SegmentTask) -> int:
    """Count the panes of a segment, and store which of its rows they show that later panes may show again."""
    signals, segment = _signals(work, task), read_segment(work, task.segment)
    windows, shown = count_segment(work.plan, task.entry, _before(work, task, signals, segment), segment, signals)
    write_numbers(work, f"{task.segment.name}-shown", shown)
    return windows


def _run_through_segment(work: TaskContext, value: Any, segment: Segment) -> Exit:
    return exit_through(work.plan, read_segment(work, segment), value)


def _signals(work: TaskContext, task: SegmentTask) -> Signals:
    """Return the signals before the next segment."""
    plan = work.plan
    if plan.takes_marks or isinstance(plan.spec, TimeInterval):
        return read_signals(work, not plan.takes_marks, task.marks)
    return no_signals(work)


def _before(work: TaskContext, task: SegmentTask, signals: Signals, segment: Sequences) -> EarlierRows:
    """Return the rows of earlier segments that a segment may show."""
    if not shows_earlier_segments(work.plan):
        begun = [(read_segment(work, earlier), first) for earlier, first, _ in task.before]
        return open_before([part_of(rows, first, len(rows)) for rows, first in begun], segment)
    parts, ranks = [], [np.empty(0, np.int64)]
    for earlier, _, rows in task.before:
        retained = read_numbers(work, f"{earlier.name}-held")
        parts.append(_rows_at(read_segment(work, earlier), retained))
        ranks.append(rows + retained)
    before = retained_before(work.plan, task.entry, parts, np.concatenate(ranks), signals, segment)
    if task.baseline is None:
        return before
    assert isinstance(work.plan.spec, Sliding)
    assert isinstance(work.plan.spec.trigger, Delta)
    earlier, row = task.baseline
    column = combined(read_segment(work, earlier).rows.column(work.plan.spec.trigger.attribute))
    return replace(before, baseline=column.slice(row, 1))


def _rows_at(segment: Sequences, picks: Any) -> Sequences:
    bounds = np.array([0, len(picks)])
    return replace(segment, bounds=bounds, rows=take_rows(segment.rows, picks), pos=segment.pos[picks])
