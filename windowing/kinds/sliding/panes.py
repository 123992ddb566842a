"""Sliding windows: what of a key's rows is still held whenever the window is looked at (semantics section 3).

A sliding window is three questions that do not depend on each other: at which row does a row go (eviction), when is
the window looked at (trigger), and from when on may it be seen (full). A look stands at a place between two rows: the
rows before it have done their steps, those behind it have not. On which side of its row a trigger stands is all that
tells the pairs of the table in section 3 apart: a count trigger stands behind its row, a delta trigger before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.tick_grid import Grid
from ...clock.values import clock_values, now, time_grid
from ...columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ...columns.numeric import Scale, measures, scale_of
from ...errors import DataError
from ...language.spec import Count, Delta, Sliding, SlidingPolicy, Time
from ...panes.membership import Memberships, Ranges
from ...panes.panes import AT_END, BY_TICK, MarkOnly, Panes, reason
from ...sequences.attribute_distance import amount_in_measure, measures_and_amount
from ...sequences.sequence import Sequences
from ...state.window_state import RestoredState
from ..context import WindowContext
from ..tumbling.panes import Baselines, delta_starts
from .kernels import comparable, evicted_by_delta, have_risen, oldest_retained

_MOST_TICKS = 50_000_000
_MOST_ROWS = 2**62  # of a window
_ROUNDED = 8  # more ticks than these never fit into a span because they were rounded to floats


@dataclass(frozen=True, slots=True)
class _Triggers:
    """L looks, key after key in the order in which they come.

    ``key``, ``place``: int64 (L,), the rows ``[bounds[key], place)`` have done their steps. ``cause``: as in `Panes`.
    ``cell``: int64 (L,), whose lower bound is the tick, of any value at the end; None where the trigger is no clock.
    """

    key: Ints
    place: Ints
    cause: Ints
    cell: Ints | None = None

    def only(self, chosen: Mask) -> _Triggers:
        if bool(chosen.all()):
            return self
        cell = None if self.cell is None else self.cell[chosen]
        return _Triggers(self.key[chosen], self.place[chosen], self.cause[chosen], cell)

    def with_ends(self, unseen: Mask, bounds: Ints) -> _Triggers:
        """Look once more at the end of the data, at the keys that rows came into since their last look."""
        keys = np.flatnonzero(unseen)
        behind = np.searchsorted(self.key, keys, side="right")
        key, place = np.insert(self.key, behind, keys), np.insert(self.place, behind, bounds[keys + 1])
        cell = None if self.cell is None else np.insert(self.cell, behind, 0)
        return _Triggers(key, place, np.insert(self.cause, behind, AT_END), cell)


@dataclass(frozen=True, slots=True)
class _Clock:
    """The clock column, and the grid over it where the clock triggers.

    ``values``: int64 or float64 (n,), floats in 64 bit as the bounds of grids are. ``now``: where the one clock
    stands. ``scale``: of both.
    """

    values: Measures
    now: ClockValue
    scale: Scale
    grid: Grid | None

    def age(self, seconds: Fraction) -> Any:
        return amount_in_measure(self.values, self.scale, seconds)

    def cell(self, instant: ClockValue) -> int:
        assert self.grid is not None
        return int(self.grid.cells(np.array([instant], self.values.dtype))[0])

    def finer(self) -> _Clock:
        """Return the same in a unit in which ticks are whole."""
        if self.grid is None or self.grid.refine == 1 or self.scale.per_second is None:
            return self
        refine = self.grid.refine
        return _Clock(
            self.values * np.int64(refine), self.now * refine, Scale(self.scale.per_second * refine), self.grid
        )

    def ticks(self, cells: Ints) -> Measures:
        """Return the lower bounds of cells, in the unit of `finer`."""
        assert self.grid is not None
        if self.grid.exact:
            return cells * np.int64(self.grid.period) + np.int64(self.grid.origin)
        return self.grid.bounds(cells).to_numpy()


def sliding_panes(spec: Sliding, sequences: Sequences, setting: WindowContext) -> Panes:
    """Return the panes of a sliding window, those that only the end of the data brings out included.

    No column that the window looks at may hold null; NaN compares false. ``bare`` are the empty windows of a sequence
    without a key, with ``setting.partial``. Raises `DataError` where more than 50 million ticks would bring something
    out, and where ticks do not fit 64 bit.
    """
    evict, bounds, past = spec.evict, sequences.bounds, setting.restored
    tells_empty = setting.partial and sequences.keys is None
    gone = evicted_at(spec, sequences) if isinstance(evict, Delta) else None
    full = bounds[:-1] if setting.partial else _full(evict, bounds, gone, past)
    clock = _clock(spec, sequences, setting) if Time in (type(evict), type(spec.trigger)) else None
    match spec.trigger:
        case Count(n):
            looks = _count_triggers(bounds, n, past)
        case Delta():
            looks = _delta_triggers(bounds, tripping(spec.trigger, sequences, past), past)
        case Time():
            assert clock is not None
            looks = _tick_triggers(spec, bounds, clock, full, setting, tells_empty)
    looks = looks.only(looks.place >= full[looks.key])
    oldest = _oldest(evict, bounds[looks.key], looks, clock)
    empty = oldest == looks.place
    seen = looks.only(~empty)
    return Panes(
        seen.key,
        _spread(np.bincount(seen.key, minlength=len(full)))[1],
        Ranges(oldest[~empty], seen.place, bounds[seen.key], False)
        if gone is None
        else _memberships(bounds, seen, gone),
        seen.cause,
        np.where(seen.cause == AT_END, reason("end"), reason("trigger")).astype(np.int8),
        at=_instants(seen, clock),
        marks_only=MarkOnly(looks.cause[empty], _instants(looks.only(empty), clock)) if tells_empty else None,
    )


def evicted_at(spec: Sliding, sequences: Sequences) -> Ints:
    """Return for each row the row of its key at whose step it is evicted, n where none does; int64 of shape (n,).

    By ``count(m)`` the m-th row after it, by ``delta`` the first that is too far above it, by ``time`` the first that
    is too much later (a tick or the end of the data may find it too old before that).
    """
    bounds = sequences.bounds
    match spec.evict:
        case Count(n):
            row, end = np.arange(len(sequences)), np.repeat(bounds[1:], np.diff(bounds))
            return np.where(row < end - n, row + n, len(sequences))
        case Delta(attribute, amount):
            values, too_much = measures_and_amount(sequences, attribute, amount)
        case Time(seconds):
            values, scale = _clock_values(sequences)
            too_much = amount_in_measure(values, scale, seconds)
    return evicted_by_delta(bounds, comparable(values), too_much)


def lost_at(spec: Sliding, sequences: Sequences, setting: WindowContext) -> Ints:
    """Return for each row the first tick that finds it gone, int64 (n,), where time both evicts and triggers."""
    clock = _clock(spec, sequences, setting)
    assert clock.grid is not None
    cell = clock.grid.cells(clock.values)
    found: Ints = _finding(spec, clock.finer(), cell, _at_most(np.array([clock.cell(clock.now)]), cell))
    return cell + found + 1


def rows_at_end(spec: Sliding, sequences: Sequences, setting: WindowContext) -> Mask:
    """Return which rows the windows hold where the clock stands at the end, (n,)."""
    match spec.evict:
        case Count(n):
            place, ends = np.arange(len(sequences)), np.repeat(sequences.bounds[1:], np.diff(sequences.bounds))
            return place >= ends - n
        case Delta():
            return evicted_at(spec, sequences) == len(sequences)
        case Time(seconds):
            clock = _clock(spec, sequences, setting)
            stands = np.full(len(sequences), clock.now, clock.values.dtype)
            return ~have_risen(comparable(stands), comparable(clock.values), clock.age(seconds))


def tripping(trigger: Delta, sequences: Sequences, past: RestoredState | None) -> Ints:
    """Return the rows that move a ``delta`` trigger's baseline on, and those that only set it: int64, ascending."""
    values, amount = measures_and_amount(sequences, trigger.attribute, trigger.amount)
    if past is None:
        return delta_starts(sequences.bounds, values, amount)
    value = past.key_state.baseline
    known = value.is_valid().to_numpy(zero_copy_only=False)
    begin = np.where(known, sequences.bounds[:-1] + past.restored_rows, sequences.bounds[:-1])
    return delta_starts(sequences.bounds, values, amount, Baselines(begin, known, measures(value)))


def _full(evict: SlidingPolicy, bounds: Ints, gone: Ints | None, past: RestoredState | None) -> Ints:
    """From which place on each key's window is full, int64 (K,)."""
    begin = bounds[:-1]
    if gone is not None:
        first_gone = np.full(len(begin), len(gone))
        some = begin < bounds[1:]
        first_gone[some] = np.minimum.reduceat(gone, begin[some])
        return first_gone + 1 if past is None else np.where(past.key_state.full, begin, first_gone + 1)
    if not isinstance(evict, Count):
        return begin
    return begin + min(evict.n, _MOST_ROWS) - (0 if past is None else past.ahead)


def _count_triggers(bounds: Ints, n: int, past: RestoredState | None) -> _Triggers:
    """Looks behind each n-th row of a key."""
    ahead = np.zeros(len(bounds) - 1, np.int64) if past is None else past.ahead
    reached = np.diff(bounds) + ahead
    key, step = _spread(reached // n - ahead // n)
    place = (bounds[:-1] - ahead + ahead // n * n)[key] + (step + 1) * n
    return _Triggers(key, place, place - 1).with_ends(reached % n > 0, bounds)


def _delta_triggers(bounds: Ints, starts: Ints, past: RestoredState | None) -> _Triggers:
    """Looks before each row that trips: the baseline moves on as that of a tumbling ``delta`` window does."""
    key, step = _spread(np.diff(np.searchsorted(starts, bounds)))
    is_set = np.zeros(len(bounds) - 1, np.bool_)
    if past is not None:
        is_set = past.key_state.baseline.is_valid().to_numpy(zero_copy_only=False)
    trips = (step > 0) | is_set[key]  # else a key's first row only sets the baseline
    rows = starts[trips]
    return _Triggers(key[trips], rows, rows).with_ends(np.diff(bounds) > 0, bounds)


def _tick_triggers(
    spec: Sliding, bounds: Ints, clock: _Clock, full: Ints, setting: WindowContext, tells_empty: bool
) -> _Triggers:
    """Looks at the ticks after each row, up to the next row of its key, the clock, or the last one to find the key.

    Where empty windows are told, at all of them, also those after ``since`` and before the first row; else at those
    that find a full window, so that a gap of years costs nothing.
    """
    assert clock.grid is not None
    cell, last = clock.grid.cells(clock.values), clock.cell(clock.now)
    newest = bounds[1:][bounds[:-1] < bounds[1:]] - 1
    until = np.append(cell, last)[1:]
    key, step = _spread(np.diff(bounds))
    until[newest] = last
    if setting.last_tick is not None:
        until[newest] = np.clip(setting.last_tick[key[newest]], cell[newest], last)
    place = bounds[key] + step + 1
    unseen = np.zeros(len(full), np.bool_)
    unseen[key[newest]] = cell[newest] == last
    if tells_empty and setting.since is not None:
        stop = cell[0] if len(cell) else last
        begin = min(clock.cell(setting.since), stop)
        key, place, cell, until = (
            np.insert(array, 0, value) for array, value in ((key, 0), (place, 0), (cell, begin), (until, stop))
        )
    count = _at_most(until, cell)
    if not tells_empty:
        count = np.where(place < full[key], 0, _finding(spec, clock.finer(), cell, count))
    if count.sum() > _MOST_TICKS:
        raise DataError(f"{spec.trigger} would trigger more than {_MOST_TICKS:,} times", "use a longer trigger period")
    after, step = _spread(count)
    looks = _Triggers(key[after], place[after], np.full(len(after), BY_TICK), cell[after] + step + 1)
    return looks.with_ends(unseen, bounds)


def _at_most(until: Ints, cell: Ints) -> Ints:
    """How many ticks there are after each cell; where too many, one more than may be."""
    # the difference of two cells may need 64 unsigned bits
    return np.minimum((until - cell).view(np.uint64), np.uint64(_MOST_TICKS + 1)).astype(np.int64)


def _finding(spec: Sliding, clock: _Clock, cell: Ints, count: Ints) -> Ints:
    """Of so many ticks after each row, how many come before the row is evicted, int64 (n,)."""
    match spec.evict, spec.trigger:
        case Count(0), _:
            return np.zeros_like(count)
        case Time(seconds), Time(period):
            most = seconds // period + (1 if clock.grid is None or clock.grid.exact else _ROUNDED)
            count = np.minimum(count, min(most, _MOST_TICKS + 1))
            values, age = comparable(clock.values), clock.age(seconds)
            while (late := have_risen(comparable(clock.ticks(cell + count)), values, age)).any():
                count = count - late
    return count


def _oldest(evict: SlidingPolicy, begin: Ints, looks: _Triggers, clock: _Clock | None) -> Ints:
    """The oldest row that each look finds (by ``delta``: may find), its place where there is none, int64 (L,)."""
    match evict:
        case Count(n):
            return np.maximum(begin, looks.place - n)
        case Time(seconds):
            assert clock is not None
            clock = clock.finer()
            came = clock.values[looks.cause] if looks.cell is None else clock.ticks(looks.cell)
            at = np.where(looks.cause == AT_END, clock.now, came)
            return oldest_retained(begin, looks.place, comparable(at), comparable(clock.values), clock.age(seconds))
    return begin


def _memberships(bounds: Ints, looks: _Triggers, gone: Ints) -> Memberships:
    """Rows as looks find them: from the first behind a row's own step to the last before the one that evicts it."""
    looks_until = np.cumsum(np.bincount(looks.place, minlength=len(gone) + 1))  # those at each place and before it
    enter = looks_until[:-1]
    leave = looks_until[np.minimum(gone, np.repeat(bounds[1:], np.diff(bounds)))]
    shown = enter < leave
    first_entry = np.append(0, np.cumsum(shown))[bounds]
    first_pane = np.searchsorted(looks.key, np.arange(len(bounds)))
    return Memberships(np.flatnonzero(shown), enter[shown], leave[shown], first_entry, first_pane)


def _instants(looks: _Triggers, clock: _Clock | None) -> pa.Array | None:
    """The ticks of looks as `Panes.at`."""
    if looks.cell is None or clock is None or clock.grid is None:
        return None
    return clock.grid.bounds(looks.cell)


def _clock(spec: Sliding, sequences: Sequences, setting: WindowContext) -> _Clock:
    values, scale = _clock_values(sequences)
    stands = now(values, setting.clock)
    if stands is None:
        stands = setting.since or 0  # no tick has come since
    dtype = sequences.rows.column(sequences.order[0]).type
    match spec.trigger:
        case Time(period):
            return _Clock(values, stands, scale, time_grid(dtype, period, setting.origin))
    return _Clock(values, stands, scale, None)


def _clock_values(sequences: Sequences) -> tuple[Measures, Scale]:
    column = combined(sequences.rows.column(sequences.order[0]))
    values = clock_values(column, sequences.order[0])
    return values if values.dtype == np.int64 else values.astype(np.float64), scale_of(column.type)


def _spread(counts: Ints) -> tuple[Ints, Ints]:
    """Return each place as often as it counts, and how many of it stand before."""
    index = np.repeat(np.arange(len(counts)), counts)
    return index, np.arange(len(index)) - (np.cumsum(counts) - counts)[index]
