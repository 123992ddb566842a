"""When rows of both sides enter their windows and leave them, in one order of moments (semantics section 16.6).

left  retain 1      L1    -     L3          the moments of a key: each of its rows, the instants at which the clock lets
right within 2      -     R2    -     x     rows go or come, and the end; x is the instant at which R2 is 2 old
moment              0     1     2     3

As in batched windows a row is shown at the moments ``[enter, leave)``. Moments are numbered key after key; the last of
each key lets go what stays to the end, and brings nothing out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from ...clock.interval_grid import clock_values, now_as_measure
from ...clock.tick_grid import Grid, make_grid
from ...columns.arrays import Ints, Mask, Measures, combined
from ...language.joins import LEFT, RIGHT, SIDE
from ...language.spec import Batched, Delta, SideWindows, Sliding, Time
from ...rows.panes import AT_END, ScanRejects, concatenate, reject_rows
from ...rows.sequence import Sequences, take_rows
from ...support.jit import kernel
from ..batched import Moments, full_lots, partition_codes, shortened
from ..context import WindowContext
from ..sliding import evicted_at
from .matching import SideRows, meets, rows_of_side

EXPIRY, TICK, AGE = 0, 1, 2
"""What happens at an instant: rows expire, before its rows come; ticks of ``every``; rows grow too old for ``time``."""
_BY_EVENT: Final = -2


@kernel
def line_up(  # noqa: PLR0912 - one loop over what happens in a key
    bounds: Ints, clock: Measures, events: Measures, is_complete: Mask, starts: Ints, phase: Ints, ends_each: bool
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the moments of all keys: each row, each instant at which something happens, the end.

    ``clock``: (n,), instants of rows. ``events``: (E,), instants at which the clock does something, in lists; list s
    has those of key k in ``[starts[s, k], starts[s, k + 1])``, ascending, and ``phase[s]``. All events of one instant
    and phase are one moment. ``is_complete``: bool (E,), those up to the end of the data, to which all rows belong.
    ``ends_each``: whether each row has a moment at the end; else the end is one, before events that are not complete.

    Returns ``first``, int64 (K+1,), the bounds of the keys; the moment of each row and of each event; the first moment
    of the end of each key; and for each moment its row, `AT_END`, or ``-2 - e`` for event e.
    """
    lists, keys = len(phase), len(bounds) - 1
    first, end = np.zeros(keys + 1, np.int64), np.empty(keys, np.int64)
    of_row, of_event = np.empty(len(clock), np.int64), np.empty(len(events), np.int64)
    what = np.empty(len(clock) + len(events) + (len(clock) if ends_each else keys) + keys, np.int64)
    cursor = np.empty(lists, np.int64)
    m = 0
    for k in range(keys):
        cursor[:] = starts[:, k]
        row = bounds[k]
        end[k] = -1
        while True:
            # a merge of ascending lists: ``next`` has the earliest event, and of one instant the first phase
            next = -1
            for s in range(lists):
                if cursor[s] < starts[s, k + 1]:
                    at = events[cursor[s]]
                    if next < 0 or at < events[cursor[next]] or (at == events[cursor[next]] and phase[s] < phase[next]):
                        next = s
            if row < bounds[k + 1]:
                if (
                    next < 0
                    or clock[row] < events[cursor[next]]
                    or (clock[row] == events[cursor[next]] and phase[next] != EXPIRY)
                ):
                    what[m] = row
                    of_row[row] = m
                    row += 1
                    m += 1
                    continue
            elif not ends_each and end[k] < 0 and (next < 0 or not is_complete[cursor[next]]):
                end[k] = m
                what[m] = AT_END
                m += 1
                continue
            elif next < 0:
                break
            at, kind = events[cursor[next]], phase[next]
            what[m] = _BY_EVENT - cursor[next]
            for s in range(lists):
                while phase[s] == kind and cursor[s] < starts[s, k + 1] and events[cursor[s]] == at:
                    of_event[cursor[s]] = m
                    cursor[s] += 1
            m += 1
        if ends_each:
            end[k] = m
        for _ in range((bounds[k + 1] - bounds[k] if ends_each else 0) + 1):
            what[m] = AT_END
            m += 1
        first[k + 1] = m
    return first, of_row, of_event, end, what[:m]


@dataclass(frozen=True, slots=True)
class Side(SideRows):
    """The rows of one side, and when they are shown.

    ``enter``, ``leave``: int64 (m,), moments; ``enter == leave`` for a row that is never shown.
    ``holds``: bool (m,), whether each is in the window or stored at the end, also where another hides it.
    ``meets``: bool (m,), whether each may meet rows of the other side at all.
    ``full``: int64, the moments at which a lot of rows is full.
    """

    enter: Ints
    leave: Ints
    holds: Mask
    meets: Mask
    full: Ints


@dataclass(frozen=True, slots=True)
class Timeline:
    """The m moments of all keys, and when the rows of both sides are shown.

    ``first``: int64 (K+1,), their bounds. ``what``: int64 (m,), the row of each; `AT_END`; ``-2 - e`` for event e.
    ``instants``: (E,), when each event happens; ``phase``: int64 (E,), what it is.
    ``is_complete``: bool (E,), whether the clock has passed it, so that no row to come can be before it.
    ``grid``: of the instants; None without a clock.
    ``rejects``: rows without a value that their side needs.
    ``silent``: bool (m,), the moments that bring nothing out: the last of each key, and what came out before a cut.
    """

    first: Ints
    what: Ints
    instants: Measures
    phase: Ints
    is_complete: Mask
    grid: Grid | None
    rejects: ScanRejects
    silent: Mask
    left: Side
    right: Side

    @property
    def event(self) -> Ints:
        """The event of each moment, int64 (m,); negative where there is none."""
        return _BY_EVENT - self.what


@dataclass(frozen=True, slots=True)
class _Clock:
    """The clock of a join: its type, the grid of its instants, those of rows, (n,), and the current time, (1,).

    ``measure``: the current time as a measure of the clock column.
    """

    type: pa.DataType
    grid: Grid
    rows: Measures
    now: Measures
    measure: Measures


@dataclass(frozen=True, slots=True)
class _Own(SideRows):
    """The rows of one side. ``sequences``: these, with the columns that its window reads."""

    sequences: Sequences


@dataclass(frozen=True, slots=True)
class _Events:
    """Instants at which the clock lets rows of one side come or go: ascending in a key.

    ``phase``: what happens. ``instants``: (e,). ``of``: int64 (e,), the row of each.
    ``is_complete``: bool (e,), whether no row to come can be before it.
    """

    phase: int
    instants: Measures
    of: Ints
    is_complete: Mask


@dataclass(frozen=True, slots=True)
class _Lined:
    """What `line_up` returns. ``until``: int64 (K,), the first moment of each key that is not complete."""

    first: Ints
    of_row: Ints
    of_event: Ints
    end: Ints
    what: Ints
    until: Ints


Window = Sliding | Batched


def enters_in_lots(window: Window) -> bool:
    """Return whether rows of one side wait until a number of them is there."""
    return isinstance(window, Batched) and window.every is not None and window.within is None


def spans_of(window: Window) -> tuple[Fraction, ...]:
    """Return the durations in the window of one side, in seconds."""
    if isinstance(window, Sliding):
        return (window.evict.seconds,) if isinstance(window.evict, Time) else ()
    if window.within is None:
        return ()
    return (window.within,) if window.every is None else (window.within, Fraction(window.every))


def attributes_of(window: Window) -> tuple[str, ...]:
    """Return the columns that the window of one side names."""
    if isinstance(window, Sliding):
        return (window.evict.attribute,) if isinstance(window.evict, Delta) else ()
    return tuple(dict.fromkeys(name for name in (*window.partition_by, window.unique) if name is not None))


def grid_of(windows: SideWindows, clock: pa.DataType, origin: Fraction, period: Fraction = Fraction(0)) -> Grid:
    """Return the grid of all instants of both sides. ``period``: that of its ticks; 0: they have no meaning."""
    return make_grid(clock, period, origin, *spans_of(windows.left), *spans_of(windows.right))


def line_up_sides(windows: SideWindows, sequences: Sequences, context: WindowContext) -> Timeline:
    """Return the moments of some sequences of both sides, and when the rows of these are shown.

    Raises `DataError` where an instant does not fit 64 bit.
    """
    clock, (sides, rejects) = _clock_of(windows, sequences, context), _rows_of(windows, sequences)
    both = list(zip((windows.left, windows.right), sides, strict=True))
    events = [_events_of(windows, window, own, clock, context) for window, own in both]
    lists = [(own, each) for (_, own), some in zip(both, events, strict=True) for each in some]
    sizes = np.cumsum([0, *(len(each.of) for _, each in lists)])
    clock_rows = np.zeros(len(sequences), np.int64) if clock is None else clock.rows
    instants = np.concatenate([clock_rows[:0], *(each.instants for _, each in lists)])
    complete = np.concatenate([np.empty(0, np.bool_), *(each.is_complete for _, each in lists)])
    starts = [np.searchsorted(each.of, own.bounds) + size for (own, each), size in zip(lists, sizes, strict=False)]
    phase = np.array([each.phase for _, each in lists], np.int64)
    begins = np.array(starts, np.int64).reshape(len(lists), len(sequences.bounds))
    ends_each = isinstance(windows.left, Sliding)
    found = line_up(sequences.bounds, clock_rows, instants, complete, begins, phase, ends_each)
    until = found[3].copy()
    if not complete.all():
        key = np.concatenate([own.key[each.of] for own, each in lists])
        np.minimum.at(until, key[~complete], found[2][~complete])
    lined, at, lives = _Lined(*found, until), 0, list[Side]()
    for (window, own), some in zip(both, events, strict=True):
        moments = [found[2][sizes[at + i] : sizes[at + i + 1]] for i in range(len(some))]
        lives.append(_side(window, own, sequences, lined, list(zip(some, moments, strict=True))))
        at += len(some)
    phases = np.repeat(phase, np.diff(sizes))
    first, what, grid = lined.first, lined.what, None if clock is None else clock.grid
    silent = np.zeros(len(what), np.bool_)
    silent[first[1:] - 1] = True
    if context.restored is not None:
        row = np.flatnonzero(what >= 0)
        silent[row] = ~context.restored.is_new(sequences.bounds)[what[row]]
        if clock is not None and context.since is not None:
            since = clock.grid.instants(now_as_measure(instants[:0], context.since))[0]
            is_old = np.where(phases == EXPIRY, instants <= since, instants < since)
            of_event = np.flatnonzero(what <= _BY_EVENT)
            silent[of_event] = is_old[_BY_EVENT - what[of_event]]
    return Timeline(first, what, instants, phases, complete, grid, rejects, silent, *lives)


def _clock_of(windows: SideWindows, sequences: Sequences, context: WindowContext) -> _Clock | None:
    if not spans_of(windows.left) and not spans_of(windows.right):
        return None
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    values, grid = clock_values(column, name), grid_of(windows, column.type, context.origin)
    measure = now_as_measure(values, context.clock)
    return _Clock(column.type, grid, grid.instants(values), grid.instants(measure), measure)


def _rows_of(windows: SideWindows, sequences: Sequences) -> tuple[list[_Own], ScanRejects]:
    """Return the rows of the left and of the right side; those that lack a value that their side needs are rejected."""
    side = combined(sequences.rows.column(SIDE)).to_numpy()
    null, nan = np.zeros(len(side), np.bool_), np.zeros(len(side), np.bool_)
    parts = ((LEFT, windows.left), (RIGHT, windows.right))
    for bit, window in parts:
        for name in attributes_of(window):
            column, is_own = combined(sequences.rows.column(name)), side & bit > 0
            missing = column.is_null().to_numpy(zero_copy_only=False)
            null |= missing & is_own
            nan |= column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False) & ~missing & is_own
    found = list[_Own]()
    for bit, window in parts:
        each = rows_of_side(sequences, (side & bit > 0) & ~null & ~nan)
        rows = take_rows(sequences.rows.select(list(attributes_of(window))), each.row)
        own = replace(sequences, bounds=each.bounds, rows=rows, pos=sequences.pos[each.row], rank=None)
        found.append(_Own(each.row, each.bounds, each.key, own))
    picks = [np.flatnonzero(null), np.flatnonzero(nan & ~null)]
    whys = zip(picks, ("null_attribute", "nan_attribute"), strict=True)
    return found, concatenate([reject_rows(sequences.pos[each], why, row=each) for each, why in whys])


def _events_of(
    windows: SideWindows, window: Window, own: _Own, clock: _Clock | None, context: WindowContext
) -> list[_Events]:
    """Return when rows go; under ``every`` before it when they come."""
    if clock is None or not spans_of(window):
        return []
    came, every = clock.rows[own.row], np.arange(len(own.row))
    if isinstance(window, Sliding):
        assert isinstance(window.evict, Time)
        goes = clock.grid.later(came, window.evict.seconds) if window.evict.seconds else came
        gone = np.flatnonzero(goes < clock.now)  # the end lets the others go, one by one
        return [_Events(AGE, goes[gone], gone, np.ones(len(gone), np.bool_))]
    assert window.within is not None
    goes = clock.grid.later(came, window.within)
    if window.every is None:
        return [_Events(EXPIRY, goes, every, goes <= clock.now)]
    grid = grid_of(windows, clock.type, context.origin, Fraction(window.every))
    # where the data continues, more rows may arrive at the instant of a tick and enter at that tick
    last = int(grid.first_ticks(clock.now)[0]) if context.hold else int(grid.cells(clock.measure)[0]) + 1
    comes, leaves = grid.first_ticks(came), grid.first_ticks(goes)
    gone = np.flatnonzero(leaves <= last)
    lists = ((comes, every), (leaves[gone], gone))
    return [_Events(TICK, grid.ticks(tick), of, tick < last) for tick, of in lists]


def _side(window: Window, own: _Own, sequences: Sequences, lined: _Lined, events: list[tuple[_Events, Ints]]) -> Side:
    key, until, full = own.key, lined.until[own.key], np.empty(0, np.int64)
    enter, close = lined.of_row[own.row], lined.first[1:][key] - 1
    if isinstance(window, Sliding):
        leave = lined.end[key] + own.row - sequences.bounds[key]
        if events:
            leave[events[0][0].of] = events[0][1]
        else:
            evictor = evicted_at(window.evict, own.sequences)
            leave = np.where(evictor < len(enter), np.append(enter, 0)[evictor], leave)
        holds = leave >= until
    else:
        leave = close
        if events:
            leave[events[-1][0].of] = events[-1][1]
        if len(events) > 1:
            enter = events[0][1]
        lots = enters_in_lots(window)
        if lots:
            codes = partition_codes(own.sequences, window.partition_by)
            of_keys, lot, cause = full_lots(own.bounds, *codes, int(window.every or 1))
            of_lot = np.repeat(lined.end, np.diff(of_keys))
            full = enter[cause[cause >= 0]]
            of_lot[cause >= 0] = full
            enter = of_lot[lot]
        nothing = np.empty(0, np.int64)
        moments = Moments(lined.first, enter, leave, nothing, nothing.astype(np.int8))
        places = shortened(replace(window, unique=None), own.sequences, moments).leave
        leave = shortened(window, own.sequences, moments).leave
        holds = (enter >= until) | (places >= until)
        if lots:  # the next run counts lots from the same row
            kept = np.zeros(len(of_lot), np.bool_)
            kept[lot[holds]] = True
            holds = kept[lot]
    is_met = meets(sequences)[key]
    if not is_met.all():  # the others take no place in a window
        enter, leave = (np.where(is_met, each, lined.of_row[own.row]) for each in (enter, leave))
        holds &= is_met
    return Side(own.row, own.bounds, key, enter, leave, holds, is_met, full)
