"""What operators are called for, and when: rows, panes and evictions of some keys, each by its number, and all calls.

An *event* is a step of a row, a pane or an eviction. A *time* is ``8 * event + phase``: within an event calls come in
the order of their phases, so a row is in a window where ``enter < time <= leave``. Times of later keys are larger. All
calls follow from panes and their causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..kinds.context import RowSteps, Signals, WindowContext
from ..kinds.key_lifetimes import Lifetimes, lifetimes
from ..kinds.needs import Needs, Step
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.membership import Memberships, memberships_of, ranges
from ..rows.panes import BY_TICK, MarkOnly, Panes, ScanRejects, reason
from ..rows.sequence import Sequences
from .result_columns import stream_columns, stream_values

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
    of_pane, of_row = np.full(len(panes), -1), np.full(n, -1)  # the event of each; -1: it has none
    for out, what in ((of_pane, PANE), (of_row, ROW)):
        own = np.flatnonzero(events.what == what)
        out[events.number[own]] = own

    enter = np.full(n, NEVER)
    for event, number in ((of_pane, steps.entering), (of_row, np.where(stepping, np.arange(n), -1))):
        own = _listed(number, len(event))
        enter[own] = PHASES * event[number[own]] + _INSERTS
    inserts = enter < NEVER
    if context.restored is not None:
        held = context.restored.row_state.last
        enter[held], inserts = PHASES * first[keys[held]] - 1, inserts & ~held

    leave = _leave(panes, steps, events, of_pane, of_row, enter, keys, first)
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
        (TRIGGER, PHASES * of_pane[order] + _SHOWS, order),
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


# The scene of some keys: their rows, and what happens to them.


PaneColumns = Callable[[Sequences, Marks, Panes], tuple[Panes, pa.Table]]
"""Returns those of all panes that are emitted, and the columns that describe them in a result."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The rows of some keys, what happens to them, and what the result says of it.

    ``emitted``: the columns of key, pane and stream of each pane, as the result has them.
    ``evicted_at``: the stream columns of evictions, one array for each of `Plan.stream_names`.
    ``timetable``: when operators are called.
    """

    plan: Plan
    sequences: Sequences
    emitted: pa.Table
    evicted_at: list[pa.Array]
    panes: Panes
    timetable: Timetable


def make_scene(
    plan: Plan,
    sequences: Sequences,
    marks: Marks,
    panes: Panes,
    emitted: pa.Table,
    signals: Signals,
    context: WindowContext,
    head: Head = NO_HEAD,
) -> Scene:
    """Return a scene; ``marks`` and ``panes`` as the kind of the window returned them for ``signals``."""
    parts = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
    steps = plan.kind.row_steps(sequences, signals, panes, parts, context)
    table = make_timetable(plan, sequences, marks, panes, steps, context, parts, head)
    at = _no_stamps(plan)
    if parts is not None and not plan.options.plain:
        by_tick, behind = parts.evictions.by_tick, len(sequences) + len(signals.marks)
        cause = np.where(by_tick, BY_TICK, behind + np.arange(len(by_tick)))
        at = stream_columns(plan, stream_values(plan, sequences, marks), sequences, MarkOnly(cause, steps.evicted_at))
    return Scene(plan, sequences, emitted, at, panes, table)


def no_events(plan: Plan, sequences: Sequences) -> Scene:
    """Return the scene of keys to which nothing happens."""
    none, no_kind = np.empty(0, np.int64), np.empty(0, np.int8)
    events = Events(no_kind, none, none, none, none, none, none)
    bounds = np.zeros(len(sequences.bounds), np.int64)
    table = Timetable(events, none, no_kind, none, bounds, none, none, none, none, has_steps=False)
    panes = Panes(none, none, ranges(none, none), none, no_kind)
    return Scene(plan, sequences, plan.schema.empty_table(), _no_stamps(plan), panes, table)


def _no_stamps(plan: Plan) -> list[pa.Array]:
    return [pa.nulls(0)] * len(plan.stream_names)


def scene_anew(
    plan: Plan,
    sequences: Sequences,
    signals: Signals,
    context: WindowContext,
    number: int,
    columns: PaneColumns,
    head: Head,
) -> Scene:
    """Return the scene of windows that begin anew with these rows. ``number``: of the first pane."""
    context = replace(context, restored=None, last_tick=None)
    panes, marks = plan.kind.panes(sequences, signals, context)
    panes = replace(panes, number=panes.number + number)
    emitted, described = columns(sequences, marks, panes)
    return make_scene(plan, sequences, marks, emitted, described, signals, context, head)


def rows_of(sequences: Sequences, key: int, first: int, stop: int) -> Sequences:
    """Return the rows ``[first, stop)`` of one key as sequences of their own, without ranks."""
    keys = None if sequences.keys is None else sequences.keys.slice(key, 1)
    rows, pos = sequences.rows.slice(first, stop - first), sequences.pos[first:stop]
    return Sequences(keys, np.array([0, stop - first]), rows, pos, sequences.order)


# What calls of operators need besides rows and panes, and what they come to.


@dataclass(slots=True)
class OperatorOutcome:
    """What the calls of operators have come to, for n rows of K keys; complete once all tables have been read.

    ``shown``: bool (n,), the rows that a pane has shown.
    ``held``: bool (n,), the rows that are in a window.
    ``first``: int64 (K,), the first row of the window that each key has at the end.
    ``panes``: int64 (K,), how many panes were emitted.
    ``signals``: numbers of the signals that emitted a pane.
    ``saved``: what each operator has saved; None where there is none.
    ``asked``: bool (K,), the keys that were evicted because their operator asked for it.
    ``anew``: int64 (K,), the first row of each key that was looked at anew after that; its end where none was.
    ``rejected``: what the windows over these rows reject, in place of what they would without an eviction.
    """

    shown: Mask
    held: Mask
    first: Ints
    panes: Ints
    signals: set[int]
    saved: list[str | None]
    asked: Mask
    anew: Ints
    rejected: list[ScanRejects]


def no_outcome(sequences: Sequences) -> OperatorOutcome:
    """Return the outcome before the first call."""
    rows, keys = len(sequences), len(sequences.bounds) - 1
    masks = [np.zeros(size, np.bool_) for size in (rows, rows, keys)]
    first, anew = sequences.bounds[:-1].copy(), sequences.bounds[1:].copy()
    panes = np.zeros(keys, np.int64)
    return OperatorOutcome(masks[0], masks[1], first, panes, set(), [None] * keys, masks[2], anew, [])


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """What calls of operators need besides rows and panes.

    ``signals``, ``context``: with which the panes were computed.
    ``columns``: as in `windowing.emit.operator_scenes.scene_anew`.
    ``saves``: whether another run restores what the operators leave.
    ``outcome``: takes what the calls come to.
    """

    signals: Signals
    context: WindowContext
    columns: PaneColumns
    saves: bool
    outcome: OperatorOutcome
