"""Keys that are cut into segments: where each segment is stored, and the entry state of each.

The task that merges a slice stores the rows of its segments where any task can read them, and reports a summary of
each. The driver composes the summaries into entry states; then each segment is scanned by a task of its own.
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
from ..kinds.segment_summary import EntryState, Passage, SegmentSummary
from ..planning.plan import Plan
from ..rows.marks import Marks
from ..rows.sequence import Sequences
from ..scan.segment_scan import WindowPart, summarise
from .blocks import without_last
from .range_cuts import SliceBounds, same_key
from .task import TaskContext

FIRST, WHOLE, LAST = range(3)
"""Places in a slice: the segment at its beginning, the whole keys between, the segment at its end."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that is stored.

    ``index``: the slice that it is in.
    ``side``: `FIRST` or `LAST`, its place in that slice.
    ``name``: the name under which its rows are stored.
    ``key``: one row; None where there is no key.
    """

    index: int
    side: int
    name: str
    key: pa.Table | None


SummarisedSegment: TypeAlias = tuple[Segment, SegmentSummary]
"""A segment and its summary, which may be large: only the driver gets it, tasks get a `SegmentTask`."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A segment and all that its task needs to scan it.

    ``part``: number of its part of the result.
    ``segment``: the segment.
    ``entry``: its entry state.
    ``is_last``: whether it is the last segment of its key.
    ``before``: earlier segments whose rows it may show, each with the first of these rows, as in
        `windowing.kinds.segment_summary.EntryState.before`, and with the number of rows of the key before that segment.
    ``since_then``: all segments from the first of ``before`` up to this one, exclusive.
    ``baseline``: the segment and the row in it that a ``delta`` trigger compares with; None: no baseline yet.
    ``marks``: number of signals before the next segment; None: all signals.
    ``clock``: as in `windowing.scan.scan.RunExtent`.
    ``has_parts``: whether the segments of ``before`` have stored their parts of the window that is open.
    """

    part: int
    segment: Segment
    entry: EntryState
    is_last: bool
    before: tuple[tuple[Segment, int, int], ...] = ()
    since_then: tuple[Segment, ...] = ()
    baseline: tuple[Segment, int] | None = None
    marks: int | None = None
    clock: ClockValue | None = None
    has_parts: bool = False


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


def plan_segments(
    plan: Plan,
    cuts: SliceBounds,
    summarised: Sequence[SummarisedSegment],
    passages: Sequence[Passage],
    clock: ClockValue | None,
) -> list[SegmentTask]:
    """Return the tasks that scan the segments of one key, in order.

    ``passages``: as in `WindowKind.entry_states`. ``clock``: the clock at the end of the input.
    """
    segments, summaries = [segment for segment, _ in summarised], [summary for _, summary in summarised]
    entries = plan.kind.entry_states(summaries, passages, plan.context)
    tasks = []
    for i, (segment, entry) in enumerate(zip(segments, entries, strict=True)):
        is_last = i == len(segments) - 1
        tasks.append(
            SegmentTask(
                part_number(cuts, segment.index, segment.side),
                segment,
                entry,
                is_last,
                tuple((segments[j], first, entries[j].rows) for j, first in entry.before),
                tuple(segments[entry.before[0][0] : i]) if entry.before else (),
                None if entry.baseline is None else (segments[entry.baseline[0]], entry.baseline[1]),
                None if is_last else summaries[i + 1].epochs[0],
                clock if is_last else None,
            )
        )
    return tasks


def with_window_numbers(tasks: Sequence[SegmentTask], windows: Sequence[int]) -> list[SegmentTask]:
    """Return the tasks of one key with window numbers set. ``windows``: number of panes of each segment."""
    before = np.cumsum([0, *windows])
    return [replace(t, entry=replace(t.entry, windows=int(w))) for t, w in zip(tasks, before, strict=False)]


# Storage of segments and of the signals they share, where any task can read them.


_SIGNALS, _LEVELS = "marks", "advances"


def write_segment(work: TaskContext, index: int, side: int, segment: Sequences, signals: Signals) -> SummarisedSegment:
    """Store the rows of a segment, and which of them are retained at its end; return it with its summary."""
    name = f"slice-{index:05d}-{side}"
    write_rows(work, name, segment)
    summary, retained = summarise(work.plan, segment, signals)
    if len(retained):
        write_numbers(work, f"{name}-held", retained)
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


def write_signals(work: TaskContext, signals: Signals) -> None:
    """Store the signals that all segments share: all of them, for every task knows all signals."""
    marks = signals.marks
    if signals.watermarks is None:
        _write(work, _SIGNALS, marks.rows, [marks.pos, marks.file])
    else:
        _write(work, _LEVELS, marks.rows, [marks.pos, marks.file, signals.watermarks.level])


def read_signals(work: TaskContext, are_advances: bool, count: int | None) -> Signals:
    """Return the first ``count`` signals that all segments share; None: all of them."""
    if are_advances:
        rows, (pos, file, level) = _read(work, _LEVELS, 3)
        return watermark_signals(Watermarks(Marks(rows[:count], pos[:count], file[:count]), level[:count]))
    rows, (pos, file) = _read(work, _SIGNALS, 2)
    return window_marks(Marks(rows[:count], pos[:count], file[:count]))


def write_numbers(work: TaskContext, name: str, numbers: Ints) -> None:
    """Store an array of numbers."""
    work.sink.write_scratch(name, pa.RecordBatch.from_arrays([pa.array(numbers)], names=["number"]))


def read_numbers(work: TaskContext, name: str) -> Ints:
    """Return an array of numbers."""
    numbers: Ints = work.sink.read_scratch(name).column(0).to_numpy()
    return numbers


def _write(work: TaskContext, name: str, rows: pa.RecordBatch, more: Sequence[Ints]) -> None:
    arrays = [*rows.columns, *(pa.array(values) for values in more)]
    names = [*rows.schema.names, *(f"__{i}" for i in range(len(more)))]
    work.sink.write_scratch(name, pa.RecordBatch.from_arrays(arrays, names=names))


def _read(work: TaskContext, name: str, more: int) -> tuple[pa.RecordBatch, list[Ints]]:
    return without_last(work.sink.read_scratch(name), more)
