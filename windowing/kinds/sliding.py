"""Sliding windows as a kind: one policy evicts rows, another triggers panes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..clock.grids import clock_cell
from ..clock.interval_grid import clock_values, now_as_measure, time_grid
from ..columns.arrays import Ints, Mask, combined
from ..language.operands import operand_column
from ..language.spec import Count, Delta, PartitionEviction, Sliding, SlidingPolicy, Time, When
from ..rows.marks import Marks, concatenate
from ..rows.membership import Memberships, Ranges
from ..rows.panes import AT_END, MarkOnly, Panes, reason
from ..rows.sequence import Sequences, amount_in_measure, have_risen, measures_and_amount
from ..state.window_state import RestoredState
from .context import RowSteps, Signals, WindowContext, after_rows, steps_of_rows
from .contract import WindowKind
from .delta import comparable, evicted_by_delta, oldest_retained, risen_pairs
from .evictions import (
    NO_PLACES,
    STAYS,
    Evictions,
    Times,
    by_key,
    evicted_by,
    first_ticks,
    limits,
    row_seconds,
    total_order,
)
from .facts import Fact, KeyPane, amount_text, exact_text
from .key_lifetimes import Lifetimes, lifetimes, merge_sliding
from .needs import Explain, Needs, Option, PanesByCount, PaneTimes, Step, check_condition, check_measured
from .sliding_triggers import (
    SlidingClock,
    Triggers,
    at_most,
    sliding_clock,
    sliding_clock_values,
    spread,
    ticks_that_find,
    triggers_of,
    tripping,
)

# A sliding window answers three independent questions: at which row is a row evicted (eviction), when does the window
# trigger (trigger), and from when on may it emit panes (full). A trigger has a place between two rows of its key: the
# rows before that place have done their steps, the rows after it have not. The pairs of the table in section 3 differ
# only in the side of the causing row on which the trigger lies: a count trigger comes after its row, a delta trigger
# before it.


_MOST_ROWS = 2**62  # of a window


def evicted_at(evict: SlidingPolicy, sequences: Sequences) -> Ints:
    """Return for each row the row of its key that evicts it, n where no row does; int64 of shape (n,).

    With ``count(m)`` this is the m-th row after it, with ``delta`` the first row that is too far above it, with
    ``time`` the first row that is too much later (a tick or the end of the data may evict the row before that).
    """
    match evict:
        case Count(n):
            row, end = np.arange(len(sequences)), np.repeat(sequences.bounds[1:], np.diff(sequences.bounds))
            return np.where(row < end - n, row + n, len(sequences))
        case Delta(attribute, amount):
            values, too_much = measures_and_amount(sequences, attribute, amount)
        case Time(seconds):
            values, scale = sliding_clock_values(sequences)
            too_much = amount_in_measure(values, scale, seconds)
    return evicted_by_delta(sequences.bounds, comparable(values), too_much)


def _full_from(evict: SlidingPolicy, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:
    """Return the place from which on the window of each key is full, int64 (K,). ``evicted``: under ``delta``."""
    begin = bounds[:-1]
    if isinstance(evict, Count):
        return begin + min(evict.n, _MOST_ROWS) - (0 if restored is None else restored.ahead)
    if evicted is None:
        return begin
    first_evicted = np.full(len(begin), len(evicted))
    some = begin < bounds[1:]
    first_evicted[some] = np.minimum.reduceat(evicted, begin[some])
    return first_evicted + 1 if restored is None else np.where(restored.key_state.full, begin, first_evicted + 1)


def _oldest(evict: SlidingPolicy, begin: Ints, triggers: Triggers, clock: SlidingClock | None) -> Ints:
    """Return the oldest row that each trigger finds (under ``delta``: may find), its place if none, int64 (L,)."""
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


@dataclass(frozen=True, slots=True)
class SlidingKind(WindowKind):
    """A sliding window."""

    spec: Sliding
    needs: Needs

    @property
    def period(self) -> Fraction | None:
        """The seconds between two ticks that trigger; None: no ticks do."""
        return self.spec.trigger.seconds if isinstance(self.spec.trigger, Time) else None

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        evict, trigger = self.spec.evict, self.spec.trigger
        if isinstance(trigger, When) and operand_column(trigger.condition) == name:
            check_condition("when", trigger.condition, dtype)
        for policy in (evict, trigger):
            if isinstance(policy, Delta) and policy.attribute == name:
                check_measured(policy, name, dtype, explain)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        if self.period is None:
            return PaneTimes()
        grid = time_grid(clock, self.period, origin)
        return PaneTimes(instants=grid.type, grid=grid)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes; with partition eviction one lifetime of a key at a time (semantics section 4).

        Raises `DataError` where more than 50 million ticks would emit a pane, and where ticks do not fit 64 bit.
        """
        if self.needs.eviction is None:
            return self._panes(sequences, context), signals.marks
        assert signals.evictions is not None
        parts = lifetimes(signals.evictions, sequences)
        restored = context.restored and parts.restored(context.restored)
        context = replace(context, last_tick=parts.last_tick, restored=restored)
        panes = self._panes(replace(sequences, bounds=parts.bounds), context)
        panes = merge_sliding(panes, parts, sequences, isinstance(self.spec.trigger, Count | When))
        return panes, concatenate(signals.marks, parts.evictions.causes)

    def _panes(self, sequences: Sequences, context: WindowContext) -> Panes:
        evict, bounds = self.spec.evict, sequences.bounds
        emits_empty = context.partial and sequences.keys is None  # then these windows are `Panes.marks_only`
        # under ``delta`` a row may be evicted before older ones
        evicted = evicted_at(evict, sequences) if isinstance(evict, Delta) else None
        full = bounds[:-1] if context.partial else _full_from(evict, bounds, evicted, context.restored)
        uses_clock = isinstance(evict, Time) or self.period is not None
        clock = sliding_clock(self.period, sequences, context) if uses_clock else None
        triggers = triggers_of(self.spec, sequences, context, clock, full, emits_empty)
        triggers = triggers.filtered(triggers.place >= full[triggers.key])
        oldest = _oldest(evict, bounds[triggers.key], triggers, clock)
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
            marks_only=MarkOnly(triggers.cause[empty], _instants(triggers.filtered(empty), clock))
            if emits_empty
            else None,
        )

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Rows enter one by one and leave at the step of the row that evicts them; ``count(0)`` holds nothing."""
        driven, at = evicted_at(self.spec.evict, sequences), None
        if self.period is not None and parts is not None and parts.evictions.by_tick.any():
            grid = time_grid(sequences.rows.column(sequences.order[0]).type, self.period, context.origin)
            at = grid.bounds(np.where(parts.evictions.by_tick, parts.evictions.tick, 0))
        steps = steps_of_rows(after_rows(panes), len(sequences))
        is_stepping = driven != np.arange(len(sequences))
        return replace(steps, stepping=is_stepping, driven=driven, drops_unseen=True, evicted_at=at)

    # --- partition eviction: when rows leave windows, and which ticks find a key

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        """Return all partition evictions. Ages count in whole seconds, of the clock and of the spec.

        Raises `DataError` where these are beyond 2**62.
        """
        eviction, empties = self.spec.eviction, isinstance(self.spec.evict, Time)
        assert eviction is not None
        order, leaves = total_order(sequences, context.restored), NO_PLACES
        if eviction.kind == "tupleCount" or empties:
            leaves = self._left_at(sequences, order.row)
        times = self._times(eviction, sequences, order.row, context)
        keys, most = len(sequences.bounds) - 1, limits(eviction)
        cause, event = evicted_by(order.row, order.key, keys, most, leaves, empties, times, order.begin)
        last = np.flatnonzero(cause != STAYS)
        event = event[last] if len(event) else np.zeros(len(last), np.int64)
        return by_key(sequences, marks, last, cause[last], event)

    def _left_at(self, sequences: Sequences, order: Ints) -> Ints:
        """Return for each row the place in the total order at which it leaves its window, n where it never does."""
        n = len(sequences)
        leaves = np.empty(n, np.int64)
        if isinstance(self.spec.evict, Time):  # one clock for all keys: any row of any key may evict it
            rows = sequences.rows.select(list(sequences.order)).take(pa.array(order))
            leaves[order] = evicted_at(self.spec.evict, replace(sequences, bounds=np.array([0, n]), rows=rows))
            return leaves
        leaves[order] = np.arange(n)
        return np.append(leaves, n)[evicted_at(self.spec.evict, sequences)]

    def _times(self, eviction: PartitionEviction, sequences: Sequences, order: Ints, context: WindowContext) -> Times:
        seconds, nothing = row_seconds(eviction, sequences, order), NO_PLACES
        if self.period is None or not len(order):
            return Times(seconds, nothing, 0, nothing, nothing, nothing)
        name = sequences.order[0]
        column = combined(sequences.rows.column(name))
        values, grid = clock_values(column, name), time_grid(column.type, self.period, context.origin)
        passed, end = grid.cells(values)[order], clock_cell(grid, values, context.clock)
        if eviction.kind != "partitionAge":
            return Times(seconds, passed, end, nothing, nothing, nothing)
        age, clock_now = eviction.amount.__floor__(), now_as_measure(values, context.clock)
        due, stale = (first_ticks(grid, column.type, clock_now, seconds, ahead) for ahead in (age + 1, age))
        lost = nothing
        if isinstance(self.spec.evict, Time):
            clock = sliding_clock(self.period, sequences, context)
            assert clock.grid is not None
            cell = clock.grid.cells(clock.values)
            count = at_most(np.array([clock.cell(clock.now)]), cell)
            lost = (cell + ticks_that_find(self.spec, clock, cell, count) + 1)[order]
        return Times(seconds, passed, end, due, stale, lost)

    # --- from run to run

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows that windows hold at the current time of the clock at the end."""
        held = sequences if key_lifetimes is None else replace(sequences, bounds=key_lifetimes.bounds)
        match self.spec.evict:
            case Count(n):
                is_retained = np.arange(len(held)) >= np.repeat(held.bounds[1:], np.diff(held.bounds)) - n
            case Delta():
                is_retained = evicted_at(self.spec.evict, held) == len(held)
            case Time(seconds):
                clock = sliding_clock(None, held, context)
                at = np.full(len(held), clock.now, clock.values.dtype)
                is_retained = ~risen_pairs(comparable(at), comparable(clock.values), clock.age(seconds))
        if context.partial and sequences.keys is None:
            is_retained[held.newest] = True
        if key_lifetimes is not None:
            is_retained &= np.repeat(key_lifetimes.lives, np.diff(key_lifetimes.bounds))
        return is_retained

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
        full, baseline, bounds = restored.key_state.full, restored.key_state.baseline, sequences.bounds
        if isinstance(self.spec.evict, Delta):
            evictions_before = np.append(0, np.cumsum(evicted_at(self.spec.evict, sequences) < len(sequences)))
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

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        yield from pane.oldest_row()
        yield self._triggered(pane)
        if len(pane.rows):
            evict, measured = self.spec.evict, next(iter(pane.sequences.order), None)
            if isinstance(evict, Count | Delta):  # by the number of rows, or by a column
                measured = evict.attribute if isinstance(evict, Delta) else None
            gone, oldest = np.setdiff1d(np.arange(int(pane.rows[-1]) + 1), pane.rows), int(pane.rows[0])
            if len(gone):
                newest = int(gone[-1])
                yield pane.age(measured, newest, f"{pane.name(newest)} is the newest that {evict} has evicted")
            if measured is not None:
                yield pane.age(measured, oldest, f"{pane.name(oldest)} is the oldest that {evict} has kept")
        yield from pane.changes()

    def _triggered(self, pane: KeyPane) -> Fact:
        trigger, row = self.spec.trigger, pane.cause_row
        if pane.closed_by == "end":
            return pane.by_end()
        if row is None:
            text = f"the tick of {trigger} at {pane.head_text('_at')} brought it out"
            return Fact("closed", text, None, pane.closed_by)
        text, numbers = f"{pane.name(row)} brought it out", dict[str, str]()
        match trigger:
            case Count(n=n):
                text += ": each row does" if n == 1 else f": it is insertion number {n:,} since the trigger before"
            case When(condition=condition):
                text = f"{condition} is true for {pane.name(row)}"
            case Delta(attribute=name, amount=limit):
                values, amount = measures_and_amount(pane.sequences, name, limit)
                base = 0
                while len(fired := np.flatnonzero(have_risen(values[base + 1 : row], values[base], amount))):
                    base += 1 + int(fired[0])
                kind, apart = pane.column(name).type, pane.distance(name, row, base)
                text = f"{pane.name(row)} is {amount_text(kind, apart)} above {pane.name(base)}, at which it was "
                text += f"triggered last or began; the trigger is {amount_text(kind, limit)}, and shows the window "
                text += "before that row"
                numbers = {"distance": exact_text(apart), "limit": exact_text(limit)}
        return Fact("closed", text, pane.pos(row), pane.closed_by, numbers)


def sliding_kind(spec: Sliding) -> SlidingKind:
    """Return a sliding window as a kind."""
    evict, trigger = spec.evict, spec.trigger
    measured = tuple(dict.fromkeys(each.attribute for each in (evict, trigger) if isinstance(each, Delta)))
    condition = (operand_column(trigger.condition),) if isinstance(trigger, When) else ()
    ticks: frozenset[Option] = frozenset({"origin"}) if isinstance(trigger, Time) else frozenset()
    rows_out, by_count = Fraction(0), None
    if spec.eviction is None and isinstance(evict, Count) and isinstance(trigger, Count):
        by_count = PanesByCount(evict.n, trigger.n, evict.n)
    match spec:
        case Sliding(Time(age), Time(period)):
            rows_out = max(Fraction(1), age / period)
        case Sliding(_, Count(1) | Delta() | When()):
            rows_out = Fraction(1)
    # the step of a row at which a window that was never full is full (section 3)
    full_when: Step = "is in" if isinstance(evict, Count) else "evicts" if isinstance(evict, Delta) else "comes in"
    ages = spec.eviction is not None and spec.eviction.kind == "partitionAge"
    needs = Needs(
        go_on=False,
        attributes=tuple(dict.fromkeys([*measured, *condition])),
        required=measured,  # in a condition null is not true
        measured=measured,
        operands=trigger.operands,
        baseline=trigger.attribute if isinstance(trigger, Delta) else None,
        clock=ages or isinstance(evict, Time) or isinstance(trigger, Time),
        causes="ticks" if isinstance(trigger, Time) else "rows",
        partitioned=spec.partitioned,
        eviction=spec.eviction,
        options=ticks | {"partial", "changes", "left"},
        can_cut=spec.eviction is None,
        full_when=full_when,
        by_count=by_count,
        rows_out_per_row=rows_out,
        # a ``count`` that triggers counts to n again and again; one that evicts has been full since n rows
        counted_rows=(trigger.n if isinstance(trigger, Count) else 1, evict.n if isinstance(evict, Count) else 0),
    )
    return SlidingKind(spec, needs)
