"""Rows of pieces, and the signals that they share, where any task can read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...clock.watermark import Watermarks
from ...columns.arrays import Ints
from ...scan.signals import Signals, advances, window_marks
from ...segments.segment_scan import summarise
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences
from ..tasks.task import Work
from .segment_plan import Piece, Told

_SIGNALS, _LEVELS = "marks", "advances"


def keep_piece(work: Work, index: int, side: int, piece: Sequences, signals: Signals) -> Told:
    """Keep the rows of a piece, and summarise it; keep which rows it holds at its end, too."""
    name = f"slice-{index:05d}-{side}"
    keep_rows(work, name, piece)
    summary, held = summarise(work.plan, piece, signals)
    if len(held):
        keep_numbers(work, f"{name}-held", held)
    return Piece(index, side, name, piece.keys), summary


def kept_piece(work: Work, piece: Piece) -> Sequences:
    """Return the rows of a piece."""
    return replace(kept_rows(work, piece.name), keys=piece.key)


def keep_rows(work: Work, name: str, rows: Sequences) -> None:
    """Keep rows of one key, without the key."""
    _keep(work, name, rows.rows, [rows.pos])


def kept_rows(work: Work, name: str) -> Sequences:
    """Return rows of one key, without the key."""
    rows, (pos,) = _kept(work, name, 1)
    return Sequences(None, np.array([0, len(pos)]), rows, pos, tuple(work.plan.sort))


def keep_signals(work: Work, signals: Signals) -> None:
    """Keep the signals that all pieces share; each task that keeps a piece does, for all of them know all signals."""
    marks = signals.marks
    if signals.watermarks is None:
        _keep(work, _SIGNALS, marks.rows, [marks.pos, marks.file])
    else:
        _keep(work, _LEVELS, marks.rows, [marks.pos, marks.file, signals.watermarks.level])


def kept_signals(work: Work, are_advances: bool, count: int | None) -> Signals:
    """Return the first ``count`` signals that all pieces share, None: all."""
    if are_advances:
        rows, (pos, file, level) = _kept(work, _LEVELS, 3)
        return advances(Watermarks(Marks(rows[:count], pos[:count], file[:count]), level[:count]))
    rows, (pos, file) = _kept(work, _SIGNALS, 2)
    return window_marks(Marks(rows[:count], pos[:count], file[:count]))


def keep_numbers(work: Work, name: str, numbers: Ints) -> None:
    """Keep some numbers."""
    work.sink.keep(name, pa.RecordBatch.from_arrays([pa.array(numbers)], names=["number"]))


def kept_numbers(work: Work, name: str) -> Ints:
    """Return some numbers."""
    numbers: Ints = work.sink.kept(name).column(0).to_numpy()
    return numbers


def _keep(work: Work, name: str, rows: pa.RecordBatch, more: Sequence[Ints]) -> None:
    arrays = [*rows.columns, *(pa.array(values) for values in more)]
    names = [*rows.schema.names, *(f"__{i}" for i in range(len(more)))]
    work.sink.keep(name, pa.RecordBatch.from_arrays(arrays, names=names))


def _kept(work: Work, name: str, more: int) -> tuple[pa.RecordBatch, list[Ints]]:
    """By place: a column of the input may have any name."""
    batch = work.sink.kept(name)
    first = batch.num_columns - more
    return batch.select(list(range(first))), [batch.column(i).to_numpy() for i in range(first, batch.num_columns)]
