"""Kinds whose windows overlap: a segment shows rows that earlier segments retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..columns.arrays import Ints
from ..rows.marks import epochs
from ..rows.sequence import Sequences, have_risen
from .context import WindowContext
from .contract import WindowKind
from .segment_summary import (
    RETAINED,
    EntryState,
    RetentionSummary,
    RunThrough,
    SegmentSummary,
    clock_at_end,
    exit_of,
)
from .signals import Signals


class OverlappingKind(WindowKind):
    """A kind whose windows overlap."""

    __slots__ = ()

    def with_delta(self, segment: Sequences, window: RetentionSummary) -> RetentionSummary:  # noqa: ARG002
        """Return what later segments need of a segment, with what ``delta`` needs of it."""
        return window

    @property
    def for_any_start(self) -> WindowKind:
        """The kind that retains rows enough wherever in the batches of its key a segment begins."""
        return self

    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> tuple[SegmentSummary, Ints]:
        """Summarise a segment; also return which of its rows it retains at its end, judged by itself."""
        first, last = epochs(segment, signals.marks)[[0, -1]].tolist()
        held = replace(context, hold=True)
        retained = np.flatnonzero(
            self.for_any_start.retained_rows(segment, held, None, None, self.last_closed(signals, last, context))
        )
        window = self.with_delta(segment, RetentionSummary(len(retained)))
        clock = clock_at_end(segment) if self.needs_clock else None
        return SegmentSummary(len(segment), window, (first, last), clock=clock), retained

    def entry_states(
        self,
        segments: Sequence[SegmentSummary],
        run_through: RunThrough,
        context: WindowContext,  # noqa: ARG002
    ) -> list[EntryState]:
        """Compose the summaries of the segments of one key, in order, into entry states without window numbers."""
        entries: list[EntryState] = []
        rows, full, lowest, clock = 0, False, None, None
        baseline, value = None, None
        for i, segment in enumerate(segments):
            window = segment.window
            assert isinstance(window, RetentionSummary)
            before = tuple((j, RETAINED) for j in range(i) if _holds(segments[j]))
            entries.append(EntryState(0, rows, before, False, True, full, baseline, clock, segment.epochs[0]))
            if window.trigger is not None:
                segment_exit = exit_of(window.trigger, value, run_through, i)
                value = segment_exit.value
                baseline = (i, segment_exit.last) if segment_exit.last >= 0 else baseline
            full |= window.evicts or (lowest is not None and bool(have_risen(window.high, lowest, window.amount)))
            lowest = window.low if lowest is None else min(lowest, window.low)
            rows, clock = rows + segment.rows, segment.clock
        return entries


def _holds(segment: SegmentSummary) -> bool:
    return isinstance(segment.window, RetentionSummary) and segment.window.rows > 0
