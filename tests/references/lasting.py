"""Rows that last, one at a time (semantics section 18), written from the semantics and not from the kernels.

row     [start, end)        it is in each window [low, high) with low < end and start < high
row     start = end         it is in the window of its instant
overlap min(end, high) - max(start, low), in seconds; share: of the length of the row, 1 where that is 0
most    at each instant: the rows with start <= instant < end, and those of length 0 that are there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from references.tumbling import Key, Pane, Row, Time, stream


@dataclass(frozen=True, slots=True)
class Inside:
    """A pane, and for each of its rows the seconds inside and their share of its length; the most rows at once."""

    pane: Pane
    overlaps: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]
    most: int


def windows_of(grid: Time, start: Any, end: Any) -> list[int]:
    """The windows that a row is in, by the ticks that end them."""
    if start == end:
        return [grid.window_of(start)]
    found, k = [], grid.tick_after(grid.clock(start))
    while grid.tick(k - 1) < grid.clock(end):
        found.append(k)
        k += 1
    return found


def most_at_once(spans: Sequence[tuple[Fraction, Fraction]]) -> int:
    def at(now: Fraction) -> int:
        return sum(start <= now < end or start == now == end for start, end in spans)

    return max((at(start) for start, _ in spans), default=0)


def lasting(
    rows: Mapping[int, Row],
    grid: Time,
    ends: str,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    clock: Any = None,
    at_end: Literal["flush", "drop"] = "flush",
) -> list[Inside]:
    """The windows of all keys. ``clock``: where the clock stands at the end; default its largest value."""
    held: dict[Key, dict[int, list[int]]] = {}
    for _, pos in stream(rows, order, ()):
        windows = held.setdefault(tuple(rows[pos][name] for name in key), {})
        for k in windows_of(grid, rows[pos][order[0]], rows[pos][ends]):
            windows.setdefault(k, []).append(pos)
    times = [row[order[0]] for row in rows.values()]
    now = max([*times, *([] if clock is None else [clock])], default=None)
    found = []
    for cells, windows in held.items():
        every = range(min(windows), max(windows) + 1) if grid.empty == "row" else sorted(windows)
        for number, k in enumerate(every):
            has_come = grid.has_come(k, now)
            if not has_come and at_end == "drop":
                continue
            start, end = grid.result_value(k - 1), grid.result_value(k)
            at, pos = ((end,), -1) if has_come else (None, None)
            why = grid.reason if has_come else "end"
            inside = tuple(windows.get(k, ()))
            spans = [(grid.clock(rows[each][order[0]]), grid.clock(rows[each][ends])) for each in inside]
            cut = [(max(low, grid.tick(k - 1)), min(high, grid.tick(k))) for low, high in spans]
            overlaps = tuple(high - low for low, high in cut)
            shares = tuple(
                Fraction(1) if high == low else part / (high - low)
                for part, (low, high) in zip(overlaps, spans, strict=True)
            )
            pane = Pane(cells, number, inside, why, at, pos, start, end)
            found.append(Inside(pane, overlaps, shares, most_at_once(cut)))
    return found
