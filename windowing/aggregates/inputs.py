"""What an aggregate gets to see: its columns, its literals and the panes, and how nulls are taken out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowing.aggregates.values import frozen
from windowing.columns import Ints
from windowing.errors import DataError

Mask = npt.NDArray[np.bool_]


class PaneOverflow(Exception):  # noqa: N818  (a pane's fate; the error of it names key and window)
    """An integer or decimal aggregate that does not fit its type.

    ``pane``: index of the first such pane among those computed. ``call``: as written, without its name.
    ``column``: the name of its first column. ``type``: the one that is too narrow.
    """

    def __init__(self, pane: int, call: str, column: str, dtype: pa.DataType) -> None:
        super().__init__(pane, call, column, dtype)
        self.pane = pane
        self.call = call
        self.column = column
        self.type = dtype

    def __str__(self) -> str:
        return f"{self.call} does not fit {self.type} in pane {self.pane} (column {self.column!r})"


class PaneFailed(DataError):  # noqa: N818
    """A user function raised, or returned what does not fit its type; ``pane`` and ``call`` as in `PaneOverflow`."""

    def __init__(self, pane: int, call: str, reason: str) -> None:
        super().__init__(f"{call} failed in pane {pane}: {reason}")
        self.pane = pane
        self.call = call
        self.reason = reason

    def __reduce__(self) -> tuple[type[PaneFailed], tuple[int, str, str]]:
        return PaneFailed, (self.pane, self.call, self.reason)


@dataclass(frozen=True, slots=True)
class Ranges:
    """P panes as half-open ranges ``[lo, hi)`` of rows, int64 (P,), read-only; they may overlap or be empty."""

    lo: Ints
    hi: Ints

    def __len__(self) -> int:
        return len(self.lo)

    @property
    def sizes(self) -> Ints:
        """Rows of each pane."""
        return self.hi - self.lo

    @property
    def empty(self) -> Mask:
        """Which panes hold no row."""
        empty: Mask = self.lo == self.hi
        return empty


@dataclass(frozen=True, slots=True)
class Inputs:
    """One call over one batch of panes.

    ``columns``: the call's column arguments in order, in their plain types, nulls included; ``names``: theirs.
    ``literals``: the other arguments. ``type``: of the result. ``call``: the text of the call, for messages.
    """

    columns: tuple[pa.Array, ...]
    names: tuple[str, ...]
    literals: tuple[Any, ...]
    ranges: Ranges
    type: pa.DataType
    call: str

    def refuse_overflow(self, over: Mask) -> None:
        """Raise `PaneOverflow` for the first pane marked, if there is one."""
        if over.any():
            raise PaneOverflow(int(over.argmax()), self.call, self.names[0], self.type)


@dataclass(frozen=True, slots=True)
class Dense:
    """Columns without the rows an aggregate skips, and the panes as ranges of what is left.

    ``kept``: the original row of each row left, or None where all are.
    """

    columns: tuple[pa.Array, ...]
    ranges: Ranges
    kept: Ints | None

    def original(self, rows: Ints) -> Ints:
        """Return the original rows of rows of the dense columns; -1 stays -1."""
        if self.kept is None or not len(self.kept):
            return rows
        return np.where(rows < 0, -1, self.kept[rows])


def dense(columns: Sequence[pa.Array], ranges: Ranges) -> Dense:
    """Take out the rows where any of the columns is null. No copy where there is none."""
    holed = [column for column in columns if column.null_count]
    if not holed:
        return Dense(tuple(columns), ranges, None)
    valid = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in holed])
    before = np.zeros(len(valid) + 1, np.int64)
    np.cumsum(valid, out=before[1:])
    shifted = Ranges(frozen(before[ranges.lo]), frozen(before[ranges.hi]))
    picked = pa.array(valid)
    return Dense(tuple(column.filter(picked) for column in columns), shifted, np.flatnonzero(valid))


def taken(column: pa.Array, rows: Ints) -> pa.Array:
    """Return the values of a column in the given rows, null where that is -1."""
    missing = rows < 0
    return column.take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))


def masked(values: npt.NDArray[Any], null: Mask, dtype: pa.DataType) -> pa.Array:
    """Return numbers or ticks as an array of ``dtype``, null where ``null`` says so."""
    array = pa.array(values, mask=null) if null.any() else pa.array(values)
    return array if array.type == dtype else array.view(dtype)
