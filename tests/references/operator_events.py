"""All events of the window of an operator, one at a time: the table in docs/operators.md, told by hand.

For each key a list of (event, rows): insert, evict, trigger, full (sections 3), gone (the key is evicted, section 4, or
its operator asked for it) and finish (section 7). ``asks`` says after which event an operator asks; the eviction comes
once the calls of that row or pane are done. Windows that begin anew are new in all but their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from references.eviction import EvictingAnyOf, EvictingTumbling
from references.sliding import Sliding, Window
from references.tumbling import Count, Delta, Key, Row, Time, Value

Event = tuple[str, tuple[int, ...]]
Asks = Callable[[str, Sequence[int]], bool]


@dataclass
class Told:
    """What the operators of all keys are told, and the rows that each holds."""

    asks: Asks
    events: dict[Key, list[Event]] = field(default_factory=lambda: defaultdict(list))
    held: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    alive: set[Key] = field(default_factory=set)
    asked: set[Key] = field(default_factory=set)

    def tell(self, key: Key, event: str, rows: Sequence[int] = ()) -> None:
        self.alive.add(key)
        self.events[key].append((event, tuple(rows)))
        if self.asks(event, rows):
            self.asked.add(key)

    def insert(self, key: Key, row: int) -> None:
        self.held[key].append(row)
        self.tell(key, "insert", [row])

    def evict(self, key: Key, rows: Sequence[int]) -> None:
        if rows:
            self.held[key] = [row for row in self.held[key] if row not in rows]
            self.tell(key, "evict", rows)

    def go(self, key: Key) -> None:
        """The key is evicted; an operator that was never made is not told."""
        rows = self.held.pop(key, [])
        if key in self.alive:
            self.tell(key, "gone", rows)
        self.alive.discard(key)
        self.asked.discard(key)

    def finish(self) -> None:
        for key in sorted(self.alive):
            self.tell(key, "finish")


@dataclass(kw_only=True)
class TumblingEvents(EvictingTumbling):
    told: Told

    def on_row(self, pos: int) -> None:
        row, at = self.rows[pos], self.stamp(pos)
        key = tuple(row[name] for name in self.key)
        self.evict(self.partitions.aged(self.now(pos)), at, pos)
        if self.policy.before(self.rows_of(key), row):
            self.flush(key, self.policy.reason, at, pos)
        self.open_rows.setdefault(key, []).append(pos)
        self.told.insert(key, pos)
        self.partitions.insert(key, self.now(pos))
        self.heed(key)
        self.evict(self.partitions.excess(self.open_rows), at, pos)
        if key in self.open_rows and self.policy.after(self.rows_of(key)):
            self.flush(key, self.policy.reason, at, pos)

    def heed(self, key: Key) -> None:
        if key in self.told.asked:
            self.told.go(key)
            if self.open_rows.pop(key, None) is not None:
                self.partitions.leave(key)

    def evict(self, keys: Sequence[Key], at: tuple[Value, ...] | None, pos: int) -> None:
        super().evict(keys, at, pos)
        for key in keys:
            self.told.go(key)

    def flush(self, key: Key, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        super().flush(key, reason, at, pos)
        self.told.tell(key, "trigger", self.panes[-1].rows)
        if reason not in {"end", "evicted"}:
            self.told.evict(key, self.panes[-1].rows)
        self.heed(key)


@dataclass(kw_only=True)
class AnyOfEvents(EvictingAnyOf):
    told: Told

    def put_in(self, key: Key, at: Any, pos: int) -> None:
        self.told.insert(key, pos)
        super().put_in(key, at, pos)

    def evict(self, keys: Sequence[Key], at: Any, pos: int) -> None:
        super().evict(keys, at, pos)
        for key in keys:
            self.told.go(key)

    def flush(self, key: Key, reason: str, at: Any, pos: int | None) -> None:
        super().flush(key, reason, at, pos)
        self.told.tell(key, "trigger", self.panes[-1].rows)
        if reason not in {"end", "evicted"}:
            self.told.evict(key, self.panes[-1].rows)


@dataclass(slots=True, kw_only=True)
class SlidingEvents(Sliding):
    told: Told

    def on_row(self, pos: int) -> None:
        row = self.rows[pos]
        key = tuple(row[name] for name in self.key)
        at = tuple(row[name] for name in self.order) or None
        now = self.partitions.now(self.clock(pos))
        self.grow_old(now)
        self.forget(self.partitions.aged(now))
        self.windows.setdefault(key, Window())
        if isinstance(self.trigger, Delta):
            self.rise(key, row, at, pos)
            if key not in self.windows:  # its operator asked: the row is the first of a new window
                self.windows[key] = Window()
                self.rise(key, row, at, pos)
        window = self.windows[key]
        self.step(key, window, row, pos)
        if key in self.told.asked:
            self.heed(key)
            return
        self.partitions.insert(key, now)
        self.forget(self.partitions.excess({key: window.open_rows for key, window in self.windows.items()}))
        if isinstance(self.trigger, Count) and key in self.windows and window.inserted == self.trigger.n:
            self.fire(key, "trigger", at, pos)

    def step(self, key: Key, window: Window, row: Row, pos: int) -> None:
        was_full = window.full
        self.make_room(window, row)
        staying = window.open_rows
        if isinstance(self.evict, Time):
            now = self.partitions.now(row[self.order[0]])
            staying = [held for held in staying if not self.outlived(held, now)]
        self.told.evict(key, [held for held in self.told.held[key] if held not in staying])
        if isinstance(self.evict, Delta) and window.full and not was_full:
            self.told.tell(key, "full")
        self.insert(window, pos)
        if isinstance(self.evict, Time) and not was_full:
            self.told.tell(key, "full")
        if pos in window.open_rows:
            self.told.insert(key, pos)
        if isinstance(self.evict, Count) and window.full and not was_full and window.open_rows:
            self.told.tell(key, "full")

    def heed(self, key: Key) -> None:
        if key in self.told.asked:
            self.told.go(key)
            del self.windows[key]
            self.partitions.inserted.pop(key, None)

    def fire(self, key: Any, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        before = len(self.panes)
        Sliding.fire(self, key, reason, at, pos)
        for pane in self.panes[before:]:
            if pane.mark != "only":
                self.told.evict(key, [held for held in self.told.held[key] if held not in pane.rows])
                self.told.tell(key, "trigger", pane.rows)
                self.heed(key)

    def forget(self, keys: Sequence[Key]) -> None:
        Sliding.forget(self, keys)
        for key in keys:
            self.told.go(key)
