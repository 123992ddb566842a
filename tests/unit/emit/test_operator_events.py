"""All events of operators, with partition eviction and with evictions that operators ask for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references import tumbling as reference
from references.eviction import Eviction, Partitions
from references.operator_events import Asks, SlidingEvents, Told, TumblingEvents
from support import strategies as my
from support.keeping_operators import ASKING, KEEPER
from support.operator_logs import ENDS, Log, logs
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.in_memory import aggregate

AMOUNTS = st.sampled_from(["0", "1", "2", "3", "7"])
KINDS = [pa.int64(), pa.timestamp("us"), pa.float64()]
EVICTIONS: st.SearchStrategy[Eviction | None] = st.one_of(
    st.none(),
    st.none(),
    st.tuples(st.sampled_from(["partitionAge", "partitionCount", "tupleCount"]), st.integers(1, 4).map(Fraction)),
)


def never(event: str, rows: Any) -> bool:
    return False


def as_asking(event: str, rows: Any) -> bool:
    return (event == "insert" and rows[0] % 5 == 3) or (event == "trigger" and sum(rows) % 4 == 1)


def called(log: Log, window: str, asks: Asks, **options: Any) -> dict[Any, list[Any]]:
    operator = KEEPER if asks is never else ASKING
    order: Any = list(log.order) or "arrival"
    result = aggregate(log.table, window, key=log.key, order_by=order, operator=operator, **options)
    events: dict[Any, list[Any]] = {}
    turns: dict[Any, int] = {}
    for row in result.to_pylist():
        if row["what"] is None:
            continue
        key = tuple(row[name] for name in log.key)
        assert row["turn"] == turns.get(key, 0) + 1  # a new operator begins to count anew
        turns[key] = 0 if row["what"] == "gone" else row["turn"]
        events.setdefault(key, []).append((row["what"], tuple(row["ids"])))
        assert (row["closed_by"] == "end") == (row["what"] == "finish" or "end" in (row["pane"] or ""))
    return events


def keyed(log: Log, eviction: Eviction | None) -> tuple[Log, str]:
    if eviction is None:
        return log, ""
    return Log(log.table, ("k",), log.order), f", partitioned, {eviction[0]}({eviction[1]})"


@examples(300)
@given(st.data(), logs(clocked=True, kinds=KINDS), EVICTIONS, st.booleans(), st.booleans(), ENDS)
def test_tumbling(
    data: st.DataObject, log: Log, eviction: Eviction | None, emit: bool, asks: bool, at_end: Any
) -> None:
    log, more = keyed(log, eviction)
    kind, amount, n = log.kind("clock"), data.draw(AMOUNTS), data.draw(st.integers(1, 5))
    length, _ = data.draw(my.grids(kind))
    window, by = data.draw(
        st.sampled_from(
            [
                (f"count({n})", reference.Count(n)),
                (f"delta(a, {amount})", reference.Delta("a", Fraction(amount), pa.int64())),
                (f"gap(a, {amount})", reference.Gap("a", Fraction(amount), pa.int64())),
                ("punct(flag)", reference.PunctColumn("flag")),
                (f"time({my.text(length)})", reference.Time(length, kind)),
            ]
        )
    )
    asking = as_asking if asks and eviction is None else never
    told = Told(asking)
    expected = TumblingEvents(
        reference.read(log.table), by, log.key, log.order, partitions=Partitions(eviction, kind), emit=emit, told=told
    )
    reference.play(expected, [], None, at_end)
    if at_end == "flush":
        told.finish()
    options = {"emit_evicted": emit} if eviction else {}
    assert called(log, window + more, asking, at_end=at_end, **options) == dict(told.events)


@examples(300)
@given(st.data(), logs(clocked=True, kinds=KINDS), EVICTIONS, st.booleans(), st.booleans(), ENDS)
def test_sliding(
    data: st.DataObject, log: Log, eviction: Eviction | None, partial: bool, asks: bool, at_end: Any
) -> None:
    log, more = keyed(log, eviction)
    kind = log.kind("clock")

    def policy(least: int) -> tuple[str, Any]:
        n, amount, (length, _) = data.draw(st.integers(least, 4)), data.draw(AMOUNTS), data.draw(my.grids(kind))
        return data.draw(
            st.sampled_from(
                [
                    (f"count({n})", reference.Count(n)),
                    (f"delta(a, {amount})", reference.Delta("a", Fraction(amount), pa.int64())),
                    (f"time({my.text(length)})", reference.Time(length, kind)),
                ]
            )
        )

    (out, evicts), (look, triggers) = policy(0), policy(1)
    asking = as_asking if asks and eviction is None and (log.key or not partial) else never
    told, rows = Told(asking), reference.read(log.table)
    window = SlidingEvents(rows, evicts, triggers, log.key, log.order, partial, Partitions(eviction, kind), told=told)
    if isinstance(triggers, reference.Time) and rows:
        window.next_tick = triggers.window_of(min(row["clock"] for row in rows.values()))
    for pos in reference.in_order(rows, log.order):
        window.ticks_until(window.clock(pos))
        window.on_row(pos)
    end = max((row["clock"] for row in rows.values()), default=None)
    window.ticks_until(end)
    if at_end == "flush" and rows:
        window.on_end(window.partitions.now(end))
        told.finish()
    got = called(log, f"sliding, {out}, {look}{more}", asking, at_end=at_end, partial=partial)
    assert got == dict(told.events)


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
