"""What a scan is told besides the window itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..columns.arrays import ClockValue, Ints
from ..state.window_state import RestoredState


@dataclass(frozen=True, slots=True)
class WindowContext:
    """Options and the clock, as the kinds of windows see them.

    ``clock``: where the one clock stands, in measures of the clock column; None: at the largest value here.
    ``since``: where it stood before the first row, so that ticks before that row come too; None: there are none.
    ``origin``: of the time grid, in seconds. ``empty``: ``skip``, ``mark`` or ``row`` (section 2).
    ``partial``: whether sliding windows come out before they are full (section 3). ``event_time``: the column that
    event-time panes go by (section 5). ``emit_evicted``: whether the windows of evicted keys come
    out (section 4). ``last_tick``: int64 (K,), the number of the last tick that may find each key,
    where partition eviction ends some before the clock does (section 4). ``hold``: the end of the rows is not the end
    of the data. ``past``: what came before the rows that are new; None: nothing.
    """

    clock: ClockValue | None = None
    since: ClockValue | None = None
    origin: Fraction = Fraction(0)
    empty: str = "skip"
    partial: bool = False
    event_time: str | None = None
    emit_evicted: bool = False
    last_tick: Ints | None = None
    hold: bool = False
    restored: RestoredState | None = None
