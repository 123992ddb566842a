"""The panes of one key, computed once more by the plan of the job, and one of them with its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.columns.arrays import ClockValue, Ints, Mask, combined
from .....windowing.emit.result_tables import emitted_panes, pane_columns
from .....windowing.panes.membership import gathered
from .....windowing.panes.panes import CLOSED_BY, Panes, reason
from .....windowing.planning.plan import Plan
from .....windowing.sequences.marks import Marks
from .....windowing.sequences.sequence import Sequences
from .key_rows import KeyRows
from .row_values import RowValues, scalar_text

BEFORE = frozenset({"delta", "gap", "change", "when", "while"})
"""Close reasons of windows that end before a row, which may open the next."""
AFTER = frozenset({"count", "until", "reaches", "punct"})
"""Close reasons of windows that end with a row, or at a mark behind it."""
CLOCK = frozenset({"time", "calendar", "cron"})
"""Close reasons of windows that end at an instant of the clock."""


@dataclass(frozen=True, slots=True)
class KeyPanes:
    """The panes of a key.

    ``plan``: the plan of its panes.
    ``sequences``: the rows of the key, in order.
    ``panes``: its panes in order, also those that only the end of the data brings out.
    ``marks``: what causes of panes count after the rows.
    ``head``: for each pane the columns that describe it in the result.
    """

    plan: Plan
    sequences: Sequences
    panes: Panes
    marks: Marks
    head: pa.Table

    def rows_of(self, at: int) -> Ints:
        """Return the rows of pane ``at`` among those of the key, int64, in the order of the pane."""
        return gathered(self.panes.membership, at, at + 1)[0]

    def closed_by(self, at: int) -> str:
        """Return the close reason of pane ``at``."""
        return CLOSED_BY[self.panes.closed_by[at]]

    @property
    def came_out(self) -> Ints:
        """Return the panes that came out, int64: all but those of the end of the data, where that does not flush."""
        is_end = self.panes.closed_by == reason("end")
        shown = np.ones(len(self.panes), np.bool_) if self.plan.options.at_end == "flush" else ~is_end
        return np.flatnonzero(shown)


@dataclass(frozen=True, slots=True)
class KeyPane:
    """One of the panes of a key, as `pane_at` makes it.

    ``panes``: all panes of the key.
    ``at``: which of these it is.
    ``rows``: its rows among those of the key, int64, in the order of the pane.
    ``before``: why the window before it was closed; None: there is none, or windows do not follow one another.
    """

    panes: KeyPanes
    at: int
    rows: Ints
    before: str | None

    @property
    def values(self) -> RowValues:
        """The rows of the key."""
        return RowValues(self.panes.sequences)

    @property
    def closed_by(self) -> str:
        """Its close reason."""
        return self.panes.closed_by(self.at)

    @property
    def cause(self) -> int:
        """What brought it out, as `windowing.panes.panes.Panes.cause` numbers it."""
        return int(self.panes.panes.cause[self.at])

    @property
    def cause_row(self) -> int | None:
        """The row of the key that brought it out; None: no such row did."""
        return self.cause if 0 <= self.cause < len(self.panes.sequences) else None

    @property
    def next_row(self) -> int | None:
        """The row of the key behind its last row; None: there is none."""
        after = int(self.rows[-1]) + 1 if len(self.rows) else len(self.panes.sequences)
        return after if after < len(self.panes.sequences) else None

    def text(self, name: str) -> str:
        """Return a column of the result as text; ``-`` where it has no such column."""
        head = self.panes.head
        return scalar_text(combined(head.column(name))[self.at]) if name in head.column_names else "-"


def pane_at(panes: KeyPanes, at: int, before: str | None = None) -> KeyPane:
    """Return pane ``at`` with its rows. ``before``: as of `KeyPane`."""
    return KeyPane(panes, at, panes.rows_of(at), before)


def panes_of(rows: KeyRows, clock: ClockValue | None = None) -> KeyPanes:
    """Compute the panes of a key. ``clock``: the clock at the end; None: that of all rows that were read."""
    plan, sequences = rows.plan, rows.sequences
    context = replace(plan.context, clock=rows.clock if clock is None else clock)
    panes, marks = plan.kind.panes(sequences, rows.signals, context)
    panes = emitted_panes(plan, sequences, panes)
    return KeyPanes(plan, sequences, panes, marks, pane_columns(plan, sequences, marks, panes))


def matching(head: pa.Table, pane: Mapping[str, pa.Scalar], but: frozenset[str] = frozenset()) -> Ints:
    """Return the panes that are as a result describes one, int64: equal in all columns of both, except ``but``."""
    mask = np.ones(head.num_rows, np.bool_)
    for name in head.column_names:
        if name in pane and name not in but:
            mask &= _equals(combined(head.column(name)), pane[name])
    return np.flatnonzero(mask)


def _equals(column: pa.Array, value: pa.Scalar) -> Mask:
    """Return where a column has a value, bool (n,): null is null, NaN is NaN, and the two float zeros are one."""
    if not value.is_valid:
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = pc.equal(column.cast(value.type), value)
    if pa.types.is_floating(value.type) and math.isnan(value.as_py()):
        found = pc.is_nan(column)
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))
