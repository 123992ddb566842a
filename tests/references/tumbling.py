"""Tumbling windows one event at a time, as plain as the rule reads, and what the references of all kinds share.

Written from the semantics and not from the kernels, in Python numbers that never round: timestamps and dates
are their integer ticks, decimals are `Decimal`, seconds are `Fraction`. Nothing here is fast.

A stream is rows, marks and ticks in one total order. `Tumbling` takes them one by one and asks its policy two
questions about every row: does the window end *before* it, does it end *with* it? Every other kind of window is a
class like `Tumbling` with `on_` methods, in a module of its own: `references.sliding`, `references.batched`,
`references.event_time`; `references.eviction` lets keys go. `grouped` cuts the panes of any of these by group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

Value = Any  # int, float, Decimal, bool or str: whatever a column holds, temporal values as their ticks
Row = Mapping[str, Value]
Key = tuple[Value, ...]

TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Pane:
    """One output: the rows of a pane by arrival position, or a mark and no rows (``mark == "only"``).

    ``timing`` and ``index``: of event-time panes. ``group``: where panes are cut by group; only the last group of a
    pane has the mark behind it.
    """

    key: Key | None
    number: int | None
    rows: tuple[int, ...]
    closed_by: str | None
    at: tuple[Value, ...] | None
    pos: int | None
    start: Value | None
    end: Value | None
    mark: Literal["window", "only"] | None = "window"
    timing: Literal["on_time", "late"] | None = None
    index: int | None = None
    group: tuple[Value, ...] | None = None


# --- columns ------------------------------------------------------------------------------------------------------


def seconds_per_unit(kind: pa.DataType) -> Fraction:
    """How many seconds one unit of a column's value is: numbers are seconds as they are."""
    if pa.types.is_timestamp(kind):
        return Fraction(1, TICKS_PER_SECOND[kind.unit])
    if pa.types.is_date32(kind):
        return Fraction(86_400)
    return Fraction(1, 1_000) if pa.types.is_date64(kind) else Fraction(1)


def read(table: pa.Table) -> dict[int, Row]:
    """The rows of a table by arrival position, temporal values as their ticks."""
    columns = {name: ticks_of(table[name]) for name in table.column_names}
    return {pos: {name: values[pos] for name, values in columns.items()} for pos in range(len(table))}


def ticks_of(column: pa.ChunkedArray) -> list[Value]:
    """The values of a column in Python, timestamps and dates as the integers that they are stored as."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: list[Value] = (column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column).to_pylist()
    return values


def as_value(seconds: Fraction, kind: pa.DataType) -> Value:
    """An instant as a value of a type; it must be one."""
    value = seconds / seconds_per_unit(kind)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        with localcontext(prec=100):
            return Decimal(value.numerator) / Decimal(value.denominator)
    assert value.denominator == 1, f"{seconds} s is no whole number of units of {kind}"
    return value.numerator


def type_of_ticks(kind: pa.DataType, *seconds: Fraction) -> pa.DataType:
    """The type that a grid on a clock column is told in: the column's own, or a finer one where it must be.

    Numbers that are not whole become floats; integers have a sign, for a window may begin below zero, and decimals
    all digits there are, for a window may end beyond the last value.
    """
    if pa.types.is_floating(kind) or not all(fits(value, kind) for value in seconds):
        finer = [pa.timestamp(unit, getattr(kind, "tz", None)) for unit in TICKS_PER_SECOND]
        finer = [one for one in finer if seconds_per_unit(one) <= seconds_per_unit(kind)]
        if pa.types.is_temporal(kind):
            return next(one for one in finer if all(fits(value, one) for value in seconds))
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return pa.int64() if pa.types.is_integer(kind) else kind


def fits(seconds: Fraction, kind: pa.DataType) -> bool:
    """Whether an instant is a value of a type without rounding."""
    units = seconds / seconds_per_unit(kind)
    return (units * 10**kind.scale if pa.types.is_decimal(kind) else units).denominator == 1


def rises_by_more(new: Value, old: Value, amount: Fraction, kind: pa.DataType) -> bool:
    """``new >= old and new - old > amount`` in the column's own type; false for NaN."""
    if not new >= old:
        return False
    if pa.types.is_floating(kind):
        width = np.float32 if kind.bit_width == 32 else np.float64
        with np.errstate(all="ignore"):
            return bool(width(new) - width(old) > width(float(amount)))
    return (Fraction(new) - Fraction(old)) * seconds_per_unit(kind) > amount


# --- policies -----------------------------------------------------------------------------------------------------


class Policy(Protocol):
    """When a tumbling window ends. ``open_rows`` are the rows of the window so far, oldest first."""

    reason: str

    def before(self, open_rows: Sequence[Row], row: Row) -> bool:
        """Whether the window ends before ``row`` goes in."""
        return False

    def after(self, open_rows: Sequence[Row]) -> bool:
        """Whether the window ends with the row that just went in."""
        return False

    def on_mark(self) -> bool:
        """Whether the window ends at a window mark."""
        return False


@dataclass(frozen=True)
class Count(Policy):
    n: int
    reason: str = "count"

    def after(self, open_rows: Sequence[Row]) -> bool:
        return len(open_rows) == self.n


@dataclass(frozen=True)
class Delta(Policy):
    column: str
    amount: Fraction
    kind: pa.DataType
    reason: str = "delta"

    def before(self, open_rows: Sequence[Row], row: Row) -> bool:
        return bool(open_rows) and rises_by_more(row[self.column], open_rows[0][self.column], self.amount, self.kind)


@dataclass(frozen=True)
class Gap(Policy):
    column: str
    amount: Fraction
    kind: pa.DataType
    reason: str = "gap"

    def before(self, open_rows: Sequence[Row], row: Row) -> bool:
        return bool(open_rows) and rises_by_more(row[self.column], open_rows[-1][self.column], self.amount, self.kind)


@dataclass(frozen=True)
class Change(Policy):
    """Ends before a row with a value that is distinct from that of the key's row before: null is null, NaN is NaN."""

    columns: tuple[str, ...]
    reason: str = "change"

    def before(self, open_rows: Sequence[Row], row: Row) -> bool:
        return bool(open_rows) and any(is_distinct(row[name], open_rows[-1][name]) for name in self.columns)


def is_distinct(new: Value, old: Value) -> bool:
    """SQL's ``is distinct from``, where NaN equals NaN and the two zeros are one."""
    if new is None or old is None:
        return (new is None) != (old is None)
    both_nan = new != new and old != old  # noqa: PLR0124 - only NaN is not itself
    return not both_nan and bool(new != old)


@dataclass(frozen=True)
class Punct(Policy):
    reason: str = "punct"

    def on_mark(self) -> bool:
        return True


@dataclass(frozen=True)
class PunctColumn(Policy):
    column: str
    reason: str = "punct"

    def after(self, open_rows: Sequence[Row]) -> bool:
        return bool(open_rows[-1][self.column])


@dataclass(frozen=True)
class Time(Policy):
    """Ends at ticks, which come from outside. Window k is ``[tick(k - 1), tick(k))``, in seconds."""

    length: Fraction
    kind: pa.DataType
    origin: Fraction = Fraction(0)
    empty: Literal["skip", "mark", "row"] = "skip"
    reason: str = "time"

    def tick(self, k: int) -> Fraction:
        """The k-th tick. A float clock can only stand at floats, so there a tick is the nearest one."""
        exact = self.origin + k * self.length
        return Fraction(float(exact)) if pa.types.is_floating(self.kind) else exact

    def result_value(self, k: int) -> Value:
        """The k-th tick as the result tells it."""
        return as_value(self.tick(k), type_of_ticks(self.kind, self.length, self.origin))

    def clock(self, value: Value) -> Fraction:
        return Fraction(value) * seconds_per_unit(self.kind)

    def window_of(self, value: Value) -> int:
        """The k with ``tick(k - 1) <= clock(value) < tick(k)``."""
        now = self.clock(value)
        k = math.floor((now - self.origin) / self.length) + 1
        while self.tick(k) <= now:
            k += 1
        while self.tick(k - 1) > now:
            k -= 1
        return k

    def ticks(self, values: Sequence[Value], now: Value) -> Iterator[int]:
        """The ticks up to ``now`` at which something may come out, after rows at ``values`` (ascending)."""
        ends = sorted({self.window_of(value) for value in values})
        every = ends if self.empty == "skip" or not ends else range(ends[0], self.window_of(now))
        return (k for k in every if self.tick(k) <= self.clock(now))


# --- the stream ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    what: Literal["row", "mark", "tick"]
    pos: int  # of the row; of the row that a mark follows (-1: of none); the k of a tick


def in_order(rows: Mapping[int, Row], order: Sequence[str]) -> list[int]:
    """Arrival positions by the order columns, ties by arrival."""
    return sorted(rows, key=lambda pos: (*(rows[pos][name] for name in order), pos))


def stream(rows: Mapping[int, Row], order: Sequence[str], marks: Iterable[int]) -> Iterator[Event]:
    """The rows in their total order, each with the marks that follow it. A mark at p stands behind the row before p."""
    behind = Counter(max((pos for pos in rows if pos < mark), default=-1) for mark in marks)
    yield from [Event("mark", -1)] * behind[-1]
    for pos in in_order(rows, order):
        yield Event("row", pos)
        yield from [Event("mark", pos)] * behind[pos]


def with_ticks(events: Iterable[Event], rows: Mapping[int, Row], column: str, policy: Time, now: Value) -> list[Event]:
    """Put the ticks in: each before all rows of its own instant."""
    waiting = list(policy.ticks(sorted(row[column] for row in rows.values()), now))
    out: list[Event] = []
    for event in events:
        while event.what == "row" and waiting and policy.tick(waiting[0]) <= policy.clock(rows[event.pos][column]):
            out.append(Event("tick", waiting.pop(0)))
        out.append(event)
    return out + [Event("tick", k) for k in waiting]


# --- tumbling -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tumbling:
    """The tumbling windows of all keys. ``panes`` holds what has come out, in the order it did."""

    rows: Mapping[int, Row]
    policy: Policy
    key: Sequence[str]
    order: Sequence[str]
    open_rows: dict[Key, list[int]] = field(default_factory=dict)
    numbers: Counter[Key] = field(default_factory=Counter)
    panes: list[Pane] = field(default_factory=list)

    def on_row(self, pos: int) -> None:
        row = self.rows[pos]
        key = tuple(row[name] for name in self.key)
        if self.policy.before(self.rows_of(key), row):
            self.flush(key, self.policy.reason, self.order_values(pos), pos)
        self.open_rows.setdefault(key, []).append(pos)
        if self.policy.after(self.rows_of(key)):
            self.flush(key, self.policy.reason, self.order_values(pos), pos)

    def on_mark(self, pos: int) -> None:
        if not self.policy.on_mark():
            return
        at = self.order_values(pos) if pos >= 0 else None
        if not self.open_rows:
            self.panes.append(Pane(None, None, (), None, at, pos, None, None, "only"))
        for key in sorted(self.open_rows):
            self.flush(key, self.policy.reason, at, pos)

    def on_tick(self, k: int) -> None:
        assert isinstance(self.policy, Time)
        at = (self.policy.result_value(k), *(None for _ in self.order[1:]))
        nothing = not self.open_rows
        for key in sorted(self.open_rows):
            self.flush(key, self.policy.reason, at, -1)
        if self.policy.empty == "mark" and nothing:
            self.panes.append(Pane(None, None, (), None, at, -1, None, None, "only"))
        if self.policy.empty == "row":
            self.fill(k, at)

    def fill(self, k: int, at: tuple[Value, ...]) -> None:
        """An empty pane for every key that has rows before window ``k`` and after it, but none in it."""
        assert isinstance(self.policy, Time)
        windows: dict[Key, set[int]] = {}
        for row in self.rows.values():
            key = tuple(row[name] for name in self.key)
            windows.setdefault(key, set()).add(self.policy.window_of(row[self.order[0]]))
        for key in sorted(windows):
            if min(windows[key]) < k < max(windows[key]) and k not in windows[key]:
                start, end = self.policy.result_value(k - 1), self.policy.result_value(k)
                self.panes.append(Pane(key, self.numbers[key], (), self.policy.reason, at, -1, start, end))
                self.numbers[key] += 1

    def on_end(self) -> None:
        for key in sorted(self.open_rows):
            self.flush(key, "end", None, None)

    def flush(self, key: Key, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        open_rows = tuple(self.open_rows.pop(key))
        start, end = self.bounds(open_rows)
        self.panes.append(Pane(key, self.numbers[key], open_rows, reason, at, pos, start, end))
        self.numbers[key] += 1

    def bounds(self, open_rows: Sequence[int]) -> tuple[Value, Value]:
        if not self.order:
            return None, None
        first, last = (self.rows[pos][self.order[0]] for pos in (open_rows[0], open_rows[-1]))
        if isinstance(self.policy, Time):
            k = self.policy.window_of(first)
            return self.policy.result_value(k - 1), self.policy.result_value(k)
        return first, last

    def rows_of(self, key: Key) -> list[Row]:
        return [self.rows[pos] for pos in self.open_rows.get(key, [])]

    def order_values(self, pos: int) -> tuple[Value, ...] | None:
        return tuple(self.rows[pos][name] for name in self.order) or None


def tumbling(
    rows: Mapping[int, Row],
    policy: Policy,
    *,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    marks: Iterable[int] = (),
    clock: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
) -> list[Pane]:
    """Return the panes of ``rows`` (by arrival position) in the order in which they come out.

    ``order``: the order columns, none for arrival; the clock is the first. ``marks``: a mark at p stands before
    row p. ``clock``: where the clock stands at the end, in the clock column's own terms; default its largest value.
    """
    return play(Tumbling(rows, policy, key, order), marks, clock, at_end)


def play(window: Tumbling, marks: Iterable[int], clock: Value | None, at_end: Literal["flush", "drop"]) -> list[Pane]:
    """Let a window see all its rows, the marks and the ticks; return what came out."""
    events = list(stream(window.rows, window.order, marks))
    if isinstance(window.policy, Time) and window.rows:
        column = window.order[0]
        now = max([*(row[column] for row in window.rows.values()), *([] if clock is None else [clock])])
        events = with_ticks(events, window.rows, column, window.policy, now)
    for event in events:
        {"row": window.on_row, "mark": window.on_mark, "tick": window.on_tick}[event.what](event.pos)
    if at_end == "flush":
        window.on_end()
    return window.panes


# --- groups -------------------------------------------------------------------------------------------------------


def grouped(panes: Iterable[Pane], rows: Mapping[int, Row], group_by: Sequence[str]) -> list[Pane]:
    """Cut every pane into one per group that has a row in it, groups ascending, and one mark behind the last.

    NaN is a group behind the numbers, null one behind all; -0.0 is 0.0. A mark without rows stays as it is.
    """
    out: list[Pane] = []
    for pane in panes:
        parts: dict[tuple[tuple[int, Value], ...], list[int]] = {}
        for pos in pane.rows:
            parts.setdefault(tuple(ranked(rows[pos][name]) for name in group_by), []).append(pos)
        for ranks in sorted(parts):
            group = tuple(value for _, value in ranks)
            out.append(replace(pane, rows=tuple(parts[ranks]), group=group, mark=None))
        if parts:
            out[-1] = replace(out[-1], mark=pane.mark)
        elif pane.mark == "only":
            out.append(pane)
    return out


def ranked(value: Value) -> tuple[int, Value]:
    """A value that a group is made of, behind its rank: what is equal or NaN is one group."""
    if value is None:
        return 2, None
    if value != value:  # noqa: PLR0124 - only NaN is not itself
        return 1, math.nan
    return 0, value + 0.0 if isinstance(value, float) else value
