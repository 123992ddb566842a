"""Tumbling windows as a kind: each row of a key is in one window, and a policy says where windows end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...language.conditions import Operand
from ...language.spec import PartitionEviction, Tumbling
from ...rows.marks import Marks, concatenate
from ...rows.membership import Memberships, shown, sizes
from ...rows.panes import AT_END, Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..contract import Causes, Explain, Option, WindowKind
from ..delta.chains import Exit
from ..eviction.evictions import Evictions
from ..eviction.key_lifetimes import Lifetimes, lifetimes, merge_tumbling
from ..row_steps import NEVER, RowSteps, after_rows, steps_of_rows
from ..segment_summary import EntryState, RunThrough, SegmentSummary, WindowPosition
from ..signals import Signals
from .policy import TumblingPolicy
from .registry import policy_of
from .segments import advance, tumbling_entries, tumbling_outline, tumbling_summary
from .window_before import rows_of_window_before


@dataclass(frozen=True, slots=True)
class TumblingKind(WindowKind):
    """A tumbling window.

    ``spec``: its spec.
    """

    spec: Tumbling

    overlaps: ClassVar[bool] = False

    @property
    def policy(self) -> TumblingPolicy:
        """What ends a window."""
        return policy_of(self.spec.policy)

    @property
    def takes_marks(self) -> bool:
        """Whether window marks end windows."""
        return self.policy.takes_marks

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
        """Those of the policy, and the windows of evicted keys."""
        evicted: frozenset[Option] = frozenset() if self.eviction is None else frozenset({"emit evicted"})
        return self.policy.options | evicted

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.attributes

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of the policy."""
        return self.spec.policy.operands

    @property
    def required(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.required

    @property
    def measured(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.measured

    @property
    def amounts(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.amounts

    @property
    def watched(self) -> str | None:
        """The attribute that is compared by an amount."""
        return next(iter(self.measured), None)

    @property
    def needs_clock(self) -> bool:
        """Whether the clock ends windows, or keys are evicted by age."""
        return self.policy.needs_clock or (self.eviction is not None and self.eviction.kind == "partitionAge")

    @property
    def zones(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.spec.policy.zones

    @property
    def is_dated(self) -> bool:
        """Whether a policy has dates."""
        return self.policy.is_dated

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        """Raise `ConfigError` where an attribute cannot have this type."""
        self.policy.check_attribute(name, dtype, explain)

    @property
    def causes(self) -> Causes:
        """The clock, where it ends windows; partition eviction is caused by rows as well."""
        if not self.policy.needs_clock:
            return "rows"
        return "ticks" if self.eviction is None and self.policy.has_cells else "both"

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of bounds on the clock."""
        return self.policy.bounds_type(clock, origin)

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of ticks."""
        return self.policy.instants_type(clock, origin)

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
        """Return clock values in the type of bounds."""
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
        """Return the panes of lifetimes, or of keys where nothing is evicted."""
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
        """Rows of windows enter one by one and leave after their pane, unless the end of the data emits it."""
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
        """Return all partition evictions."""
        assert self.eviction is not None
        return self.policy.evictions(self.eviction, sequences, marks, context)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the ticks that end a window without rows."""
        return self.policy.empty_ticks(sequences, context)

    def has_cells(self, context: WindowContext) -> bool:  # noqa: ARG002
        """Whether the clock ends windows, and nothing else does."""
        return self.policy.has_cells and self.eviction is None

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the number of each row's window on the clock."""
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
        """Return the retained rows that are in no open window."""
        if not self.policy.looks_at_window_before:
            return np.zeros(len(sequences), np.bool_)
        return retained & ~shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))

    def can_cut(self, has_key: bool, context: WindowContext) -> bool:  # noqa: ARG002
        """Whether nothing is evicted, and the policy allows it."""
        return self.eviction is None and self.policy.may_cut

    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> tuple[SegmentSummary, Ints]:
        """Summarise a segment; its entry state names the rows of earlier segments that it shows."""
        return tumbling_summary(self.policy, segment, signals.marks, context), np.empty(0, np.int64)

    def entry_states(
        self, segments: Sequence[SegmentSummary], run_through: RunThrough, context: WindowContext
    ) -> list[EntryState]:
        """Compose the summaries of the segments of one key."""
        return tumbling_entries(self.policy, segments, run_through, context)

    @property
    def first_row_decides(self) -> bool:
        """Whether the first row of a window decides where it ends, as under ``delta``."""
        return self.policy.first_row_decides

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int | None:
        """Return what the policy knows."""
        return self.policy.most_rows(sample, share, context)

    def exit_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:
        """Run a segment through from a start value."""
        return self.policy.run_through(segment, value, context)

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> SegmentSummary:
        """Summarise a segment without delta transitions."""
        return tumbling_outline(self.policy, segment, marks, context)

    def advance(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        run_through: RunThrough,
        context: WindowContext,
    ) -> WindowPosition:
        """Return the position of the window after segment ``index``."""
        return advance(self.policy, position, index, segment, run_through, context)
