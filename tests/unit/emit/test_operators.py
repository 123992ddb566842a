"""Operators: the replay calls them as a window that is told one event at a time would, for every kind of window.

count(2)                 insert 1   insert 2   trigger [1 2]   evict [1 2]   insert 3 ...
sliding, count(2)        insert 1   trigger [1]   insert 2   trigger [1 2]   evict [1]   insert 3   trigger [2 3]
sliding, delta, delta    trigger (before the row that trips)   evict   insert
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from references import tumbling as reference
from references.operators import by_batched, by_sliding, by_tumbling
from support import strategies as my
from support.operator_calls import calls_in, given_by
from support.operator_logs import ENDS, Log, log_of, logs
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched

AMOUNTS = st.sampled_from(["0", "1", "2", "3", "7", "50"])


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


def test_tick_evicts_old_rows_before_it_triggers() -> None:
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


def test_rows_that_entered_in_batches_are_evicted_in_their_order() -> None:
    """The lot of y comes before that of x; at the end each loses a row, and that of x is the older one."""
    log = log_of(a=range(6), k=["x", "y", "y", "x", "x", "y"])
    got = calls_in(given_by(log, "partition by k retain 2 every 2"), ())[()]
    assert [(call.what, *call.ids) for call in got] == [
        *[("insert", 1), ("insert", 2), ("trigger", 1, 2)],
        *[("insert", 0), ("insert", 3), ("trigger", 0, 1, 2, 3)],
        *[("evict", 0, 1), ("insert", 4), ("insert", 5), ("trigger", 2, 3, 4, 5)],
    ]
