"""Sliding windows once more, one event at a time (section 3): evict and trigger are each count, delta or time, or a
condition triggers (section 12).

delta(a, 2), count(1)     a   0 1 2 3 9 1 4
                              [ 1 2 3 ]         at 3, the first eviction: full
                                      [9]       at 9
                                      [9 1]     at 1
                                      [9 . 4]   at 4: 1 goes, wherever it stands
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from references.tumbling import (
    Count,
    Delta,
    Eviction,
    Key,
    Pane,
    Partitions,
    Punct,
    Row,
    Time,
    Value,
    Windows,
    in_order,
    rises_by_more,
)

SlidingPolicy: TypeAlias = Count | Delta | Time
TriggerPolicy: TypeAlias = SlidingPolicy | Punct


@dataclass(slots=True)
class Window:
    """The window of one key: the rows it holds, oldest first, and what it remembers."""

    open_rows: list[int] = field(default_factory=list)
    full: bool = False
    inserted: int = 0  # rows since the last fire
    base: Row | None = None  # what a delta trigger counts from
    newest: Row | None = None  # the row inserted last, held or not
    fell: bool = False  # whether a row was ever below the one before it


@dataclass(kw_only=True)
class Sliding(Windows):
    """The sliding windows of all keys."""

    evict: SlidingPolicy
    trigger: TriggerPolicy
    partial: bool = False
    partitions: Partitions = field(default_factory=Partitions)
    next_tick: int | None = None
    windows: dict[Key, Window] = field(default_factory=dict)

    def on_row(self, pos: int) -> None:
        row, key, at = self.rows[pos], self.key_of(pos), self.stamp(pos)
        now = self.partitions.now(self.clock(pos))
        self.grow_old(now)
        self.forget(self.partitions.aged(now))
        self.windows.setdefault(key, Window())
        if isinstance(self.trigger, Delta):
            self.rise(key, row, at, pos)
        self.step(key, row, pos)
        if key not in self.windows:  # its operator asked for its eviction
            return
        window = self.windows[key]
        self.partitions.insert(key, now)
        self.forget(self.partitions.excess({key: window.open_rows for key, window in self.windows.items()}))
        if key in self.windows and self.is_due(window, row):
            self.fire(key, "trigger", at, pos)

    def step(self, key: Key, row: Row, pos: int) -> None:
        self.make_room(self.windows[key], row)
        self.insert(self.windows[key], pos)

    def is_due(self, window: Window, row: Row) -> bool:
        match self.trigger:
            case Count(n):
                return window.inserted == n
            case Punct(condition):
                return condition is not None and condition(row)
        return False

    def grow_old(self, now: Fraction) -> None:
        """Drop the rows of all keys that are too old; a key without rows leaves the list, and keeps all else."""
        if not isinstance(self.evict, Time):
            return
        for key, window in self.windows.items():
            window.open_rows = [pos for pos in window.open_rows if not self.outlived(pos, now)]
            if not window.open_rows and key in self.partitions.inserted:
                self.partitions.leave(key)

    def rise(self, key: Key, row: Row, at: tuple[Value, ...] | None, pos: int) -> None:
        """Fire before a row that is too far above the key's first row, or the row of the last fire."""
        assert isinstance(self.trigger, Delta)
        window, name = self.windows[key], self.trigger.column
        if window.base is None:
            window.base = row
        elif rises_by_more(row[name], window.base[name], self.trigger.amount, self.trigger.kind):
            self.fire(key, "trigger", at, pos)
            window.base = row

    def make_room(self, window: Window, row: Row) -> None:
        match self.evict:
            case Count(n):
                del window.open_rows[: max(0, len(window.open_rows) + 1 - n)]
            case Delta(name):
                window.fell |= window.newest is not None and row[name] < window.newest[name]
                going = [pos for pos in window.open_rows if self.outrun(pos, row)]
                if not window.fell:  # a NaN in front stops this
                    going = list(takewhile(lambda open_rows: self.outrun(open_rows, row), window.open_rows))
                window.open_rows = [pos for pos in window.open_rows if pos not in going]
                window.full |= bool(going)

    def outrun(self, pos: int, row: Row) -> bool:
        assert isinstance(self.evict, Delta)
        name = self.evict.column
        return rises_by_more(row[name], self.rows[pos][name], self.evict.amount, self.evict.kind)

    def insert(self, window: Window, pos: int) -> None:
        if self.evict != Count(0):
            window.open_rows.append(pos)
        window.inserted += 1
        window.newest = self.rows[pos]
        match self.evict:
            case Count(n):
                window.full |= len(window.open_rows) == n
            case Time():
                window.full = True

    def ticks_until(self, value: Value) -> None:
        """Let all ticks up to a value of the clock come, except while nothing would come of them."""
        while (
            isinstance(self.trigger, Time)
            and self.next_tick is not None
            and self.trigger.tick(self.next_tick) <= self.trigger.clock(value)
        ):
            self.on_tick(self.next_tick)
            self.next_tick = self.trigger.window_of(value) if self.silent() else self.next_tick + 1

    def on_tick(self, k: int) -> None:
        assert isinstance(self.trigger, Time)
        now, at = self.trigger.tick(k), (self.trigger.result_value(k), *(None for _ in self.order[1:]))
        self.grow_old(now)
        self.forget(self.partitions.aged(now))
        for key in sorted(self.windows):
            self.fire(key, "trigger", at, -1)
        if not self.windows:
            self.nothing(at, -1)

    def on_end(self, now: Fraction) -> None:
        self.grow_old(now)
        for key in sorted(key for key, window in self.windows.items() if window.inserted):
            self.fire(key, "end", None, None)

    def fire(self, key: Key, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        """Show the window as it stands. A fire that nobody sees is one, too."""
        window = self.windows[key]
        window.inserted = 0
        if not window.open_rows:
            self.nothing(at, pos)
        elif window.full or self.partial:
            start, end = self.clock(window.open_rows[0]), self.clock(window.open_rows[-1])
            self.show(key, window.open_rows, reason, at, pos, start, end)

    def outlived(self, pos: int, now: Fraction) -> bool:
        """Whether a row is more than the evicted age before ``now``; float clocks are subtracted as floats."""
        assert isinstance(self.evict, Time)
        then = self.evict.clock(self.clock(pos))
        if pa.types.is_floating(self.evict.kind):
            return float(now) - float(then) > float(self.evict.length)
        return now - then > self.evict.length

    def nothing(self, at: tuple[Value, ...] | None, pos: int | None) -> None:
        if self.partial and not self.key:
            self.show_mark(at, pos)

    def forget(self, keys: Sequence[Key]) -> None:
        for key in keys:
            del self.windows[key]
            self.partitions.leave(key)

    def silent(self) -> bool:
        """Whether ticks do nothing until the next row."""
        holds = any(window.open_rows for window in self.windows.values())
        return not holds and not (self.partial and not self.key)


def sliding(
    rows: Mapping[int, Row],
    evict: SlidingPolicy,
    trigger: TriggerPolicy,
    *,
    eviction: Eviction | None = None,
    kind: pa.DataType | None = None,
    clock: Value | None = None,
    since: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
    **window: Any,
) -> list[Pane]:
    """Return the panes of ``rows`` (by arrival position) in the order in which they come out.

    ``order``: the order columns, none for arrival; the clock is the first, and ``kind`` its type where only the ages
    of ``eviction`` need it. ``clock``: where the clock stands at the end if later than the last row; ``since``: after
    which instant it ticks if earlier than the first row; both in the clock column's own terms. ``window``: the others
    of `Sliding`.
    """
    kind = next((policy.kind for policy in (evict, trigger) if isinstance(policy, Time)), kind)
    own = Sliding(rows=rows, evict=evict, trigger=trigger, partitions=Partitions(eviction, kind), **window)
    return play(own, clock, since, at_end).panes


def play(
    window: Sliding,
    clock: Value | None = None,
    since: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
) -> Sliding:
    """Let a window see all its rows and the ticks."""
    timed = window.partitions.clock is not None
    instants = [row[window.order[0]] for row in window.rows.values()] if timed else []
    begins = [*instants, *([] if since is None else [since])]
    end = max([*instants, *([] if clock is None else [clock])], default=None)
    if isinstance(window.trigger, Time) and begins:
        window.next_tick = window.trigger.window_of(min(begins))
    for pos in in_order(window.rows, window.order):
        window.ticks_until(window.clock(pos))
        window.on_row(pos)
    window.ticks_until(end)
    if at_end == "flush" and window.rows:
        window.on_end(window.partitions.now(end))
    return window
