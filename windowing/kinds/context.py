"""The context of a window: the options and the clock that a kind of window needs besides its spec."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.interval_grid import instants_at
from ..clock.watermark import NO_LEVEL, Watermarks
from ..columns.arrays import ClockValue, Ints, Mask
from ..enrichment.window_table import WindowTable
from ..language.options import Options
from ..rows.marks import Marks
from ..rows.membership import Ranges, edge_rows
from ..rows.pairs import PairCondition
from ..rows.panes import Panes
from ..rows.sequence import Sequences
from ..state.window_state import RestoredState
from .evictions import Evictions


@dataclass(frozen=True, slots=True)
class WindowContext(Options):
    """The options of a window and the clock, as the kinds of window see them: never a plan.

    ``clock``: the current time of the one clock, in measures of the clock column; None: the largest value here.
    ``since``: the time of the clock before the first row, so that ticks before that row count; None: no such ticks.
    ``last_tick``: int64 (K,), the number of the last tick that may find each key, where partition eviction evicts some
        keys before the clock ends (section 4).
    ``last_closed``: the last event-time pane that no row can enter any more, once the run has ended.
    ``restored``: the state of an earlier run, and which rows it restored; None: no earlier run.
    ``sort``: the columns that sort rows; none: arrival order.
    ``in_event_order``: whether columns order the rows, so that nothing is ever late and no attribute is watched.
    ``windows``: the windows of a table; None where windows are of no table.
    ``match``: the condition of pairs; None: every pair matches.
    """

    clock: ClockValue | None = None
    since: ClockValue | None = None
    last_tick: Ints | None = None
    last_closed: int = NO_LEVEL
    restored: RestoredState | None = None
    sort: tuple[str, ...] = ()
    in_event_order: bool = False
    windows: WindowTable | None = None
    match: PairCondition | None = None  # type: ignore[assignment]  # of the options, bound to columns

    @property
    def hold(self) -> bool:
        """Whether the data continues after the last row."""
        return self.at_end == "hold"


def ticks_before(at: pa.Array, context: WindowContext, sequences: Sequences, waits: bool) -> Mask:
    """Return which ticks an earlier run has seen, bool, in their shape. ``waits``: as of `Needs`."""
    if context.since is None:
        return np.zeros(len(at), np.bool_)
    # where rows at the instant of a tick enter at that tick, more of them may have come: that tick was not emitted
    compare = pc.less if waits or context.closed == "right" else pc.less_equal
    clock_before = instants_at(context.since, sequences, at.type)
    return np.asarray(compare(at, clock_before).fill_null(False).to_numpy(zero_copy_only=False))


# When rows enter and leave a window, as each kind says.
#
# `windowing.emit.operator_scenes` makes calls of operators of them.


NEVER = -1


@dataclass(frozen=True, slots=True)
class RowSteps:
    """When the n rows enter and leave, and the place of the P panes between them.

    Where rows enter one by one, a pane has a *place* among the rows of its key: rows before it have done their steps.

    ``place``: int64 (P,), the place of each pane.
    ``stepping``: bool (n,), the rows with a step of their own, at which they enter.
    ``driven``: int64 (n,), the row at whose step each leaves; n or `NEVER` where none does.
    ``entering``: int64 (n,), the pane at which each enters; `NEVER` where none does.
    ``leaving``: int64 (n,), the pane after which each leaves; `NEVER` where none does.
    ``drops_unseen``: whether rows that a pane no longer shows have left by then.
    ``outdated``: int64 (n,), the pane before which each leaves; `NEVER` where none does; None: no row does.
    ``evicted_at``: the instant of each partition eviction that a tick causes, any value for the others; None where no
        tick causes any.
    """

    place: Ints
    stepping: Mask
    driven: Ints
    entering: Ints
    leaving: Ints
    drops_unseen: bool = False
    outdated: Ints | None = None
    evicted_at: pa.Array | None = None


def steps_of_rows(place: Ints, rows: int) -> RowSteps:
    """Return steps at which all rows enter one by one and none leaves."""
    never = np.full(rows, NEVER)
    return RowSteps(place, np.ones(rows, np.bool_), never, never, never)


def after_rows(panes: Panes) -> Ints:
    """Return the place right after the newest row of each pane: a window that is not empty holds the newest row."""
    if isinstance(panes.membership, Ranges) and panes.membership.row is None:
        return panes.membership.hi
    return edge_rows(panes.membership)[1] + 1


# Signals: events that concern all keys, i.e. window marks and watermark advances (semantics sections 2 and 5).


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals in their total order.

    ``marks``: their places in the order; `windowing.rows.panes.Panes.cause` numbers them after the rows.
    ``watermarks``: the advances, where the signals are watermark advances; None: they are window marks.
    ``evictions``: partition evictions; None where there are none, or `windowing.scan.scan.scan` is to compute them
        because it has the rows of all keys.
    """

    marks: Marks
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None

    def __len__(self) -> int:
        return len(self.marks)

    def first(self, count: int) -> Signals:
        """Return the first ``count`` signals."""
        marks, watermarks = self.marks, self.watermarks
        marks = Marks(marks.rows[:count], marks.pos[:count], marks.file[:count])
        if watermarks is not None:
            watermarks = Watermarks(marks, watermarks.level[:count])
        return replace(self, marks=marks, watermarks=watermarks)


def window_marks(marks: Marks, evictions: Evictions | None = None) -> Signals:
    """Return window marks, which must be in order, as signals, with the partition evictions."""
    return Signals(marks, None, evictions)


def watermark_signals(watermarks: Watermarks) -> Signals:
    """Return watermark advances, which must be in order, as signals."""
    return Signals(watermarks.marks, watermarks)
