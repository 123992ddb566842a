"""Which rows lie between the panes of event time."""

from __future__ import annotations

from wincli.windowing.clock.watermark import Lateness
from wincli.windowing.columns.arrays import Mask, Measures


def is_in_no_pane(lateness: Lateness, values: Measures) -> Mask:
    """Return the rows between panes that do not meet."""
    first, last = lateness.intervals.holding(values)
    return first > last
