"""Keys that are cut into segments: where each segment is stored, and how each is scanned.

The task that merges a slice stores the rows of its segments where any task can read them. Under a tumbling window it
reports a summary of each, and the driver composes these into entry states; where windows overlap, one task for each key
goes from segment to segment with the rows that windows retain. Then each segment is scanned by a task of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..clock.watermark import Watermarks
from ..columns.arrays import ClockValue, Ints
from ..kinds.context import Signals, watermark_signals, window_marks
from ..kinds.segment_summary import EntryState, SegmentSummary
from ..kinds.tumbling.kind import TumblingKind
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.sequence import Sequences, one_batch
from ..scan.segment_scan import WindowPart
from ..state.state_tables import key_table, read_state, row_table
from ..state.window_state import WindowState
from .blocks import with_last, without_last
from .range_cuts import SliceBounds, same_key
from .task import TaskContext

FIRST, WHOLE, LAST = range(3)
"""Places in a slice: the segment at its beginning, the whole keys between, the segment at its end."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that is stored.

    ``index``: the slice that it is in.
    ``side``: `FIRST` or `LAST`, its place in that slice.
    ``key``: one row; None where there is no key.
    """

    index: int
    side: int
    name: str
    key: pa.Table | None


SummarisedSegment: TypeAlias = tuple[Segment, SegmentSummary | None]
"""A segment and its summary, which may be large: only the driver gets it, tasks get a `SegmentTask`. None where windows
overlap: they go on with the rows that they retain."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """Where a segment begins under windows that overlap, when the rows of its key have been gone through up to it.

    ``is_first``: whether no segment of the key comes before it.
    ``signals``: number of signals before its first row.
    ``before``: as in `EntryState`, the earlier segments whose rows are retained there.
    ``clock``: the clock there, in measures; None: no row before, or no clock.
    ``windows``: number of panes that came out before, once the segments before have been counted.
    """

    is_first: bool
    signals: int
    before: tuple[tuple[int, int], ...]
    clock: ClockValue | None
    windows: int = 0


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A segment and all that its task needs to scan it.

    ``part``: number of its part of the result.
    ``is_last``: whether it is the last segment of its key.
    ``entry``: what the segments before leave to it.
    ``before``: earlier segments whose rows windows may show here, each with the first of these rows.
    ``has_parts``: whether the segments of ``before`` have stored their parts of the tumbling window that is open.
    ``signals``: number of signals before the next segment; None: all signals.
    ``clock``: as in `windowing.scan.continue_scan.End`.
    """

    part: int
    segment: Segment
    is_last: bool
    entry: EntryState | ChainLink
    before: tuple[tuple[Segment, int], ...] = ()
    has_parts: bool = False
    signals: int | None = None
    clock: ClockValue | None = None


def part_number(cuts: SliceBounds | None, index: int, side: int) -> int:
    """Return the number of a part of the result; parts are numbered in the order of keys and rows."""
    return index if cuts is None or not cuts.inside.any() else 3 * index + side


def whole_key_rows(sequences: Sequences, cuts: SliceBounds | None, index: int) -> tuple[int, int]:
    """Return the rows ``[low, high)`` of a slice's whole keys; rows outside belong to segments.

    Where one key fills the slice and is cut at both ends, it is one segment, and ``low`` and ``high`` are its end.
    """
    rows, bounds, keys = len(sequences), sequences.bounds, sequences.keys
    if cuts is None or not rows:
        return 0, rows
    first_is_cut = index > 0 and bool(cuts.inside[index - 1]) and same_key(keys, 0, cuts, index - 1)
    last = len(bounds) - 2
    last_is_cut = index < len(cuts) and bool(cuts.inside[index]) and same_key(keys, last, cuts, index)
    low = int(bounds[1]) if first_is_cut else 0
    return low, max(low, int(bounds[last])) if last_is_cut else rows


def segments_by_key(cuts: SliceBounds, segments: Sequence[SummarisedSegment]) -> list[list[SummarisedSegment]]:
    """Return the segments of each key that is cut, in order."""
    by_place = {(segment.index, segment.side): (segment, summary) for segment, summary in segments}
    by_key: list[list[SummarisedSegment]] = []
    for cut in range(len(cuts)):
        if not cuts.inside[cut]:
            continue
        is_continued = cut > 0 and bool(cuts.inside[cut - 1]) and same_key(cuts.keys, cut - 1, cuts, cut)
        if not is_continued:
            by_key.append([])
            by_key[-1] += [by_place[cut, LAST]] if (cut, LAST) in by_place else []
        by_key[-1] += [by_place[cut + 1, FIRST]] if (cut + 1, FIRST) in by_place else []
    return [segments for segments in by_key if segments]


def tasks_of(
    cuts: SliceBounds,
    segments: Sequence[Segment],
    entries: Sequence[EntryState | ChainLink],
    signals: Sequence[int],
    clock: ClockValue | None,
) -> list[SegmentTask]:
    """Return the tasks that scan the segments of one key, in order.

    ``signals``: number of signals before the first row of each. ``clock``: the clock at the end of the input.
    """
    tasks = [
        SegmentTask(
            part_number(cuts, segment.index, segment.side),
            segment,
            is_last=False,
            entry=entry,
            before=tuple((segments[j], first) for j, first in entry.before),
            signals=behind,
        )
        for segment, entry, behind in zip(segments, entries, [*signals[1:], None], strict=True)
    ]
    return [*tasks[:-1], replace(tasks[-1], is_last=True, clock=clock)]


def tumbling(plan: Plan) -> TumblingKind:
    """Return the kind of a plan, which must be a tumbling window."""
    assert isinstance(plan.kind, TumblingKind)
    return plan.kind


# Storage of segments and of the signals they share, where any task can read them.


_SIGNALS, _LEVELS = "marks", "advances"


def write_segment(work: TaskContext, index: int, side: int, segment: Sequences, signals: Signals) -> SummarisedSegment:
    """Store the rows of a segment; return it with its summary."""
    name = f"slice-{index:05d}-{side}"
    write_rows(work, name, segment)
    plan, summary = work.plan, None
    if not plan.kind.needs.is_chained:
        summary = tumbling(plan).summarise(segment, signals, plan.context)
    return Segment(index, side, name, segment.keys), summary


def read_segment(work: TaskContext, segment: Segment) -> Sequences:
    """Return the rows of a segment."""
    return replace(read_rows(work, segment.name), keys=segment.key)


def write_rows(work: TaskContext, name: str, rows: Sequences) -> None:
    """Store rows of one key, without the key."""
    _write(work, name, rows.rows, [rows.pos])


def read_rows(work: TaskContext, name: str) -> Sequences:
    """Return rows of one key, without the key."""
    rows, (pos,) = _read(work, name, 1)
    return Sequences(None, np.array([0, len(pos)]), rows, pos, tuple(work.plan.sort))


def write_part(work: TaskContext, name: str, part: WindowPart) -> None:
    """Store what a segment has of a window that is open at its end."""
    _write(work, f"{name}-edges", part.edges, [part.edges_pos])
    work.sink.write_scratch(f"{name}-partials", part.partials)


def read_part(work: TaskContext, name: str) -> WindowPart:
    """Return what `write_part` has stored under a name."""
    edges, (pos,) = _read(work, f"{name}-edges", 1)
    return WindowPart(edges, pos, work.sink.read_scratch(f"{name}-partials"))


def write_carry(work: TaskContext, name: str, state: WindowState) -> None:
    """Store the window state with which a segment begins."""
    work.sink.write_scratch(f"{name}-keys", one_batch(key_table(state)))
    work.sink.write_scratch(f"{name}-retained", one_batch(row_table(state)))


def read_carry(work: TaskContext, name: str) -> WindowState:
    """Return what `write_carry` has stored under a name."""
    keys, rows = (pa.Table.from_batches([work.sink.read_scratch(f"{name}-{each}")]) for each in ("keys", "retained"))
    return read_state(keys, rows, work.plan.key, work.plan.sort, work.plan.values)


def write_signals(work: TaskContext, signals: Signals) -> None:
    """Store the signals that all segments share: all of them, for every task knows all signals."""
    marks = signals.marks
    if signals.watermarks is None:
        _write(work, _SIGNALS, marks.rows, [marks.pos, marks.file])
    else:
        _write(work, _LEVELS, marks.rows, [marks.pos, marks.file, signals.watermarks.level])


def read_signals(work: TaskContext) -> Signals:
    """Return the signals that all segments share."""
    if not work.plan.takes_marks:
        rows, (pos, file, level) = _read(work, _LEVELS, 3)
        return watermark_signals(Watermarks(Marks(rows, pos, file), level))
    rows, (pos, file) = _read(work, _SIGNALS, 2)
    return window_marks(Marks(rows, pos, file))


def _write(work: TaskContext, name: str, rows: pa.RecordBatch, more: Sequence[Ints]) -> None:
    work.sink.write_scratch(name, with_last(rows, *more))


def _read(work: TaskContext, name: str, more: int) -> tuple[pa.RecordBatch, list[Ints]]:
    return without_last(work.sink.read_scratch(name), more)
