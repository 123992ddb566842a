"""Segments under a tumbling window: where windows start in each, and which window is open between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.numeric import measures
from ..kinds.sliding.kernels import comparable
from ..kinds.tumbling.panes import tumbling_panes
from ..language.spec import Count, Delta, Gap, Punct, Tumbling
from ..panes.membership import Ranges
from ..panes.panes import AT_END
from ..planning.plan import Plan
from ..scan.scan import context_of
from ..sequences.attribute_distance import measures_and_amount
from ..sequences.marks import Marks, epochs, no_marks
from ..sequences.sequence import Sequences, one_batch
from .delta_chains import DeltaTransitions, Exit, delta_transitions, have_risen
from .summary import BoundarySummary, EntryState, RunThrough, SegmentSummary, clock_at_end, exit_of


def tumbling_summary(plan: Plan, spec: Tumbling, segment: Sequences, marks: Marks) -> SegmentSummary:
    """Summarise a segment, whatever comes before it. ``marks`` must be in order."""
    outline = tumbling_outline(plan, spec, segment, marks)
    if not isinstance(spec.policy, Delta):
        return outline
    values, amount = measures_and_amount(segment, spec.policy.attribute, spec.policy.amount)
    return replace(
        outline, window=delta_transitions(comparable(values), amount, plan.is_sorted_by(spec.policy.attribute))
    )


def tumbling_outline(plan: Plan, spec: Tumbling, segment: Sequences, marks: Marks) -> SegmentSummary:
    """Summarise a segment without delta transitions, which cost more than to run through the one that is taken."""
    watched = None
    if (name := plan.watches_falls) is not None:
        ends = measures(segment.rows.column(name).take(pa.array([0, len(segment) - 1])))
        watched = (ends[0], ends[1])
    summary = SegmentSummary(len(segment), None, watched=watched, clock=clock_at_end(plan, segment))
    match spec.policy:
        case Count() | Delta():
            return summary
        case Punct(None):
            first, last = epochs(segment, marks)[[0, -1]].tolist()
            summary = replace(summary, epochs=(first, last))
    return replace(summary, window=_boundary_summary(plan, spec, segment, marks))


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """The position of a tumbling window between two segments of a key.

    ``rows``: number of rows before.
    ``starts``: number of windows that have started.
    ``open_at``: the segment and the row in it where the last window started; None: none has.
    ``closed``: whether the last row before has closed that window.
    ``value``: the start value of a ``delta``; None for other policies.
    ``last``: the summary of the segment before, without delta transitions; None: there is none.
    """

    rows: int = 0
    starts: int = 0
    open_at: tuple[int, int] | None = None
    closed: bool = False
    value: Any = None
    last: SegmentSummary | None = None

    @property
    def windows(self) -> int:
        """Number of panes that have come out."""
        return self.starts if self.open_at is None or self.closed else self.starts - 1


def tumbling_entries(plan: Plan, segments: Sequence[SegmentSummary], run_through: RunThrough) -> list[EntryState]:
    """Compose the summaries of the segments of one key, in order, into the entry state of each."""
    position, entries = WindowPosition(), []
    for i, segment in enumerate(segments):
        after = advance(plan, position, i, segment, run_through)
        ends_later = i + 1 < len(segments) and not _has_mark_between(segment, segments[i + 1])
        entries.append(entry_state(position, i, segment, after, not ends_later))
        position = after
    return entries


def advance(
    plan: Plan, position: WindowPosition, index: int, segment: SegmentSummary, run_through: RunThrough
) -> WindowPosition:
    """Return the position of the window after segment ``index``."""
    assert isinstance(plan.spec, Tumbling)
    rows, closed, value = position.rows + segment.rows, False, None
    match plan.spec.policy:
        case Count(n):
            starts = -(-rows // n) - position.starts
            segment_exit = Exit(starts, (position.starts + starts - 1) * n - position.rows if starts else -1, None)
            closed = rows % n == 0
        case Delta():
            assert segment.window is None or isinstance(segment.window, DeltaTransitions)
            segment_exit = exit_of(segment.window, position.value, run_through, index)
            value = segment_exit.value
        case _:
            assert isinstance(segment.window, BoundarySummary)
            before = position.last.window if position.last is not None else None
            segment_exit = _boundary_exit(plan, segment.window, before if isinstance(before, BoundarySummary) else None)
            closed = segment.window.closed
    open_at = (index, segment_exit.last) if segment_exit.last >= 0 else position.open_at
    last = replace(segment, window=segment.window if isinstance(segment.window, BoundarySummary) else None)
    return WindowPosition(rows, position.starts + segment_exit.starts, open_at, closed, value, last)


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
    emits = is_end or after.windows > windows
    open_at = position.open_at if emits and not is_closed else None
    before = () if open_at is None else (open_at, *((j, 0) for j in range(open_at[0] + 1, index)))
    falls = last is not None and _falls(last, segment)
    return EntryState(windows, position.rows, before, falls, emits, clock=None if last is None else last.clock)


def _falls(before: SegmentSummary, segment: SegmentSummary) -> bool:
    return before.watched is not None and segment.watched is not None and bool(segment.watched[0] < before.watched[1])


def _has_mark_between(before: SegmentSummary, segment: SegmentSummary) -> bool:
    """Whether a mark lies between the last row of a segment and the first row of the next."""
    return segment.epochs[0] > before.epochs[1]


def _boundary_exit(plan: Plan, window: BoundarySummary, before: BoundarySummary | None) -> Exit:
    if before is None or before.closed or _is_boundary(window, before):
        empty = 0 if before is None else _empty_between(plan, before, window)
        return Exit(window.starts + 1 + empty, window.last, None)
    return Exit(window.starts, window.last if window.starts else -1, None)


def _empty_between(plan: Plan, before: BoundarySummary, window: BoundarySummary) -> int:
    """Return the number of windows without rows between the last row of a segment and the first row of the next."""
    if before.edges is None or window.edges is None:
        return 0
    assert isinstance(plan.spec, Tumbling)
    rows = one_batch(pa.Table.from_batches([before.edges.slice(1, 1), window.edges.slice(0, 1)]))
    pair = Sequences(None, np.array([0, 2]), rows, np.arange(2), plan.sort)
    return len(tumbling_panes(plan.spec, pair, no_marks(rows, plan.sort), context_of(plan))) - 2


def _is_boundary(window: BoundarySummary, before: BoundarySummary) -> bool:
    """Whether a window starts between the last row of a segment and the first row of the next."""
    new, old = window.labels[0], before.labels[1]
    return bool(new != old if window.amount is None else have_risen(new, old, window.amount))


def _boundary_summary(plan: Plan, spec: Tumbling, segment: Sequences, marks: Marks) -> BoundarySummary:
    panes = tumbling_panes(spec, segment, marks, context_of(plan))
    contents = panes.membership
    assert isinstance(contents, Ranges)
    last, amount, is_closed = int(contents.lo[-1]), None, False
    edges = np.array([0, len(segment) - 1])
    rows = segment.rows.take(pa.array(edges)) if plan.options.empty == "row" else None
    match spec.policy:
        case Gap(attribute, seconds):
            values, amount = measures_and_amount(segment, attribute, seconds)
            labels = comparable(values)[edges]
        case Punct(None):
            labels = epochs(segment, marks)[edges]
        case Punct():
            labels, is_closed = np.zeros(2, np.int64), bool(panes.cause[-1] != AT_END)
        case _:
            assert panes.start is not None
            labels = measures(panes.start.take(pa.array([0, len(panes) - 1])))
    return BoundarySummary(len(panes) - 1, last, labels, amount, is_closed, rows)
