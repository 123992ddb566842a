"""Rows ahead of their time (semantics section 19): the latest rows of a run, and where the order of rows is cut.

Fewer than `ENOUGH` rows are behind the jump that cuts. So parts of a run tell their latest rows alone, and these are
merged; event-time panes in arrival order let rows vote instead (`windowing.clock.watermark.Belief`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..clock.watermark import ENOUGH
from ..columns.arrays import ClockValue, Ints, Mask, Measures, combined, measures, overflows, scale_of
from ..planning.plan import Plan

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class LatestRows:
    """The latest rows of some, `ENOUGH` at most.

    ``values``: their clock or event time in measures, descending.
    ``pos``: their arrival positions.
    """

    values: tuple[ClockValue, ...] = ()
    pos: tuple[int, ...] = ()

    def take(self, count: int) -> LatestRows:
        return LatestRows(self.values[:count], self.pos[:count])

    @property
    def jump(self) -> int:
        """How many of them are behind the largest jump among them; 0 where there is one row, or none."""
        return 1 + int(np.argmax([one - next for one, next in pairwise(self.values)])) if len(self.pos) > 1 else 0

    @property
    def ahead(self) -> RowsAhead:
        """These rows as ahead of their time."""
        if not self.pos:
            return RowsAhead()
        first = int(np.argmin(self.pos))
        return RowsAhead(len(self.pos), self.pos[first], self.values[first])


@dataclass(frozen=True, slots=True)
class RowsAhead:
    """How many rows were ahead of their time.

    ``pos``, ``value``: the arrival position of the first of them, and its clock or event time; None: there is none.
    """

    rows: int = 0
    pos: int | None = None
    value: ClockValue | None = None

    def __add__(self, other: RowsAhead) -> RowsAhead:
        is_first = other.pos is None or (self.pos is not None and self.pos < other.pos)
        first = self if is_first else other
        return RowsAhead(self.rows + other.rows, first.pos, first.value)


def latest_rows(values: Measures, pos: Ints) -> LatestRows:
    """Return the latest of n rows. ``values``: no NaN. ``pos``: int64 (n,)."""
    whole, picks = len(values) // _BLOCK * _BLOCK, np.arange(len(values))
    if whole > ENOUGH * _BLOCK:  # few blocks have the largest values: the others are looked at once
        blocks = np.argpartition(values[:whole].reshape(-1, _BLOCK).max(axis=1), -ENOUGH)[-ENOUGH:]
        picks = np.append((blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel(), picks[whole:])
    picks = picks[np.lexsort((-pos[picks], values[picks]))[::-1][:ENOUGH]]
    return LatestRows(tuple(values[picks].tolist()), tuple(pos[picks].tolist()))


def merge_latest(parts: Iterable[LatestRows]) -> LatestRows:
    """Return the latest rows of all parts."""
    rows = sorted((-value, pos) for part in parts for value, pos in zip(part.values, part.pos, strict=True))[:ENOUGH]
    return LatestRows(tuple(-value for value, _ in rows), tuple(pos for _, pos in rows))


def clocks(plan: Plan, rows: pa.RecordBatch) -> tuple[Measures, Mask]:
    """Return the first order column in measures, and for which rows it has a value that 64 bits hold, bool (n,)."""
    column = combined(rows.column(plan.order.columns[0]))
    values, is_known = measures(column), column.is_valid().to_numpy(zero_copy_only=False)
    if (is_overflow := overflows(column)) is not None:
        is_known = is_known & ~is_overflow
    return values, is_known & ~np.isnan(values) if values.dtype.kind == "f" else is_known


def cut_of(plan: Plan, position: pa.Table | None, latest: LatestRows) -> ClockValue | None:
    """Return the clock behind which all rows of a run are ahead, in measures; None: no row is.

    ``position``: as in `Registers`. ``latest``: of the valid rows that do not sort before it.
    """
    name, before = plan.order.columns[0], None
    dtype = plan.projection.schema.field(name).type
    if position is not None:
        before = measures(combined(position.column(name)).cast(dtype))[0].item()
    rows = [*reversed(latest.values)]
    if len(rows) == ENOUGH:  # enough to believe the first of them, whatever the jump before it
        before = rows.pop(0)
    for value in rows:
        if before is not None and is_farther(plan.options.max_ahead, dtype, before, value):
            return before
        before = value
    return None


def is_farther(amount: Fraction | None, dtype: pa.DataType, before: ClockValue, value: ClockValue) -> bool:
    """Whether a measure of a column of type ``dtype`` is more than an amount of seconds behind another one."""
    assert amount is not None
    scale = scale_of(dtype)
    return value > before + (float(amount) if scale.per_second is None else scale.floor(amount))


def is_ahead(plan: Plan, rows: pa.RecordBatch, cut: ClockValue | None) -> Mask:
    """Return which rows are behind a cut, bool (n,). ``rows``: with the first order column."""
    if cut is None:
        return np.zeros(rows.num_rows, np.bool_)
    values, is_known = clocks(plan, rows)
    return is_known & (values > cut)
