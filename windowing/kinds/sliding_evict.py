"""What evicts rows from sliding windows: a policy for each of count, delta and time (semantics section 3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..columns.arrays import Ints, Mask
from ..language.spec import Count, Delta, SlidingPolicy, Time
from ..rows.panes import AT_END
from ..rows.sequence import Sequences, amount_in_measure, measures_and_amount
from ..state.window_state import RestoredState
from .context import WindowContext
from .contract import Step
from .delta import comparable, evicted_by_delta, oldest_retained, risen_pairs
from .sliding_triggers import (
    MOST_TICKS,
    Finding,
    SlidingClock,
    TriggerPolicy,
    Triggers,
    sliding_clock,
    sliding_clock_values,
)

_MOST_ROWS = 2**62  # of a window
_ROUNDED = 8  # rounding of ticks to floats never makes more additional ticks than this fit into a span


class EvictPolicy(ABC):
    """What evicts rows, with its value in the language."""

    __slots__ = ()

    needs_clock: ClassVar[bool] = False
    """Whether time evicts rows, so that a window may be left without rows."""
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

    def fills(self, step: Step, held: Ints) -> Mask | bool:  # noqa: ARG002
        """Whether a window that was never full is full at this step of a row (section 3)."""
        return step == "comes in"

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

    def evicted_at(self, sequences: Sequences) -> Ints:
        bounds = sequences.bounds
        row, end = np.arange(len(sequences)), np.repeat(bounds[1:], np.diff(bounds))
        return np.where(row < end - self.value.n, row + self.value.n, len(sequences))

    def full(self, bounds: Ints, evicted: Ints | None, restored: RestoredState | None) -> Ints:  # noqa: ARG002
        return bounds[:-1] + min(self.value.n, _MOST_ROWS) - (0 if restored is None else restored.ahead)

    def fills(self, step: Step, held: Ints) -> Mask | bool:
        return step == "is in" and np.equal(held, self.value.n)

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

    def fills(self, step: Step, held: Ints) -> Mask | bool:  # noqa: ARG002
        return step == "evicts"

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
