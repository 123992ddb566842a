"""All events of the window of an operator, one at a time: the table in docs/operators.md, told by hand.

For each key: insert, evict, trigger, full (section 3), gone (the key is evicted, section 4, or its operator asked for
it) and finish (section 7). ``asks`` says after which event an operator asks; the eviction comes once the calls of that
row or pane are done. Windows that begin anew are new in all but their numbers.

count(2)                 insert 1   insert 2   trigger [1 2]   evict [1 2]   insert 3 ...
sliding, count(2)        insert 1   trigger [1]   insert 2   trigger [1 2]   evict [1]   insert 3   trigger [2 3]
sliding, delta, delta    trigger (before the row that trips)   evict   insert
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from references.batched import Lot
from references.event_time import Intervals, Stamp
from references.growing import Growing
from references.sliding import Sliding, Window
from references.tumbling import Count, Delta, Key, Pane, Row, Time, Tumbling, Value

Asks = Callable[[str, Sequence[int]], bool]


class Event(NamedTuple):
    """What an operator is told, by row ids. ``pane``: number and close reason of a trigger; ``pos``: of the cause."""

    what: str
    rows: tuple[int, ...]
    pane: tuple[int | None, str | None] | None = None
    pos: int | None = None


@dataclass
class Told:
    """What the operators of all keys are told, and the rows that each holds."""

    asks: Asks = lambda *_: False
    events: dict[Key, list[Event]] = field(default_factory=lambda: defaultdict(list))
    held: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    alive: set[Key] = field(default_factory=set)
    asked: set[Key] = field(default_factory=set)

    def tell(self, key: Key, event: Event) -> None:
        self.alive.add(key)
        self.events[key].append(event)
        if self.asks(event.what, event.rows):
            self.asked.add(key)

    def heed(self, key: Key, open_rows: dict[Key, Any]) -> None:
        """Let a key go whose operator has asked for it, with the rows of its open window."""
        if key in self.asked:
            self.go(key)
            open_rows.pop(key, None)

    def insert(self, key: Key, row: int, pos: int | None) -> None:
        self.held[key].append(row)
        self.tell(key, Event("insert", (row,), None, pos))

    def evict(self, key: Key, rows: Sequence[int], pos: int | None) -> None:
        if rows:
            self.held[key] = [row for row in self.held[key] if row not in rows]
            self.tell(key, Event("evict", tuple(rows), None, pos))

    def keep(self, key: Key, rows: Sequence[int], pos: int | None) -> None:
        self.evict(key, [row for row in self.held[key] if row not in rows], pos)

    def trigger(self, pane: Pane) -> None:
        if pane.key is not None:
            self.tell(pane.key, Event("trigger", pane.rows, (pane.number, pane.closed_by), pane.pos))

    def go(self, key: Key) -> None:
        """The key is evicted; an operator that was never made is not told."""
        rows = self.held.pop(key, [])
        if key in self.alive:
            self.tell(key, Event("gone", tuple(rows)))
        self.alive.discard(key)
        self.asked.discard(key)

    def finish(self) -> None:
        for key in sorted(self.alive):
            self.tell(key, Event("finish", ()))


@dataclass(kw_only=True)
class TumblingEvents(Tumbling):
    told: Told

    def put_in(self, key: Key, pos: int) -> None:
        super().put_in(key, pos)
        self.told.insert(key, pos, pos)
        self.told.heed(key, self.open_rows)

    def evict(self, keys: Sequence[Key], at: tuple[Value, ...] | None, pos: int) -> None:
        super().evict(keys, at, pos)
        for key in keys:
            self.told.go(key)

    def show(self, key: Key, rows: Sequence[int], *told: Any, **more: Any) -> None:
        super().show(key, rows, *told, **more)
        pane = self.panes[-1]
        self.told.trigger(pane)
        if pane.closed_by not in {"end", "evicted"}:
            self.told.evict(key, rows, pane.pos)
        self.told.heed(key, self.open_rows)


@dataclass(kw_only=True)
class GrowingEvents(Growing):
    """A row goes with the pane of the end of its window."""

    told: Told

    def on_row(self, pos: int) -> None:
        super().on_row(pos)
        key = self.key_of(pos)
        self.told.insert(key, pos, pos)
        self.told.heed(key, self.open_rows)

    def show(self, key: Key, rows: Sequence[int], *told: Any, **more: Any) -> None:
        super().show(key, rows, *told, **more)
        pane = self.panes[-1]
        self.told.trigger(pane)
        if pane.closed_by == "time":
            self.told.evict(key, pane.rows, pane.pos)
        self.told.heed(key, self.open_rows)


@dataclass(kw_only=True)
class SlidingEvents(Sliding):
    told: Told

    def rise(self, key: Key, row: Row, at: tuple[Value, ...] | None, pos: int) -> None:
        super().rise(key, row, at, pos)
        if key not in self.windows:  # its operator asked: the row is the first of a new window
            self.windows[key] = Window()
            super().rise(key, row, at, pos)

    def step(self, key: Key, row: Row, pos: int) -> None:
        window = self.windows[key]
        was_full = window.full
        self.make_room(window, row)
        staying = window.open_rows
        if isinstance(self.evict, Time):
            now = self.partitions.now(row[self.order[0]])
            staying = [held for held in staying if not self.outlived(held, now)]
        self.told.keep(key, staying, pos)
        if isinstance(self.evict, Delta) and window.full and not was_full:
            self.told.tell(key, Event("full", ()))
        self.insert(window, pos)
        if isinstance(self.evict, Time) and not was_full:
            self.told.tell(key, Event("full", ()))
        if pos in window.open_rows:
            self.told.insert(key, pos, pos)
        if isinstance(self.evict, Count) and window.full and not was_full and window.open_rows:
            self.told.tell(key, Event("full", ()))
        self.heed(key)

    def heed(self, key: Key) -> None:
        if key in self.told.asked:
            self.told.go(key)
            del self.windows[key]
            self.partitions.leave(key)

    def fire(self, key: Any, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        before = len(self.panes)
        super().fire(key, reason, at, pos)
        for pane in self.panes[before:]:
            if pane.mark != "only":
                self.told.keep(key, pane.rows, pos)
                self.told.trigger(pane)
                self.heed(key)

    def forget(self, keys: Sequence[Key]) -> None:
        super().forget(keys)
        for key in keys:
            self.told.go(key)


def batched_events(told: Told, lots: Sequence[Lot]) -> None:
    for lot in lots:
        assert lot.key is not None
        told.evict(lot.key, lot.left, lot.pos)
        for row in lot.entered:
            told.insert(lot.key, row, lot.pos)
        told.trigger(lot)


@dataclass(kw_only=True)
class IntervalEvents(Intervals):
    """A row goes when no row can come any more into the last interval that holds it: the discard age, rounded up to
    whole periods, behind its end. It goes after the pane that this watermark triggers, or with the key's next step."""

    told: Told
    gone: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))

    def on_row(self, pos: int) -> None:
        turned_away = len(self.late) + len(self.filtered)
        super().on_row(pos)
        if len(self.late) + len(self.filtered) == turned_away:
            key = self.key_of(pos)
            self.told.evict(key, self.gone.pop(key, []), pos)
            self.told.insert(key, pos, pos)

    def on_watermark(self, seconds: Fraction, stamp: Stamp) -> None:
        before = len(self.panes)
        super().on_watermark(seconds, stamp)
        come_out = self.panes[before:]
        closed = {row for rows in self.told.held.values() for row in rows if self.end_of(row) <= seconds}
        for number, pane in enumerate(come_out):
            assert pane.key is not None
            self.told.evict(pane.key, self.gone.pop(pane.key, []), pane.pos)
            self.told.trigger(pane)
            later = {row for other in come_out[number + 1 :] if other.key == pane.key for row in other.rows}
            self.told.evict(pane.key, [row for row in pane.rows if row in closed and row not in later], pane.pos)
        for key, rows in self.told.held.items():
            self.gone[key] = [row for row in rows if row in closed]

    def on_end(self) -> None:
        before = len(self.panes)
        super().on_end()
        for pane in self.panes[before:]:
            self.told.trigger(pane)

    def end_of(self, pos: int) -> Fraction:
        last = max(self.grid.panes_of(self.event(pos)))
        rounded = math.ceil(self.age / self.grid.period)
        more = 0 if self.order else rounded + (rounded and pa.types.is_floating(self.grid.kind))
        return self.grid.end(last + more)
