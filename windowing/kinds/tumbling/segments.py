"""Segments under a tumbling window: where windows start in each, and which window is open between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ...columns.arrays import measures
from ...rows.marks import Marks
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..segment_summary import (
    BoundarySummary,
    EntryState,
    RunThrough,
    SegmentSummary,
    WindowPosition,
    clock_at_end,
)
from .policy import TumblingPolicy


def tumbling_summary(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    """Summarise a segment, whatever comes before it. ``marks`` must be in order."""
    return replace(_without_windows(policy, segment, marks, context), window=policy.summarise(segment, marks, context))


def tumbling_outline(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    """Summarise a segment without delta transitions, which cost more than to run through the one that is taken."""
    return replace(_without_windows(policy, segment, marks, context), window=policy.outline(segment, marks, context))


def _without_windows(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    watched = None
    if context.watched is not None:
        ends = measures(segment.rows.column(context.watched).take(pa.array([0, len(segment) - 1])))
        watched = (ends[0], ends[1])
    clock = clock_at_end(segment) if policy.needs_clock else None
    epochs = policy.epochs_at_edges(segment, marks)
    return SegmentSummary(len(segment), None, epochs=epochs, watched=watched, clock=clock)


def tumbling_entries(
    policy: TumblingPolicy, segments: Sequence[SegmentSummary], run_through: RunThrough, context: WindowContext
) -> list[EntryState]:
    """Compose the summaries of the segments of one key, in order, into the entry state of each."""
    position, entries = WindowPosition(), []
    for i, segment in enumerate(segments):
        after = advance(policy, position, i, segment, run_through, context)
        ends_later = i + 1 < len(segments) and not _has_mark_between(segment, segments[i + 1])
        entries.append(entry_state(position, i, segment, after, not ends_later))
        position = after
    return entries


def advance(
    policy: TumblingPolicy,
    position: WindowPosition,
    index: int,
    segment: SegmentSummary,
    run_through: RunThrough,
    context: WindowContext,
) -> WindowPosition:
    """Return the position of the window after segment ``index``."""
    passage = policy.pass_through(position, index, segment, run_through, context)
    open_at = (index, passage.exit.last) if passage.exit.last >= 0 else position.open_at
    last = replace(segment, window=segment.window if isinstance(segment.window, BoundarySummary) else None)
    starts = position.starts + passage.exit.starts
    rows = position.rows + segment.rows
    return WindowPosition(rows, starts, open_at, passage.closed, passage.value, last, passage.skips)


def entry_state(
    position: WindowPosition, index: int, segment: SegmentSummary, after: WindowPosition, is_end: bool
) -> EntryState:
    """Return the entry state of segment ``index``.

    ``after``: the position after it. ``is_end``: whether the window that is open after it comes out there, because no
    segment follows or a mark does.
    """
    last = position.last
    is_closed = position.closed or (last is not None and _has_mark_between(last, segment))
    windows = position.starts if is_closed else position.windows
    emits = is_end or after.windows > windows or after.skips
    open_at = position.open_at if emits and not is_closed else None
    before = () if open_at is None else (open_at, *((j, 0) for j in range(open_at[0] + 1, index)))
    falls = last is not None and _falls(last, segment)
    clock = None if last is None else last.clock
    return EntryState(windows, position.rows, before, falls, emits, clock=clock, value=position.value)


def _falls(before: SegmentSummary, segment: SegmentSummary) -> bool:
    return before.watched is not None and segment.watched is not None and bool(segment.watched[0] < before.watched[1])


def _has_mark_between(before: SegmentSummary, segment: SegmentSummary) -> bool:
    """Whether a mark lies between the last row of a segment and the first row of the next."""
    return segment.epochs[0] > before.epochs[1]
