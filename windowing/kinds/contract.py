"""The contract of a kind of window: all that the rest of the program asks of a window spec.

`registry.kind_of` makes the kind of a spec. Nothing outside `windowing.kinds` and `windowing.language` looks at the
type of a spec: a new kind is a folder with an implementation of this contract, and a line in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..clock.watermark import NO_LEVEL, Lateness
from ..columns.arrays import Ints, Mask
from ..rows.marks import Marks, epochs
from ..rows.membership import Memberships
from ..rows.panes import Panes
from ..rows.sequence import Sequences, have_risen
from ..state.window_state import RestoredState
from .context import RowSteps, Signals, WindowContext
from .evictions import Evictions
from .key_lifetimes import Lifetimes
from .needs import Explain, Needs, PaneTimes
from .segment_summary import (
    RETAINED,
    EntryState,
    Passage,
    RetentionSummary,
    SegmentSummary,
    WindowPosition,
    clock_at_end,
)


class WindowKind(ABC):
    """A kind of window, with one spec of it, as `registry.kind_of` makes it once.

    ``needs``: all that follows from the spec alone.
    """

    __slots__ = ()

    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: B027
        """Raise `ConfigError` where an attribute cannot have this type."""

    # --- the panes

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:  # noqa: ARG002
        """Return the times of panes on a clock column of this type."""
        return PaneTimes()

    @abstractmethod
    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes, including those that only the end of the data brings out.

        Also return the marks that causes of panes refer to, numbered after the rows: the signals, then partition
        evictions.
        """

    @abstractmethod
    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, lives: Memberships, context: WindowContext
    ) -> RowSteps:
        """Return when rows enter and leave.

        ``panes``: those that are emitted, in this run; ``lives`` are their memberships.
        """

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        """Return all partition evictions; ``sequences`` hold all rows of all keys (section 4)."""
        raise NotImplementedError

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the ticks, from the first row to the clock, that end a window without rows."""
        raise NotImplementedError

    def lateness(self, dtype: pa.DataType, lag: Fraction, min_gap: Fraction) -> Lateness:
        """Return the rule of late rows for a column of event time, where there is a watermark."""
        raise NotImplementedError

    # --- partial aggregation

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the number of each row's cell, int64 (n,), where there are cells."""
        raise NotImplementedError

    # --- from run to run

    @abstractmethod
    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,
        key_lifetimes: Lifetimes | None,
        last_closed: int,
    ) -> Mask:
        """Return which rows are of use at the end of the run, bool (n,).

        ``panes``: where windows do not overlap, else None. ``key_lifetimes``: those of partition eviction, else None.
        ``last_closed``: the last event-time pane that no row can enter any more.
        """

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:  # noqa: ARG002
        """Return `KeyState.full` and `KeyState.baseline` of each sequence at the end of the run."""
        return restored.key_state.full, restored.key_state.baseline

    def last_closed(self, signals: Signals, count: int, context: WindowContext) -> int:  # noqa: ARG002
        """Return an event-time pane that is closed after the first ``count`` advances, as are all panes before it.

        It is the last such pane, or one not far before it: then a few more rows are retained, which no pane will show.
        """
        return NO_LEVEL

    # --- segments of a key

    @abstractmethod
    def can_cut(self, has_key: bool, context: WindowContext) -> bool:
        """Whether keys may be cut into segments."""

    @abstractmethod
    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> tuple[SegmentSummary, Ints]:
        """Summarise a segment, which must not be empty.

        Also return which of its rows later segments may show, as far as these rows decide: int64, ascending. Empty
        where windows do not overlap, whose entry states name these rows.
        """

    def pass_through(self, segment: Sequences, value: Any, context: WindowContext) -> Passage:
        """Run a segment through from what the one before leaves, `Passage.value`; None: there is none before."""
        raise NotImplementedError

    @abstractmethod
    def entry_states(
        self, segments: Sequence[SegmentSummary], passages: Sequence[Passage], context: WindowContext
    ) -> list[EntryState]:
        """Compose the summaries of the segments of one key, in order, into the entry state of each.

        ``passages``: of each, where segments are run through; else none.
        """

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int | None:  # noqa: ARG002
        """Return about how many rows a window has at most; None where nothing is known.

        ``sample``: some of the rows, with no other columns than key and order; each is one of ``share`` rows.
        """
        return None

    def advance(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        through: Passage | None,
        context: WindowContext,
    ) -> WindowPosition:
        """Return the position of the window after segment ``index``, where windows do not overlap.

        ``through``: what it does to the window that is open before it; None where its summary says that.
        """
        raise NotImplementedError


# Kinds whose windows overlap: a segment shows rows that earlier segments retain.


class OverlappingKind(WindowKind):
    """A kind whose windows overlap."""

    __slots__ = ()

    def with_delta(self, segment: Sequences, window: RetentionSummary) -> RetentionSummary:  # noqa: ARG002
        """Return what later segments need of a segment, with what ``delta`` needs of it."""
        return window

    @property
    def for_any_start(self) -> WindowKind:
        return self

    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> tuple[SegmentSummary, Ints]:
        """Summarise a segment; also return which of its rows it retains at its end, judged by itself."""
        first, last = epochs(segment, signals.marks)[[0, -1]].tolist()
        held = replace(context, hold=True)
        retained = np.flatnonzero(
            self.for_any_start.retained_rows(segment, held, None, None, self.last_closed(signals, last, context))
        )
        window = self.with_delta(segment, RetentionSummary(len(retained)))
        clock = clock_at_end(segment) if self.needs.clock else None
        return SegmentSummary(len(segment), window, (first, last), clock=clock), retained

    def entry_states(
        self,
        segments: Sequence[SegmentSummary],
        passages: Sequence[Passage],
        context: WindowContext,  # noqa: ARG002
    ) -> list[EntryState]:
        entries: list[EntryState] = []
        rows, full, lowest, clock, baseline = 0, False, None, None, None
        for i, segment in enumerate(segments):
            window = segment.window
            assert isinstance(window, RetentionSummary)
            before = tuple((j, RETAINED) for j in range(i) if _holds(segments[j]))
            entries.append(EntryState(0, rows, before, False, True, full, baseline, clock, segment.epochs[0]))
            if passages and passages[i].last >= 0:
                baseline = (i, passages[i].last)
            full |= window.evicts or (lowest is not None and bool(have_risen(window.high, lowest, window.amount)))
            lowest = window.low if lowest is None else min(lowest, window.low)
            rows, clock = rows + segment.rows, segment.clock
        return entries


def _holds(segment: SegmentSummary) -> bool:
    return isinstance(segment.window, RetentionSummary) and segment.window.rows > 0
