"""Sliding windows: the rows that each trigger finds in the window of its key (semantics section 3).

A sliding window answers three independent questions: at which row is a row evicted (eviction), when does the window
trigger (trigger), and from when on may it emit panes (full). A trigger has a place between two rows of its key: the
rows before that place have done their steps, the rows after it have not. The pairs of the table in section 3 differ
only in the side of the causing row on which the trigger lies: a count trigger comes after its row, a delta trigger
before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...columns.numeric import measures
from ...errors import DataError
from ...language.spec import Count, Delta, Sliding, SlidingPolicy, Time
from ...panes.membership import Memberships, Ranges
from ...panes.panes import AT_END, BY_TICK, MarkOnly, Panes, reason
from ...sequences.attribute_distance import amount_in_measure, measures_and_amount
from ...sequences.sequence import Sequences
from ...state.window_state import RestoredState
from ..context import WindowContext
from ..delta.kernels import comparable, evicted_by_delta, oldest_retained, risen_pairs
from ..delta.starts import Baselines, delta_starts
from .clock import SlidingClock, sliding_clock, sliding_clock_values

_MOST_TICKS = 50_000_000
_MOST_ROWS = 2**62  # of a window
_ROUNDED = 8  # rounding of ticks to floats never makes more additional ticks than this fit into a span


@dataclass(frozen=True, slots=True)
class _Triggers:
    """L triggers, key after key, in the order in which they come.

    ``key``: int64 (L,), the key of each trigger.
    ``place``: int64 (L,), the place of each: the rows ``[bounds[key], place)`` have done their steps.
    ``cause``: int64 (L,), as in `Panes`.
    ``cell``: int64 (L,), the cell whose lower bound is the tick, of any value at the end; None unless time triggers.
    """

    key: Ints
    place: Ints
    cause: Ints
    cell: Ints | None = None

    def filtered(self, chosen: Mask) -> _Triggers:
        if bool(chosen.all()):
            return self
        cell = None if self.cell is None else self.cell[chosen]
        return _Triggers(self.key[chosen], self.place[chosen], self.cause[chosen], cell)

    def with_ends(self, has_new_rows: Mask, bounds: Ints) -> _Triggers:
        """Add a trigger at the end of the data for each key that has received rows since its last trigger."""
        keys = np.flatnonzero(has_new_rows)
        behind = np.searchsorted(self.key, keys, side="right")
        key, place = np.insert(self.key, behind, keys), np.insert(self.place, behind, bounds[keys + 1])
        cell = None if self.cell is None else np.insert(self.cell, behind, 0)
        return _Triggers(key, place, np.insert(self.cause, behind, AT_END), cell)


def sliding_panes(spec: Sliding, sequences: Sequences, context: WindowContext) -> Panes:
    """Return the panes of a sliding window, including those that only the end of the data triggers.

    The columns that the window reads must not hold null; NaN compares false. With ``context.partial`` the empty windows
    of a sequence without a key become `Panes.marks_only`. Raises `DataError` where more than 50 million ticks would
    emit a pane, and where ticks do not fit 64 bit.
    """
    evict, bounds, restored = spec.evict, sequences.bounds, context.restored
    emits_empty = context.partial and sequences.keys is None
    evicted = evicted_at(spec, sequences) if isinstance(evict, Delta) else None
    full = bounds[:-1] if context.partial else _full(evict, bounds, evicted, restored)
    clock = sliding_clock(spec, sequences, context) if Time in (type(evict), type(spec.trigger)) else None
    match spec.trigger:
        case Count(n):
            triggers = _count_triggers(bounds, n, restored)
        case Delta():
            triggers = _delta_triggers(bounds, tripping(spec.trigger, sequences, restored), restored)
        case Time():
            assert clock is not None
            triggers = _tick_triggers(spec, bounds, clock, full, context, emits_empty)
    triggers = triggers.filtered(triggers.place >= full[triggers.key])
    oldest = _oldest(evict, bounds[triggers.key], triggers, clock)
    empty = oldest == triggers.place
    shown = triggers.filtered(~empty)
    return Panes(
        shown.key,
        _spread(np.bincount(shown.key, minlength=len(full)))[1],
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
    bounds = sequences.bounds
    match spec.evict:
        case Count(n):
            row, end = np.arange(len(sequences)), np.repeat(bounds[1:], np.diff(bounds))
            return np.where(row < end - n, row + n, len(sequences))
        case Delta(attribute, amount):
            values, too_much = measures_and_amount(sequences, attribute, amount)
        case Time(seconds):
            values, scale = sliding_clock_values(sequences)
            too_much = amount_in_measure(values, scale, seconds)
    return evicted_by_delta(bounds, comparable(values), too_much)


def lost_at(spec: Sliding, sequences: Sequences, context: WindowContext) -> Ints:
    """Return for each row the first tick that no longer finds it, int64 (n,), where time both evicts and triggers."""
    clock = sliding_clock(spec, sequences, context)
    assert clock.grid is not None
    cell = clock.grid.cells(clock.values)
    found: Ints = _finding(spec, clock.finer(), cell, _at_most(np.array([clock.cell(clock.now)]), cell))
    return cell + found + 1


def tripping(trigger: Delta, sequences: Sequences, restored: RestoredState | None) -> Ints:
    """Return the rows that set or advance the baseline of a ``delta`` trigger: int64, ascending."""
    values, amount = measures_and_amount(sequences, trigger.attribute, trigger.amount)
    if restored is None:
        return delta_starts(sequences.bounds, values, amount)
    value = restored.key_state.baseline
    known = value.is_valid().to_numpy(zero_copy_only=False)
    begin = np.where(known, sequences.bounds[:-1] + restored.restored_rows, sequences.bounds[:-1])
    return delta_starts(sequences.bounds, values, amount, Baselines(begin, known, measures(value)))


def _full(evict: SlidingPolicy, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:
    """Return the place from which on the window of each key is full, int64 (K,)."""
    begin = bounds[:-1]
    if evicted is not None:
        first_evicted = np.full(len(begin), len(evicted))
        some = begin < bounds[1:]
        first_evicted[some] = np.minimum.reduceat(evicted, begin[some])
        return first_evicted + 1 if restored is None else np.where(restored.key_state.full, begin, first_evicted + 1)
    if not isinstance(evict, Count):
        return begin
    return begin + min(evict.n, _MOST_ROWS) - (0 if restored is None else restored.ahead)


def _count_triggers(bounds: Ints, n: int, restored: RestoredState | None) -> _Triggers:
    """Return a trigger after each n-th row of a key."""
    ahead = np.zeros(len(bounds) - 1, np.int64) if restored is None else restored.ahead
    reached = np.diff(bounds) + ahead
    key, step = _spread(reached // n - ahead // n)
    place = (bounds[:-1] - ahead + ahead // n * n)[key] + (step + 1) * n
    return _Triggers(key, place, place - 1).with_ends(reached % n > 0, bounds)


def _delta_triggers(bounds: Ints, starts: Ints, restored: RestoredState | None) -> _Triggers:
    """Return a trigger before each row that exceeds the baseline, which advances as in a tumbling ``delta`` window."""
    key, step = _spread(np.diff(np.searchsorted(starts, bounds)))
    is_set = np.zeros(len(bounds) - 1, np.bool_)
    if restored is not None:
        is_set = restored.key_state.baseline.is_valid().to_numpy(zero_copy_only=False)
    exceeds = (step > 0) | is_set[key]  # the first row of a key only sets the baseline
    rows = starts[exceeds]
    return _Triggers(key[exceeds], rows, rows).with_ends(np.diff(bounds) > 0, bounds)


def _tick_triggers(
    spec: Sliding, bounds: Ints, clock: SlidingClock, full: Ints, context: WindowContext, emits_empty: bool
) -> _Triggers:
    """Return triggers at the ticks after each row, up to the next row of its key, the clock, or the key's last tick.

    Where empty windows are emitted, all ticks count, including those after ``since`` and before the first row.
    Otherwise only ticks that find a full window count, so that a gap of years costs nothing.
    """
    assert clock.grid is not None
    cell, last = clock.grid.cells(clock.values), clock.cell(clock.now)
    newest = bounds[1:][bounds[:-1] < bounds[1:]] - 1
    until = np.append(cell, last)[1:]
    key, step = _spread(np.diff(bounds))
    until[newest] = last
    if context.last_tick is not None:
        until[newest] = np.clip(context.last_tick[key[newest]], cell[newest], last)
    place = bounds[key] + step + 1
    has_new_rows = np.zeros(len(full), np.bool_)
    has_new_rows[key[newest]] = cell[newest] == last
    if emits_empty and context.since is not None:
        stop = cell[0] if len(cell) else last
        begin = min(clock.cell(context.since), stop)
        key, place, cell, until = (
            np.insert(array, 0, value) for array, value in ((key, 0), (place, 0), (cell, begin), (until, stop))
        )
    count = _at_most(until, cell)
    if not emits_empty:
        count = np.where(place < full[key], 0, _finding(spec, clock.finer(), cell, count))
    if count.sum() > _MOST_TICKS:
        raise DataError(f"{spec.trigger} would trigger more than {_MOST_TICKS:,} times", "use a longer trigger period")
    after, step = _spread(count)
    triggers = _Triggers(key[after], place[after], np.full(len(after), BY_TICK), cell[after] + step + 1)
    return triggers.with_ends(has_new_rows, bounds)


def _at_most(until: Ints, cell: Ints) -> Ints:
    """Return how many ticks there are after each cell, at most one more than the limit."""
    # the difference of two cells may need 64 unsigned bits
    return np.minimum((until - cell).view(np.uint64), np.uint64(_MOST_TICKS + 1)).astype(np.int64)


def _finding(spec: Sliding, clock: SlidingClock, cell: Ints, count: Ints) -> Ints:
    """Return how many of the ``count`` ticks after each row come before the row is evicted, int64 (n,)."""
    match spec.evict, spec.trigger:
        case Count(0), _:
            return np.zeros_like(count)
        case Time(seconds), Time(period):
            most = seconds // period + (1 if clock.grid is None or clock.grid.exact else _ROUNDED)
            count = np.minimum(count, min(most, _MOST_TICKS + 1))
            values, age = comparable(clock.values), clock.age(seconds)
            # ``most`` is an upper bound; the loop removes the few ticks at which the row is already too old
            while (too_late := risen_pairs(comparable(clock.ticks(cell + count)), values, age)).any():
                count = count - too_late
    return count


def _oldest(evict: SlidingPolicy, begin: Ints, triggers: _Triggers, clock: SlidingClock | None) -> Ints:
    """Return the oldest row that each trigger finds (with ``delta``: may find), its place if none, int64 (L,)."""
    match evict:
        case Count(n):
            return np.maximum(begin, triggers.place - n)
        case Time(seconds):
            assert clock is not None
            clock = clock.finer()
            came = clock.values[triggers.cause] if triggers.cell is None else clock.ticks(triggers.cell)
            at = np.where(triggers.cause == AT_END, clock.now, came)
            return oldest_retained(begin, triggers.place, comparable(at), comparable(clock.values), clock.age(seconds))
    return begin


def _memberships(bounds: Ints, triggers: _Triggers, evicted: Ints) -> Memberships:
    """Return which triggers find each row: from the first after the row's own step to the last before its eviction."""
    triggers_until = np.cumsum(np.bincount(triggers.place, minlength=len(evicted) + 1))  # up to and with each place
    enter = triggers_until[:-1]
    leave = triggers_until[np.minimum(evicted, np.repeat(bounds[1:], np.diff(bounds)))]
    shown = enter < leave
    first_entry = np.append(0, np.cumsum(shown))[bounds]
    first_pane = np.searchsorted(triggers.key, np.arange(len(bounds)))
    return Memberships(np.flatnonzero(shown), enter[shown], leave[shown], first_entry, first_pane)


def _instants(triggers: _Triggers, clock: SlidingClock | None) -> pa.Array | None:
    """Return the ticks of triggers as `Panes.at`."""
    if triggers.cell is None or clock is None or clock.grid is None:
        return None
    return clock.grid.bounds(triggers.cell)


def _spread(counts: Ints) -> tuple[Ints, Ints]:
    """Return each index as often as its count says, and a running number from 0 for each of them."""
    index = np.repeat(np.arange(len(counts)), counts)
    return index, np.arange(len(index)) - (np.cumsum(counts) - counts)[index]
