"""Windows that end with the clock: ``time`` on a grid of ticks, ``calendar`` on local days, weeks, months and years."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...clock.calendar_grid import CalendarGrid, make_calendar_grid
from ...clock.tick_grid import Grid
from ...clock.values import clock_values, now, now_as_measure, time_grid
from ...columns.arrays import ClockValue, Ints, Mask, Measures, combined
from ...errors import DataError
from ...language.spec import Calendar, Time
from ...panes.panes import BY_TICK, Panes
from ...sequences.sequence import Sequences
from ..context import WindowContext
from .boundaries import change_starts, closed_by, panes_at, ranges

AnyGrid: TypeAlias = Grid | CalendarGrid
_MOST_EMPTY = 20_000_000


def timed_panes(policy: Time | Calendar, sequences: Sequences, context: WindowContext) -> Panes:
    """Return the panes of a window that ends at ticks (semantics section 2, ``time`` and ``calendar``)."""
    values, grid = clock_grid(policy, sequences, context)
    cells = grid.cells(values)
    key, number, lo, hi, _ = panes_at(sequences, change_starts(sequences.bounds, cells))
    cell = cells[lo]
    if context.empty == "row":
        key, number, lo, hi, cell = _with_empty(key, lo, hi, cell, grid)
    complete = cell < clock_cell(grid, values, context.clock) if len(values) else np.empty(0, np.bool_)
    cause, why = closed_by(complete, np.full(len(cell), BY_TICK), "time")
    start, end = grid.bounds(cell), grid.bounds(cell + 1)
    return Panes(key, number, ranges(lo, hi), cause, why, start, end, at=end)


def empty_ticks(policy: Time | Calendar, sequences: Sequences, context: WindowContext) -> pa.Array:
    """Return the instants of the ticks, from the first row to the clock, that end a cell without rows.

    With ``context.since`` the ticks between that instant and the first row count, too.
    """
    values, grid = clock_grid(policy, sequences, context)
    if not len(values):
        return grid.bounds(np.empty(0, np.int64))
    cells = np.unique(grid.cells(values))
    first = int(cells[0]) if context.since is None else clock_cell(grid, values[:0], context.since) + 1
    stop = max(clock_cell(grid, values, context.clock), first)
    _check_empty(stop - first)
    empty = np.setdiff1d(np.arange(first, stop), cells, assume_unique=True)
    return grid.bounds(empty[_lasting(grid, empty)] + 1)


def clock_grid(policy: Time | Calendar, sequences: Sequences, context: WindowContext) -> tuple[Measures, AnyGrid]:
    """Return the clock column's values, and the grid of ticks over all of them and the clock."""
    name = sequences.order[0]
    column = combined(sequences.rows.column(name))
    values = clock_values(column, name)
    if isinstance(policy, Time):
        return values, time_grid(column.type, policy.seconds, context.origin)
    dtype = pa.int64() if pa.types.is_null(column.type) else column.type
    if not len(values):
        return values, make_calendar_grid(dtype, policy, None, None)
    begins = min([values.min().item(), *([] if context.since is None else [context.since])])
    return values, make_calendar_grid(dtype, policy, begins, now(values, context.clock))


def clock_cell(grid: AnyGrid, values: Measures, clock: ClockValue | None) -> int:
    """Return the cell of the clock's current time; cells before it are complete. Needs a value or ``clock``."""
    return int(grid.cells(now_as_measure(values, clock))[0])


def _lasting(grid: AnyGrid, cells: Ints) -> Mask:
    """Return which cells hold an instant at all: a date that a time zone left out holds none."""
    return grid.lasting(cells) if isinstance(grid, CalendarGrid) else np.ones(len(cells), np.bool_)


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
    kept = _lasting(grid, cell)
    key, lo, hi, cell = key[kept], lo[kept], hi[kept], cell[kept]
    first = np.searchsorted(key, key)
    return key, np.arange(len(key)) - first, lo, hi, cell


def _check_empty(count: int) -> None:
    """Raise `DataError` for more empty windows than fit into memory, such as a grid of milliseconds over years."""
    if count > _MOST_EMPTY:
        raise DataError(f"{count:,} windows or ticks would be empty", "use a longer period, or --empty skip")
