"""Summaries and entry states: the values of a prefix scan over the segments of one sequence.

Each segment is summarised by itself, whatever comes before it. Where that does not say which windows start in it, the
segments of a sequence are run through as well, one after the other: a `Passage` of each. Both are composed in order
into the entry state of each segment. With that, and some rows of earlier segments, a segment is scanned as an
incremental run is: from a restored window state (`windowing.state.window_state`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..clock.interval_grid import clock_values
from ..columns.arrays import ClockValue, combined
from ..rows.sequence import Sequences


@dataclass(frozen=True, slots=True)
class Passage:
    """What a segment does to the window that is open where it begins, or to the baseline of a ``delta`` trigger.

    ``starts``: how many windows start in it.
    ``last``: the row at which the last of them starts, or the baseline; -1 where none does.
    ``closed``: whether no window is open behind it.
    ``value``: what it leaves to the next segment, where that is run through as well; else None.
    ``skips``: whether some of its rows are in no window.
    """

    starts: int
    last: int
    closed: bool = False
    value: Any = None
    skips: bool = False


@dataclass(frozen=True, slots=True)
class RetentionSummary:
    """What later segments need of a segment under a window that shows rows of earlier segments.

    ``rows``: number of rows retained at the end of the segment, as far as its own rows decide.
    ``low``: the least value that a ``delta`` eviction compares.
    ``high``: the largest such value.
    ``evicts``: whether a row of the segment evicts another of its rows.
    ``amount``: the amount of the ``delta`` eviction, in measures; None for other evictions.
    """

    rows: int
    low: Any = None
    high: Any = None
    evicts: bool = False
    amount: Any = None


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """The summary of a segment.

    ``rows``: number of rows, at least one.
    ``window``: the windows that start after its first row, or what it retains; None where it must be run through.
    ``epochs``: number of signals before its first row, and before its last row.
    ``edges``: its first row and its last, in the columns that the window depends on; None where windows overlap.
    ``clock``: the clock at its end, in measures; None for windows that do not use the clock.
    """

    rows: int
    window: Passage | RetentionSummary | None
    epochs: tuple[int, int] = (0, 0)
    edges: pa.RecordBatch | None = None
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
    ``value``: what the segment before leaves, as in `Passage`.
    ``last``: the summary of the segment before; None: there is none.
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


RETAINED = -1


def clock_at_end(segment: Sequences) -> ClockValue:
    """Return the clock at the end of a segment, in measures of the first column of its order."""
    name = segment.order[0]
    clock: ClockValue = clock_values(combined(segment.rows.column(name)), name).max().item()
    return clock
