"""Tumbling windows one event at a time, as plain as the rule reads, and what the references of all kinds share.

Written from the semantics and not from the kernels, in Python numbers that never round: timestamps and dates
are their integer ticks, decimals are `Decimal`, seconds are `Fraction`. Nothing here is fast.

A stream is rows, marks and ticks in one total order. `Tumbling` takes them one by one, under one policy or several of
which the first that fires ends the window (sections 2, 12 and 13):

    if a window is open and a policy ends it before the row: close it    (the first policy of the spec that does)
    if a condition has an integer that does not fit, before or after it goes in: it is rejected
    if no window is open and an opener does not hold for the row: it is in no window
    if an amount that is taken from the row is NaN or negative: it is rejected
    if no window is open: open one
    put the row in; if a policy ends the window with it: close it

Ticks and marks are events of their own, each before the rows that follow it. `Partitions` says which keys are evicted
(section 4). Every other kind of window is a class like `Tumbling` with `on_` methods, in a module of its own:
`references.sliding`, `references.batched`, `references.event_time`. `grouped` cuts the panes of any of these by group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

Value = Any  # int, float, Decimal, bool or str: whatever a column holds, temporal values as their ticks
Row = Mapping[str, Value]
Rows = Sequence[Row]
Key = tuple[Value, ...]
Condition = Callable[[Row], bool]
Amount = Callable[[Rows, Row], Any]
"""An amount of the rows of the window before, none for the first one, and of a row."""

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


def nearest(seconds: Fraction, kind: pa.DataType) -> Fraction:
    """Where a clock of a type can stand: a float clock only at floats, so there it is the nearest one."""
    return Fraction(float(seconds)) if pa.types.is_floating(kind) else seconds


def fits(seconds: Fraction, kind: pa.DataType) -> bool:
    """Whether an instant is a value of a type without rounding."""
    units = seconds / seconds_per_unit(kind)
    return (units * Fraction(10) ** kind.scale if pa.types.is_decimal(kind) else units).denominator == 1


def rises_by_more(new: Value, old: Value, amount: Fraction, kind: pa.DataType) -> bool:
    """``new >= old and new - old > amount`` in the column's own type; false for NaN."""
    if not new >= old:
        return False
    if pa.types.is_floating(kind):
        width = np.float32 if kind.bit_width == 32 else np.float64
        with np.errstate(all="ignore"):
            return bool(width(new) - width(old) > width(float(amount)))
    return (Fraction(new) - Fraction(old)) * seconds_per_unit(kind) > amount


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_distinct(new: Value, old: Value) -> bool:
    """SQL's ``is distinct from``, where NaN equals NaN and the two zeros are one."""
    if new is None or old is None:
        return (new is None) != (old is None)
    return not (is_nan(new) and is_nan(old)) and bool(new != old)


class TooFarError(Exception):
    """An integer does not fit 64 bits."""


class History(list[Row]):
    """The rows of the window before. ``windows``: those of all windows before, oldest first."""

    def __init__(self, rows: Rows = (), windows: Sequence[Rows] = ()) -> None:
        super().__init__(rows)
        self.windows = windows


# --- policies -----------------------------------------------------------------------------------------------------


class Policy:
    """When a tumbling window ends, and at which rows one may begin.

    ``rows`` are those of the window so far, oldest first, ``old`` those of the key's window before.
    """

    reason: str

    def opens(self, row: Row) -> bool:
        """Whether a window may begin at a row."""
        return True

    def asked(self, row: Row, opens: bool, old: Rows) -> Any:
        """The amount that is taken from a row which goes into a window, perhaps as its first."""
        return 0

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        """Whether the window ends before ``row`` goes in."""
        return False

    def after(self, rows: Rows, old: Rows) -> bool:
        """Whether the window ends with the row that just went in."""
        return False


def amount_of(amount: Any, row: Row, old: Rows) -> Any:
    """An amount, which a row may say."""
    return amount(old, row) if callable(amount) else amount


@dataclass(frozen=True)
class Count(Policy):
    amount: int | Amount
    reason: str = "count"

    def asked(self, row: Row, opens: bool, old: Rows) -> Any:
        return amount_of(self.amount, row, old) if opens else 0

    def after(self, rows: Rows, old: Rows) -> bool:
        most = amount_of(self.amount, rows[0], old)
        return len(rows) >= (most if most == math.inf else math.floor(most))


@dataclass(frozen=True)
class Delta(Policy):
    column: str
    amount: Fraction | Amount
    kind: pa.DataType
    reason: str = "delta"

    def asked(self, row: Row, opens: bool, old: Rows) -> Any:
        return amount_of(self.amount, row, old) if opens else 0

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return self.is_beyond(row, rows[0], old)

    def is_beyond(self, row: Row, other: Row, old: Rows) -> bool:
        most = amount_of(self.amount, other, old)
        return most != math.inf and rises_by_more(row[self.column], other[self.column], Fraction(most), self.kind)


@dataclass(frozen=True)
class Gap(Delta):
    reason: str = "gap"

    def asked(self, row: Row, opens: bool, old: Rows) -> Any:
        return amount_of(self.amount, row, old)

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return self.is_beyond(row, rows[-1], old)


@dataclass(frozen=True)
class Change(Policy):
    """Ends before a row with a value that is distinct from that of the key's row before: null is null, NaN is NaN."""

    columns: tuple[str, ...]
    reason: str = "change"

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return any(is_distinct(row[name], rows[-1][name]) for name in self.columns)


@dataclass(frozen=True)
class Punct(Policy):
    """Ends at window marks, or with a row for which a condition is true."""

    condition: Condition | None = None
    reason: str = "punct"

    def after(self, rows: Rows, old: Rows) -> bool:
        return self.condition is not None and self.condition(rows[-1])


@dataclass(frozen=True)
class When(Policy):
    condition: Condition
    reason: str = "when"

    def opens(self, row: Row) -> bool:
        return self.condition(row)

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return self.condition(row)


@dataclass(frozen=True)
class While(When):
    reason: str = "while"

    def before(self, rows: Rows, row: Row, old: Rows) -> bool:
        return not self.condition(row)


@dataclass(frozen=True)
class From(Policy):
    condition: Condition
    until: Condition
    reason: str = "until"

    def opens(self, row: Row) -> bool:
        return self.condition(row)

    def after(self, rows: Rows, old: Rows) -> bool:
        return self.until(rows[-1])


@dataclass(frozen=True)
class Reaches(Policy):
    """``least``: in seconds where the column is a time, of which only the range is asked."""

    function: str
    column: str
    least: Fraction
    kind: pa.DataType
    reason: str = "reaches"

    def after(self, rows: Rows, old: Rows) -> bool:
        found = aggregate(self.function, [row[self.column] for row in rows], None)
        if found is None:
            return False
        if isinstance(found, float):
            return found >= float(self.least)
        is_time = self.function == "range" and pa.types.is_temporal(self.kind)
        return Fraction(found) * (seconds_per_unit(self.kind) if is_time else 1) >= self.least


def aggregate(function: str, values: Sequence[Value], default: Any) -> Any:
    """What `reaches` and `previous` compute of a window, or the default where it is null; ``values`` may be null.

    A sum of floats is the float nearest to the true one; extremes skip NaN, and a sum does not.
    """
    there = [value for value in values if value is not None]
    if function == "count":
        return len(there)
    if function in {"min", "max", "range"}:
        there = [value for value in there if not is_nan(value)]
    if not there:
        return default
    if function in {"sum", "mean"}:
        if any(map(is_nan, there)):
            return math.nan
        exact = sum(map(Fraction, there))
        return float(exact / len(there)) if function == "mean" else type(there[0])(exact)
    low, high = min(there), max(there)
    return {"min": low, "max": high, "range": high - low, "first": there[0], "last": there[-1]}[function]


@dataclass(frozen=True)
class Time(Policy):
    """Ends at ticks, which come from outside. Window k is ``[tick(k - 1), tick(k))``, in seconds."""

    length: Fraction
    kind: pa.DataType
    origin: Fraction = Fraction(0)
    empty: Literal["skip", "mark", "row"] = "skip"
    reason: str = "time"

    def exact(self, k: int) -> Fraction:
        return self.origin + k * self.length

    def tick(self, k: int) -> Fraction:
        return nearest(self.exact(k), self.kind)

    def result_value(self, k: int) -> Value:
        """The k-th tick as the result tells it."""
        return as_value(self.tick(k), self.result_type)

    @property
    def result_type(self) -> pa.DataType:
        return type_of_ticks(self.kind, self.length, self.origin)

    def clock(self, value: Value) -> Fraction:
        return Fraction(value) * seconds_per_unit(self.kind)

    def window_of(self, value: Value) -> int:
        return self.tick_after(self.clock(value))

    def tick_after(self, now: Fraction) -> int:
        """The k with ``tick(k - 1) <= now < tick(k)``."""
        k = math.floor((now - self.origin) / self.length) + 1
        while self.tick(k) <= now:
            k += 1
        while self.tick(k - 1) > now:
            k -= 1
        return k

    def has_come(self, k: int, now: Value) -> bool:
        """Whether a tick is before the rows of an instant."""
        return self.tick(k) <= self.clock(now)

    def ticks(self, values: Sequence[Value], now: Value) -> Iterator[int]:
        """The ticks up to ``now`` at which something may come out, after rows at ``values`` (ascending)."""
        ends = sorted({self.window_of(value) for value in values})
        every = ends if self.empty == "skip" or not ends else range(ends[0], self.window_of(now))
        return (k for k in every if self.has_come(k, now))


class RightClosed(Time):
    """Windows ``(tick(k - 1), tick(k)]``: a tick comes behind the rows of its instant."""

    def window_of(self, value: Value) -> int:
        k = super().window_of(value)
        return k - 1 if self.tick(k - 1) == self.clock(value) else k

    def has_come(self, k: int, now: Value) -> bool:
        return self.tick(k) < self.clock(now)


# --- which keys go ------------------------------------------------------------------------------------------------

Eviction: TypeAlias = tuple[Literal["partitionAge", "partitionCount", "tupleCount"], Fraction]
"""Which keys go, and the seconds, keys or rows beyond which they do."""


@dataclass(slots=True)
class Partitions:
    """The keys that hold state, the one inserted into longest ago first. Without an eviction none ever goes.

    partitionCount(2), tumbling count(3)    a b a c: the third key makes one too many, and b came in longest ago
    """

    eviction: Eviction | None = None
    clock: pa.DataType | None = None
    inserted: dict[Key, int] = field(default_factory=dict)  # when, in whole seconds

    def now(self, value: Value) -> Fraction:
        """The instant of a clock value. Only ages ask for it; where there is no clock, time stands still."""
        return Fraction(0) if self.clock is None else Fraction(value) * seconds_per_unit(self.clock)

    def insert(self, key: Key, now: Fraction) -> None:
        self.inserted.pop(key, None)
        self.inserted[key] = math.floor(now)

    def leave(self, key: Key) -> None:
        self.inserted.pop(key, None)

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


def first_that(policies: Sequence[Policy], fires: Callable[[Policy], bool]) -> list[Policy]:
    """The first policy that fires: those behind it are not asked."""
    return next(([policy] for policy in policies if fires(policy)), [])


def too_many(eviction: Eviction, sizes: Sequence[int]) -> bool:
    kind, amount = eviction
    return (kind == "partitionCount" and len(sizes) > amount) or (kind == "tupleCount" and sum(sizes) > amount)


# --- the stream ---------------------------------------------------------------------------------------------------


def in_order(rows: Mapping[int, Row], order: Sequence[str]) -> list[int]:
    """Arrival positions by the order columns, ties by arrival."""
    return sorted(rows, key=lambda pos: (*(rows[pos][name] for name in order), pos))


def stream(rows: Mapping[int, Row], order: Sequence[str], marks: Iterable[int]) -> Iterator[tuple[str, int]]:
    """The rows in their total order, each with the marks that follow it: what it is, and the row's position.

    A mark at p stands behind the row before p, that of -1 behind none.
    """
    behind = Counter(max((pos for pos in rows if pos < mark), default=-1) for mark in marks)
    yield from [("mark", -1)] * behind[-1]
    for pos in in_order(rows, order):
        yield "row", pos
        yield from [("mark", pos)] * behind[pos]


@dataclass(kw_only=True)
class Windows:
    """The windows of all keys over ``rows``, by arrival position. ``order``: the order columns, none for arrival.

    ``panes``: what has come out, in the order it did; ``numbers``: how many of each key.
    """

    rows: Mapping[int, Row]
    key: Sequence[str] = ()
    order: Sequence[str] = ()
    numbers: Counter[Key] = field(default_factory=Counter)
    panes: list[Pane] = field(default_factory=list)

    def key_of(self, pos: int) -> Key:
        return tuple(self.rows[pos][name] for name in self.key)

    def stamp(self, pos: int) -> tuple[Value, ...] | None:
        """The order values of a row; None where there are none."""
        return tuple(self.rows[pos][name] for name in self.order) or None

    def clock(self, pos: int) -> Value:
        """The first order value of a row; None in arrival order."""
        return self.rows[pos][self.order[0]] if self.order else None

    def show(self, key: Key, rows: Sequence[int], *told: Any, **more: Any) -> None:
        self.panes.append(Pane(key, self.numbers[key], tuple(rows), *told, **more))
        self.numbers[key] += 1

    def show_mark(self, at: tuple[Value, ...] | None, pos: int | None) -> None:
        """Show a mark that has no row."""
        self.panes.append(Pane(None, None, (), None, at, pos, None, None, "only"))


# --- tumbling -----------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Tumbling(Windows):
    """The tumbling windows of all keys.

    ``partitions``, ``emit``: which keys go, and whether their windows come out.
    ``skipped`` and ``evicted``: rows in no window, and those that went without a pane; ``rejected``: why others are in
    none.
    """

    policies: Sequence[Policy]
    partitions: Partitions = field(default_factory=Partitions)
    emit: bool = False
    open_rows: dict[Key, list[int]] = field(default_factory=dict)
    window_before: dict[Key, History] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    evicted: list[int] = field(default_factory=list)
    rejected: dict[int, str] = field(default_factory=dict)

    @property
    def grid(self) -> Time | None:
        """What the bounds of windows are on, where nothing else ends them."""
        return self.policies[0] if len(self.policies) == 1 and isinstance(self.policies[0], Time) else None

    def on_row(self, pos: int) -> None:
        row, at = self.rows[pos], self.stamp(pos)
        key, now = self.key_of(pos), self.partitions.now(self.clock(pos))
        self.evict(self.partitions.aged(now), at, pos)
        try:
            if key in self.open_rows:
                rows = self.rows_of(key)
                self.flush_if(first_that(self.policies, lambda p: p.before(rows, row, self.old(key))), key, at, pos)
        except TooFarError:
            self.rejected[pos] = "expression_error"
            return
        if key not in self.open_rows and not all(policy.opens(row) for policy in self.policies):
            self.skipped.append(pos)
            return
        reason = self.reject_reason(key, row)
        if reason is not None:
            self.rejected[pos] = reason
            return
        rows = [*(self.rows_of(key) if key in self.open_rows else []), row]
        try:
            fired = first_that(self.policies, lambda p: p.after(rows, self.old(key)))
        except TooFarError:
            self.rejected[pos] = "expression_error"
            return
        self.put_in(key, pos)
        self.partitions.insert(key, now)
        self.evict(self.partitions.excess(self.open_rows), at, pos)
        if key in self.open_rows:
            self.flush_if(fired, key, at, pos)

    def put_in(self, key: Key, pos: int) -> None:
        self.open_rows.setdefault(key, []).append(pos)

    def reject_reason(self, key: Key, row: Row) -> str | None:
        """Why an amount that is taken from a row cannot be; None: all can."""
        for policy in self.policies:
            amount = policy.asked(row, key not in self.open_rows, self.old(key))
            if amount != amount:  # noqa: PLR0124 - only NaN is not itself
                return "nan_attribute"
            if amount < 0:
                return "negative_amount"
        return None

    def on_mark(self, pos: int) -> None:
        """No key is too old here: a mark stands at the instant of the row before it, which has looked already."""
        marked = [policy for policy in self.policies if isinstance(policy, Punct) and policy.condition is None]
        if not marked:
            return
        at = self.stamp(pos) if pos >= 0 else None
        if not self.open_rows:
            self.show_mark(at, pos)
        for key in sorted(self.open_rows):
            self.flush_if(marked, key, at, pos)

    def on_tick(self, policy: Time, k: int) -> None:
        at = (policy.result_value(k), *(None for _ in self.order[1:]))
        self.evict(self.partitions.aged(policy.tick(k)), at, -1)
        nothing = not self.open_rows
        for key in sorted(self.open_rows):
            self.flush(key, policy.reason, at, -1)
        if policy.empty == "mark" and nothing:
            self.show_mark(at, -1)
        if policy.empty == "row":
            self.fill(policy, k, at)

    def fill(self, policy: Time, k: int, at: tuple[Value, ...]) -> None:
        """An empty pane for every key that has rows before window ``k`` and after it, but none in it."""
        windows: dict[Key, set[int]] = {}
        for pos in self.rows:
            windows.setdefault(self.key_of(pos), set()).add(policy.window_of(self.clock(pos)))
        for key in sorted(windows):
            if min(windows[key]) < k < max(windows[key]) and k not in windows[key]:
                self.show(key, (), policy.reason, at, -1, policy.result_value(k - 1), policy.result_value(k))

    def on_end(self) -> None:
        for key in sorted(self.open_rows):
            self.flush(key, "end", None, None)

    def evict(self, keys: Sequence[Key], at: tuple[Value, ...] | None, pos: int) -> None:
        for key in keys:
            if self.emit:
                self.flush(key, "evicted", at, pos)
            else:
                self.evicted += self.open_rows.pop(key)
                self.partitions.leave(key)
            self.window_before.pop(key, None)

    def flush_if(self, fired: Sequence[Policy], key: Key, at: tuple[Value, ...] | None, pos: int) -> None:
        if fired:
            self.flush(key, fired[0].reason, at, pos)

    def flush(self, key: Key, reason: str, at: tuple[Value, ...] | None, pos: int | None) -> None:
        rows_now = self.rows_of(key)
        self.window_before[key] = History(rows_now, [*self.old(key).windows, rows_now])
        rows = tuple(self.open_rows.pop(key))
        self.partitions.leave(key)
        start, end = self.clock(rows[0]), self.clock(rows[-1])
        if self.grid:
            k = self.grid.window_of(start)
            start, end = self.grid.result_value(k - 1), self.grid.result_value(k)
        self.show(key, rows, reason, at, pos, start, end)

    def rows_of(self, key: Key) -> Rows:
        return [self.rows[pos] for pos in self.open_rows[key]]

    def old(self, key: Key) -> History:
        return self.window_before.get(key, History())

    def stamp(self, pos: int) -> tuple[Value, ...] | None:
        """The order values of a row, the clock as the ticks of the window are told."""
        values = super().stamp(pos)
        return (as_value(self.grid.clock(values[0]), self.grid.result_type), *values[1:]) if self.grid else values


def tumbling(
    rows: Mapping[int, Row],
    *policies: Policy,
    marks: Iterable[int] = (),
    clock: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
    eviction: Eviction | None = None,
    kind: pa.DataType | None = None,
    **window: Any,
) -> Tumbling:
    """Let the windows of ``rows`` (by arrival position) see all that happens, and return them.

    ``order``: the order columns, none for arrival; the clock is the first, and ``kind`` its type, where ages are asked
    for. ``marks``: a mark at p stands before row p. ``clock``: where the clock stands at the end, in the clock column's
    own terms; default its largest value. ``window``: the others of `Tumbling`.
    """
    own = Tumbling(rows=rows, policies=policies, partitions=Partitions(eviction, kind), **window)
    return play(own, marks, clock, at_end)


def play(
    window: Tumbling, marks: Iterable[int] = (), clock: Value | None = None, at_end: Literal["flush", "drop"] = "flush"
) -> Tumbling:
    """Let a window see all its rows, the marks and the ticks; equal ticks come in the order of the policies."""
    ticks: list[tuple[Fraction, int, Time, int]] = []
    for place, policy in enumerate(window.policies):
        if isinstance(policy, Time) and window.rows:
            values = sorted(row[window.order[0]] for row in window.rows.values())
            now = values[-1] if clock is None else max(values[-1], clock)
            ticks += [(policy.tick(k), place, policy, k) for k in policy.ticks(values, now)]
    ticks.sort(key=lambda tick: tick[:2])
    for what, pos in stream(window.rows, window.order, marks):
        while what == "row" and ticks and ticks[0][2].has_come(ticks[0][3], window.rows[pos][window.order[0]]):
            window.on_tick(*ticks.pop(0)[2:])
        window.on_row(pos) if what == "row" else window.on_mark(pos)
    for _, _, policy, k in ticks:
        window.on_tick(policy, k)
    if at_end == "flush":
        window.on_end()
    return window


# --- groups -------------------------------------------------------------------------------------------------------


def grouped(panes: Iterable[Pane], rows: Mapping[int, Row], group_by: Sequence[str]) -> list[Pane]:
    """Cut every pane into one per group that has a row in it, groups ascending, and one mark behind the last.

    NaN is a group behind the numbers, null one behind all; -0.0 is 0.0. A mark without rows stays as it is.
    """
    out: list[Pane] = []
    for pane in panes:
        parts: dict[tuple[tuple[int, Value], ...], list[int]] = {}
        for pos in pane.rows:
            parts.setdefault(ranked(rows[pos][name] for name in group_by), []).append(pos)
        for ranks in sorted(parts):
            out.append(replace(pane, rows=tuple(parts[ranks]), group=values_of(ranks), mark=None))
        if parts:
            out[-1] = replace(out[-1], mark=pane.mark)
        elif pane.mark == "only":
            out.append(pane)
    return out


Ranked: TypeAlias = tuple[tuple[int, Value], ...]


def ranked(values: Iterable[Value]) -> Ranked:
    """Values that sort and compare as keys do: all NaN are one, behind the numbers; nulls are one, and last."""
    return tuple((2, 0) if value is None else (1, 0) if is_nan(value) else (0, value) for value in values)


def values_of(ranks: Ranked) -> tuple[Value, ...]:
    """The values again, one NaN for all and one zero."""
    plain = (None if rank == 2 else math.nan if rank == 1 else value for rank, value in ranks)
    return tuple(value + 0.0 if isinstance(value, float) else value for value in plain)
