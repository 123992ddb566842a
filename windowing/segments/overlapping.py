"""Segments under windows that show rows of earlier segments: summaries, and rows retained between two segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..clock.watermark import NO_LEVEL
from ..columns.arrays import ClockValue, Ints, Mask
from ..kinds.sliding.kernels import comparable, rises
from ..kinds.sliding.panes import evicted_at
from ..language.spec import Batched, Delta, Sliding, TimeInterval, WindowSpec
from ..planning.plan import Plan
from ..scan.lateness import is_ordered_by_time
from ..scan.retained_rows import retained_rows
from ..scan.scan import context_of
from ..scan.signals import Signals
from ..sequences.attribute_distance import measures_and_amount
from ..sequences.marks import epochs
from ..sequences.sequence import Sequences
from .delta_chains import delta_transitions
from .summary import RETAINED, EntryState, RetentionSummary, RunThrough, SegmentSummary, clock_at_end, exit_of


def lookback_summary(plan: Plan, segment: Sequences, signals: Signals) -> tuple[SegmentSummary, Ints]:
    """Summarise a segment; also return which of its rows it retains at its end, judged by itself: int64, ascending."""
    first, last = epochs(segment, signals.marks)[[0, -1]].tolist()
    by_itself = replace(plan, spec=_for_any_lot(plan.spec))
    retained = np.flatnonzero(still_retained(by_itself, segment, None, last_closed_at(plan, signals, last)))
    window = RetentionSummary(len(retained))
    if isinstance(plan.spec, Sliding):
        window = _sliding(plan, plan.spec, segment, window)
    return SegmentSummary(len(segment), window, (first, last), clock=clock_at_end(plan, segment)), retained


def lookback_entries(segments: Sequence[SegmentSummary], run_through: RunThrough) -> list[EntryState]:
    """Compose the summaries of the segments of one key, in order, into entry states without window numbers."""
    entries: list[EntryState] = []
    rows, full, lowest, clock = 0, False, None, None
    baseline, value = None, None
    for i, segment in enumerate(segments):
        window = segment.window
        assert isinstance(window, RetentionSummary)
        before = tuple((j, RETAINED) for j in range(i) if _holds(segments[j]))
        entries.append(EntryState(0, rows, before, False, True, full, baseline, clock, segment.epochs[0]))
        if window.trigger is not None:
            segment_exit = exit_of(window.trigger, value, run_through, i)
            value = segment_exit.value
            baseline = (i, segment_exit.last) if segment_exit.last >= 0 else baseline
        full |= window.evicts or (lowest is not None and bool(rises(window.high, lowest, window.amount)))
        lowest = window.low if lowest is None else min(lowest, window.low)
        rows, clock = rows + segment.rows, segment.clock
    return entries


def still_retained(plan: Plan, rows: Sequences, clock: ClockValue | None, last_closed: int) -> Mask:
    """Return which of some rows are retained at their end, bool (n,)."""
    context = replace(context_of(plan), clock=clock, hold=True)
    return retained_rows(plan.spec, rows, context, None, None, last_closed)


def last_closed_at(plan: Plan, signals: Signals, count: int) -> int:
    """Return an event-time pane that is closed after the first ``count`` advances, as are all panes before it.

    It is the last such pane, or one not far before it: then a few more rows are retained, which no pane will show.
    """
    if signals.watermarks is None or not count or not isinstance(plan.spec, TimeInterval):
        return NO_LEVEL
    level = int(signals.watermarks.level[count - 1])
    if is_ordered_by_time(plan):
        return level
    return max(NO_LEVEL, level - math.ceil(plan.spec.discard_age / plan.spec.period) - 1)


def _for_any_lot(spec: WindowSpec) -> WindowSpec:
    """Return a spec that retains rows enough, however many rows of a segment's first lot are in earlier segments.

    By itself a segment counts lots (``retain N every M``) from its first row, so its last full lot may end up to
    ``M - 1`` rows later than for the whole key, and what the lots before it show begins as much later. Rows that
    it leaves out are whole lots, which do not change how the rest is counted.
    """
    if not isinstance(spec, Batched) or spec.within is not None or spec.every is None or spec.retain is None:
        return spec
    return replace(spec, retain=spec.retain + 2 * int(spec.every))


def _holds(segment: SegmentSummary) -> bool:
    return isinstance(segment.window, RetentionSummary) and segment.window.rows > 0


def _sliding(plan: Plan, spec: Sliding, segment: Sequences, window: RetentionSummary) -> RetentionSummary:
    if isinstance(spec.trigger, Delta):
        values, amount = measures_and_amount(segment, spec.trigger.attribute, spec.trigger.amount)
        window = replace(
            window, trigger=delta_transitions(comparable(values), amount, plan.is_sorted_by(spec.trigger.attribute))
        )
    if isinstance(spec.evict, Delta):
        values, amount = measures_and_amount(segment, spec.evict.attribute, spec.evict.amount)
        compared: Any = comparable(values)
        evicts = bool((evicted_at(spec, segment) < len(segment)).any())
        window = replace(window, low=compared.min(), high=compared.max(), evicts=evicts, amount=amount)
    return window
