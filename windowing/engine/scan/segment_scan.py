"""Pieces of keys that are cut, scanned one by one: each goes on from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...columns.arrays import combined
from ...language.spec import Delta, Sliding, TimeInterval
from ...ports import Counts, RunTasks
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
from .slice_scan import TaskReport, bits_of, write_part


def scan_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], each: RunTasks
) -> list[TaskReport]:
    """Scan what the slices have kept. ``each`` runs a function over items, in tasks or here."""
    pieces = [piece for report in reports for piece in report.segments]
    clock = max((report.clock for report in reports if report.clock is not None), default=None)

    def run_through_segment(piece: Segment, value: Any) -> Exit:
        (end,) = each("follow", partial(_run_through_segment, work, value), [piece])
        return end

    chains = [
        plan_segments(work.plan, cuts, chain, run_through_segment, clock) for chain in segments_by_key(cuts, pieces)
    ]
    if shows_earlier_segments(work.plan):
        counted = iter(each("count", partial(_count, work), [turn for turns in chains for turn in turns[:-1]]))
        chains = [with_window_numbers(turns, [next(counted) for _ in turns[:-1]]) for turns in chains]
    return each("scan", partial(_scan, work), [turn for turns in chains for turn in turns])


def scan_rows(
    work: TaskContext, turn: SegmentTask, before: EarlierRows, piece: Sequences, signals: Signals
) -> TaskReport:
    """Scan the rows of a piece behind those that it sees of pieces before it, and write its part of the result."""
    scanned = scan_segment(work.plan, turn.entry, before, piece, signals, RunExtent(turn.clock), turn.is_last)
    part = write_part(work, turn.part, scanned.tables)
    counts = Counts(0, scanned.windowed, scanned.filtered, scanned.dropped, scanned.held)
    occupied = bits_of(scanned.by_mark, len(signals)) if work.plan.takes_marks else b""
    falls = falls_of(work.plan, piece) + turn.entry.falls
    return TaskReport(part, counts, (), scanned.windows, falls, occupied)


def _scan(work: TaskContext, turn: SegmentTask) -> TaskReport:
    signals, piece = _signals(work, turn), read_segment(work, turn.segment)
    before = _before(work, turn, signals, piece)
    if len(turn.since_then) and shows_earlier_segments(work.plan):
        seen = [read_numbers(work, f"{other.name}-shown") for other in turn.since_then]
        before = replace(before, row_state=np.isin(before.rows.pos, np.concatenate(seen)))
    return scan_rows(work, turn, before, piece, signals)


def _count(work: TaskContext, turn: SegmentTask) -> int:
    """Count the windows that come out in a piece, and keep which rows they show that may be shown again."""
    signals, piece = _signals(work, turn), read_segment(work, turn.segment)
    windows, seen = count_segment(work.plan, turn.entry, _before(work, turn, signals, piece), piece, signals)
    write_numbers(work, f"{turn.segment.name}-shown", seen)
    return windows


def _run_through_segment(work: TaskContext, value: Any, piece: Segment) -> Exit:
    return exit_through(work.plan, read_segment(work, piece), value)


def _signals(work: TaskContext, turn: SegmentTask) -> Signals:
    """All that stand before the next piece."""
    plan = work.plan
    if plan.takes_marks or isinstance(plan.spec, TimeInterval):
        return read_signals(work, not plan.takes_marks, turn.marks)
    return no_signals(work)


def _before(work: TaskContext, turn: SegmentTask, signals: Signals, piece: Sequences) -> EarlierRows:
    """The rows of pieces before that a piece sees."""
    if not shows_earlier_segments(work.plan):
        begun = [(read_segment(work, other), first) for other, first, _ in turn.before]
        return open_before([part_of(rows, first, len(rows)) for rows, first in begun], piece)
    parts, ranks = [], [np.empty(0, np.int64)]
    for other, _, rows in turn.before:
        held = read_numbers(work, f"{other.name}-held")
        parts.append(_rows_at(read_segment(work, other), held))
        ranks.append(rows + held)
    before = retained_before(work.plan, turn.entry, parts, np.concatenate(ranks), signals, piece)
    if turn.baseline is None:
        return before
    assert isinstance(work.plan.spec, Sliding)
    assert isinstance(work.plan.spec.trigger, Delta)
    other, row = turn.baseline
    column = combined(read_segment(work, other).rows.column(work.plan.spec.trigger.attribute))
    return replace(before, baseline=column.slice(row, 1))


def _rows_at(piece: Sequences, picks: Any) -> Sequences:
    bounds = np.array([0, len(picks)])
    return replace(piece, bounds=bounds, rows=take_rows(piece.rows, picks), pos=piece.pos[picks])
