"""Sliding windows as a kind: one policy evicts rows, another triggers panes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..clock.interval_grid import clock_values, time_grid
from ..columns.arrays import Ints, Mask, combined
from ..language.conditions import operand_column
from ..language.spec import Count, Delta, PartitionEviction, Sliding, SlidingPolicy, Time, When
from ..rows.marks import Marks, concatenate
from ..rows.membership import Memberships, Ranges
from ..rows.panes import AT_END, MarkOnly, Panes, reason
from ..rows.sequence import Sequences, amount_in_measure, measures_and_amount
from ..state.window_state import RestoredState
from .context import RowSteps, Signals, WindowContext, after_rows, steps_of_rows
from .contract import WindowKind
from .delta import comparable, evicted_by_delta, oldest_retained, risen_pairs
from .eviction_kernels import STAYS, Times, evicted_by
from .evictions import NO_PLACES, Evictions, TickEvents, by_key, limits, row_seconds, tick_events, total_order
from .key_lifetimes import Lifetimes, lifetimes, merge_sliding
from .needs import Explain, Needs, Option, PanesByCount, PaneTimes, Step, check_condition, check_measured
from .sliding_triggers import (
    MOST_TICKS,
    Finding,
    SlidingClock,
    TriggerInput,
    TriggerPolicy,
    Triggers,
    at_most,
    sliding_clock,
    sliding_clock_values,
    spread,
    trigger_of,
    tripping,
)

# What evicts rows from sliding windows: a policy for each of count, delta and time (semantics section 3).


_MOST_ROWS = 2**62  # of a window
_ROUNDED = 8  # rounding of ticks to floats never makes more additional ticks than this fit into a span


class EvictPolicy(ABC):
    """What evicts rows, with its value in the language."""

    __slots__ = ()

    needs_clock: ClassVar[bool] = False
    """Whether time evicts rows, so that a window may be left without rows."""
    full_when: ClassVar[Step] = "comes in"
    """The step of a row at which a window that was never full is full (section 3)."""
    evicts_anywhere: ClassVar[bool] = False
    """Whether a row may be evicted before older ones."""

    @property
    def attribute(self) -> str | None:
        return None

    @abstractmethod
    def evicted_at(self, sequences: Sequences) -> Ints:
        """Return for each row the row of its key that evicts it, n where no row does; int64 of shape (n,)."""

    def full(self, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:  # noqa: ARG002
        """Return the place from which on the window of each key is full, int64 (K,).

        ``evicted``: `evicted_at` of all rows, where a row may be evicted before older ones; else None.
        """
        return bounds[:-1]

    def oldest(self, begin: Ints, triggers: Triggers, clock: SlidingClock | None) -> Ints:  # noqa: ARG002
        """Return the oldest row that each trigger finds (may find), its place if none, int64 (L,)."""
        return begin

    def finding(self, trigger: TriggerPolicy) -> Finding:  # noqa: ARG002
        """Return which ticks find a row."""
        return _all_ticks

    @abstractmethod
    def rows_at_end(self, sequences: Sequences, context: WindowContext) -> Mask:
        """Return which rows the windows hold at the current time of the clock at the end, bool (n,)."""


@dataclass(frozen=True, slots=True)
class CountEvict(EvictPolicy):
    """``count(n)``: the m-th row after each evicts it.

    ``value``: as in the spec.
    """

    value: Count

    full_when: ClassVar[Step] = "is in"

    def evicted_at(self, sequences: Sequences) -> Ints:
        bounds = sequences.bounds
        row, end = np.arange(len(sequences)), np.repeat(bounds[1:], np.diff(bounds))
        return np.where(row < end - self.value.n, row + self.value.n, len(sequences))

    def full(self, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:  # noqa: ARG002
        return bounds[:-1] + min(self.value.n, _MOST_ROWS) - (0 if restored is None else restored.ahead)

    def oldest(self, begin: Ints, triggers: Triggers, clock: SlidingClock | None) -> Ints:  # noqa: ARG002
        return np.maximum(begin, triggers.place - self.value.n)

    def finding(self, trigger: TriggerPolicy) -> Finding:  # noqa: ARG002
        return _all_ticks if self.value.n else _no_tick

    def rows_at_end(self, sequences: Sequences, context: WindowContext) -> Mask:  # noqa: ARG002
        place, ends = np.arange(len(sequences)), np.repeat(sequences.bounds[1:], np.diff(sequences.bounds))
        return place >= ends - self.value.n


@dataclass(frozen=True, slots=True)
class DeltaEvict(EvictPolicy):
    """``delta(attribute, amount)``: the first row that is too far above each evicts it.

    ``value``: as in the spec.
    """

    value: Delta

    full_when: ClassVar[Step] = "evicts"
    evicts_anywhere: ClassVar[bool] = True

    @property
    def attribute(self) -> str:
        return self.value.attribute

    def evicted_at(self, sequences: Sequences) -> Ints:
        values, too_much = measures_and_amount(sequences, self.value.attribute, self.value.amount)
        return evicted_by_delta(sequences.bounds, comparable(values), too_much)

    def full(self, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:
        assert evicted is not None
        begin = bounds[:-1]
        first_evicted = np.full(len(begin), len(evicted))
        some = begin < bounds[1:]
        first_evicted[some] = np.minimum.reduceat(evicted, begin[some])
        return first_evicted + 1 if restored is None else np.where(restored.key_state.full, begin, first_evicted + 1)

    def rows_at_end(self, sequences: Sequences, context: WindowContext) -> Mask:  # noqa: ARG002
        return self.evicted_at(sequences) == len(sequences)


@dataclass(frozen=True, slots=True)
class TimeEvict(EvictPolicy):
    """``time(seconds)``: the first row that is too much later; a tick or the end of the data may come before it.

    ``value``: as in the spec.
    """

    value: Time

    needs_clock: ClassVar[bool] = True

    def evicted_at(self, sequences: Sequences) -> Ints:
        values, scale = sliding_clock_values(sequences)
        return evicted_by_delta(
            sequences.bounds, comparable(values), amount_in_measure(values, scale, self.value.seconds)
        )

    def oldest(self, begin: Ints, triggers: Triggers, clock: SlidingClock | None) -> Ints:
        assert clock is not None
        clock = clock.finer()
        came = clock.values[triggers.cause] if triggers.cell is None else clock.ticks(triggers.cell)
        at = np.where(triggers.cause == AT_END, clock.now, came)
        age = clock.age(self.value.seconds)
        return oldest_retained(begin, triggers.place, comparable(at), comparable(clock.values), age)

    def finding(self, trigger: TriggerPolicy) -> Finding:
        return _all_ticks if trigger.period is None else partial(_young_ticks, self.value, trigger)

    def rows_at_end(self, sequences: Sequences, context: WindowContext) -> Mask:
        clock = sliding_clock(None, sequences, context)
        at = np.full(len(sequences), clock.now, clock.values.dtype)
        return ~risen_pairs(comparable(at), comparable(clock.values), clock.age(self.value.seconds))


def evict_of(value: SlidingPolicy) -> EvictPolicy:
    """Return what evicts rows, with its value."""
    match value:
        case Count():
            return CountEvict(value)
        case Delta():
            return DeltaEvict(value)
        case Time():
            return TimeEvict(value)


def _all_ticks(clock: SlidingClock, cell: Ints, count: Ints) -> Ints:  # noqa: ARG001
    return count


def _no_tick(clock: SlidingClock, cell: Ints, count: Ints) -> Ints:  # noqa: ARG001
    return np.zeros_like(count)


def _young_ticks(evict: Time, trigger: TriggerPolicy, clock: SlidingClock, cell: Ints, count: Ints) -> Ints:
    """Return how many of the ``count`` ticks after each row come before the row is evicted, int64 (n,)."""
    assert trigger.period is not None
    most = evict.seconds // trigger.period + (1 if clock.grid is None or clock.grid.exact else _ROUNDED)
    count = np.minimum(count, min(most, MOST_TICKS + 1))
    values, age = comparable(clock.values), clock.age(evict.seconds)
    # ``most`` is an upper bound; the loop removes the few ticks at which the row is already too old
    while (too_late := risen_pairs(comparable(clock.ticks(cell + count)), values, age)).any():
        count = count - too_late
    return count


# Sliding windows: the rows that each trigger finds in the window of its key (semantics section 3).
#
# A sliding window answers three independent questions: at which row is a row evicted (eviction), when does the window
# trigger (trigger), and from when on may it emit panes (full). A trigger has a place between two rows of its key: the
# rows before that place have done their steps, the rows after it have not. The pairs of the table in section 3 differ
# only in the side of the causing row on which the trigger lies: a count trigger comes after its row, a delta trigger
# before it.


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
    if triggers.cell is None or clock is None or clock.grid is None:
        return None
    return clock.grid.bounds(triggers.cell)


# What partition eviction knows of sliding windows: when rows leave them, and which ticks find a key.


def sliding_evictions(spec: Sliding, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
    """Return all partition evictions; ``sequences`` hold all rows of all keys, at least in the columns of the spec.

    ``marks`` must be in total order. Ages count in whole seconds, of the clock and of the spec. Raises `DataError`
    where these are beyond 2**62.
    """
    assert spec.eviction is not None
    order, empties = total_order(sequences, context.restored), evict_of(spec.evict).needs_clock
    leaves = NO_PLACES
    if spec.eviction.kind == "tupleCount" or empties:
        leaves = _evicted_places(spec, sequences, order.row)
    times = _times(spec, spec.eviction, sequences, order.row, context)
    cause, event = evicted_by(
        order.row, order.key, order.keys, limits(spec.eviction), leaves, empties, times, order.begin
    )
    last = np.flatnonzero(cause != STAYS)
    event = event[last] if len(event) else np.zeros(len(last), np.int64)
    return by_key(sequences, marks, last, cause[last], event)


def _times(
    spec: Sliding, eviction: PartitionEviction, sequences: Sequences, order: Ints, context: WindowContext
) -> Times:
    ticks = _ticks(spec, sequences, context)
    passed = NO_PLACES if ticks is None else ticks.passed[order]
    end = 0 if ticks is None else ticks.end
    seconds = row_seconds(eviction, sequences, order)
    if eviction.kind != "partitionAge":
        return Times(seconds, passed, end, NO_PLACES, NO_PLACES, NO_PLACES)
    age = eviction.amount.__floor__()
    due, stale = (NO_PLACES if ticks is None else ticks.from_on(seconds, ahead) for ahead in (age + 1, age))
    lost = NO_PLACES
    if ticks is not None and evict_of(spec.evict).needs_clock:
        lost = lost_at(spec, sequences, context)[order]
    return Times(seconds, passed, end, due, stale, lost)


def _evicted_places(spec: Sliding, sequences: Sequences, order: Ints) -> Ints:
    """Return for each row the place in the total order at which it leaves its window, n where it never does."""
    n = len(sequences)
    leaves = np.empty(n, np.int64)
    if evict_of(spec.evict).needs_clock:  # one clock for all keys: any row of any key may evict it
        rows = sequences.rows.select(list(sequences.order)).take(pa.array(order))
        leaves[order] = evicted_at(spec, replace(sequences, bounds=np.array([0, n]), rows=rows))
        return leaves
    leaves[order] = np.arange(n)
    return np.append(leaves, n)[evicted_at(spec, sequences)]


def _ticks(spec: Sliding, sequences: Sequences, context: WindowContext) -> TickEvents | None:
    period = trigger_of(spec.trigger).period
    if period is None:
        return None
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    grid = time_grid(column.type, period, context.origin)
    return tick_events(clock_values(column, name), grid, sequences, context.clock)


@dataclass(frozen=True, slots=True)
class SlidingKind(WindowKind):
    """A sliding window.

    ``spec``: its spec.
    ``needs``: as in `WindowKind`.
    """

    spec: Sliding
    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        condition = trigger_of(self.spec.trigger).condition
        if condition is not None and operand_column(condition) == name:
            check_condition("when", condition, dtype)
        for policy in (self.spec.evict, self.spec.trigger):
            if isinstance(policy, Delta) and policy.attribute == name:
                check_measured(policy, name, dtype, explain)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        period = trigger_of(self.spec.trigger).period
        if period is None:
            return PaneTimes()
        grid = time_grid(clock, period, origin)
        return PaneTimes(instants=grid.type, grid=grid)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes; with partition eviction one lifetime of a key at a time (semantics section 4)."""
        if self.needs.eviction is None:
            return sliding_panes(self.spec, sequences, context), signals.marks
        assert signals.evictions is not None
        parts = lifetimes(signals.evictions, sequences)
        restored = context.restored and parts.restored(context.restored)
        context = replace(context, last_tick=parts.last_tick, restored=restored)
        panes = sliding_panes(self.spec, replace(sequences, bounds=parts.bounds), context)
        panes = merge_sliding(panes, parts, sequences, trigger_of(self.spec.trigger).comes_with_row)
        return panes, concatenate(signals.marks, parts.evictions.causes)

    def row_steps(
        self,
        sequences: Sequences,
        signals: Signals,  # noqa: ARG002
        panes: Panes,
        lives: Memberships,  # noqa: ARG002
        parts: Lifetimes | None,
        context: WindowContext,
    ) -> RowSteps:
        """Rows enter one by one and leave at the step of the row that evicts them; ``count(0)`` holds nothing."""
        rows = len(sequences)
        driven = evicted_at(self.spec, sequences)
        steps = steps_of_rows(after_rows(panes), rows)
        at = None if parts is None else self._evicted_at(sequences, parts.evictions, context)
        return replace(steps, stepping=driven != np.arange(rows), driven=driven, drops_unseen=True, evicted_at=at)

    def _evicted_at(self, sequences: Sequences, evictions: Evictions, context: WindowContext) -> pa.Array | None:
        period = trigger_of(self.spec.trigger).period
        if period is None or not evictions.by_tick.any():
            return None
        grid = time_grid(sequences.rows.column(sequences.order[0]).type, period, context.origin)
        return grid.bounds(np.where(evictions.by_tick, evictions.tick, 0))

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        return sliding_evictions(self.spec, sequences, marks, context)

    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,  # noqa: ARG002
        key_lifetimes: Lifetimes | None,
        last_closed: int,  # noqa: ARG002
    ) -> Mask:
        per_lifetime = sequences if key_lifetimes is None else replace(sequences, bounds=key_lifetimes.bounds)
        is_retained = evict_of(self.spec.evict).rows_at_end(per_lifetime, context)
        if context.partial and sequences.keys is None:
            is_retained[per_lifetime.newest] = True
        if key_lifetimes is not None:
            is_retained &= np.repeat(key_lifetimes.lives, np.diff(key_lifetimes.bounds))
        return is_retained

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
        full, baseline, bounds = restored.key_state.full, restored.key_state.baseline, sequences.bounds
        if isinstance(self.spec.evict, Delta):
            evictions_before = np.append(0, np.cumsum(evicted_at(self.spec, sequences) < len(sequences)))
            full = full | (np.diff(evictions_before[bounds]) > 0)
        if isinstance(self.spec.trigger, Delta):
            tripped = tripping(self.spec.trigger, sequences, restored)
            newest = np.searchsorted(tripped, bounds[1:]) - 1
            has_tripped = newest >= np.searchsorted(tripped, bounds[:-1])
            values = combined(sequences.rows.column(self.spec.trigger.attribute))
            own = len(values) + np.arange(len(bounds) - 1)
            picks = np.where(has_tripped, np.append(tripped, 0)[newest], own)
            baseline = pa.concat_arrays([values, baseline.cast(values.type)]).take(pa.array(picks))
        return full, baseline


def sliding_kind(spec: Sliding) -> SlidingKind:
    """Return a sliding window as a kind."""
    evict, trigger = evict_of(spec.evict), trigger_of(spec.trigger)
    measured = tuple(dict.fromkeys(name for name in (evict.attribute, trigger.attribute) if name is not None))
    condition = () if trigger.condition is None else (operand_column(trigger.condition),)
    ticks: frozenset[Option] = frozenset({"origin"}) if trigger.needs_clock else frozenset()
    rows_out, by_count = Fraction(0), None
    if spec.eviction is None and isinstance(spec.evict, Count) and isinstance(spec.trigger, Count):
        by_count = PanesByCount(spec.evict.n, spec.trigger.n, spec.evict.n)
    match spec:
        case Sliding(Time(age), Time(period)):
            rows_out = max(Fraction(1), age / period)
        case Sliding(_, Count(1) | Delta() | When()):
            rows_out = Fraction(1)
    ages = spec.eviction is not None and spec.eviction.kind == "partitionAge"
    needs = Needs(
        attributes=tuple(dict.fromkeys([*measured, *condition])),
        required=measured,  # in a condition null is not true
        measured=measured,
        operands=spec.trigger.operands,
        baseline=trigger.attribute,
        clock=ages or evict.needs_clock or trigger.needs_clock,
        causes="ticks" if trigger.needs_clock else "rows",
        partitioned=spec.partitioned,
        eviction=spec.eviction,
        options=ticks | {"partial", "changes", "left"},
        can_cut=spec.eviction is None,
        full_when=evict.full_when,
        by_count=by_count,
        rows_out_per_row=rows_out,
        # a ``count`` that triggers counts to n again and again; one that evicts has been full since n rows
        counted_rows=(
            spec.trigger.n if isinstance(spec.trigger, Count) else 1,
            spec.evict.n if isinstance(spec.evict, Count) else 0,
        ),
    )
    return SlidingKind(spec, needs)
