"""Pieces under a window that shows rows of pieces before: what is held between two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..clock.watermark import NO_LEVEL
from ..columns.arrays import Clock, Ints, Mask
from ..kinds.sliding.kernels import comparable, rises
from ..kinds.sliding.panes import evicted_at
from ..language.spec import Delta, Sliding, TimeInterval
from ..planning.plan import Plan
from ..scan.lateness import is_ordered_by_time
from ..scan.retained_rows import of_use
from ..scan.scan import setting_of
from ..scan.signals import Signals
from ..sequences.attribute_distance import measured
from ..sequences.marks import epochs
from ..sequences.sequence import Sequences
from .delta_chains import chains
from .summary import HELD, Entry, Follow, Held, Summary, chained, stands_at_end


def lookback_summary(plan: Plan, piece: Sequences, signals: Signals) -> tuple[Summary, Ints]:
    """Summarise a piece; also return which of its rows are held at its end, as far as they tell: int64, ascending."""
    first, last = epochs(piece, signals.marks)[[0, -1]].tolist()
    held = np.flatnonzero(still_held(plan, piece, None, dead_at(plan, signals, last)))
    window = Held(len(held))
    if isinstance(plan.spec, Sliding):
        window = _sliding(plan, plan.spec, piece, window)
    return Summary(len(piece), window, (first, last), stands=stands_at_end(plan, piece)), held


def lookback_entries(pieces: Sequence[Summary], follow: Follow) -> list[Entry]:
    """Compose the summaries of the pieces of one key, in order; how many windows come out is not known yet."""
    found: list[Entry] = []
    rows, full, low, stands = 0, False, None, None
    baseline, value = None, None
    for i, piece in enumerate(pieces):
        window = piece.window
        assert isinstance(window, Held)
        before = tuple((j, HELD) for j in range(i) if _holds(pieces[j]))
        found.append(Entry(0, rows, before, False, True, full, baseline, stands, piece.epochs[0]))
        if window.trigger is not None:
            end = chained(window.trigger, value, follow, i)
            value = end.value
            baseline = (i, end.last) if end.last >= 0 else baseline
        full |= window.evicts or (low is not None and bool(rises(window.high, low, window.amount)))
        low = window.low if low is None else min(low, window.low)
        rows, stands = rows + piece.rows, piece.stands
    return found


def still_held(plan: Plan, rows: Sequences, clock: Clock | None, dead: int) -> Mask:
    """Return which rows are held at the end of some, (n,)."""
    setting = replace(setting_of(plan), clock=clock, hold=True)
    return of_use(plan.spec, rows, setting, None, None, dead)


def dead_at(plan: Plan, signals: Signals, count: int) -> int:
    """Return a pane of event time that no row can get into any more, nor into those before it, after so many advances.

    The last such pane, or one not far before it: a few rows more are held then, that nobody is going to see.
    """
    if signals.watermarks is None or not count or not isinstance(plan.spec, TimeInterval):
        return NO_LEVEL
    level = int(signals.watermarks.level[count - 1])
    if is_ordered_by_time(plan):
        return level
    return max(NO_LEVEL, level - math.ceil(plan.spec.discard_age / plan.spec.period) - 1)


def _holds(piece: Summary) -> bool:
    return isinstance(piece.window, Held) and piece.window.rows > 0


def _sliding(plan: Plan, spec: Sliding, piece: Sequences, window: Held) -> Held:
    if isinstance(spec.trigger, Delta):
        values, amount = measured(piece, spec.trigger.attribute, spec.trigger.amount)
        window = replace(window, trigger=chains(comparable(values), amount, plan.is_sorted_by(spec.trigger.attribute)))
    if isinstance(spec.evict, Delta):
        values, amount = measured(piece, spec.evict.attribute, spec.evict.amount)
        found: Any = comparable(values)
        evicts = bool((evicted_at(spec, piece) < len(piece)).any())
        window = replace(window, low=found.min(), high=found.max(), evicts=evicts, amount=amount)
    return window
