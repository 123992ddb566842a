"""Summaries and entry states: the values of a prefix scan over the segments of one sequence under a tumbling window.

Each segment is summarised by itself, whatever comes before it. Where that does not say which windows start in it, the
segments of a sequence are run through as well, one after the other: a `Passage` of each. Both are composed in order
into the entry state of each segment: a window may go through more segments than fit into memory, so its rows stay
where they are until the segment in which it comes out asks for them. Windows that overlap go on from segment to segment
with the rows that they retain (`windowing.scan.continue_scan`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..columns.arrays import ClockValue


@dataclass(frozen=True, slots=True)
class Passage:
    """What a segment does to the window that is open where it begins.

    ``starts``: how many windows start in it.
    ``last``: the row at which the last of them starts; -1 where none does.
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
class SegmentSummary:
    """The summary of a segment.

    ``window``: the windows that start after its first row; None where it must be run through.
    ``epochs``: number of signals before its first row, and before its last row.
    ``edges``: its first row and its last, in the columns that the window depends on; None: it has no rows.
    ``clock``: the clock at its end, in measures; None for windows that do not use the clock.
    """

    window: Passage | None
    epochs: tuple[int, int] = (0, 0)
    edges: pa.RecordBatch | None = None
    clock: ClockValue | None = None


@dataclass(frozen=True, slots=True)
class EntryState:
    """The state in which the scan of a segment begins.

    ``windows``: number of panes that came out before.
    ``before``: earlier segments, each with its first row that windows may show here; empty where nothing comes out.
    ``falls``: whether the watched attribute falls between the segment before and this one.
    ``emits``: whether any pane comes out in the segment, or rows of it are in no window.
    ``clock``: the clock, in measures; None: no row yet.
    ``value``: as in `Passage`, of the segment before.
    """

    windows: int
    before: tuple[tuple[int, int], ...] = ()
    falls: bool = False
    emits: bool = True
    clock: ClockValue | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """The position of a tumbling window between two segments of a key.

    ``starts``: number of windows that have started.
    ``open_at``: the segment and the row in it where the last window started; None: none has.
    ``through``: what the segment before has done to the window.
    ``last``: the summary of that segment; None: there is none.
    """

    starts: int = 0
    open_at: tuple[int, int] | None = None
    through: Passage = Passage(0, -1)
    last: SegmentSummary | None = None

    @property
    def windows(self) -> int:
        return self.starts if self.open_at is None or self.through.closed else self.starts - 1
