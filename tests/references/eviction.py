"""Partition eviction once more (section 4): which keys go, and windows whose keys may go, also those of section 12.

partitionCount(2), tumbling count(3)    a b a c: the third key makes one too many, and b came in longest ago

    a  a.a        -> b goes, with its row
     b   c
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from references import conditions
from references import tumbling as reference
from references.conditions import AnyOf, Rule
from references.tumbling import Key, Pane, Policy, Row, Time, Tumbling, Value

Eviction: TypeAlias = tuple[Literal["partitionAge", "partitionCount", "tupleCount"], Fraction]
"""Which keys go, and the seconds, keys or rows beyond which they do."""


@dataclass(slots=True)
class Partitions:
    """The keys that hold state, the one inserted into longest ago first. Without an eviction none ever goes."""

    eviction: Eviction | None = None
    clock: pa.DataType | None = None
    inserted: dict[Key, int] = field(default_factory=dict)  # when, in whole seconds

    def now(self, value: Value) -> Fraction:
        """The instant of a clock value. Only ages ask for it; where there is no clock, time stands still."""
        return Fraction(0) if self.clock is None else Fraction(value) * reference.seconds_per_unit(self.clock)

    def insert(self, key: Key, now: Fraction) -> None:
        self.inserted.pop(key, None)
        self.inserted[key] = math.floor(now)

    def leave(self, key: Key) -> None:
        del self.inserted[key]

    def aged(self, now: Fraction) -> list[Key]:
        """The keys that go before anything happens at ``now``: none, or all that are old enough."""
        match self.eviction:
            case "partitionAge", seconds:
                ages = {key: math.floor(now) - then for key, then in self.inserted.items()}
                too_old = any(age > math.floor(seconds) for age in ages.values())
                return [key for key, age in ages.items() if too_old and age >= math.floor(seconds)]
        return []

    def excess(self, open_rows: Mapping[Key, Sized]) -> list[Key]:
        """The keys that go after an insertion, where there are too many keys, or too many rows in ``open_rows``."""
        staying = list(self.inserted)
        while self.eviction and too_many(self.eviction, [len(open_rows[key]) for key in staying]):
            staying.pop(0)
        return [key for key in self.inserted if key not in staying]


def too_many(eviction: Eviction, sizes: Sequence[int]) -> bool:
    kind, amount = eviction
    return (kind == "partitionCount" and len(sizes) > amount) or (kind == "tupleCount" and sum(sizes) > amount)


@dataclass(kw_only=True)
class EvictingTumbling(Tumbling):
    """Tumbling windows whose keys may go before they are full. ``emit``: what goes comes out.

    A mark finds no key too old: it stands at the instant of the row before it, whose insertion has looked already.
    """

    partitions: Partitions
    emit: bool

    def on_row(self, pos: int) -> None:
        row, at = self.rows[pos], self.stamp(pos)
        key = tuple(row[name] for name in self.key)
        self.evict(self.partitions.aged(self.now(pos)), at, pos)
        if self.policy.before(self.rows_of(key), row):
            self.flush(key, self.policy.reason, at, pos)
        self.open_rows.setdefault(key, []).append(pos)
        self.partitions.insert(key, self.now(pos))
        self.evict(self.partitions.excess(self.open_rows), at, pos)
        if key in self.open_rows and self.policy.after(self.rows_of(key)):
            self.flush(key, self.policy.reason, at, pos)

    def on_tick(self, k: int) -> None:
        assert isinstance(self.policy, Time)
        at = (self.policy.result_value(k), *(None for _ in self.order[1:]))
        self.evict(self.partitions.aged(self.policy.tick(k)), at, -1)
        super().on_tick(k)

    def evict(self, keys: Sequence[Key], at: tuple[Value, ...] | None, pos: int) -> None:
        for key in keys:
            if self.emit:
                self.flush(key, "evicted", at, pos)
            else:
                del self.open_rows[key]
                self.partitions.leave(key)

    def flush(self, key: Key, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        super().flush(key, reason, at, pos)
        self.partitions.leave(key)

    def now(self, pos: int) -> Fraction:
        return self.partitions.now(self.rows[pos][self.order[0]] if self.order else None)

    def stamp(self, pos: int) -> tuple[Value, ...] | None:
        """The order values of a row, the clock as the ticks of the window are told."""
        if not isinstance(self.policy, Time):
            return self.order_values(pos)
        clock, *more = (self.rows[pos][name] for name in self.order)
        kind = reference.type_of_ticks(self.policy.kind, self.policy.length, self.policy.origin)
        return reference.as_value(self.policy.clock(clock), kind), *more


def tumbling(
    rows: Mapping[int, Row],
    policy: Policy,
    *,
    eviction: Eviction,
    kind: pa.DataType | None = None,
    emit_evicted: bool = False,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    marks: Iterable[int] = (),
    clock: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
) -> list[Pane]:
    """`reference.tumbling` with keys that may go. ``kind``: the type of the clock, where ages are asked for."""
    partitions = Partitions(eviction, kind)
    window = EvictingTumbling(rows, policy, key, order, partitions=partitions, emit=emit_evicted)
    return reference.play(window, marks, clock, at_end)


@dataclass(kw_only=True)
class EvictingAnyOf(AnyOf):
    """Windows that follow conditions (section 12), whose keys may go. ``evicted``: rows that went without a pane.

    Ages are asked for before each row, also one that is in no window, and before each tick and mark. Only a row that
    is in a window is inserted, so a key without an open window holds nothing and never goes.
    """

    partitions: Partitions
    emit: bool
    evicted: list[int] = field(default_factory=list)

    def on_row(self, pos: int) -> None:
        row = self.rows[pos]
        key, at = tuple(row[name] for name in self.key), self.order_values(pos)
        self.evict(self.partitions.aged(self.now(pos)), at, pos)
        if key in self.open_rows:
            fired = [rule for rule in self.rules if rule.ends_before(self.old(key), self.rows_of(key), row)]
            self.flush_if(fired, key, at, pos)
        if key not in self.open_rows and not all(rule.opens(row) for rule in self.rules if rule.opens):
            self.skipped.append(pos)
            return
        self.put_in(key, at, pos)
        if key in self.open_rows:
            full = [rule for rule in self.rules if rule.ends_with(self.old(key), self.rows_of(key))]
            self.flush_if(full, key, at, pos)

    def put_in(self, key: Key, at: Any, pos: int) -> None:
        self.open_rows.setdefault(key, []).append(pos)
        self.partitions.insert(key, self.now(pos))
        self.evict(self.partitions.excess(self.open_rows), at, pos)

    def on_event(self, rule: Rule, at: Any, pos: int) -> None:
        """A tick is told in seconds; a mark stands at the instant of the row before it."""
        self.evict(self.partitions.aged(at if isinstance(at, Fraction) else self.now(pos)), at, pos)
        super().on_event(rule, at, pos)

    def evict(self, keys: Sequence[Key], at: Any, pos: int) -> None:
        for key in keys:
            if self.emit:
                self.flush(key, "evicted", at, pos)
            else:
                self.evicted += self.open_rows.pop(key)
                self.partitions.leave(key)
            self.window_before.pop(key, None)

    def flush(self, key: Key, reason: str, at: Any, pos: int | None) -> None:
        super().flush(key, reason, at, pos)
        self.partitions.leave(key)

    def now(self, pos: int) -> Fraction:
        return self.partitions.now(self.rows[pos][self.order[0]] if self.order else None) if pos >= 0 else Fraction(0)

    def order_values(self, pos: int) -> tuple[Value, ...] | None:
        return tuple(self.rows[pos][name] for name in self.order) or None


def any_of(
    rows: Mapping[int, Row],
    rules: Sequence[Rule],
    *,
    eviction: Eviction,
    kind: pa.DataType | None = None,
    emit_evicted: bool = False,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    marks: Iterable[int] = (),
    at_end: Literal["flush", "drop"] = "flush",
) -> EvictingAnyOf:
    """`references.conditions.any_of` with keys that may go. ``kind``: as in `tumbling`."""
    window = EvictingAnyOf(rows, rules, key, order, partitions=Partitions(eviction, kind), emit=emit_evicted)
    conditions.play(window, marks, at_end)
    return window
