"""Windows of a table, row at a time, as section 17 of the semantics reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Window:
    """A row of the table. ``key``: the key that it is for; None: every key."""

    start: Any
    end: Any
    key: Any = None


@dataclass(frozen=True)
class Pane:
    """What comes out: the key, the place of the window in the table, its rows, and why."""

    key: Any
    window: int
    rows: tuple[Any, ...]
    closed_by: str


def table_panes(
    rows: Sequence[tuple[Any, Any, Any]], windows: Sequence[Window], *, right: bool, empty: str, flush: bool = True
) -> list[Pane]:
    """Return what comes out, by key, end, start and place in the table.

    ``rows``: key, clock and name of each, by the clock. ``empty``: ``skip``, ``row``, or ``keys`` where the table names
    whole keys.
    """
    held: dict[tuple[int, Any], list[Any]] = {}
    last: dict[Any, Any] = {}
    waiting: list[tuple[int, Any]] = []
    out: list[Pane] = []
    done: set[int] = set()

    def is_complete(window: Window, clock: Any) -> bool:
        return bool(clock > window.end if right else clock >= window.end)

    def holds(window: Window, clock: Any) -> bool:
        return bool(window.start < clock <= window.end if right else window.start <= clock < window.end)

    def advance(clock: Any) -> None:
        for at, window in enumerate(windows):
            if at in done or not is_complete(window, clock):
                continue
            done.add(at)
            keys = [window.key] if window.key is not None else [*last]
            for key in dict.fromkeys([*keys, *(key for place, key in held if place == at)]):
                if (at, key) in held:
                    out.append(Pane(key, at, tuple(held.pop((at, key))), "table"))
                elif empty == "keys":
                    out.append(Pane(key, at, (), "table"))
                elif empty == "row" and key in last and _is_before(last[key], window):
                    waiting.append((at, key))  # it comes out if the key has a row behind it

    def _is_before(clock: Any, window: Window) -> bool:
        return bool(clock <= window.start if right else clock < window.start)

    for key, clock, name in rows:
        advance(clock)
        out += [Pane(key, at, (), "table") for at, own in waiting if own == key]
        waiting[:] = [each for each in waiting if each[1] != key]
        last[key] = clock
        for at, window in enumerate(windows):
            if window.key in (None, key) and holds(window, clock):
                held.setdefault((at, key), []).append(name)
    if flush:
        out += [Pane(key, at, tuple(names), "end") for (at, key), names in held.items()]
    return sorted(out, key=lambda pane: (pane.key, windows[pane.window].end, windows[pane.window].start, pane.window))
