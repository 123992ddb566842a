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
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..clock.grids import AnyGrid, CalendarGrid, RightClosed, clock_cell, stepped
from ..columns.arrays import Ints, Mask
from ..errors import DataError
from ..language.spec import Growing, Time, Tumbling
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
from .sliding_triggers import MOST_TICKS, spread
from .tumbling.clock_policies import CLOCK_POLICIES, ClockPolicy, TimePolicy

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
    """The ticks of growing windows over n rows.

    ``grid``: its lower bounds are the ticks.
    ``cells``: int64 (n,), the cell of each row.
    ``windows``: int64 (n,), the window of each row.
    ``steps``: how many cells each window has, or the first cells of windows, and the end of the last.
    ``now``: the cell of the clock.
    """

    grid: AnyGrid
    cells: Ints
    windows: Ints
    steps: int | Ints
    now: int

    def first(self, windows: Ints) -> Ints:
        """Return the first cell of windows; that of the next is the end of a window."""
        return windows * self.steps if isinstance(self.steps, int) else self.steps[windows]


@dataclass(frozen=True, slots=True)
class GrowingKind(WindowKind):
    """A growing window. ``policy``: of the windows that it makes in the end."""

    growing: Growing
    policy: ClockPolicy
    needs: Needs

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        return (self._steps if isinstance(self.growing.window, Time) else self.policy).times(clock, origin)

    @property
    def _steps(self) -> TimePolicy:
        """The policy whose windows are the steps of ``time``."""
        return TimePolicy(Time(self.growing.every))

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes. Raises `DataError` for more than 50 million."""
        ticks, bounds = self._ticks(sequences, context), sequences.bounds
        lo = change_starts(bounds, ticks.windows)
        hi = np.append(lo[1:], len(sequences))[: len(lo)]
        cell, start, stop = ticks.cells[lo], ticks.first(ticks.windows[lo]), ticks.first(ticks.windows[lo] + 1)
        is_open = stop > ticks.now
        # one for each tick up to the clock, and one at the end of the data
        counts = np.minimum(stop, ticks.now) - cell + is_open
        if np.minimum(counts, MOST_TICKS + 1).sum() > MOST_TICKS:
            raise DataError(f"{self.growing} would bring out more than {MOST_TICKS:,} panes", "use a longer step")
        of, step = spread(counts)
        is_last, is_end = step + 1 == counts[of], (step + 1 == counts[of]) & is_open[of]
        key = (np.searchsorted(bounds, lo, side="right") - 1)[of]
        why = np.where(is_end, reason("end"), np.where(is_last, reason("time"), reason("trigger")))
        end = ticks.grid.bounds(np.where(is_last, stop[of], cell[of] + step + 1))
        panes = Panes(
            key,
            np.arange(len(key)) - np.searchsorted(key, np.arange(len(bounds) - 1))[key],
            Ranges(lo[of], _ends(ticks.cells, lo, hi, counts, len(of)), bounds[key], False),
            np.where(is_end, AT_END, BY_TICK),
            why.astype(np.int8),
            ticks.grid.bounds(start[of]),
            end,
            at=end,
        )
        return panes, signals.marks

    def _ticks(self, sequences: Sequences, context: WindowContext) -> _Ticks:
        values, units = self.policy.values_and_grid(sequences, context)
        windows = units.cells(values)  # raises where the end of a window is no instant
        if isinstance(self.growing.window, Time):
            _, grid = self._steps.values_and_grid(sequences, context)
            steps: int | Ints = int(self.growing.window.seconds / self.growing.every)
            windows = grid.cells(values) // steps  # the bounds of both grids may be rounded
        else:
            units = units.grid if isinstance(units, RightClosed) else units
            assert isinstance(units, CalendarGrid)
            windows -= units.first
            held = np.unique(windows[change_starts(sequences.bounds, windows)])
            kind = sequences.rows.column(sequences.order[0]).type
            grid, steps = stepped(units, kind, int(self.growing.every), held)
            grid = RightClosed(grid) if context.closed == "right" else grid
        now = clock_cell(grid, values, context.clock) if len(values) else 0
        return _Ticks(grid, grid.cells(values), windows, steps, now)

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Rows enter one by one, and leave after the pane of the end of their window."""
        shown, leaving = memberships_of(panes.membership), np.full(len(sequences), NEVER)
        last = shown.leave - 1
        leaving[shown.row] = np.where(panes.closed_by[last] == reason("time"), last, NEVER)
        return replace(steps_of_rows(after_rows(panes), len(sequences)), leaving=leaving)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        return self._ticks(sequences, context).cells

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of the windows that are open."""
        ticks = self._ticks(sequences, context)
        return ticks.first(ticks.windows + 1) > ticks.now

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        yield from pane.oldest_row()
        at, begin = pane.head_text("window_end"), pane.head_text("window_start")
        text = f"the clock reached {at}, where it ends; its rows are from {begin}"
        if pane.closed_by == "trigger":
            step = duration(self.growing.every)
            text = f"the clock reached {at}, one of the steps of {step} in the window that begins at {begin}"
        yield pane.by_end() if pane.closed_by == "end" else Fact("closed", text, None, pane.closed_by, {"end": at})
        yield from self.policy.near(pane, pane.closed_by == "time")
        yield from pane.changes()


def growing_kind(spec: Tumbling) -> GrowingKind:
    """Return a growing window as a kind."""
    growing = spec.policy
    assert isinstance(growing, Growing)
    window = growing.window
    length = window.seconds if isinstance(window, Time) else Fraction(_UNIT_DAYS[window.unit] * 86_400)
    policy = CLOCK_POLICIES[type(window)](window)
    needs = replace(
        policy.needs,
        zones=growing.zones,
        causes="ticks",
        partitioned=spec.partitioned,
        options=policy.needs.options - {"empty", "ends"},
        unfit={"empty": "every", "ends": "every"},
        cells=True,
        rows_out_per_row=max(Fraction(1), length / growing.every),
    )
    return GrowingKind(growing, policy, needs)
