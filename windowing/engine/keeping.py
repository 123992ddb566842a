"""Rows of pieces, and the marks that they share, where any task can read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowing.columns import Ints
from windowing.engine.cutting import Piece
from windowing.engine.work import Work
from windowing.marks import Marks
from windowing.pieces import summarise
from windowing.sequence import Sequences

_MARKS = "marks"


def keep_piece(work: Work, index: int, side: int, piece: Sequences, marks: Marks) -> Piece:
    """Keep the rows of a piece, and summarise it. ``marks`` stand in order."""
    name = f"slice-{index:05d}-{side}"
    _keep(work, name, piece.rows, [piece.pos])
    return Piece(index, side, name, piece.keys, summarise(work.plan, piece, marks))


def kept_piece(work: Work, name: str, key: pa.Table | None, first: int = 0) -> Sequences:
    """Return the rows of a piece, from its row ``first`` on."""
    rows, (pos,) = _kept(work, name, 1)
    bounds = np.array([0, len(pos) - first])
    return Sequences(key, bounds, rows.slice(first), pos[first:], tuple(work.plan.sort))


def keep_marks(work: Work, marks: Marks) -> None:
    """Keep the marks that all pieces share; each task that keeps a piece does, for all of them know all marks."""
    _keep(work, _MARKS, marks.rows, [marks.pos, marks.file])


def kept_marks(work: Work) -> Marks:
    """Return the marks that all pieces share."""
    rows, (pos, file) = _kept(work, _MARKS, 2)
    return Marks(rows, pos, file)


def _keep(work: Work, name: str, rows: pa.RecordBatch, more: Sequence[Ints]) -> None:
    arrays = [*rows.columns, *(pa.array(values) for values in more)]
    names = [*rows.schema.names, *(f"__{i}" for i in range(len(more)))]
    work.sink.keep(name, pa.RecordBatch.from_arrays(arrays, names=names))


def _kept(work: Work, name: str, more: int) -> tuple[pa.RecordBatch, list[Ints]]:
    """By place: a column of the input may have any name."""
    batch = work.sink.kept(name)
    first = batch.num_columns - more
    return batch.select(list(range(first))), [batch.column(i).to_numpy() for i in range(first, batch.num_columns)]
