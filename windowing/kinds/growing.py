"""Growing windows as a kind: windows of the clock that come out at each step as far as they have come (section 2).

A window is a stretch of a grid of ticks, and its panes are its first rows:

    time(6) every 2     0     2     4     6
    rows                  a b     c           d
    panes               [ a b ]                      tick 2, trigger
                        [ a b     c ]                tick 4, trigger
                        [ a b     c     ]            tick 6, time
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..clock.grids import AnyGrid, CalendarGrid, RightClosed, clock_cell, stepped
from ..clock.interval_grid import time_grid
from ..columns.arrays import Ints, Mask
from ..errors import DataError
from ..language.spec import Calendar, Growing, Time, Tumbling
from ..language.tokens import duration
from ..rows.marks import Marks
from ..rows.membership import Ranges, memberships_of
from ..rows.panes import AT_END, BY_TICK, Panes, reason
from ..rows.sequence import Sequences, change_starts
from ..support.jit import kernel
from .context import NEVER, RowSteps, Signals, WindowContext, after_rows, steps_of_rows
from .contract import WindowKind
from .facts import Fact, KeyPane
from .key_lifetimes import Lifetimes
from .needs import Needs, PaneTimes
from .sliding_triggers import MOST_TICKS
from .tumbling.clock_policies import ClockPolicy, DatedPolicy, TimePolicy

_UNIT_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}


@kernel
def _ends(cell: Ints, lo: Ints, hi: Ints, counts: Ints, panes: int) -> Ints:
    """Return the end of the rows of each pane, int64 (panes,): window after window, each has ``counts`` of them.

    ``cell``: that of each row. The first pane of a window shows the rows of the cell of its first row.
    """
    out = np.empty(panes, np.int64)
    p = 0
    for w in range(len(lo)):
        row, tick = lo[w], cell[lo[w]]
        for _ in range(counts[w]):
            # invariant: all rows of the window before ``row`` are before ``tick``
            tick += 1
            while row < hi[w] and cell[row] < tick:
                row += 1
            out[p] = row
            p += 1
    return out


@dataclass(frozen=True, slots=True)
class _Ticks:
    """The ticks of growing windows over the rows of some sequences.

    ``grid``: its lower bounds are the ticks.
    ``cells``: int64 (n,), the cell of each row.
    ``windows``: how many cells a window has, or the first cells of the windows, ascending, and the end of the last.
    """

    grid: AnyGrid
    cells: Ints
    windows: int | Ints

    def window(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return the first cell of the window that holds each cell, and the first behind it."""
        if isinstance(self.windows, int):
            first = cells - cells % self.windows
            return first, first + self.windows
        place = np.searchsorted(self.windows, cells, side="right")
        return self.windows[place - 1], self.windows[place]


@dataclass(frozen=True, slots=True)
class GrowingKind(WindowKind):
    """A growing window. ``policy``: its windows for ``calendar``, its steps for ``time``."""

    spec: Tumbling
    growing: Growing
    policy: ClockPolicy
    needs: Needs

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        return self.policy.times(clock, origin)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes. Raises `DataError` for more than 50 million."""
        ticks, now = self._ticks(sequences, context)
        cells, bounds = ticks.cells, sequences.bounds
        lo = change_starts(bounds, ticks.window(cells)[0])
        hi = np.append(lo[1:], len(sequences))[: len(lo)]
        start, stop = ticks.window(cells[lo])
        # ticks up to the clock, and the end of the data for a window that is open there
        counts = np.minimum(stop, now) - cells[lo] + (stop > now)
        if np.minimum(counts, MOST_TICKS + 1).sum() > MOST_TICKS:
            raise DataError(f"{self.growing} would bring out more than {MOST_TICKS:,} panes", "use a longer step")
        panes, key = int(counts.sum()), np.searchsorted(bounds, lo, side="right") - 1
        of = np.repeat(np.arange(len(lo)), counts)
        step = np.arange(panes) - np.repeat(np.cumsum(counts) - counts, counts)
        tick, is_last = cells[lo][of] + 1 + step, step + 1 == counts[of]
        is_end = is_last & (stop[of] > now)
        tick[is_end] = stop[of[is_end]]
        key = key[of]
        first = np.searchsorted(key, np.arange(len(bounds) - 1))
        closed_by = np.where(is_end, reason("end"), np.where(is_last, reason("time"), reason("trigger")))
        end = ticks.grid.bounds(tick)
        panes_of_keys = Panes(
            key,
            np.arange(panes) - first[key],
            Ranges(lo[of], _ends(cells, lo, hi, counts, panes), bounds[key], False),
            np.where(is_end, AT_END, BY_TICK),
            closed_by.astype(np.int8),
            ticks.grid.bounds(start[of]),
            end,
            at=end,
        )
        return panes_of_keys, signals.marks

    def _ticks(self, sequences: Sequences, context: WindowContext) -> tuple[_Ticks, int]:
        """Return the ticks, and the cell of the clock."""
        values, grid = self.policy.values_and_grid(sequences, context)
        cells, kind = grid.cells(values), sequences.rows.column(sequences.order[0]).type
        if isinstance(self.growing.window, Time):
            whole = self.growing.window.seconds
            time_grid(kind, whole, context.origin).instants(values)  # raises where the end of a window is none
            windows: int | Ints = int(whole / self.growing.every)
        else:
            units = grid.grid if isinstance(grid, RightClosed) else grid
            assert isinstance(units, CalendarGrid)
            held = np.unique(cells[change_starts(sequences.bounds, cells)])
            steps, windows = stepped(units, kind, int(self.growing.every), held)
            grid = RightClosed(steps) if isinstance(grid, RightClosed) else steps
            cells = grid.cells(values)
        return _Ticks(grid, cells, windows), clock_cell(grid, values, context.clock) if len(values) else 0

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Rows enter one by one, and leave after the pane of the end of their window."""
        steps, leaving = steps_of_rows(after_rows(panes), len(sequences)), np.full(len(sequences), NEVER)
        shown = memberships_of(panes.membership)
        last = shown.leave - 1
        leaving[shown.row] = np.where(panes.closed_by[last] == reason("time"), last, NEVER)
        return RowSteps(steps.place, steps.stepping, steps.driven, steps.entering, leaving)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        return self._ticks(sequences, context)[0].cells

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of the windows that are open."""
        ticks, now = self._ticks(sequences, context)
        return ticks.window(ticks.cells)[1] > now

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        yield from pane.oldest_row()
        at = pane.head_text("_at" if "_at" in pane.head.column_names else "window_end")
        begin, numbers = pane.head_text("window_start"), {"end": at}
        if pane.closed_by == "end":
            yield pane.by_end()
        elif pane.closed_by == "time":
            text = f"the clock reached {at}, where it ends; its rows are from {begin}"
            yield Fact("closed", text, None, "time", numbers)
        else:
            step = duration(self.growing.every)
            text = f"the clock reached {at}, one of the steps of {step} in the window that begins at {begin}"
            yield Fact("closed", text, None, "trigger", numbers)
        yield from self.policy.near(pane, pane.closed_by == "time")
        yield from pane.changes()


def growing_kind(spec: Tumbling) -> GrowingKind:
    """Return a growing window as a kind."""
    growing = spec.policy
    assert isinstance(growing, Growing)
    window = growing.window
    policy: ClockPolicy = DatedPolicy(window) if isinstance(window, Calendar) else TimePolicy(Time(growing.every))
    length = window.seconds if isinstance(window, Time) else Fraction(_UNIT_DAYS[window.unit] * 86_400)
    needs = Needs(
        clock=True,
        dated=policy.needs.dated,
        zones=growing.zones,
        causes="ticks",
        partitioned=spec.partitioned,
        options=policy.needs.options - {"empty", "ends"},
        unfit={"empty": "every", "ends": "every"},
        cells=True,
        rows_out_per_row=max(Fraction(1), length / growing.every),
    )
    return GrowingKind(spec, growing, policy, needs)
