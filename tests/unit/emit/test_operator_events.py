"""All events of operators, for every kind of window, with evictions of keys and those that operators ask for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import event_time, growing, sliding
from references import tumbling as reference
from references.batched import batched
from references.operator_events import (
    Event,
    GrowingEvents,
    IntervalEvents,
    SlidingEvents,
    Told,
    TumblingEvents,
    batched_events,
)
from references.tumbling import Eviction, Partitions
from support import strategies as my
from support.keeping_operators import ASKING, KEEPER, events_in
from support.operator_logs import ENDS, Log, given_by, log_of, logs
from support.pane_laws import policy
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.in_memory import aggregate
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched

AMOUNTS = st.sampled_from(["0", "1", "2", "3", "7", "50"])
EVICTIONS: st.SearchStrategy[Eviction | None] = st.one_of(
    st.none(),
    st.none(),
    st.tuples(st.sampled_from(["partitionAge", "partitionCount", "tupleCount"]), st.integers(1, 4).map(Fraction)),
)


def as_asking(event: str, rows: Any) -> bool:
    return (event == "insert" and rows[0] % 5 == 3) or (event == "trigger" and sum(rows) % 4 == 1)


def agree(log: Log, window: str, told: Told, eviction: Eviction | None = None, **options: Any) -> None:
    """An operator is told what the reference says. Causes are told of inserts, evictions of rows and panes."""
    if eviction is not None:
        window = f"{window}, partitioned, {eviction[0]}({eviction[1]})"
    if options["at_end"] == "flush":
        told.finish()
    operator = KEEPER if told.asks is not as_asking else ASKING
    found = events_in(given_by(log, window, operator, **options), log.key)
    plain = {key: [event if event.what in {"insert", "evict", "trigger"} else event._replace(pos=None)
                   for event in events] for key, events in found.items()}  # fmt: skip
    assert plain == dict(told.events)


def drawn(draw: st.DrawFn, log: Log, words: list[str], least: int = 1) -> tuple[str, Any]:
    """One of the policies that these words name, as a spec has it and as the reference does."""
    word, (length, origin) = draw(st.sampled_from(words)), draw(my.grids(log.kind("clock")))
    amount = Fraction(draw(st.integers(least, 5) if word == "count" else AMOUNTS)) if word != "time" else length
    return policy(word, amount, pa.int64(), log.kind("clock"), origin)


@examples(400)
@given(st.data(), logs(clocked=True), EVICTIONS, st.booleans(), st.booleans(), ENDS)
def test_tumbling(
    data: st.DataObject, log: Log, eviction: Eviction | None, emit: bool, asks: bool, at_end: Any
) -> None:
    log = log if eviction is None else replace(log, key=("k",))
    window, ends = data.draw(st.composite(drawn)(log, ["count", "delta", "gap", "punct", "flag", "time", "time"]))
    marks = data.draw(my.marks(len(log.table))) if window == "punct()" else []
    told = Told(as_asking) if asks and eviction is None else Told()
    options: dict[str, Any] = {"emit_evicted": emit} if eviction else {}
    options |= {"marks": marks} if window == "punct()" else {}
    if isinstance(ends, reference.Time):
        ends = replace(ends, empty="skip" if asks else data.draw(st.sampled_from(["skip", "row"])))
        options |= {"origin": ends.origin, "empty": ends.empty}
    partitions = Partitions(eviction, log.kind("clock"))
    rows, own = reference.read(log.table), {"key": log.key, "order": log.order}
    expected = TumblingEvents(
        rows=rows, policies=(ends,), partitions=partitions, emit=emit and bool(eviction), told=told, **own
    )  # type: ignore[arg-type]
    reference.play(expected, marks, None, at_end)
    agree(log, window, told, eviction, at_end=at_end, **options)


@examples(400)
@given(st.data(), logs(clocked=True), EVICTIONS, st.booleans(), st.booleans(), ENDS)
def test_sliding(
    data: st.DataObject, log: Log, eviction: Eviction | None, partial: bool, asks: bool, at_end: Any
) -> None:
    log, words = log if eviction is None else replace(log, key=("k",)), ["count", "delta", "time"]
    out, evict = data.draw(st.composite(drawn)(log, words, 0))
    look, trigger = data.draw(st.composite(drawn)(log, words))
    if isinstance(trigger, reference.Time):
        trigger = replace(trigger, origin=Fraction(0))
    told = Told(as_asking) if asks and eviction is None and (log.key or not partial) else Told()
    partitions, own = Partitions(eviction, log.kind("clock")), {"key": log.key, "order": log.order}
    policies: dict[str, Any] = {"evict": evict, "trigger": trigger, "partial": partial, "told": told}
    expected = SlidingEvents(rows=reference.read(log.table), partitions=partitions, **policies, **own)  # type: ignore[arg-type]
    sliding.play(expected, at_end=at_end)
    agree(log, f"sliding, {out}, {look}", told, eviction, at_end=at_end, partial=partial)


@examples(200)
@given(st.data(), logs(clocked=True), st.integers(1, 5), st.booleans(), ENDS)
def test_growing(data: st.DataObject, log: Log, parts: int, asks: bool, at_end: Any) -> None:
    every, told = data.draw(my.grids(log.kind("clock")))[0], Told(as_asking) if asks else Told()
    windows = reference.Time(parts * every, log.kind("clock"))
    own: dict[str, Any] = {"windows": windows, "every": every, "key": log.key, "order": log.order}
    growing.play(GrowingEvents(rows=reference.read(log.table), told=told, **own), at_end=at_end)
    agree(log, f"time({my.text(parts * every)}) every {my.text(every)}", told, at_end=at_end)


@given(st.data(), logs(clocked=True), ENDS)
def test_batched(data: st.DataObject, log: Log, at_end: Any) -> None:
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    within, every = (my.text(data.draw(my.grids(log.kind("clock")))[0]) for _ in range(2))
    forms = [
        *(f"within {within}", f"within {within} every {every}", f"within {within} retain {n}"),
        *(f"retain {n}", f"retain {n} every {m}", f"partition by k retain {n} every {m}"),
        f"partition by k within {within} every {every} retain {n}",
    ]
    window = data.draw(st.sampled_from(["retain all", *forms, *(f"{form} with unique t" for form in forms)]))
    spec, told = parse_window(window), Told()
    assert isinstance(spec, Batched)
    names = ("within", "every", "retain", "retain_all", "unique", "partition_by")
    clause: dict[str, Any] = {name: getattr(spec, name) for name in names}
    where: dict[str, Any] = {"key": log.key, "order": log.order, "clock_kind": log.kind("clock"), "at_end": at_end}
    batched_events(told, batched(reference.read(log.table), **clause, **where))
    agree(log, window, told, at_end=at_end)


def check_intervals(log: Log, spans: dict[str, Fraction], lag: Fraction, at_end: Any) -> None:
    told, kind, spec = Told(), log.kind("clock"), ", ".join(f"{word}({my.text(one)})" for word, one in spans.items())
    grid = event_time.Grid(spans["intervalDuration"], spans["creationPeriod"], Fraction(0), kind)
    own: dict[str, Any] = {"event_time": "clock", "key": log.key, "order": log.order, "lag": lag}
    rows, age = reference.read(log.table), spans["discardAge"]
    event_time.play(IntervalEvents(rows=rows, grid=grid, age=age, told=told, **own), None, at_end)
    agree(log, f"timeInterval, {spec}", told, at_end=at_end, event_time="clock", lag=lag, rejected="drop")


@given(st.data(), logs(falling=True), ENDS, st.booleans())
def test_intervals(data: st.DataObject, log: Log, at_end: Any, ordered: bool) -> None:
    """A row goes when its last interval is closed, which rows to come do not decide."""
    log = replace(log, order=("clock",) if ordered else ())
    words = ("intervalDuration", "creationPeriod", "discardAge")
    spans = {word: data.draw(my.grids(log.kind("clock")))[0] for word in words}
    check_intervals(log, spans, data.draw(my.grids(log.kind("clock")))[0] * data.draw(st.integers(0, 1)), at_end)


@pytest.mark.parametrize("at_end", ["flush", "drop"])
@pytest.mark.parametrize("more", [[], [17], [17, 4, 18]])
def test_a_row_waits_for_late_ones_of_its_panes(at_end: str, more: list[int]) -> None:
    """The row at 6 is in 0..10 and 5..15, which come out at 16; then the row at 3 is late for 0..10 alone."""
    log = replace(log_of(clock=[6, 16, 3, *more]), order=())
    spans = {"intervalDuration": Fraction(10), "creationPeriod": Fraction(5), "discardAge": Fraction(100)}
    check_intervals(log, spans, Fraction(0), at_end)


# --- by hand ------------------------------------------------------------------------------------------------------


def test_a_count_by_hand() -> None:
    got = given_by(log_of(a=[5, 6, 7]), "count(2)")
    rows = got.select(["what", "ids", "window", "closed_by", "_at", "_pos", "_row", "_mark"]).to_pylist()
    assert [tuple(row.values()) for row in rows if row["what"] not in {"full", "finish"}] == [
        ("insert", [0], None, None, 10, 0, 0, None),
        ("insert", [1], None, None, 11, 1, 0, None),
        ("trigger", [0, 1], 0, "count", 11, 1, 0, "window"),
        ("evict", [0, 1], None, None, 11, 1, 0, None),
        ("insert", [2], None, None, 12, 2, 0, None),
        ("trigger", [2], 1, "end", None, None, 0, "window"),
    ]


def test_rows_that_entered_in_batches_are_evicted_in_their_order() -> None:
    """The lot of y comes before that of x; at the end each loses a row, and that of x is the older one."""
    log = log_of(a=range(6), k=["x", "y", "y", "x", "x", "y"])
    got = events_in(given_by(log, "partition by k retain 2 every 2"), ())[()]
    assert [(what, *ids) for what, ids, *_ in got[:-1]] == [
        *[("insert", 1), ("insert", 2), ("trigger", 1, 2)],
        *[("insert", 0), ("insert", 3), ("trigger", 0, 1, 2, 3)],
        *[("evict", 0, 1), ("insert", 4), ("insert", 5), ("trigger", 2, 3, 4, 5)],
    ]
    assert got[-1] == Event("finish", (), None, None)


@pytest.mark.parametrize(
    ("window", "options", "words"),
    [
        ("count(2), partitioned, partitionCount(1)", {"key": "k"}, "partitionCount(1) decides for all keys together"),
        ("sliding, time(2), time(1)", {"partial": True}, "--partial tells each tick at which the window is empty"),
    ],
)
def test_where_an_operator_may_not_ask(window: str, options: dict[str, Any], words: str) -> None:
    log = pa.table({"id": [3, 4], "t": [1, 2], "k": ["x", "x"]})
    with pytest.raises(DataError) as caught:
        aggregate(log, window, order_by="t", operator=ASKING, **options)
    assert words in str(caught.value)
    assert str(caught.value).startswith("Asking.evict_partition failed")


def test_many_evictions_of_one_long_key() -> None:
    """What comes after an eviction is computed in parts, which show nowhere."""
    size = 5000
    log = pa.table({"id": [3 if i % 700 == 699 else 0 for i in range(size)], "t": range(size)})
    result = aggregate(log, "count(3)", order_by="t", operator=ASKING)
    panes = result.filter(pa.compute.equal(result["what"], "trigger"))
    assert panes["window"].to_pylist() == list(range(len(panes)))
    gone = [i for i in range(size) if i % 700 == 699]
    lives = [b - a for a, b in zip([-1, *gone], [*gone, size - 1], strict=True)]
    assert len(panes) == sum(n // 3 - (n % 3 == 0) for n in lives[:-1]) + -(-lives[-1] // 3)
