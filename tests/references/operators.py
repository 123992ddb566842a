"""The calls of an operator, by the references: one event at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from references import batched as reference_batched
from references import event_time as reference_intervals
from references import sliding as reference_sliding
from references import tumbling as reference
from references.eviction import Partitions
from references.tumbling import Key
from support.operator_calls import Call
from support.operator_logs import Log
from wincli.windowing.language.spec import Batched


@dataclass
class Calls:
    """Calls by key. ``here``: the rows in each window; ``pos``: of the stamps of what happens now."""

    calls: dict[tuple[Any, ...], list[Call]] = field(default_factory=lambda: defaultdict(list))
    here: dict[tuple[Any, ...], list[int]] = field(default_factory=lambda: defaultdict(list))

    def insert(self, key: tuple[Any, ...], row: int, pos: int | None) -> None:
        self.here[key].append(row)
        self.calls[key].append(Call("insert", (row,), None, None, pos))

    def keep(self, key: tuple[Any, ...], rows: Sequence[int], pos: int | None) -> None:
        """Evict all other rows."""
        self.leave(key, [row for row in self.here[key] if row not in rows], pos)

    def leave(self, key: tuple[Any, ...], rows: Sequence[int], pos: int | None) -> None:
        if rows:
            self.calls[key].append(Call("evict", tuple(rows), None, None, pos))
        self.here[key] = [row for row in self.here[key] if row not in rows]

    def trigger(self, pane: reference.Pane) -> None:
        self.calls[pane.key].append(Call("trigger", pane.rows, pane.number, pane.closed_by, pane.pos))


@dataclass
class TumblingCalls(reference.Tumbling):
    recorded: Calls = field(default_factory=Calls)

    def on_row(self, pos: int) -> None:
        row, at = self.rows[pos], self.order_values(pos)
        key = tuple(row[name] for name in self.key)
        if self.policy.before(self.rows_of(key), row):
            self.flush(key, self.policy.reason, at, pos)
        self.open_rows.setdefault(key, []).append(pos)
        self.recorded.insert(key, pos, pos)
        if self.policy.after(self.rows_of(key)):
            self.flush(key, self.policy.reason, at, pos)

    def fill(self, k: int, at: Any) -> None:
        before = len(self.panes)
        super().fill(k, at)
        for pane in self.panes[before:]:
            self.recorded.trigger(pane)

    def flush(self, key: Any, why: str, at: Any, pos: int | None) -> None:
        super().flush(key, why, at, pos)
        self.recorded.trigger(self.panes[-1])
        if why != "end":
            self.recorded.keep(key, [], pos)


@dataclass
class SlidingCalls(reference_sliding.Sliding):
    recorded: Calls = field(default_factory=Calls)

    def make_room(self, window: reference_sliding.Window, row: reference.Row) -> None:
        super().make_room(window, row)
        open_rows = window.open_rows
        if isinstance(self.evict, reference.Time):
            now = self.partitions.now(row[self.order[0]])
            open_rows = [pos for pos in open_rows if not self.outlived(pos, now)]
        self.recorded.keep(tuple(row[name] for name in self.key), open_rows, row["id"])

    def insert(self, window: reference_sliding.Window, pos: int) -> None:
        super().insert(window, pos)
        if pos in window.open_rows:
            self.recorded.insert(tuple(self.rows[pos][name] for name in self.key), pos, pos)

    def fire(self, key: Any, why: str, at: Any, pos: int | None) -> None:
        before = len(self.panes)
        super().fire(key, why, at, pos)
        for pane in self.panes[before:]:
            if pane.mark != "only":
                self.recorded.keep(key, pane.rows, pos)
                self.recorded.trigger(pane)


def by_tumbling(log: Log, policy: reference.Policy, marks: Sequence[int], at_end: Any) -> dict[Any, list[Call]]:
    window = TumblingCalls(reference.read(log.table), policy, log.key, log.order)
    reference.play(window, marks, None, at_end)
    return dict(window.recorded.calls)


def by_sliding(log: Log, evict: Any, trigger: Any, partial: bool, at_end: str) -> dict[Any, list[Call]]:
    rows = reference.read(log.table)
    kind = next((policy.kind for policy in (evict, trigger) if isinstance(policy, reference.Time)), None)
    window = SlidingCalls(rows, evict, trigger, log.key, log.order, partial, Partitions(None, kind))
    if isinstance(trigger, reference.Time) and rows:
        window.next_tick = trigger.window_of(min(row["clock"] for row in rows.values()))
    for pos in reference.in_order(rows, log.order):
        window.ticks_until(window.clock(pos))
        window.on_row(pos)
    end = max((row["clock"] for row in rows.values()), default=None)
    window.ticks_until(end)
    if at_end == "flush" and rows:
        window.on_end(window.partitions.now(end))
    return dict(window.recorded.calls)


def by_batched(log: Log, spec: Batched, at_end: Any) -> dict[Any, list[Call]]:
    names = ("within", "every", "retain", "retain_all", "unique", "partition_by")
    lots = reference_batched.batched(
        reference.read(log.table),
        **{name: getattr(spec, name) for name in names},
        key=log.key,
        order=log.order,
        clock_kind=log.kind("clock"),
        at_end=at_end,
    )
    recorded = Calls()
    for lot in lots:
        recorded.leave(lot.key, lot.left, lot.pos)
        for row in lot.entered:
            recorded.insert(lot.key, row, lot.pos)
        recorded.trigger(lot)
    return dict(recorded.calls)


@dataclass(slots=True)
class IntervalCalls(reference_intervals.Intervals):
    """A row goes when no row can come any more into the last interval that holds it: the discard age, rounded up to
    whole periods, behind its end. It goes after the pane that this watermark triggers, or with the key's next step."""

    recorded: Calls = field(default_factory=Calls)
    gone: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))

    def on_row(self, pos: int) -> None:
        turned_away = len(self.late) + len(self.filtered)
        reference_intervals.Intervals.on_row(self, pos)
        if len(self.late) + len(self.filtered) == turned_away:
            key = tuple(self.rows[pos][name] for name in self.key)
            self.forget(key, pos)
            self.recorded.insert(key, pos, pos)

    def on_watermark(self, seconds: Fraction, stamp: reference_intervals.Stamp) -> None:
        before = len(self.panes)
        reference_intervals.Intervals.on_watermark(self, seconds, stamp)
        come_out = self.panes[before:]
        closed = {row for rows in self.recorded.here.values() for row in rows if self.end_of(row) <= seconds}
        for number, pane in enumerate(come_out):
            self.forget(pane.key, pane.pos)
            self.recorded.trigger(pane)
            later = {row for other in come_out[number + 1 :] if other.key == pane.key for row in other.rows}
            leaving = [row for row in pane.rows if row in closed and row not in later]
            self.recorded.leave(pane.key, leaving, pane.pos)
        for key, rows in self.recorded.here.items():
            self.gone[key] = [row for row in rows if row in closed]

    def end_of(self, pos: int) -> Fraction:
        last = max(self.grid.panes_of(self.clock(self.rows[pos])))
        rounded = math.ceil(self.age / self.grid.period)
        return self.grid.end(
            last if self.order else last + rounded + (rounded and pa.types.is_floating(self.grid.kind))
        )

    def forget(self, key: Key, pos: int | None) -> None:
        self.recorded.leave(key, self.gone.pop(key, []), pos)


def by_intervals(
    log: Log, duration: Fraction, period: Fraction, age: Fraction, lag: Fraction, at_end: str
) -> tuple[dict[Any, list[Call]], list[int]]:
    """The calls, and the rows that are late beyond repair."""
    kind = log.kind("clock")
    grid = reference_intervals.Grid(duration, period, Fraction(0), kind)
    rows = reference.read(log.table)
    window = IntervalCalls(rows, grid, age, "clock", log.key, log.order, lag, Fraction(0))
    for pos in reference.in_order(rows, log.order):
        window.on_row(pos)
        window.follow(pos)
    before = len(window.panes)
    window.on_end()
    for pane in window.panes[before:] if at_end == "flush" else []:
        window.recorded.trigger(pane)
    return dict(window.recorded.calls), window.late
