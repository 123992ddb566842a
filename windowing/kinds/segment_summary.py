"""Summaries and entry states: the values of a prefix scan over the segments of one sequence.

Each segment is summarised by itself, whatever comes before it. The summaries of a sequence are composed in order into
the entry state of each segment. With that, and some rows of earlier segments, a segment is scanned as an incremental
run is: from a restored window state (`windowing.state.window_state`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..columns.arrays import ClockValue, combined
from ..rows.sequence import Sequences
from .delta import DeltaTransitions, Exit, exit_for


@dataclass(frozen=True, slots=True)
class BoundarySummary:
    """Where windows start in a segment, for policies in which two neighbouring rows decide whether one starts.

    ``starts``: number of windows that start after the first row.
    ``last``: the row where the last window starts; 0 if that is the first row.
    ``labels``: what the policy compares of the first and the last row.
    ``closed``: whether the last row itself ends its window.
    ``edges``: the first and the last row, where windows without rows count; else None.
    """

    starts: int
    last: int
    labels: tuple[Any, Any]
    closed: bool = False
    edges: pa.RecordBatch | None = None


@dataclass(frozen=True, slots=True)
class RetentionSummary:
    """What later segments need of a segment under a window that shows rows of earlier segments.

    ``rows``: number of rows retained at the end of the segment, as far as its own rows decide.
    ``trigger``: the transitions of a ``delta`` trigger; None for other triggers.
    ``low``: the least value that a ``delta`` eviction compares.
    ``high``: the largest such value.
    ``evicts``: whether a row of the segment evicts another of its rows.
    ``amount``: the amount of the ``delta`` eviction, in measures; None for other evictions.
    """

    rows: int
    trigger: DeltaTransitions | None = None
    low: Any = None
    high: Any = None
    evicts: bool = False
    amount: Any = None


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """The summary of a segment.

    ``rows``: number of rows, at least one.
    ``window``: where windows start in it, or what it retains; None for a tumbling ``count``.
    ``epochs``: number of signals before its first row, and before its last row.
    ``watched``: the watched attribute of these two rows, where falls are counted; else None.
    ``clock``: the clock at its end, in measures; None for windows that do not use the clock.
    """

    rows: int
    window: BoundarySummary | DeltaTransitions | RetentionSummary | None
    epochs: tuple[int, int] = (0, 0)
    watched: tuple[Any, Any] | None = None
    clock: ClockValue | None = None


@dataclass(frozen=True, slots=True)
class EntryState:
    """The state in which the scan of a segment begins.

    ``windows``: number of panes that came out before.
    ``rows``: number of rows of the key before.
    ``before``: earlier segments, each with its first row that windows may show here, or `RETAINED`: the rows that were
        retained at its end. Empty where nothing comes out.
    ``falls``: whether the watched attribute falls between the segment before and this one.
    ``emits``: whether any pane comes out in the segment, or rows of it are in no window.
    ``full``: whether a ``delta`` eviction has evicted a row.
    ``baseline``: the segment and the row in it that a ``delta`` trigger compares with; None: no baseline yet.
    ``clock``: the clock, in measures; None: no row yet.
    ``signals``: number of signals before.
    ``value``: as in `WindowPosition`.
    """

    windows: int
    rows: int
    before: tuple[tuple[int, int], ...] = ()
    falls: bool = False
    emits: bool = True
    full: bool = False
    baseline: tuple[int, int] | None = None
    clock: ClockValue | None = None
    signals: int = 0
    value: Any = None


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """The position of a tumbling window between two segments of a key.

    ``rows``: number of rows before.
    ``starts``: number of windows that have started.
    ``open_at``: the segment and the row in it where the last window started; None: none has.
    ``closed``: whether a row before has closed that window.
    ``value``: the start value of a ``delta``, or the window that several rules leave; None for other policies.
    ``last``: the summary of the segment before, without delta transitions; None: there is none.
    ``skips``: whether rows of that segment are in no window.
    """

    rows: int = 0
    starts: int = 0
    open_at: tuple[int, int] | None = None
    closed: bool = False
    value: Any = None
    last: SegmentSummary | None = None
    skips: bool = False

    @property
    def windows(self) -> int:
        return self.starts if self.open_at is None or self.closed else self.starts - 1


RunThrough: TypeAlias = Callable[[int, Any], Exit]
"""Runs the delta transition of a start value (None: a window starts at the first row) through a numbered segment."""

RETAINED = -1


def exit_of(transitions: DeltaTransitions | None, value: Any, run_through: RunThrough, index: int) -> Exit:
    """Return the exit of segment ``index`` for a start value; None: a window starts at its first row.

    ``transitions``: those in the segment's summary, or None; ``run_through`` is called where they do not have it.
    """
    if transitions is None:
        return run_through(index, value)
    if value is None:
        return transitions.fresh
    return exit_for(transitions, value) or run_through(index, value)


def clock_at_end(segment: Sequences) -> ClockValue:
    """Return the clock at the end of a segment, in measures of the first column of its order."""
    name = segment.order[0]
    clock: ClockValue = clock_values(combined(segment.rows.column(name)), name).max().item()
    return clock
