"""Policies whose windows the clock ends: a grid of ticks, local days, weeks, months and years, or dates."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, ClassVar, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...clock.grids import (
    AnyGrid,
    Beginnings,
    CalendarGrid,
    RightClosed,
    calendar_beginnings,
    calendar_type,
    clock_cell,
    cycles_to,
    make_calendar_grid,
)
from ...clock.interval_grid import clock_values, now, time_grid
from ...clock.tick_grid import Grid
from ...columns.arrays import ClockValue, Ints, Mask, Measures, combined, scale_of
from ...errors import DataError
from ...language.clock_policies import Cron, zone_of
from ...language.spec import Calendar, Time
from ...rows.membership import ranges
from ...rows.panes import AT_END, BY_TICK, Panes, reason
from ...rows.sequence import Sequences, change_starts
from ...support.jit import kernel
from ..context import WindowContext
from ..facts import Fact, KeyPane, amount_text
from ..needs import Needs, PaneTimes
from .policy import TumblingPolicy

_MOST_EMPTY = 20_000_000


class ClockPolicy(TumblingPolicy):
    """A policy whose windows are the cells of a grid on the clock."""

    neighbours_decide: ClassVar[bool] = True
    is_known_by_sample: ClassVar[bool] = True
    why: ClassVar[str] = "time"

    @property
    def needs(self) -> Needs:
        return Needs(clock=True, options=frozenset({"empty", "closed", "ends"}))

    @abstractmethod
    def grid(self, dtype: pa.DataType, values: Measures, context: WindowContext) -> Grid | CalendarGrid:
        """Return the grid over the values of a clock column, the clock, and ``context.since``."""

    @abstractmethod
    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        """Return the times of its panes on a clock column of this type: bounds are instants."""

    def near(self, pane: KeyPane, ended: bool) -> Iterator[Fact]:
        order, last = pane.sequences.order[0], int(pane.rows[-1])
        yield Fact("near", f"its last row is at {pane.text(order, last)}", pane.pos(last), "time")
        if pane.next_row is not None:
            apart = pane.distance(order, pane.next_row, last)
            amount = amount_text(pane.column(order).type, apart)
            text = f"the next row of its key is {amount} after its last row, {pane.name(pane.next_row)}"
            yield pane.near(text, pane.next_row, "time", apart)

    # --- windows of one such policy: nothing but the clock ends them

    def panes(self, sequences: Sequences, context: WindowContext) -> Panes:
        """Return the panes, including those that only the end of the data closes."""
        values, grid = self.values_and_grid(sequences, context)
        cells = grid.cells(values)
        lo = change_starts(sequences.bounds, cells)
        key, number, hi = _windows_at(sequences.bounds, lo, len(sequences))
        cell = cells[lo]
        if context.empty == "row":
            key, number, lo, hi, cell = _with_empty(key, lo, hi, cell, grid)
        complete = cell < clock_cell(grid, values, context.clock) if len(values) else np.empty(0, np.bool_)
        cause, closed_by = causes_by_clock(complete, np.int8(reason(self.why)), np.int8(reason("end")))
        start, end = grid.bounds(cell), grid.bounds(cell + 1)
        return Panes(key, number, ranges(lo, hi), cause, closed_by, start, end, at=end)

    def windows_between(self, pair: Sequences, context: WindowContext) -> int:
        """Return how many windows begin at the second of two neighbouring rows, or before it without rows."""
        values, grid = self.values_and_grid(pair, context)
        cells, row = grid.cells(values), np.arange(2)
        if cells[0] == cells[1] or context.empty != "row":
            return int(cells[0] != cells[1])
        return len(_with_empty(np.zeros(2, np.int64), row, row + 1, cells, grid)[0]) - 1

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the instants of the ticks, from the first row to the clock, that end a cell without rows.

        With ``context.since`` the ticks between that instant and the first row count, too.
        """
        values, grid = self.values_and_grid(sequences, context)
        begin = None if context.since is None else clock_cell(grid, values[:0], context.since) + 1
        return ticks_without(np.unique(grid.cells(values)), grid, values, begin, context.clock)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        values, grid = self.values_and_grid(sequences, context)
        return grid.cells(values)

    def values_and_grid(self, sequences: Sequences, context: WindowContext) -> tuple[Measures, AnyGrid]:
        """Return the clock column's values, and the grid over them and the clock."""
        name = sequences.order[0]
        column = combined(sequences.rows.column(name))
        values = clock_values(column, name)
        grid = self.grid(column.type, values, context)
        return values, RightClosed(grid) if context.closed == "right" else grid


class TimePolicy(ClockPolicy):
    """``time(duration)``: windows on a grid of ticks."""

    value: Time

    @property
    def needs(self) -> Needs:
        return Needs(clock=True, options=frozenset({"empty", "origin", "closed", "ends"}))

    def grid(self, dtype: pa.DataType, values: Measures, context: WindowContext) -> Grid:
        return time_grid(dtype, self.value.seconds, context.origin)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        grid = time_grid(clock, self.value.seconds, origin)
        return PaneTimes(grid.type, grid.type, grid)


class DatedPolicy(ClockPolicy):
    """``calendar(unit, tz, at)`` and ``cron(expression, tz)``: windows begin at dates, which are found one by one."""

    value: Calendar | Cron

    @property
    def why(self) -> str:  # type: ignore[override]
        return "cron" if isinstance(self.value, Cron) else "time"

    @property
    def needs(self) -> Needs:
        return Needs(clock=True, dated=True, options=frozenset({"empty", "closed", "ends"}))

    def beginnings(self) -> Beginnings:
        """Return the function that finds them. Raises `ConfigError` for an unknown zone."""
        if isinstance(self.value, Calendar):
            return calendar_beginnings(self.value)
        zone_of(self.value.tz)
        return partial(_instants, self.value)

    def grid(self, dtype: pa.DataType, values: Measures, context: WindowContext) -> CalendarGrid:
        """Return the windows from the first value, or ``context.since``, to the clock.

        Years without a value take no time and no memory, unless empty windows count.
        """
        dtype = pa.int64() if pa.types.is_null(dtype) else dtype
        if not len(values):
            return make_calendar_grid(dtype, self.beginnings(), None, None)
        begins = min([values.min().item(), *([] if context.since is None else [context.since])])
        ends = cast(ClockValue, now(values, context.clock))
        holes = [] if context.empty != "skip" else _holes(dtype, values, begins, ends)
        if context.closed == "right":  # a value on a bound is in the unit before
            begins, holes = _before(begins), [(low, _before(high)) for low, high in holes]
        return make_calendar_grid(dtype, self.beginnings(), begins, ends, holes)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        dtype = calendar_type(pa.int64() if pa.types.is_null(clock) else clock)
        return PaneTimes(dtype, dtype)


CLOCK_POLICIES: Final[Mapping[type, Callable[[Any], ClockPolicy]]] = {
    Time: TimePolicy,
    Calendar: DatedPolicy,
    Cron: DatedPolicy,
}
"""The policies of this module by the type of their value in the language."""


def _holes(
    dtype: pa.DataType, values: Measures, begins: ClockValue, ends: ClockValue
) -> list[tuple[ClockValue, ClockValue]]:
    year = 366 * 86_400 * float(scale_of(dtype).per_second or 1)
    if ends - begins < 10 * year:  # as nearly always: distinct values are not looked for
        return []
    known = np.unique(np.append(values, np.array([begins, ends], values.dtype)))
    after = np.flatnonzero(np.diff(known.astype(np.float64)) > 2 * year)
    return [(known[at].item(), known[at + 1].item()) for at in after.tolist()]


def _before(value: ClockValue) -> ClockValue:
    return value - 1 if isinstance(value, int) else float(np.nextafter(value, -np.inf))


def ticks_without(
    cells: Ints, grid: AnyGrid, values: Measures, begin: int | None, clock: ClockValue | None
) -> pa.Array:
    """Return the instants of the ticks, up to the clock, that end a cell which is not among ``cells``, ascending.

    ``values``: those of the clock column, of all rows. ``begin``: the first cell; None: that of the first row.
    """
    if not len(values):
        return grid.bounds(np.empty(0, np.int64))
    first = int(cells[0]) if begin is None else begin
    stop = max(clock_cell(grid, values, clock), first)
    _check_empty(stop - first)
    empty = np.setdiff1d(np.arange(first, stop), cells, assume_unique=True)
    return grid.bounds(empty[grid.lasting(empty)] + 1)


@kernel
def _windows_at(bounds: Ints, starts: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Return key, number and end of the windows that start at rows."""
    # one loop over keys and windows, both ascending: with a key for each few rows, searches took twice as long
    key, number, hi = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    p = 0
    for k in range(len(bounds) - 1):
        first = p
        while p < len(starts) and starts[p] < bounds[k + 1]:
            key[p], number[p] = k, p - first
            hi[p] = starts[p + 1] if p + 1 < len(starts) else rows
            p += 1
    return key, number, hi


@kernel
def causes_by_clock(complete: Mask, why: np.int8, at_end: np.int8) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Return causes and close reasons of windows; ``complete``: which of them the clock has ended."""
    # one loop without branches: of many keys, it is random which window is the last
    causes, reasons = np.empty(len(complete), np.int64), np.empty(len(complete), np.int8)
    for p in range(len(complete)):
        causes[p] = BY_TICK if complete[p] else AT_END
        reasons[p] = why if complete[p] else at_end
    return causes, reasons


def _with_empty(key: Ints, lo: Ints, hi: Ints, cell: Ints, grid: AnyGrid) -> tuple[Ints, Ints, Ints, Ints, Ints]:
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
    if count > _MOST_EMPTY:
        raise DataError(f"{count:,} windows or ticks would be empty", "use a longer period, or --empty skip")


# The instants of a cron expression, as Debian's cron has them.


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)
_MOST = 5_000_000  # instants of one grid: at every minute nearly ten years
_BACK = (2, 40, 400, 3_000, 18_000)  # days before the first value in which the instant before it may be


def _instants(value: Cron, low: int, high: int) -> tuple[int, list[int]]:
    """Return 0, and the instants in epoch seconds, from the last at or before ``low`` to the first after ``high``.

    Raises `DataError` for too many of them, and where there is none before ``low``.
    """
    begins = [_last_until(value, low)]
    for instant in instants_after(value, begins[0]):
        begins.append(instant)
        if instant > high:
            return 0, begins
        if len(begins) > _MOST:
            raise DataError(f"{value} has more than {_MOST:,} instants in the input", "use time(..) for short windows")
    raise DataError(f"{value} has no instant after the last row", "leave such rows out")


@lru_cache(maxsize=64)  # slices, segments and runs ask again, each for 2,000 steps where there is one at every minute
def _last_until(value: Cron, low: int) -> int:
    """Return the last instant at or before a second: searched forwards, as cron goes, from further and further back."""
    for days in _BACK:
        before = list(takewhile(lambda instant: instant <= low, instants_after(value, low - days * 86_400)))
        if before:
            return before[-1]
    raise DataError(f"{value} has no instant before the first row", "leave such rows out")


def instants_after(value: Cron, instant: int) -> Iterator[int]:
    """Yield the instants of a cron expression after one, in epoch seconds."""
    from cronsim import CronSim  # noqa: PLC0415 - few windows need it

    while True:
        moved = cycles_to(instant)
        start = (_EPOCH + dt.timedelta(seconds=instant + moved)).astimezone(zone_of(value.tz))
        for local in CronSim(value.expression, start):
            found = (local - _EPOCH) // _SECOND - moved
            if found > instant:  # where the clocks jump, the instants they leave out are one
                instant = found
                yield found
            if cycles_to(instant) != moved:
                break
        else:
            return
