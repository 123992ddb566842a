"""Sliding windows as a kind: one policy evicts rows, another triggers panes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ...clock.interval_grid import clock_values, time_grid
from ...columns.arrays import Ints, Mask
from ...language.conditions import Operand, operand_column
from ...language.spec import Count, Delta, PartitionEviction, Sliding, Time, When
from ...rows.marks import Marks, concatenate
from ...rows.membership import Memberships
from ...rows.panes import Panes
from ...rows.sequence import Sequences
from ...state.window_state import RestoredState
from ..conditions import check_condition
from ..context import WindowContext
from ..contract import Causes, Explain, Option, Step
from ..delta.chains import Exit, exit_through
from ..eviction.evictions import Evictions
from ..eviction.key_lifetimes import Lifetimes, lifetimes, merge_sliding
from ..measured import check_measured
from ..overlapping import OverlappingKind
from ..row_counts import rows_shown
from ..row_steps import RowSteps, after_rows, steps_of_rows
from ..segment_summary import RetentionSummary
from ..signals import Signals
from .evict import evict_of
from .eviction import sliding_evictions
from .panes import evicted_at, sliding_panes
from .retention import full_and_baseline
from .segments import with_delta
from .triggers import trigger_of


@dataclass(frozen=True, slots=True)
class SlidingKind(OverlappingKind):
    """A sliding window.

    ``spec``: its spec.
    """

    spec: Sliding

    @property
    def partitioned(self) -> bool:
        """Whether the spec demands a key."""
        return self.spec.partitioned

    @property
    def eviction(self) -> PartitionEviction | None:
        """Which keys are evicted."""
        return self.spec.eviction

    @property
    def options(self) -> frozenset[Option]:
        """Panes before they are full, rows that entered or left; a grid of ticks where time triggers."""
        ticks: frozenset[Option] = frozenset({"origin"}) if trigger_of(self.spec.trigger).needs_clock else frozenset()
        return ticks | {"partial", "changes", "left"}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of ``delta``, and the condition of a trigger."""
        condition = trigger_of(self.spec.trigger).condition
        return tuple(dict.fromkeys([*self.measured, *([] if condition is None else [operand_column(condition)])]))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The condition of a trigger."""
        return self.spec.trigger.operands

    @property
    def required(self) -> tuple[str, ...]:
        """The attributes of ``delta``: in a condition null is not true."""
        return self.measured

    @property
    def measured(self) -> tuple[str, ...]:
        """The attributes of ``delta``."""
        names = (evict_of(self.spec.evict).attribute, self.baseline_attribute)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def needs_clock(self) -> bool:
        """Whether time evicts or triggers, or keys are evicted by age."""
        ages = self.eviction is not None and self.eviction.kind == "partitionAge"
        return ages or evict_of(self.spec.evict).needs_clock or trigger_of(self.spec.trigger).needs_clock

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        """Raise `ConfigError` where an attribute has no values that can be subtracted, or a condition is no boolean."""
        condition = trigger_of(self.spec.trigger).condition
        if condition is not None and operand_column(condition) == name:
            check_condition("when", condition, dtype)
        for policy in (self.spec.evict, self.spec.trigger):
            if isinstance(policy, Delta) and policy.attribute == name:
                check_measured(policy, name, dtype, explain)

    @property
    def causes(self) -> Causes:
        """The clock, where time triggers."""
        return "ticks" if trigger_of(self.spec.trigger).needs_clock else "rows"

    @property
    def rows_out_per_row(self) -> Fraction:
        """About how many rows of the result a row causes."""
        match self.spec:
            case Sliding(Time(age), Time(period)):
                return max(Fraction(1), age / period)
            case Sliding(_, Count(1) | Delta() | When()):
                return Fraction(1)
        return Fraction(0)

    def rows_out(self, rows: int, context: WindowContext) -> int | None:
        """Return how many rows all panes show, where counts alone decide that."""
        match self.spec:
            case Sliding(Count(held), Count(step)) if self.eviction is None:
                least = 0 if context.partial else held
                return rows_shown(rows, held, step, least, not (context.hold or context.drop))
        return None

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of ticks."""
        period = trigger_of(self.spec.trigger).period
        return None if period is None else time_grid(clock, period, origin).type

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
        """Return clock values in the type of ticks."""
        period = trigger_of(self.spec.trigger).period
        if period is None:
            return column
        grid = time_grid(column.type, period, origin)
        return grid.to_arrow(grid.instants(clock_values(column, name)))

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes; with partition eviction one lifetime of a key at a time (semantics section 4)."""
        if self.eviction is None:
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
        context: WindowContext,  # noqa: ARG002
    ) -> RowSteps:
        """Rows enter one by one and leave at the step of the row that evicts them; ``count(0)`` holds nothing."""
        rows = len(sequences)
        driven = evicted_at(self.spec, sequences)
        steps = steps_of_rows(after_rows(panes), rows)
        return replace(steps, stepping=driven != np.arange(rows), driven=driven, drops_unseen=True)

    def fills(self, step: Step, held: Ints) -> Mask | bool:
        """Whether a window that was never full is full at this step of a row, as what evicts says."""
        return evict_of(self.spec.evict).fills(step, held)

    def eviction_instants(
        self,
        sequences: Sequences,
        marks: Marks,  # noqa: ARG002
        parts: Lifetimes,
        context: WindowContext,
    ) -> pa.Array | None:
        """Return the tick of each eviction, where time triggers."""
        period = trigger_of(self.spec.trigger).period
        if period is None:
            return None
        grid = time_grid(sequences.rows.column(sequences.order[0]).type, period, context.origin)
        return grid.bounds(np.where(parts.evictions.by_tick, parts.evictions.tick, 0))

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        """Return all partition evictions."""
        return sliding_evictions(self.spec, sequences, marks, context)

    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,  # noqa: ARG002
        key_lifetimes: Lifetimes | None,
        last_closed: int,  # noqa: ARG002
    ) -> Mask:
        """Return the rows that the windows hold at the end of the run."""
        per_lifetime = sequences if key_lifetimes is None else replace(sequences, bounds=key_lifetimes.bounds)
        is_retained = evict_of(self.spec.evict).rows_at_end(per_lifetime, context)
        if context.partial and sequences.keys is None:
            is_retained[per_lifetime.newest] = True
        if key_lifetimes is not None:
            is_retained &= np.repeat(key_lifetimes.lives, np.diff(key_lifetimes.bounds))
        return is_retained

    @property
    def counted_rows(self) -> tuple[int, int]:
        """A ``count`` that triggers counts to n again and again; one that evicts has been full since n rows."""
        every = self.spec.trigger.n if isinstance(self.spec.trigger, Count) else 1
        held = self.spec.evict.n if isinstance(self.spec.evict, Count) else 0
        return every, held

    @property
    def baseline_attribute(self) -> str | None:
        """The attribute of a ``delta`` trigger."""
        return trigger_of(self.spec.trigger).attribute

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
        """Return whether ``delta`` has evicted a row, and the baseline of a ``delta`` trigger."""
        return full_and_baseline(self.spec, sequences, restored)

    def can_cut(self, has_key: bool, context: WindowContext) -> bool:
        """Whether nothing is evicted; mark-only rows come last in a result, so one task must write them."""
        return self.eviction is None and (has_key or not context.partial)

    def with_delta(self, segment: Sequences, window: RetentionSummary) -> RetentionSummary:
        """Return what later segments need of a segment, with what ``delta`` needs of it."""
        return with_delta(self.spec, segment, window)

    def exit_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:  # noqa: ARG002
        """Run the delta transition of a start value of the trigger through a segment."""
        assert isinstance(self.spec.trigger, Delta)
        return exit_through(segment, self.spec.trigger.attribute, self.spec.trigger.amount, value)
