"""Tumbling windows as a kind: each row of a key is in one window, and a policy says where windows end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask, measures
from ...language import clock_policies as clock
from ...language import row_policies, spec
from ...language.calls import Policy
from ...language.conditions import Operand
from ...language.spec import PartitionEviction, Tumbling
from ...rows.marks import Marks, concatenate
from ...rows.membership import Memberships, shown, sizes
from ...rows.panes import AT_END, Panes
from ...rows.sequence import Sequences
from ...state.window_state import RestoredState
from ..context import NEVER, RowSteps, Signals, WindowContext, after_rows, steps_of_rows
from ..contract import Causes, Explain, Option, WindowKind
from ..delta import Exit
from ..evictions import Evictions
from ..key_lifetimes import Lifetimes, lifetimes, merge_tumbling
from ..segment_summary import BoundarySummary, EntryState, RunThrough, SegmentSummary, WindowPosition, clock_at_end
from .clock_policies import CalendarPolicy, ClockPolicy, CronPolicy, TimePolicy
from .policy import RulePolicy, TumblingPolicy
from .row_policies import ChangePolicy, CountPolicy, DeltaPolicy, GapPolicy, punct_policy
from .rule_policies import AnyOfPolicy, FromPolicy, OpenerPolicy, ReachesPolicy, changing_policy

# The tumbling policies by the type of their value in the language: the one place that knows them all.


_POLICIES: Final[Mapping[type, Callable[[Any], TumblingPolicy]]] = {
    spec.Count: CountPolicy,
    spec.Delta: DeltaPolicy,
    spec.Gap: GapPolicy,
    spec.Punct: punct_policy,
    row_policies.Change: ChangePolicy,
    spec.Time: TimePolicy,
    spec.Calendar: CalendarPolicy,
    clock.Cron: CronPolicy,
    spec.Changing: changing_policy,
    spec.When: OpenerPolicy,
    spec.While: OpenerPolicy,
    spec.From: FromPolicy,
    spec.Reaches: ReachesPolicy,
}


def policy_of(value: Policy) -> TumblingPolicy:
    """Return a tumbling policy, with its value."""
    if isinstance(value, spec.AnyOf):
        return AnyOfPolicy(tuple(_POLICIES[type(each)](each) for each in value.policies))
    policy = _POLICIES[type(value)](value)
    return AnyOfPolicy((policy,)) if isinstance(policy, RulePolicy) else policy


def clock_policies() -> list[str]:
    """Return the words of the policies that the clock ends."""
    return [
        value.__name__.lower()
        for value, kind in _POLICIES.items()
        if isinstance(kind, type) and issubclass(kind, ClockPolicy)
    ]


# Rows of the window before the next one of each key, which the next run still asks for (semantics section 13).


def rows_of_window_before(sequences: Sequences, panes: Panes, restored: RestoredState | None) -> Mask:
    """Return the rows of the last window of each key that has ended, bool (n,).

    ``panes``: all panes, by key and number. Where none has ended here these are the rows that a state has kept.
    """
    ended = np.flatnonzero(panes.cause != AT_END)
    is_last = np.append(panes.key[ended][1:] != panes.key[ended][:-1], True)[: len(ended)]
    out = shown(panes.take(ended[is_last]).membership, len(sequences))
    if restored is None:
        return out
    has_none = np.ones(len(sequences.bounds) - 1, np.bool_)
    has_none[panes.key[ended]] = False
    return out | (restored.row_state.shown & np.repeat(has_none, np.diff(sequences.bounds)))


# Segments under a tumbling window: where windows start in each, and which window is open between two of them.


def tumbling_summary(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    """Summarise a segment, whatever comes before it. ``marks`` must be in order."""
    return replace(_without_windows(policy, segment, marks, context), window=policy.summarise(segment, marks, context))


def tumbling_outline(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    """Summarise a segment without delta transitions, which cost more than to run through the one that is taken."""
    return replace(_without_windows(policy, segment, marks, context), window=policy.outline(segment, marks, context))


def _without_windows(
    policy: TumblingPolicy, segment: Sequences, marks: Marks, context: WindowContext
) -> SegmentSummary:
    watched = None
    if context.watched is not None:
        ends = measures(segment.rows.column(context.watched).take(pa.array([0, len(segment) - 1])))
        watched = (ends[0], ends[1])
    clock = clock_at_end(segment) if policy.needs_clock else None
    epochs = policy.epochs_at_edges(segment, marks)
    return SegmentSummary(len(segment), None, epochs=epochs, watched=watched, clock=clock)


def tumbling_entries(
    policy: TumblingPolicy, segments: Sequence[SegmentSummary], run_through: RunThrough, context: WindowContext
) -> list[EntryState]:
    """Compose the summaries of the segments of one key, in order, into the entry state of each."""
    position, entries = WindowPosition(), []
    for i, segment in enumerate(segments):
        after = advance(policy, position, i, segment, run_through, context)
        ends_later = i + 1 < len(segments) and not _has_mark_between(segment, segments[i + 1])
        entries.append(entry_state(position, i, segment, after, not ends_later))
        position = after
    return entries


def advance(
    policy: TumblingPolicy,
    position: WindowPosition,
    index: int,
    segment: SegmentSummary,
    run_through: RunThrough,
    context: WindowContext,
) -> WindowPosition:
    """Return the position of the window after segment ``index``."""
    passage = policy.pass_through(position, index, segment, run_through, context)
    open_at = (index, passage.exit.last) if passage.exit.last >= 0 else position.open_at
    last = replace(segment, window=segment.window if isinstance(segment.window, BoundarySummary) else None)
    starts = position.starts + passage.exit.starts
    rows = position.rows + segment.rows
    return WindowPosition(rows, starts, open_at, passage.closed, passage.value, last, passage.skips)


def entry_state(
    position: WindowPosition, index: int, segment: SegmentSummary, after: WindowPosition, is_end: bool
) -> EntryState:
    """Return the entry state of segment ``index``.

    ``after``: the position after it. ``is_end``: whether the window that is open after it comes out there, because no
    segment follows or a mark does.
    """
    last = position.last
    is_closed = position.closed or (last is not None and _has_mark_between(last, segment))
    windows = position.starts if is_closed else position.windows
    emits = is_end or after.windows > windows or after.skips
    open_at = position.open_at if emits and not is_closed else None
    before = () if open_at is None else (open_at, *((j, 0) for j in range(open_at[0] + 1, index)))
    falls = last is not None and _falls(last, segment)
    clock = None if last is None else last.clock
    return EntryState(windows, position.rows, before, falls, emits, clock=clock, value=position.value)


def _falls(before: SegmentSummary, segment: SegmentSummary) -> bool:
    return before.watched is not None and segment.watched is not None and bool(segment.watched[0] < before.watched[1])


def _has_mark_between(before: SegmentSummary, segment: SegmentSummary) -> bool:
    return segment.epochs[0] > before.epochs[1]


@dataclass(frozen=True, slots=True)
class TumblingKind(WindowKind):
    """A tumbling window.

    ``spec``: its spec.
    """

    spec: Tumbling

    overlaps: ClassVar[bool] = False

    @property
    def policy(self) -> TumblingPolicy:
        return policy_of(self.spec.policy)

    @property
    def takes_marks(self) -> bool:
        return self.policy.takes_marks

    @property
    def partitioned(self) -> bool:
        return self.spec.partitioned

    @property
    def eviction(self) -> PartitionEviction | None:
        return self.spec.eviction

    @property
    def options(self) -> frozenset[Option]:
        evicted: frozenset[Option] = frozenset() if self.eviction is None else frozenset({"emit evicted"})
        return self.policy.options | evicted

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.policy.attributes

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.spec.policy.operands

    @property
    def required(self) -> tuple[str, ...]:
        return self.policy.required

    @property
    def measured(self) -> tuple[str, ...]:
        return self.policy.measured

    @property
    def amounts(self) -> tuple[str, ...]:
        return self.policy.amounts

    @property
    def watched(self) -> str | None:
        return next(iter(self.measured), None)

    @property
    def needs_clock(self) -> bool:
        return self.policy.needs_clock or (self.eviction is not None and self.eviction.kind == "partitionAge")

    @property
    def zones(self) -> tuple[str, ...]:
        return self.spec.policy.zones

    @property
    def is_dated(self) -> bool:
        return self.policy.is_dated

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        self.policy.check_attribute(name, dtype, explain)

    @property
    def causes(self) -> Causes:
        """The clock, where it ends windows; partition eviction is caused by rows as well."""
        if not self.policy.needs_clock:
            return "rows"
        return "ticks" if self.eviction is None and self.policy.has_cells else "both"

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        return self.policy.bounds_type(clock, origin)

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        return self.policy.instants_type(clock, origin)

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
        return self.policy.to_tick_type(column, name, origin)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes; with partition eviction one lifetime of a key at a time (semantics section 4)."""
        marks = signals.marks
        if self.eviction is None:
            return self.policy.panes(sequences, marks, context), marks
        assert signals.evictions is not None
        parts = lifetimes(signals.evictions, sequences)
        panes = self._of_lifetimes(sequences, parts, marks, context)
        panes = merge_tumbling(panes, parts, sequences, len(marks), context.emit_evicted)
        return panes, concatenate(marks, parts.evictions.causes)

    def _of_lifetimes(
        self, sequences: Sequences, parts: Lifetimes | None, marks: Marks, context: WindowContext
    ) -> Panes:
        lives = sequences if parts is None else replace(sequences, bounds=parts.bounds)
        return self.policy.panes(lives, marks, context)

    def row_steps(
        self,
        sequences: Sequences,
        signals: Signals,
        panes: Panes,
        lives: Memberships,
        context: WindowContext,
    ) -> RowSteps:
        steps = steps_of_rows(after_rows(panes), len(sequences))
        if self.policy.skips_rows:
            # also those that the end of the data or an eviction does not emit
            parts = None if signals.evictions is None else lifetimes(signals.evictions, sequences)
            every = self._of_lifetimes(sequences, parts, signals.marks, context)
            steps = replace(steps, stepping=shown(every.membership, len(sequences)))
        leaving = np.full(len(sequences), NEVER)
        leaving[lives.row] = np.where(panes.cause[lives.enter] == AT_END, NEVER, lives.enter)
        return replace(steps, leaving=leaving)

    def eviction_instants(
        self, sequences: Sequences, marks: Marks, parts: Lifetimes, context: WindowContext
    ) -> pa.Array | None:
        """Return the end of the window that was open at each eviction: its tick evicts the key and would end it."""
        panes = self._of_lifetimes(sequences, parts, marks, context)
        if panes.at is None:
            return None
        last = np.searchsorted(panes.key, np.flatnonzero(parts.eviction >= 0), side="right") - 1
        return panes.at.take(pa.array(last))

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        assert self.eviction is not None
        return self.policy.evictions(self.eviction, sequences, marks, context)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        return self.policy.empty_ticks(sequences, context)

    def has_cells(self, context: WindowContext) -> bool:  # noqa: ARG002
        return self.policy.has_cells and self.eviction is None

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        return self.policy.cells(sequences, context)

    def already_emitted(self, panes: Panes, caused: Mask) -> Mask:
        """Leave out empty windows: they come out with the next row of their key, so they are new."""
        return caused & (sizes(panes.membership) > 0)

    def waits_at_ticks(self, context: WindowContext) -> bool:
        """Whether windows are closed on the right: rows at the instant of a tick are in the window that it ends."""
        return context.closed == "right"

    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,
        key_lifetimes: Lifetimes | None,  # noqa: ARG002
        last_closed: int,  # noqa: ARG002
    ) -> Mask:
        """Return the rows of open windows; with ``--empty row`` also the newest row of each key."""
        assert panes is not None
        is_retained = shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))
        if context.empty == "row":  # decides how many empty windows lie between it and the next row
            is_retained[sequences.newest] = True
        if self.policy.looks_at_window_before:
            is_retained |= rows_of_window_before(sequences, panes, context.restored)
        return is_retained

    def settled_rows(self, sequences: Sequences, panes: Panes, retained: Mask) -> Mask:
        if not self.policy.looks_at_window_before:
            return np.zeros(len(sequences), np.bool_)
        return retained & ~shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))

    def can_cut(self, has_key: bool, context: WindowContext) -> bool:  # noqa: ARG002
        return self.eviction is None and self.policy.may_cut

    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> tuple[SegmentSummary, Ints]:
        """Summarise a segment; its entry state names the rows of earlier segments that it shows."""
        return tumbling_summary(self.policy, segment, signals.marks, context), np.empty(0, np.int64)

    def entry_states(
        self, segments: Sequence[SegmentSummary], run_through: RunThrough, context: WindowContext
    ) -> list[EntryState]:
        return tumbling_entries(self.policy, segments, run_through, context)

    @property
    def first_row_decides(self) -> bool:
        return self.policy.first_row_decides

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int | None:
        return self.policy.most_rows(sample, share, context)

    def exit_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:
        return self.policy.run_through(segment, value, context)

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> SegmentSummary:
        return tumbling_outline(self.policy, segment, marks, context)

    def advance(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        run_through: RunThrough,
        context: WindowContext,
    ) -> WindowPosition:
        return advance(self.policy, position, index, segment, run_through, context)
