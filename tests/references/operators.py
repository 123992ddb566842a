"""The calls of an operator, by the references: one event at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from references import batched as reference_batched
from references import sliding as reference_sliding
from references import tumbling as reference
from references.eviction import Partitions
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


def by_intervals(log: Log, panes: Sequence[reference.Pane], unheld: set[int], at_end: str) -> dict[Any, list[Call]]:
    """Rows in their order, each pane right behind the row that advanced the watermark."""
    rows = reference.read(log.table)
    recorded = Calls()
    last = {(pane.key, row): number for number, pane in enumerate(panes) for row in pane.rows}
    waiting = list(enumerate(panes))

    def come_out(pos: int | None) -> None:
        while waiting and waiting[0][1].pos == pos:
            number, pane = waiting.pop(0)
            if pane.closed_by == "end" and at_end == "drop":
                continue
            recorded.trigger(pane)
            if pane.closed_by != "end":
                staying = [row for row in recorded.here[pane.key] if last[pane.key, row] != number]
                recorded.keep(pane.key, staying, pos)

    for pos in reference.in_order(rows, log.order):
        if pos not in unheld:
            recorded.insert(tuple(rows[pos][name] for name in log.key), pos, pos)
        come_out(pos)
    come_out(None)
    return dict(recorded.calls)
