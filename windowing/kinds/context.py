"""The context of a window: the options and the clock that a kind of window needs besides its spec."""

from __future__ import annotations

from dataclasses import dataclass

from ..columns.arrays import ClockValue, Ints
from ..language.options import Options
from ..state.window_state import RestoredState


@dataclass(frozen=True, slots=True)
class WindowContext(Options):
    """The options of a window and the clock, as the kinds of window see them: never a plan.

    ``clock``: the current time of the one clock, in measures of the clock column; None: the largest value here.
    ``since``: the time of the clock before the first row, so that ticks before that row count; None: no such ticks.
    ``last_tick``: int64 (K,), the number of the last tick that may find each key, where partition eviction evicts some
        keys before the clock ends (section 4).
    ``hold``: whether the data continues after the last row.
    ``restored``: the state of an earlier run, and which rows it restored; None: no earlier run.
    ``sort``: the columns that sort rows; none: arrival order.
    ``in_event_order``: whether rows are ordered by event time, so that nothing is ever late.
    ``watched``: the attribute whose decreases are counted; None: none.
    """

    clock: ClockValue | None = None
    since: ClockValue | None = None
    last_tick: Ints | None = None
    hold: bool = False
    restored: RestoredState | None = None
    sort: tuple[str, ...] = ()
    in_event_order: bool = False
    watched: str | None = None

    @property
    def drop(self) -> bool:
        """Whether windows that are open at the end of the data are dropped; neither ``hold`` nor ``drop``: flushed."""
        return self.at_end == "drop"
