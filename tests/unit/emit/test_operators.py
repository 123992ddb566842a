"""Operators: the replay calls them as a window that is told one event at a time would, for every kind of window.

count(2)                 insert 1   insert 2   trigger [1 2]   evict [1 2]   insert 3 ...
sliding, count(2)        insert 1   trigger [1]   insert 2   trigger [1 2]   evict [1]   insert 3   trigger [2 3]
sliding, delta, delta    trigger (before the row that trips)   evict   insert
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import batched as reference_batched
from references import event_time as reference_intervals
from references import sliding as reference_sliding
from references import tumbling as reference
from references.eviction import Partitions
from support import strategies as my
from support.places import ROOT
from wincli.windowing.clock.values import clock_values
from wincli.windowing.clock.watermark import in_order as watermarks_in_order
from wincli.windowing.clock.watermark import make_lateness, watermarks_at
from wincli.windowing.emit.operator_calls import operator_batches
from wincli.windowing.emit.stream_columns import stream_columns
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched, TimeInterval, WindowSpec
from wincli.windowing.operator import Operator, PaneInfo, load, output_fields
from wincli.windowing.panes.membership import edge_rows
from wincli.windowing.panes.panes import CLOSED_BY, TIMING, Panes, reason
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.scan.dispatch import panes_of
from wincli.windowing.scan.signals import Signals, watermark_signals, window_marks
from wincli.windowing.sequences.marks import NO_FILE, Marks, in_order, no_marks
from wincli.windowing.sequences.sequence import Sequences, build, one_batch

KINDS = [pa.int64(), pa.float64(), pa.decimal128(18, 3), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.date32()]
AMOUNTS = st.sampled_from(["0", "1", "2", "3", "7", "50"])
ENDS = st.sampled_from(["flush", "drop"])
PLAIN = WindowContext()


# --- what an operator sees ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the rows by ``id``, and how what it gave stands in the result: window and close reason, position."""

    what: str
    ids: tuple[int, ...]
    window: int | None
    closed_by: str | None
    pos: int | None


class Recorder(Operator):
    """Gives one row a call. Makes sure of what its base promises."""

    output: ClassVar = {"what": str, "ids": pa.list_(pa.int64()), "turn": int}

    def __init__(self) -> None:
        self.turn = 0
        self.rows: dict[int, Any] = {}

    def insert(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        assert row["id"] not in self.rows
        assert all(row[name] == value for name, value in self.key.items())
        self.rows[row["id"]] = row
        yield self.told("insert", [row])

    def evict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        assert rows
        assert all(self.rows[row["id"]] is row for row in rows)
        given = [self.told("evict", rows)]
        for row in rows:
            del self.rows[row["id"]]
        return given

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> list[dict[str, Any]]:
        assert all(self.rows[row["id"]] is row for row in rows)
        return [self.told("trigger", rows), {"what": f"{pane.window} {pane.closed_by}", "turn": self.turn}]

    def told(self, what: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self.turn += 1
        return {"what": what, "ids": [row["id"] for row in rows], "turn": self.turn}


RECORDER = f"{__name__}:Recorder"


@dataclass(frozen=True, slots=True)
class Log:
    """Rows with ``id``, attribute ``a``, ``flag``, perhaps a key ``k``, a ``clock`` and a second order column ``t``."""

    table: pa.Table
    key: tuple[str, ...]
    order: tuple[str, ...]

    def kind(self, name: str) -> pa.DataType:
        return self.table.schema.field(name).type


@st.composite
def logs(draw: st.DrawFn, clocked: bool = False, falling: bool = False, kinds: Sequence[pa.DataType] = KINDS) -> Log:
    """``clocked``: ordered by the clock; else perhaps in arrival order. ``falling``: the clock may fall a lot."""
    size = draw(st.integers(0, 25))

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    kind = draw(st.sampled_from(kinds))
    clock = accumulate(some(my.STEPS if falling else my.NEAR), initial=draw(st.integers(-50, 100)))
    columns = {
        "id": pa.array(range(size), pa.int64()),
        "a": pa.array(list(accumulate(some(my.STEPS), initial=0))[1:], pa.int64()),
        "flag": pa.array(some(st.booleans()), pa.bool_()),
        "k": pa.array(some(st.sampled_from(["x", "y", "z"])), pa.string()),
        "clock": my.array([my.value_of(n, kind) for n in clock][1:], kind),
        "t": pa.array(some(st.integers(0, 2)), pa.int8()),
    }
    orders = [("clock",), ("clock", "t")] if clocked else [(), ("clock",), ("t", "clock")]
    return Log(pa.table(columns), draw(st.sampled_from([(), ("k",)])), draw(st.sampled_from(orders)))


def replayed(log: Log, plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> pa.Table:
    if plan.options.at_end == "drop":
        panes = panes.take(np.flatnonzero(panes.closed_by != reason("end")))
    told = told_of(plan, sequences, marks, panes)
    tables = list(operator_batches(plan, sequences, marks, panes, told))
    assert all(len(table) <= 100_000 for table in tables)
    return pa.concat_tables(tables) if tables else pa.table({})


def told_of(plan: Plan, sequences: Sequences, marks: Marks, panes: Panes) -> pa.Table:
    """What the result says of panes."""
    keys = [] if sequences.keys is None else [column.take(pa.array(panes.key)) for column in sequences.keys.columns]
    start, end = panes.start, panes.end
    if start is None:
        order = sequences.rows.column(plan.at[0]) if plan.at else pa.nulls(len(sequences), pa.int64())
        start, end = (order.take(pa.array(edge, mask=edge < 0)) for edge in edge_rows(panes.membership))
    columns = [*keys, pa.array(panes.number), start, end, pa.array(CLOSED_BY).take(pa.array(panes.closed_by))]
    names = [*plan.key, "window", "window_start", "window_end", "closed_by"]
    if panes.outputs is not None:
        columns += [pa.array(TIMING).take(pa.array(panes.outputs.timing)), pa.array(panes.outputs.index)]
        names += ["timing", "index"]
    if not plan.options.plain:
        columns += stream_columns(plan, sequences, marks, panes.cause, panes.at)
        names += plan.stream_names
    return pa.table(columns, names=names)


def plan_of(log: Log, spec: WindowSpec, operator: str = RECORDER, **options: Any) -> Plan:
    order = list(log.order) or "arrival"
    return make_plan(spec, log.table.schema, log.key, order, options=Options(operator=operator, **options))


def sequences_of(log: Log, plan: Plan, rows: Sequence[int] | None = None) -> Sequences:
    pos = np.arange(len(log.table)) if rows is None else np.array(rows, np.int64)
    kept = one_batch(log.table).take(pa.array(pos))
    return build(kept, pos, plan.key, plan.sort, log.table.column_names)


def given_by(
    log: Log, window: str, marks: Sequence[int] = (), setting: WindowContext = PLAIN, **options: Any
) -> pa.Table:
    """What an operator gives for a window that takes no watermarks."""
    plan = plan_of(log, parse_window(window), **options)
    sequences = sequences_of(log, plan)
    after = np.array(marks, np.int64) - 1
    rows = one_batch(log.table).select(list(plan.sort))
    at = rows.take(pa.array(after, mask=after < 0)) if plan.sort else rows
    signals = window_marks(in_order(Marks(at, after, np.full(len(after), NO_FILE))))
    return replayed(log, plan, sequences, *reversed(panes_of(plan.spec, sequences, signals, setting)))


def calls_in(table: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], list[Call]]:
    """The calls of each key as they stand in a result. The second row of a pane repeats what the pane is."""
    out: dict[tuple[Any, ...], list[Call]] = defaultdict(list)
    for row in table.to_pylist():
        own = tuple(row[name] for name in key)
        if row["ids"] is not None:
            out[own].append(Call(row["what"], tuple(row["ids"]), row["window"], row["closed_by"], row["_pos"]))
            assert row["turn"] == len(out[own])
            assert row["_mark"] is None
        else:
            assert row["what"] == f"{row['window']} {row['closed_by']}"
            assert (row["_row"], row["_mark"]) == (1, "window")
    return dict(out)


# --- what a window does, one event at a time ----------------------------------------------------------------------


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
    told: Calls = field(default_factory=Calls)

    def on_row(self, pos: int) -> None:
        row, at = self.rows[pos], self.order_values(pos)
        key = tuple(row[name] for name in self.key)
        if self.policy.before(self.rows_of(key), row):
            self.flush(key, self.policy.reason, at, pos)
        self.held.setdefault(key, []).append(pos)
        self.told.insert(key, pos, pos)
        if self.policy.after(self.rows_of(key)):
            self.flush(key, self.policy.reason, at, pos)

    def fill(self, k: int, at: Any) -> None:
        before = len(self.panes)
        super().fill(k, at)
        for pane in self.panes[before:]:
            self.told.trigger(pane)

    def flush(self, key: Any, why: str, at: Any, pos: int | None) -> None:
        super().flush(key, why, at, pos)
        self.told.trigger(self.panes[-1])
        if why != "end":
            self.told.keep(key, [], pos)


@dataclass
class SlidingCalls(reference_sliding.Sliding):
    told: Calls = field(default_factory=Calls)

    def make_room(self, window: reference_sliding.Window, row: reference.Row) -> None:
        super().make_room(window, row)
        held = window.held
        if isinstance(self.evict, reference.Time):
            now = self.partitions.now(row[self.order[0]])
            held = [pos for pos in held if not self.outlived(pos, now)]
        self.told.keep(tuple(row[name] for name in self.key), held, row["id"])

    def insert(self, window: reference_sliding.Window, pos: int) -> None:
        super().insert(window, pos)
        if pos in window.held:
            self.told.insert(tuple(self.rows[pos][name] for name in self.key), pos, pos)

    def fire(self, key: Any, why: str, at: Any, pos: int | None) -> None:
        before = len(self.panes)
        super().fire(key, why, at, pos)
        for pane in self.panes[before:]:
            if pane.mark != "only":
                self.told.keep(key, pane.rows, pos)
                self.told.trigger(pane)


def by_tumbling(log: Log, policy: reference.Policy, marks: Sequence[int], at_end: Any) -> dict[Any, list[Call]]:
    window = TumblingCalls(reference.read(log.table), policy, log.key, log.order)
    reference.play(window, marks, None, at_end)
    return dict(window.told.calls)


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
    return dict(window.told.calls)


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
    told = Calls()
    for lot in lots:
        told.leave(lot.key, lot.left, lot.pos)
        for row in lot.entered:
            told.insert(lot.key, row, lot.pos)
        told.trigger(lot)
    return dict(told.calls)


# --- the replay is that -------------------------------------------------------------------------------------------


@given(st.data(), logs(), st.sampled_from(["count", "delta", "gap", "punct", "flag"]), ENDS)
def test_tumbling(data: st.DataObject, log: Log, policy: str, at_end: str) -> None:
    amount = data.draw(AMOUNTS)
    n = data.draw(st.integers(1, 5))
    marks = data.draw(my.marks(len(log.table)))
    window, by = {
        "count": (f"count({n})", reference.Count(n)),
        "delta": (f"delta(a, {amount})", reference.Delta("a", Fraction(amount), pa.int64())),
        "gap": (f"gap(a, {amount})", reference.Gap("a", Fraction(amount), pa.int64())),
        "punct": ("punct()", reference.Punct()),
        "flag": ("punct(flag)", reference.PunctColumn("flag")),
    }[policy]
    marks = marks if policy == "punct" else []
    assert calls_in(given_by(log, window, marks, at_end=at_end), log.key) == by_tumbling(log, by, marks, at_end)


@given(st.data(), logs(clocked=True), st.sampled_from(["skip", "row"]), ENDS)
def test_time(data: st.DataObject, log: Log, empty: Any, at_end: str) -> None:
    kind = log.kind("clock")
    length, origin = data.draw(my.grids(kind))
    origin = origin or Fraction(0)
    setting = WindowContext(origin=origin, empty=empty)
    got = given_by(log, f"time({my.text(length)})", setting=setting, origin=origin, empty=empty, at_end=at_end)
    by = reference.Time(length, kind, origin, empty)
    assert calls_in(got, log.key) == by_tumbling(log, by, [], at_end)


@given(
    st.data(),
    logs(clocked=True),
    st.sampled_from(["count", "delta", "time"]),
    st.sampled_from(["count", "delta", "time"]),
    st.booleans(),
    ENDS,
)
def test_sliding(data: st.DataObject, log: Log, evict: str, trigger: str, partial: bool, at_end: str) -> None:
    kind = log.kind("clock")

    def policy(name: str, least: int) -> tuple[str, Any]:
        n, amount, (length, _) = data.draw(st.integers(least, 4)), data.draw(AMOUNTS), data.draw(my.grids(kind))
        return {
            "count": (f"count({n})", reference.Count(n)),
            "delta": (f"delta(a, {amount})", reference.Delta("a", Fraction(amount), pa.int64())),
            "time": (f"time({my.text(length)})", reference.Time(length, kind)),
        }[name]

    (out, evicts), (look, triggers) = policy(evict, 0), policy(trigger, 1)
    setting = WindowContext(partial=partial)
    got = given_by(log, f"sliding, {out}, {look}", setting=setting, partial=partial, at_end=at_end)
    assert calls_in(got, log.key) == by_sliding(log, evicts, triggers, partial, at_end)


@given(st.data(), logs(clocked=True), ENDS)
def test_batched(data: st.DataObject, log: Log, at_end: str) -> None:
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    within, _ = data.draw(my.grids(log.kind("clock")))
    every, _ = data.draw(my.grids(log.kind("clock")))
    forms = [
        f"within {my.text(within)}",
        f"within {my.text(within)} every {my.text(every)}",
        f"within {my.text(within)} retain {n}",
        f"retain {n}",
        f"retain {n} every {m}",
        f"partition by k within {my.text(within)} every {my.text(every)} retain {n}",
        f"partition by k retain {n} every {m}",
    ]
    window = data.draw(st.sampled_from(["retain all", *forms, *(f"{form} with unique t" for form in forms)]))
    got = given_by(log, window, at_end=at_end)
    spec = parse_window(window)
    assert isinstance(spec, Batched)
    assert calls_in(got, log.key) == by_batched(log, spec, at_end)


@given(st.data(), logs(falling=True), ENDS, st.booleans())
def test_intervals(data: st.DataObject, log: Log, at_end: str, ordered: bool) -> None:
    """A row goes after the last pane that would show it, also where the end, if it counted, brought that out."""
    kind = log.kind("clock")
    log = replace(log, order=("clock",) if ordered else ())
    duration, period = data.draw(my.grids(kind))[0], data.draw(my.grids(kind))[0]
    age, lag = data.draw(my.grids(kind))[0], data.draw(my.grids(kind))[0]
    check_intervals(log, duration, period, age, data.draw(st.sampled_from([Fraction(0), lag])), at_end)


@pytest.mark.parametrize("at_end", ["flush", "drop"])
@pytest.mark.parametrize("more", [[], [17], [17, 4, 18]])
def test_a_row_waits_for_late_ones_of_its_panes(at_end: str, more: list[int]) -> None:
    """The row at 6 is in 0..10 and 5..15, which come out at 16; then the row at 3 is late for 0..10 alone."""
    log = replace(log_of(clock=[6, 16, 3, *more]), order=())
    check_intervals(log, Fraction(10), Fraction(5), Fraction(100), Fraction(0), at_end)


def check_intervals(log: Log, duration: Fraction, period: Fraction, age: Fraction, lag: Fraction, at_end: Any) -> None:
    kind = log.kind("clock")
    amounts = {"intervalDuration": duration, "creationPeriod": period, "discardAge": age}
    spec = parse_window(", ".join(["timeInterval", *(f"{word}({my.text(one)})" for word, one in amounts.items())]))
    assert isinstance(spec, TimeInterval)
    panes, late, filtered = reference_intervals.intervals(
        reference.read(log.table), duration, period, age, Fraction(0),
        event_time="clock", kind=kind, key=log.key, order=log.order, lag=lag,
    )  # fmt: skip
    plan = plan_of(log, spec, event_time="clock", lag=lag, at_end=at_end)
    sequences = sequences_of(log, plan, [pos for pos in range(len(log.table)) if pos not in late])
    signals = signals_of(log, plan, spec, lag)
    found, _ = panes_of(spec, sequences, signals, WindowContext(event_time="clock"))
    got = calls_in(replayed(log, plan, sequences, signals.marks, found), log.key)
    assert got == by_intervals(log, panes, {*late, *filtered}, at_end)


def signals_of(log: Log, plan: Plan, spec: TimeInterval, lag: Fraction) -> Signals:
    rows, pos = one_batch(log.table), np.arange(len(log.table))
    lateness = make_lateness(log.kind("clock"), spec, lag, Fraction(0))
    values = clock_values(rows.column("clock"), "clock")
    listed = (
        lateness.list_advances_in_order(values)
        if log.order
        else lateness.list_advances(values, lateness.advance(values, None))
    )
    return watermark_signals(watermarks_in_order([watermarks_at(rows.select(list(plan.sort)), pos, *listed)]))


def by_intervals(log: Log, panes: Sequence[reference.Pane], unheld: set[int], at_end: str) -> dict[Any, list[Call]]:
    """Rows in their order, each pane right behind the row that advanced the watermark."""
    rows = reference.read(log.table)
    told = Calls()
    last = {(pane.key, row): number for number, pane in enumerate(panes) for row in pane.rows}
    waiting = list(enumerate(panes))

    def come_out(pos: int | None) -> None:
        while waiting and waiting[0][1].pos == pos:
            number, pane = waiting.pop(0)
            if pane.closed_by == "end" and at_end == "drop":
                continue
            told.trigger(pane)
            if pane.closed_by != "end":
                staying = [row for row in told.here[pane.key] if last[pane.key, row] != number]
                told.keep(pane.key, staying, pos)

    for pos in reference.in_order(rows, log.order):
        if pos not in unheld:
            told.insert(tuple(rows[pos][name] for name in log.key), pos, pos)
        come_out(pos)
    come_out(None)
    return dict(told.calls)


def test_a_count_by_hand() -> None:
    log = log_of(a=[5, 6, 7])
    got = given_by(log, "count(2)").select(["what", "ids", "window", "closed_by", "_at", "_pos", "_row", "_mark"])
    assert [tuple(row.values()) for row in got.to_pylist()] == [
        ("insert", [0], None, None, 10, 0, 0, None),
        ("insert", [1], None, None, 11, 1, 0, None),
        ("trigger", [0, 1], 0, "count", 11, 1, 0, None),
        ("0 count", None, 0, "count", 11, 1, 1, "window"),
        ("evict", [0, 1], None, None, 11, 1, 0, None),
        ("insert", [2], None, None, 12, 2, 0, None),
        ("trigger", [2], 1, "end", None, None, 0, None),
        ("1 end", None, 1, "end", None, None, 1, "window"),
    ]


def test_a_tick_lets_go_what_is_too_old_before_it_looks() -> None:
    log = log_of(clock=[0, 3, 9])
    got = calls_in(given_by(log, "sliding, time(4), time(5)"), ())
    assert [(call.what, call.ids, call.pos) for call in got[()]] == [
        ("insert", (0,), 0),
        ("insert", (1,), 1),
        ("evict", (0,), -1),
        ("trigger", (1,), -1),
        ("evict", (1,), 2),
        ("insert", (2,), 2),
        ("trigger", (2,), None),
    ]


def test_rows_that_came_in_lots_go_in_their_order() -> None:
    """The lot of y comes before that of x; at the end each loses a row, and that of x is the older one."""
    log = log_of(a=range(6), k=["x", "y", "y", "x", "x", "y"])
    got = calls_in(given_by(log, "partition by k retain 2 every 2"), ())[()]
    assert [(call.what, *call.ids) for call in got] == [
        *[("insert", 1), ("insert", 2), ("trigger", 1, 2)],
        *[("insert", 0), ("insert", 3), ("trigger", 0, 1, 2, 3)],
        *[("evict", 0, 1), ("insert", 4), ("insert", 5), ("trigger", 2, 3, 4, 5)],
    ]


# --- how it stands in the result ----------------------------------------------------------------------------------


@given(
    st.data(),
    logs(clocked=True),
    st.sampled_from(
        [
            *("delta(a, 2)", "gap(a, 2)", "time", "sliding, count(3), delta(a, 2)", "sliding, delta(a, 2), time"),
            *("count(2)", "sliding, count(3), count(2)", "sliding, time, count(1)", "within 3", "retain 2"),
        ]
    ),
)
def test_stamps_and_steps_put_calls_in_order(data: st.DataObject, log: Log, window: str) -> None:
    log = replace(log, order=("clock",), key=())
    length, _ = data.draw(my.grids(log.kind("clock")))
    table = given_by(log, window.replace("time", f"time({my.text(length)})"))
    rows = table.to_pylist()
    assert rows == sorted(rows, key=lambda row: [(row[name] is None, row[name]) for name in SORTED])


SORTED = ["_at", "_pos", "_step", "window", "_row"]


@given(
    logs(clocked=True), st.sampled_from(["count(2)", "sliding, count(2), count(2)", "within 3 every 2", "delta(a, 1)"])
)
def test_keys_do_not_see_each_other(log: Log, window: str) -> None:
    """What a key gives does not depend on what other keys there are; the one clock stands where it stands."""
    log = replace(log, key=("k",))
    clock = clock_values(one_batch(log.table).column("clock"), "clock")
    setting = WindowContext(clock=clock.max().item() if len(clock) else None)
    whole = given_by(log, window, setting=setting).to_pylist()
    for key in "xyz":
        one = replace(log, table=log.table.filter(pc.field("k") == key))
        pos = one.table["id"].to_pylist()
        alone = [
            {**row, "_pos": pos[row["_pos"]] if row["_pos"] is not None and row["_pos"] >= 0 else row["_pos"]}
            for row in given_by(one, window, setting=setting).to_pylist()
        ]
        assert alone == [row for row in whole if row["k"] == key]


class Quiet(Operator):
    """Speaks of panes with a large first row only."""

    output: ClassVar = {"x": "int64", "y": "string"}

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> list[dict[str, Any]] | None:
        return [{"x": rows[0]["a"]}] if rows[0]["a"] > 2 else None


def test_a_pane_without_rows_is_a_mark_alone() -> None:
    got = given_by(log_of(a=[1, 5], k=["x", "y"], key=("k",)), "count(1)", operator=f"{__name__}:Quiet")
    rows = got.select(["k", "window", "closed_by", "x", "y", "_at", "_pos", "_row", "_mark"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (None, None, None, None, None, 10, 0, None, "only"),
        ("y", 0, "count", 5, None, 11, 1, 0, "window"),
    ]


def test_plain_has_rows_only() -> None:
    got = given_by(log_of(a=[1, 5]), "count(1)", operator=f"{__name__}:Quiet", plain=True)
    assert got.to_pylist() == [
        {"window": 1, "window_start": 11, "window_end": 11, "closed_by": "count", "x": 5, "y": None}
    ]


class Many(Operator):
    output: ClassVar = {"n": pa.int32()}

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Iterator[dict[str, Any]]:
        return ({"n": n} for n in range(120_000))


def test_tables_are_bounded() -> None:
    """`replayed` looks at each table."""
    got = given_by(log_of(a=[1, 2]), "count(1)", operator=f"{__name__}:Many")
    assert len(got) == 240_000
    assert got["n"][-1].as_py() == 119_999
    assert [row for row, mark in enumerate(got["_mark"].to_pylist()) if mark] == [119_999, 239_999]


def test_no_rows_no_calls() -> None:
    assert len(given_by(log_of(a=[]), "count(1)")) == 0


# --- what operators get -------------------------------------------------------------------------------------------


class Kinds(Operator):
    output: ClassVar = {"seen": "string"}

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> list[dict[str, Any]]:
        with pytest.raises(TypeError):
            rows[0]["a"] = 1
        values = [*rows[0].items(), *self.key.items(), pane.start, pane.end, pane.timing, pane.index]
        return [{"seen": repr(values)}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("s", "datetime.datetime(1970, 1, 1, 0, 0, 5)"), ("us", "datetime.datetime(1970, 1, 1, 0, 0, 0, 5)"), ("ns", "5")],
)
def test_values_are_those_of_python_and_nanoseconds_are_numbers(kind: str, value: str) -> None:
    table = pa.table({"k": ["x"], "a": pa.array([None], pa.int8()), "clock": pa.array([5], pa.timestamp(kind))})
    got = given_by(Log(table, ("k",), ("clock",)), "count(1)", operator=f"{__name__}:Kinds")
    row = f"('k', 'x'), ('a', None), ('clock', {value})"
    assert got["seen"].to_pylist() == [f"[{row}, ('k', 'x'), {value}, {value}, None, None]"]


def test_a_key_that_is_no_column_of_the_rows_is_in_them() -> None:
    log = log_of(a=[1], k=["x"], key=("k",))
    plan = plan_of(log, parse_window("count(1)"), f"{__name__}:Kinds")
    sequences = build(one_batch(log.table), np.arange(1), ("k",), plan.sort, ["a", "clock"])
    signals = window_marks(no_marks(sequences.rows, plan.sort))
    got = replayed(log, plan, sequences, *reversed(panes_of(plan.spec, sequences, signals, PLAIN)))
    assert got["seen"].to_pylist() == ["[('k', 'x'), ('a', 1), ('clock', 10), ('k', 'x'), 10, 10, None, None]"]


def test_times_beyond_those_of_python() -> None:
    table = pa.table({"clock": pa.array([2**62], pa.timestamp("us"))})
    with pytest.raises(DataError, match=r"column 'clock' holds timestamp\[us\] beyond Python's"):
        given_by(Log(table, (), ("clock",)), "count(1)")


# --- what goes wrong ----------------------------------------------------------------------------------------------


class Odd(Operator):
    """Does what ``does`` says at the second row."""

    output: ClassVar = {"n": int, "t": "timestamp[s]", "text": str}
    does: ClassVar[Any] = None

    def insert(self, row: Mapping[str, Any]) -> Any:
        return self.does() if row["id"] == 1 else None


class OddPane(Odd):
    def insert(self, row: Mapping[str, Any]) -> Any:
        return None

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Any:
        return self.does() if pane.window == 1 else None


def raising() -> Iterator[dict[str, Any]]:
    yield {"n": 1}
    raise ValueError("no\nway")


MOMENT = dt.datetime(2026, 1, 1, 0, 0, 0, 5)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (raising, "failed {}: ValueError: no"),
        (lambda: 3, "failed {}: TypeError: 'int' object is not iterable"),
        (lambda: {"n": 1}, "gave 'n' {}, which is no row; yield dicts, or return a list of them"),
        (lambda: [{"m": 1}], "gave a column 'm' {} that %s.output does not name; it names n, t, text"),
        (lambda: [{"n": 1}, {"n": "one"}], "gave n='one' {}, not int64"),
        (lambda: [{"n": 1.5}], "gave n=1.5 {}, not int64"),
        (lambda: [{"n": True}], "gave n=True {}, not int64"),
        (lambda: [{"n": 2**63}], "gave n=9223372036854775808 {}, not int64"),
        (lambda: [{"text": 1}], "gave text=1 {}, not string"),
        (lambda: [{"t": MOMENT}], "gave t=datetime.datetime(2026, 1, 1, 0, 0, 0, 5) {}, not timestamp[s]"),
        (lambda: [{"t": 1.5}], "gave t=1.5 {}, not timestamp[s]"),
    ],
)
@pytest.mark.parametrize(("name", "where"), [("Odd.insert", "at row 1"), ("OddPane.trigger", "in window 1")])
def test_what_fails_is_told(does: Any, words: str, name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = name.partition(".")[0]
    monkeypatch.setattr(Odd, "does", staticmethod(does))
    log = log_of(a=[1, 2], k=["x", "x"], key=("k",))
    with pytest.raises(DataError) as error:
        given_by(log, "count(1)", operator=f"{__name__}:{kind}")
    told = words.replace("%s", kind).format(f"{where} of key k='x'")
    method = name if told.startswith(("failed", "gave a column", "gave 'n'")) else kind
    assert str(error.value) == f"{method} {told}"


def test_what_fits_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = [{"n": 2.0, "t": MOMENT.replace(microsecond=0)}, {"n": np.int64(2), "t": 7}, {}, {"text": None}]
    monkeypatch.setattr(Odd, "does", staticmethod(lambda: fitting))
    got = given_by(log_of(a=[1, 2]), "count(5)", operator=f"{__name__}:Odd", plain=True)
    assert got["n"].to_pylist() == [2, 2, None, None]
    assert got["t"].to_pylist() == [MOMENT.replace(microsecond=0), dt.datetime(1970, 1, 1, 0, 0, 7), None, None]
    assert got["window"].to_pylist() == [None] * 4


class Needy(Operator):
    output: ClassVar = {"n": int}

    def __init__(self, limit: int) -> None:
        self.limit = limit


class Mute(Operator):
    pass


class Torn(Operator):
    output: ClassVar = {"n": "number"}


class Numbered(Operator):
    output: ClassVar = {1: "int64"}


class Rows(Operator):
    output: ClassVar = ["n"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere_at_all:X", "--operator nowhere_at_all:X: cannot import module 'nowhere_at_all': ModuleNotFoundError"),
        (":X", "--operator ':X' is no class; say MODULE:CLASS"),
        (__name__, "--operator {name!r} is no class; say MODULE:CLASS"),
        (f"{__name__}:Lost", "has no class 'Lost'"),
        (f"{__name__}:log_of", "has no class 'log_of'"),
        (f"{__name__}:Log", "Log is no operator; derive it from wincli.Operator"),
        (f"{__name__}:Mute", 'operator Mute does not say what it writes; say output = {{"NAME": "TYPE", ...}}'),
        (f"{__name__}:Rows", "operator Rows does not say what it writes"),
        (f"{__name__}:Torn", "operator Torn: column 'n' is of type 'number', which is none; say \"int64\""),
        (f"{__name__}:Numbered", "operator Numbered writes a column 1, and names are texts"),
    ],
)
def test_what_is_no_operator(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(name)
    assert words.format(name=__name__) in str(error.value)


def test_operators_are_made_without_arguments() -> None:
    with pytest.raises(ConfigError, match=r"^Needy\(\) failed: TypeError: .*'limit'; an operator is made without"):
        given_by(log_of(a=[1]), "count(1)", operator=f"{__name__}:Needy")


def test_not_with_partition_eviction() -> None:
    with pytest.raises(ConfigError, match=r"--operator does not go with partitionCount\(1\)"):
        given_by(log_of(a=[1], k=["x"], key=("k",)), "tumbling, count(2), partitioned, partitionCount(1)")


def test_types_of_output() -> None:
    class Typed(Operator):
        output: ClassVar = {"a": int, "b": float, "c": str, "d": bool, "e": "timestamp[us]", "f": pa.list_(pa.int8())}

    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us"), pa.list_(pa.int8())]
    assert output_fields(Typed) == [pa.field(name, kind) for name, kind in zip("abcdef", kinds, strict=True)]


def test_the_package_offers_the_base() -> None:
    assert (wincli.Operator, wincli.PaneInfo) == (Operator, PaneInfo)


# --- examples -----------------------------------------------------------------------------------------------------


def test_latest_moves() -> None:
    table = pa.table(
        {
            "symbol": ["b", "a", "a", "a", "b", "a", "a"],
            "price": [7.0, 1.0, 1.25, None, 7.5, 1.5, 2.0],
            "clock": [0, 1, 2, 3, 11, 12, 21],
        }
    )
    got = given_by(Log(table, (), ("clock",)), "time(10)", operator="wincli.conf.examples.latest_moves:LatestMoves")
    rows = got.select(["window", "symbol", "price", "moved", "_mark"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "a", 1.25, None, None),
        (0, "b", 7.0, None, "window"),
        (None, None, None, None, "only"),
        (2, "a", 2.0, 0.75, "window"),
    ]


def test_operators_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of the page that begins with ``# NAME.py`` is a module, and the tables behind it are what it gives."""
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    modules = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", page, re.DOTALL)
    for name, text in modules:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    table = pa.table(
        {
            "ts": pa.array([dt.datetime(2026, 1, 1, 9, s // 60, s % 60) for s in (0, 10, 20, 70)], pa.timestamp("us")),
            "user": ["ann", "ann", "ann", "ann"],
            "page": ["/", "/cart", "/", "/"],
        }
    )
    told = re.findall(r"`(\w+:\w+)` with `--window \"([^\"]*)\"` gives\n\n((?:\|.*\n)+)", page)
    assert {name for name, _ in modules} == {name.partition(":")[0] for name, _, _ in told}
    for operator, window, drawn in told:
        got = given_by(Log(table, ("user",), ("ts",)), window, operator=operator, plain=True)
        names, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in drawn.splitlines()]
        shown = [
            ["" if value is None else str(value) for value in row.values()] for row in got.select(names).to_pylist()
        ]
        assert shown == cells


def log_of(
    a: Sequence[int | None] | None = None, clock: Sequence[int] | None = None, key: tuple[str, ...] = (), **more: Any
) -> Log:
    """A log ordered by a clock that goes 10, 11, 12, ... unless given."""
    size = len(a if a is not None else clock or ())
    columns = {"id": pa.array(range(size), pa.int64()), **more}
    columns["a"] = pa.array(list(range(size)) if a is None else list(a), pa.int64())
    columns["clock"] = pa.array(list(range(10, 10 + size)) if clock is None else list(clock), pa.int64())
    return Log(pa.table(columns), key, ("clock",))


def test_empty_ticks_stand_before_the_rows_of_their_instant_whatever_orders_these() -> None:
    log = pa.table({"t": pa.array([0, 30], pa.timestamp("s")), "n": [1, 2], "symbol": ["a", "b"], "price": [1.0, 2.0]})
    name = "wincli.conf.examples.latest_moves:LatestMoves"
    found = wincli.aggregate(log, "time(10)", order_by=["t", "n"], empty="mark", operator=name)
    marks = [row for row in found.to_pylist() if row["_mark"] == "only"]
    assert [(row["_at"].second, row["_pos"], row["_turn"]) for row in marks] == [(20, -1, 0), (30, -1, 0)]
