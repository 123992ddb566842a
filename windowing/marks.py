"""Window marks and where they fall between the rows (semantics sections 1 and 2, ``punct``).

A mark follows a row: it stands right after that row in the total order, whatever the row's key, so that it ends the
open windows of all keys. The row itself need not be among the sequences (it may have another key, or be rejected).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from windowing.columns import Ints, words
from windowing.sequence import Sequences

NO_FILE = -1


@dataclass(frozen=True, slots=True)
class Marks:
    """m marks: the order columns and arrival position of the row that each one follows.

    ``rows``: a batch of the order columns (a batch without columns in arrival order). ``pos``: int64 (m,); -1 stands
    before every row. ``file``: int64 (m,), the file whose end this is, or `NO_FILE`.
    """

    rows: pa.RecordBatch
    pos: Ints
    file: Ints

    def __len__(self) -> int:
        return len(self.pos)

    def take(self, picks: Ints) -> Marks:
        """Return the marks at the given places, in that order."""
        rows = self.rows.take(pa.array(picks)) if self.rows.num_columns else self.rows
        return Marks(rows, self.pos[picks], self.file[picks])


def no_marks(rows: pa.RecordBatch, order: Sequence[str]) -> Marks:
    """Return an empty set of marks over the order columns of ``rows``."""
    nothing = np.empty(0, np.int64)
    return Marks(rows.select(list(order)).slice(0, 0), nothing, nothing)


def in_order(marks: Marks) -> Marks:
    """Sort marks by the total order; of the ends that several splits saw of one file, keep the last."""
    sort_words = _stacked_words([], marks)
    ascending = np.lexsort(sort_words[::-1])
    ordered = marks.take(ascending)
    return ordered.take(_last_of_each_file(ordered.file))


def epochs(sequences: Sequences, marks: Marks) -> Ints:
    """Return for each row how many marks stand before it: its epoch, int64 of shape (n,).

    ``marks`` must stand `in_order`. Mark j ends epoch j.
    """
    if not len(marks):
        return np.zeros(len(sequences), np.int64)
    columns = [sequences.rows.column(name) for name in sequences.order]
    stacked = _stacked_words(columns, marks, sequences.pos)
    n = len(sequences)
    return _marks_before(stacked[:, :n], stacked[:, n:])


def unoccupied(occupied: Ints, count: int) -> Ints:
    """Return which of ``count`` marks end an epoch without rows, given the epochs that have some."""
    empty = np.ones(count + 1, np.bool_)
    empty[occupied] = False
    return np.flatnonzero(empty[:count])


def _last_of_each_file(file: Ints) -> Ints:
    keep = np.ones(len(file), np.bool_)
    tagged = np.flatnonzero(file != NO_FILE)
    if len(tagged):
        keep[tagged] = False
        backwards = tagged[::-1]
        _, first = np.unique(file[backwards], return_index=True)
        keep[backwards[first]] = True
    return np.flatnonzero(keep)


def _stacked_words(columns: Sequence[pa.Array], marks: Marks, pos: Ints | None = None) -> npt.NDArray[np.int64]:
    """Words of the total order for rows, then marks: shape (order columns + 1, n + m), most significant first."""
    both = []
    for i, name in enumerate(marks.rows.schema.names):
        column = marks.rows.column(name)
        both.append(words(pa.concat_arrays([columns[i], column]) if columns else column))
    both.append(marks.pos if pos is None else np.concatenate([pos, marks.pos]))
    return np.stack(both)


@njit(cache=True)
def _marks_before(rows: npt.NDArray[np.int64], marks: npt.NDArray[np.int64]) -> Ints:
    """For each column of ``rows``, how many columns of ``marks`` (ascending) are lexicographically smaller."""
    depth = rows.shape[0]
    out = np.empty(rows.shape[1], np.int64)
    for i in range(rows.shape[1]):
        low, high = 0, marks.shape[1]
        while low < high:
            middle = (low + high) // 2
            smaller = False
            for d in range(depth):
                if marks[d, middle] != rows[d, i]:
                    smaller = marks[d, middle] < rows[d, i]
                    break
            if smaller:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out
