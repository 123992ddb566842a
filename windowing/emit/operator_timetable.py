"""When operators are called: all calls of some keys in order, as their panes and the causes of these imply.

An *event* is a step of a row, a pane or an eviction. A *time* is ``8 * event + phase``: within an event calls come in
the order of their phases, so a row is in a window where ``enter < time <= leave``. Times of later keys are larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints
from ..kinds.context import RowSteps, WindowContext
from ..kinds.key_lifetimes import Lifetimes
from ..kinds.needs import Needs, Step
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.membership import Memberships, memberships_of
from ..rows.panes import BY_TICK, Panes, reason
from ..rows.sequence import Sequences

PANE, EVICTION, ROW = range(3)  # events, in the order in which they come at one place
EVICT, INSERT, FILL, TRIGGER, PARTITION = range(5)  # methods
PHASES = 8
_BEFORE, _EVICTS, _COMES_IN, _INSERTS, _IS_IN, _SHOWS, _AFTER = range(7)
_FULL_WHEN: Mapping[Step, int] = {"evicts": _EVICTS, "comes in": _COMES_IN, "is in": _IS_IN}
NEVER = np.iinfo(np.int64).max
_AT_END = -2  # stamp of what only the end of the data causes; positions are -1 and more
_EVICTED = reason("evicted")


@dataclass(frozen=True, slots=True)
class Head:
    """Where the step numbers of a window go on that begins at the step at which the one before was evicted.

    ``stamp``: of that step, as in `Events`.
    ``step``: the next number.
    """

    stamp: int = _AT_END
    step: int = 0


NO_HEAD = Head()


@dataclass(frozen=True, slots=True)
class Events:
    """E events of K keys, in order.

    ``what``: int8 (E,), `PANE`, `EVICTION` or `ROW`.
    ``number``: int64 (E,), the number of the pane, the eviction or the row.
    ``key``: int64 (E,), ascending.
    ``place``: int64 (E,), never falls: the row at or before which it comes.
    ``stamp``: int64 (E,), what identifies its stream columns within a key.
    ``run``: int64 (E,), the run of events of one key with one stamp.
    ``step``: int64 (E,), twice the panes before it in its run.
    """

    what: npt.NDArray[np.int8]
    number: Ints
    key: Ints
    place: Ints
    stamp: Ints
    run: Ints
    step: Ints


@dataclass(frozen=True, slots=True)
class Timetable:
    """C calls for n rows of K keys, in order.

    ``events``: what causes them.
    ``time``: int64 (C,), when.
    ``method``: int8 (C,), which: `EVICT`, `INSERT`, `FILL`, `TRIGGER` or `PARTITION`.
    ``item``: int64 (C,), the row of `INSERT` and `FILL`, the pane of `TRIGGER`, the eviction of `PARTITION`.
    ``bounds``: int64 (K+1,), the bounds of the keys among the calls.
    ``enter``, ``leave``: int64 (n,), when each row enters and leaves; the largest number where it does not.
    ``gone``: int64, the rows that leave, by time and row; ``gone_at``: their times.
    ``has_steps``: whether rows have steps of their own.
    """

    events: Events
    time: Ints
    method: npt.NDArray[np.int8]
    item: Ints
    bounds: Ints
    enter: Ints
    leave: Ints
    gone: Ints
    gone_at: Ints
    has_steps: bool

    def before(self, place: int) -> int:
        """Return the first call that comes at ``place`` or later; of one key."""
        return int(np.searchsorted(self.time, PHASES * np.searchsorted(self.events.place, place)))

    def behind(self, event: int) -> int:
        """Return the first call after an event."""
        return int(np.searchsorted(self.time, PHASES * (event + 1)))

    def steps(self, calls: Ints) -> Ints:
        """Return the ``_step`` of rows that calls return, int64."""
        event, phase = np.divmod(self.time[calls], PHASES)
        is_shown = self.method[calls] == TRIGGER
        return self.events.step[event] + np.where(is_shown, 1, np.where(phase == _AFTER, 2, 0))

    def step(self, call: int) -> tuple[int, int]:
        """Return the event of a call, not of `TRIGGER`, and the ``_step`` of rows that it returns."""
        event, phase = divmod(int(self.time[call]), PHASES)
        return event, int(self.events.step[event]) + (2 if phase == _AFTER else 0)

    def last_step(self, key: int) -> int:
        """Return the ``_step`` of rows that are returned at the end of the data."""
        events = self.events
        last = int(np.searchsorted(events.key, key, side="right")) - 1
        if last < 0 or events.key[last] != key or events.stamp[last] != _AT_END:
            return 0
        return int(events.step[last]) + 2 * int(events.what[last] == PANE)

    def held(self, first: int, stop: int, time: int) -> Ints:
        """Return those of the rows ``[first, stop)`` that are in a window at a time, ascending."""
        return np.flatnonzero((self.enter[first:stop] < time) & (time <= self.leave[first:stop])) + first


def make_timetable(
    plan: Plan,
    sequences: Sequences,
    marks: Marks,
    panes: Panes,
    steps: RowSteps,
    context: WindowContext,
    parts: Lifetimes | None,
    head: Head,
) -> Timetable:
    """Return when operators are called in this run: restored rows that are in a window entered before it.

    ``steps``: when rows enter and leave, by the kind of the window. ``parts``: the evictions of the keys, if any.
    """
    n, keys = len(sequences), np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds))
    stepping = (
        steps.stepping if context.restored is None else steps.stepping & context.restored.is_new(sequences.bounds)
    )
    order = np.lexsort([panes.number, panes.key])
    events = _events(sequences, marks, panes, order, steps.place, np.flatnonzero(stepping), keys, parts, head)
    first = np.searchsorted(events.key, np.arange(len(sequences.bounds)))
    of = [_inverse(events, what, size) for what, size in ((PANE, len(panes)), (ROW, n))]

    enter = np.full(n, NEVER)
    for event, number in ((of[PANE], steps.entering), (of[-1], np.where(stepping, np.arange(n), -1))):
        own = _listed(number, len(event))
        enter[own] = PHASES * event[number[own]] + _INSERTS
    inserts = enter < NEVER
    if context.restored is not None:
        held = context.restored.row_state.last
        enter[held], inserts = PHASES * first[keys[held]] - 1, inserts & ~held

    leave = _leave(panes, steps, events, of[PANE], of[-1], enter, keys, first)
    gone = np.flatnonzero(leave < NEVER)
    gone = gone[np.argsort(leave[gone], kind="stable")]
    gone_at = leave[gone]
    evicts = gone_at[np.flatnonzero(np.diff(gone_at, prepend=-1))]
    evicts = evicts[evicts % PHASES != _SHOWS]
    evictions = np.flatnonzero(events.what == EVICTION)
    fills, filled = _fills(plan.kind.needs, events, first, enter, gone_at)
    rows = np.flatnonzero(inserts)
    parts_of_all = [
        (EVICT, evicts, np.full(len(evicts), -1)),
        (INSERT, enter[rows], rows),
        (FILL, fills, filled),
        (TRIGGER, PHASES * of[PANE][order] + _SHOWS, order),
        (PARTITION, PHASES * evictions + _SHOWS, events.number[evictions]),
    ]
    time = np.concatenate([times for _, times, _ in parts_of_all])
    picks = np.argsort(time, kind="stable")  # of runs that ascend: one merge
    method = np.repeat(np.arange(5, dtype=np.int8), [len(times) for _, times, _ in parts_of_all])[picks]
    item, time = np.concatenate([items for *_, items in parts_of_all])[picks], time[picks]
    bounds = np.searchsorted(time, PHASES * first)
    return Timetable(events, time, method, item, bounds, enter, leave, gone, gone_at, bool(stepping.any()))


def _listed(numbers: Ints, count: int) -> Ints:
    """Return where numbers are those of something; `windowing.kinds.context.NEVER` and ``count`` are not."""
    return np.flatnonzero((numbers >= 0) & (numbers < count))


def _inverse(events: Events, what: int, size: int) -> Ints:
    """Return the event of each pane, eviction or row; -1 where it has none."""
    out, own = np.full(size, -1), np.flatnonzero(events.what == what)
    out[events.number[own]] = own
    return out


def _events(
    sequences: Sequences,
    marks: Marks,
    panes: Panes,
    order: Ints,
    place: Ints,
    rows: Ints,
    keys: Ints,
    parts: Lifetimes | None,
    head: Head,
) -> Events:
    """Return the events in order: at one place first panes, then the eviction, then the row."""
    cuts = np.empty(0, np.int64) if parts is None else np.flatnonzero(parts.eviction >= 0)
    cut, cut_key, eviction = (cuts, cuts, cuts) if parts is None else (
        parts.bounds[cuts + 1], parts.key[cuts], parts.eviction[cuts]
    )  # fmt: skip
    places, key = np.concatenate([place[order], cut, rows]), np.concatenate([panes.key[order], cut_key, keys[rows]])
    what = np.repeat(np.arange(3, dtype=np.int8), [len(order), len(cut), len(rows)])
    stamp = np.concatenate(
        [_pane_stamps(sequences, marks, panes)[order], _stamps_of(parts, eviction), sequences.pos[rows]]
    )
    picks = np.argsort(3 * (places + key) + what, kind="stable")  # of runs that ascend: one merge
    what, key, stamp = what[picks], key[picks], stamp[picks]
    number = np.concatenate([order, eviction, rows])[picks]
    if parts is not None:  # the tick that evicts a key has just emitted its last pane
        again = np.flatnonzero((what == EVICTION) & (stamp < _AT_END))
        again = again[(again > 0) & (what[again - 1] == PANE) & (key[again - 1] == key[again])]
        again = again[panes.closed_by[number[again - 1]] == _EVICTED]
        stamp[again] = stamp[again - 1]
    begins = np.append(True, (stamp[1:] != stamp[:-1]) | (key[1:] != key[:-1]))[: len(stamp)]
    run = np.cumsum(begins) - 1
    is_pane = what == PANE
    before = np.cumsum(is_pane) - is_pane
    step = 2 * (before - before[np.flatnonzero(begins)][run])
    if len(stamp) and stamp[0] == head.stamp:
        step[run == 0] += head.step
    return Events(what, number, key, places[picks], stamp, run, step)


def _pane_stamps(sequences: Sequences, marks: Marks, panes: Panes) -> Ints:
    """Return what identifies the stream columns of panes: the position of a row or mark, or the number of a tick."""
    positions = np.concatenate([sequences.pos, marks.pos, [-1]])
    caused = positions[np.maximum(panes.cause, -1)]
    return np.where(panes.cause >= 0, caused, np.where(panes.cause == BY_TICK, -3 - 2 * panes.number, _AT_END))


def _stamps_of(parts: Lifetimes | None, eviction: Ints) -> Ints:
    if parts is None:
        return eviction
    return np.where(
        parts.evictions.by_tick, -4 - 2 * np.arange(len(parts.evictions.by_tick)), parts.evictions.causes.pos
    )[eviction]


def _leave(
    panes: Panes, steps: RowSteps, events: Events, of_pane: Ints, of_row: Ints, enter: Ints, keys: Ints, first: Ints
) -> Ints:
    """Return when each row leaves: at the first of all occasions after it has entered."""
    leave = np.full(len(enter), NEVER)

    def offer(rows: Ints, times: Ints) -> None:
        held = times > enter[rows]
        leave[rows[held]] = np.minimum(leave[rows[held]], times[held])

    for event, number, phase in (
        (of_row, steps.driven, _BEFORE),
        (of_pane, steps.outdated, _BEFORE),
        (of_pane, steps.leaving, _AFTER),
    ):
        if number is not None:
            rows = _listed(number, len(event))
            rows = rows[event[number[rows]] >= 0]
            if phase == _AFTER:
                rows = rows[panes.closed_by[number[rows]] != _EVICTED]  # the eviction itself takes them
            offer(rows, PHASES * event[number[rows]] + phase)
    if steps.drops_unseen:
        rows, pane = _unseen(memberships_of(panes.membership), PHASES * of_pane, enter)
        seen = np.append(panes.key, -1)[pane] == keys[rows]
        offer(rows[seen], PHASES * of_pane[pane[seen]] + _BEFORE)
    evicted = PHASES * np.flatnonzero(events.what == EVICTION) + _SHOWS
    if len(evicted):
        rows = np.flatnonzero(enter < NEVER)
        times = np.append(evicted, NEVER)[np.searchsorted(evicted, enter[rows], side="right")]
        own = times < PHASES * first[keys[rows] + 1]
        offer(rows[own], times[own])
    return leave


def _unseen(lives: Memberships, shown_at: Ints, enter: Ints) -> tuple[Ints, Ints]:
    """Return the rows that enter, and the first pane after that which does not show each; P where there is none.

    ``shown_at``: int64 (P,), the times of panes, which ascend: kinds whose rows leave so number panes as they stand.
    """
    rows = np.flatnonzero(enter < NEVER)
    next_pane = np.full(len(enter), -1)
    next_pane[rows] = np.searchsorted(shown_at, enter[rows])
    unseen = next_pane.copy()
    seen = (lives.enter <= next_pane[lives.row]) & (next_pane[lives.row] < lives.leave)
    unseen[lives.row[seen]] = lives.leave[seen]
    return rows, unseen[rows]


def _fills(needs: Needs, events: Events, first: Ints, enter: Ints, gone_at: Ints) -> tuple[Ints, Ints]:
    nothing = np.empty(0, np.int64)
    if needs.full_when is None:
        return nothing, nothing
    own = np.flatnonzero(events.what == ROW)
    entered = np.sort(enter[enter < NEVER])

    def held(times: Ints) -> Ints:
        return np.searchsorted(entered, times) - np.searchsorted(gone_at, times)

    at_first = held(PHASES * first - 1)[events.key[own]]
    life = (np.cumsum(events.what == EVICTION) + events.key)[own]
    time = PHASES * own + _FULL_WHEN[needs.full_when]
    if needs.full_when == "is in":
        full = held(time) - at_first == needs.counted_rows[1]
        time, life = time[full], life[full]
    elif needs.full_when == "evicts":
        before = PHASES * own + _BEFORE  # it evicts only where a row has left right before it
        full = np.append(gone_at, -1)[np.searchsorted(gone_at, before)] == before
        time, life = time[full], life[full]
    order = np.argsort(time, kind="stable")
    time = time[order][np.unique(life[order], return_index=True)[1]]
    return time, events.number[time // PHASES]
