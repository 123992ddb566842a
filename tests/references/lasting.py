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

from references.table import Pane as TablePane
from references.table import Window
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


# Windows of a table (section 17): a row is in each that shares time with it, whichever side is closed.


@dataclass(frozen=True)
class InWindow:
    """A pane of a window of a table, and for each of its rows the seconds inside and their share of its length."""

    pane: TablePane
    overlaps: tuple[Any, ...]
    shares: tuple[Any, ...]


def is_in(window: Window, start: Any, end: Any, right: bool) -> bool:
    if window.start == window.end:
        return False
    if start == end:
        return bool(window.start < start <= window.end if right else window.start <= start < window.end)
    return bool(start < window.end and window.start < end)


def lasting_in_table(
    rows: Sequence[tuple[Any, Any, Any, Any]],
    windows: Sequence[Window],
    *,
    right: bool,
    empty: str,
    flush: bool = True,
) -> list[InWindow]:
    """What comes out, by key, end, start and place in the table. ``rows``: key, start, end and name, by the clock.

    ``empty``: as of `references.table.table_panes`.
    """
    clock = max((start for _, start, _, _ in rows), default=None)
    found = []
    for at, window in enumerate(windows):
        is_complete = clock is not None and (clock > window.end if right else clock >= window.end)
        for key in dict.fromkeys([*([] if window.key is None else [window.key]), *(row[0] for row in rows)]):
            if window.key not in (None, key):
                continue
            spans = [(start, end, name) for own, start, end, name in rows if own == key]
            inside = [span for span in spans if is_in(window, span[0], span[1], right)]
            at_once = right and window.start == window.end
            behind = [start > window.end if at_once else start >= window.end for start, _, _ in spans]
            between = empty == "row" and any(behind) and not all(behind)
            if not (inside and (is_complete or flush)) and not (is_complete and (empty == "keys" or between)):
                continue
            cut = [min(end, window.end) - max(start, window.start) for start, end, _ in inside]
            lengths = [end - start for start, end, _ in inside]
            shares = [part / length if length else 1 for part, length in zip(cut, lengths, strict=True)]
            names = tuple(name for _, _, name in inside)
            pane = TablePane(key, at, names, "table" if is_complete else "end")
            found.append(InWindow(pane, tuple(cut), tuple(shares)))
    of = {id(each): windows[each.pane.window] for each in found}
    return sorted(found, key=lambda each: (each.pane.key, of[id(each)].end, of[id(each)].start, each.pane.window))
