"""Policies whose windows the clock ends: a grid of ticks, local days, weeks, months and years, or dates."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from ...clock.grids import AnyGrid, Beginnings, CalendarGrid, RightClosed, calendar_type, clock_cell, make_calendar_grid
from ...clock.interval_grid import clock_values, now
from ...clock.tick_grid import Grid
from ...columns.arrays import ClockValue, Ints, Measures, combined, measures, scale_of
from ...errors import DataError
from ...rows.marks import Marks
from ...rows.panes import BY_TICK, Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..contract import Option
from ..eviction.events import Events, tick_events
from ..eviction.evictions import NO_PLACES
from .boundaries import change_starts, closed_by, panes_at, ranges
from .policy import TumblingPolicy

_MOST_EMPTY = 20_000_000


class ClockPolicy(TumblingPolicy):
    """A policy whose windows are the cells of a grid on the clock."""

    __slots__ = ()

    needs_clock: ClassVar[bool] = True
    is_known_by_sample: ClassVar[bool] = True
    options: ClassVar[frozenset[Option]] = frozenset({"empty", "closed"})
    why: ClassVar[str] = "time"

    @abstractmethod
    def grid(
        self, dtype: pa.DataType, values: Measures, context: WindowContext, every_tick: bool = False
    ) -> Grid | CalendarGrid:
        """Return the grid over the values of a clock column, the clock, and ``context.since``.

        ``every_tick``: whether ticks that end no window count, too.
        """

    @abstractmethod
    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType:
        """Return the type of bounds on a clock column."""

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return the cells that hold rows, with ``--empty row`` also those between them (semantics section 2)."""
        values, grid = self.values_and_grid(sequences, context)
        cells = grid.cells(values)
        key, number, lo, hi, _ = panes_at(sequences, change_starts(sequences.bounds, cells))
        cell = cells[lo]
        if context.empty == "row":
            key, number, lo, hi, cell = _with_empty(key, lo, hi, cell, grid)
        complete = cell < clock_cell(grid, values, context.clock) if len(values) else np.empty(0, np.bool_)
        cause, why = closed_by(complete, np.full(len(cell), BY_TICK), self.why)
        start, end = grid.bounds(cell), grid.bounds(cell + 1)
        return Panes(key, number, ranges(lo, hi), cause, why, start, end, at=end)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the instants of the ticks, from the first row to the clock, that end a cell without rows.

        With ``context.since`` the ticks between that instant and the first row count, too.
        """
        values, grid = self.values_and_grid(sequences, context)
        if not len(values):
            return grid.bounds(np.empty(0, np.int64))
        cells = np.unique(grid.cells(values))
        first = int(cells[0]) if context.since is None else clock_cell(grid, values[:0], context.since) + 1
        stop = max(clock_cell(grid, values, context.clock), first)
        _check_empty(stop - first)
        empty = np.setdiff1d(np.arange(first, stop), cells, assume_unique=True)
        return grid.bounds(empty[grid.lasting(empty)] + 1)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the cell of each row, int64 (n,)."""
        values, grid = self.values_and_grid(sequences, context)
        return grid.cells(values)

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:  # noqa: ARG002
        """Return nothing: ticks end windows."""
        return NO_PLACES

    def events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events | None:  # noqa: ARG002
        """Return the ticks."""
        return tick_events(*self.values_and_grid(sequences, context, every_tick=True), sequences, context.clock)

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[object, object]:  # noqa: ARG002
        """Return the beginnings of the first and the last window."""
        assert panes.start is not None
        first, last = measures(panes.start.take(pa.array([0, len(panes) - 1])))
        return first, last

    def values_and_grid(
        self, sequences: Sequences, context: WindowContext, every_tick: bool = False
    ) -> tuple[Measures, AnyGrid]:
        """Return the clock column's values, and the grid over them and the clock; ``every_tick`` as in `grid`."""
        name = sequences.order[0]
        column = combined(sequences.rows.column(name))
        values = clock_values(column, name)
        grid = self.grid(column.type, values, context, every_tick or context.last_tick is not None)
        return values, RightClosed(grid) if context.closed == "right" else grid


class DatedPolicy(ClockPolicy):
    """A policy whose windows begin at dates, which are found one by one."""

    __slots__ = ()

    @property
    def is_dated(self) -> bool:
        """Yes."""
        return True

    @abstractmethod
    def beginnings(self) -> Beginnings:
        """Return the function that finds them."""

    def grid(
        self, dtype: pa.DataType, values: Measures, context: WindowContext, every_tick: bool = False
    ) -> CalendarGrid:
        """Return the windows from the first value, or ``context.since``, to the clock.

        Years without a value take no time and no memory, unless empty windows or ``every_tick`` count.
        """
        dtype = pa.int64() if pa.types.is_null(dtype) else dtype
        if not len(values):
            return make_calendar_grid(dtype, self.beginnings(), None, None)
        begins = min([values.min().item(), *([] if context.since is None else [context.since])])
        ends = cast(ClockValue, now(values, context.clock))
        holes = [] if every_tick or context.empty != "skip" else _holes(dtype, values, begins, ends)
        if context.closed == "right":  # a value on a bound is in the unit before
            begins, holes = _before(begins), [(low, _before(high)) for low, high in holes]
        return make_calendar_grid(dtype, self.beginnings(), begins, ends, holes)

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType:  # noqa: ARG002
        """Return the type of beginnings."""
        return calendar_type(pa.int64() if pa.types.is_null(clock) else clock)


def _holes(
    dtype: pa.DataType, values: Measures, begins: ClockValue, ends: ClockValue
) -> list[tuple[ClockValue, ClockValue]]:
    """Return the pairs of neighbouring values, ``begins`` and ``ends`` among them, that are years apart, ascending."""
    year = 366 * 86_400 * float(scale_of(dtype).per_second or 1)
    if ends - begins < 10 * year:  # as nearly always: distinct values are not looked for
        return []
    known = np.unique(np.append(values, np.array([begins, ends], values.dtype)))
    after = np.flatnonzero(np.diff(known.astype(np.float64)) > 2 * year)
    return [(known[at].item(), known[at + 1].item()) for at in after.tolist()]


def _before(value: ClockValue) -> ClockValue:
    """Return the largest measure of a clock column below one."""
    return value - 1 if isinstance(value, int) else float(np.nextafter(value, -np.inf))


def _with_empty(key: Ints, lo: Ints, hi: Ints, cell: Ints, grid: AnyGrid) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Insert an empty pane for every cell that a key skips, and renumber the panes."""
    same_key = key[1:] == key[:-1]
    skipped = np.where(same_key, np.diff(cell) - 1, 0)
    _check_empty(int(skipped.sum()))
    repeats = np.append(skipped, 0)[: len(key)] + 1
    source = np.repeat(np.arange(len(key)), repeats)
    step = np.arange(len(source)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    key, cell = key[source], cell[source] + step
    lo, hi = np.where(step == 0, lo[source], hi[source]), hi[source]
    kept = grid.lasting(cell)
    key, lo, hi, cell = key[kept], lo[kept], hi[kept], cell[kept]
    first = np.searchsorted(key, key)
    return key, np.arange(len(key)) - first, lo, hi, cell


def _check_empty(count: int) -> None:
    """Raise `DataError` for more empty windows than fit into memory, such as a grid of milliseconds over years."""
    if count > _MOST_EMPTY:
        raise DataError(f"{count:,} windows or ticks would be empty", "use a longer period, or --empty skip")
