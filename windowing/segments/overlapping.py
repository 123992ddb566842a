"""Pieces under a window that shows rows of pieces before: what is held between two of them."""

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
from ..language.spec import Delta, Sliding, TimeInterval
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


def lookback_summary(plan: Plan, piece: Sequences, signals: Signals) -> tuple[SegmentSummary, Ints]:
    """Summarise a piece; also return which of its rows are held at its end, as far as they tell: int64, ascending."""
    first, last = epochs(piece, signals.marks)[[0, -1]].tolist()
    held = np.flatnonzero(still_retained(plan, piece, None, last_closed_at(plan, signals, last)))
    window = RetentionSummary(len(held))
    if isinstance(plan.spec, Sliding):
        window = _sliding(plan, plan.spec, piece, window)
    return SegmentSummary(len(piece), window, (first, last), clock=clock_at_end(plan, piece)), held


def lookback_entries(pieces: Sequence[SegmentSummary], follow: RunThrough) -> list[EntryState]:
    """Compose the summaries of the pieces of one key, in order; how many windows come out is not known yet."""
    found: list[EntryState] = []
    rows, full, low, stands = 0, False, None, None
    baseline, value = None, None
    for i, piece in enumerate(pieces):
        window = piece.window
        assert isinstance(window, RetentionSummary)
        before = tuple((j, RETAINED) for j in range(i) if _holds(pieces[j]))
        found.append(EntryState(0, rows, before, False, True, full, baseline, stands, piece.epochs[0]))
        if window.trigger is not None:
            end = exit_of(window.trigger, value, follow, i)
            value = end.value
            baseline = (i, end.last) if end.last >= 0 else baseline
        full |= window.evicts or (low is not None and bool(rises(window.high, low, window.amount)))
        low = window.low if low is None else min(low, window.low)
        rows, stands = rows + piece.rows, piece.clock
    return found


def still_retained(plan: Plan, rows: Sequences, clock: ClockValue | None, dead: int) -> Mask:
    """Return which rows are held at the end of some, (n,)."""
    setting = replace(context_of(plan), clock=clock, hold=True)
    return retained_rows(plan.spec, rows, setting, None, None, dead)


def last_closed_at(plan: Plan, signals: Signals, count: int) -> int:
    """Return a pane of event time that no row can get into any more, nor into those before it, after so many advances.

    The last such pane, or one not far before it: a few rows more are held then, that nobody is going to see.
    """
    if signals.watermarks is None or not count or not isinstance(plan.spec, TimeInterval):
        return NO_LEVEL
    level = int(signals.watermarks.level[count - 1])
    if is_ordered_by_time(plan):
        return level
    return max(NO_LEVEL, level - math.ceil(plan.spec.discard_age / plan.spec.period) - 1)


def _holds(piece: SegmentSummary) -> bool:
    return isinstance(piece.window, RetentionSummary) and piece.window.rows > 0


def _sliding(plan: Plan, spec: Sliding, piece: Sequences, window: RetentionSummary) -> RetentionSummary:
    if isinstance(spec.trigger, Delta):
        values, amount = measures_and_amount(piece, spec.trigger.attribute, spec.trigger.amount)
        window = replace(
            window, trigger=delta_transitions(comparable(values), amount, plan.is_sorted_by(spec.trigger.attribute))
        )
    if isinstance(spec.evict, Delta):
        values, amount = measures_and_amount(piece, spec.evict.attribute, spec.evict.amount)
        found: Any = comparable(values)
        evicts = bool((evicted_at(spec, piece) < len(piece)).any())
        window = replace(window, low=found.min(), high=found.max(), evicts=evicts, amount=amount)
    return window
