"""Storage of segments and of the signals they share, where any task can read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...clock.watermark import Watermarks
from ...columns.arrays import Ints
from ...kinds.signals import Signals, watermark_signals, window_marks
from ...segments.open_windows import WindowPart
from ...segments.segment_scan import summarise
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences
from ..exchange.blocks import without_last
from ..tasks.task import TaskContext
from .segment_plan import Segment, SummarisedSegment

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
    """Return stored columns and the last ``more`` of them apart."""
    return without_last(work.sink.read_scratch(name), more)
