"""How many rows panes show where only their number decides that."""

from __future__ import annotations


def rows_shown(rows: int, most: int, step: int, least: int, flushes: bool) -> int:
    """Return how many rows a window of the last ``most`` rows shows at each ``step``-th row, from row ``least`` on.

    ``flushes``: whether it also triggers at the last row, if it has not done so there.
    """
    first, last = max(1, -(-least // step)), rows // step  # triggers, counted from 1
    growing = min(last, most // step)  # triggers that find at most ``most`` rows so far
    found = 0
    if growing >= first:
        found += step * (first + growing) * (growing - first + 1) // 2
    found += most * max(0, last - max(growing, first - 1))
    if flushes and rows % step and rows >= least:
        found += min(rows, most)
    return found
