"""Sliding windows: the rows that each trigger finds in the window of its key (semantics section 3).

A sliding window answers three independent questions: at which row is a row evicted (eviction), when does the window
trigger (trigger), and from when on may it emit panes (full). A trigger has a place between two rows of its key: the
rows before that place have done their steps, the rows after it have not. The pairs of the table in section 3 differ
only in the side of the causing row on which the trigger lies: a count trigger comes after its row, a delta trigger
before it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...language.spec import Sliding
from ...rows.membership import Memberships, Ranges
from ...rows.panes import AT_END, MarkOnly, Panes, reason
from ...rows.sequence import Sequences
from ..context import WindowContext
from .clock import SlidingClock, sliding_clock
from .evict import evict_of
from .triggers import TriggerInput, Triggers, at_most, spread, trigger_of


def sliding_panes(spec: Sliding, sequences: Sequences, context: WindowContext) -> Panes:
    """Return the panes of a sliding window, including those that only the end of the data triggers.

    The columns that the window reads must not hold null; NaN compares false. With ``context.partial`` the empty windows
    of a sequence without a key become `Panes.marks_only`. Raises `DataError` where more than 50 million ticks would
    emit a pane, and where ticks do not fit 64 bit.
    """
    evict, trigger, bounds = evict_of(spec.evict), trigger_of(spec.trigger), sequences.bounds
    emits_empty = context.partial and sequences.keys is None
    evicted = evict.evicted_at(sequences) if evict.evicts_anywhere else None
    full = bounds[:-1] if context.partial else evict.full(bounds, evicted, context.restored)
    uses_clock = evict.needs_clock or trigger.needs_clock
    clock = sliding_clock(trigger.period, sequences, context) if uses_clock else None
    given = TriggerInput(sequences, context, clock, full, emits_empty, evict.finding(trigger))
    triggers = trigger.triggers(given)
    triggers = triggers.filtered(triggers.place >= full[triggers.key])
    oldest = evict.oldest(bounds[triggers.key], triggers, clock)
    empty = oldest == triggers.place
    shown = triggers.filtered(~empty)
    return Panes(
        shown.key,
        spread(np.bincount(shown.key, minlength=len(full)))[1],
        Ranges(oldest[~empty], shown.place, bounds[shown.key], False)
        if evicted is None
        else _memberships(bounds, shown, evicted),
        shown.cause,
        np.where(shown.cause == AT_END, reason("end"), reason("trigger")).astype(np.int8),
        at=_instants(shown, clock),
        marks_only=MarkOnly(triggers.cause[empty], _instants(triggers.filtered(empty), clock)) if emits_empty else None,
    )


def evicted_at(spec: Sliding, sequences: Sequences) -> Ints:
    """Return for each row the row of its key that evicts it, n where no row does; int64 of shape (n,).

    With ``count(m)`` this is the m-th row after it, with ``delta`` the first row that is too far above it, with
    ``time`` the first row that is too much later (a tick or the end of the data may evict the row before that).
    """
    return evict_of(spec.evict).evicted_at(sequences)


def lost_at(spec: Sliding, sequences: Sequences, context: WindowContext) -> Ints:
    """Return for each row the first tick that no longer finds it, int64 (n,), where time both evicts and triggers."""
    trigger = trigger_of(spec.trigger)
    clock = sliding_clock(trigger.period, sequences, context)
    assert clock.grid is not None
    cell = clock.grid.cells(clock.values)
    count = at_most(np.array([clock.cell(clock.now)]), cell)
    found: Ints = evict_of(spec.evict).finding(trigger)(clock.finer(), cell, count)
    return cell + found + 1


def _memberships(bounds: Ints, triggers: Triggers, evicted: Ints) -> Memberships:
    """Return which triggers find each row: from the first after the row's own step to the last before its eviction."""
    triggers_until = np.cumsum(np.bincount(triggers.place, minlength=len(evicted) + 1))  # up to and with each place
    enter = triggers_until[:-1]
    leave = triggers_until[np.minimum(evicted, np.repeat(bounds[1:], np.diff(bounds)))]
    shown = enter < leave
    first_entry = np.append(0, np.cumsum(shown))[bounds]
    first_pane = np.searchsorted(triggers.key, np.arange(len(bounds)))
    return Memberships(np.flatnonzero(shown), enter[shown], leave[shown], first_entry, first_pane)


def _instants(triggers: Triggers, clock: SlidingClock | None) -> pa.Array | None:
    """Return the ticks of triggers as `Panes.at`."""
    if triggers.cell is None or clock is None or clock.grid is None:
        return None
    return clock.grid.bounds(triggers.cell)
