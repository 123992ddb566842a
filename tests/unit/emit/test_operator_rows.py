"""The rows that an operator gives, in the result: their order, stamps and marks, and tables of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.tumbling import seconds_per_unit, ticks_of
from support import strategies as my
from support.operator_logs import Log, given_by, log_of, logs
from wincli.windowing.operator import Operator, PaneInfo

WINDOWS = [
    *("count(2)", "delta(a, 2)", "gap(a, 2)", "time", "within 3", "within 3 every 2", "retain 2"),
    *("sliding, count(3), count(2)", "sliding, count(3), delta(a, 2)", "sliding, delta(a, 2), time"),
    "sliding, time, count(1)",
]
SORTED = ["_at", "_pos", "_step", "window", "_row"]


@given(st.data(), logs(clocked=True), st.sampled_from(WINDOWS))
def test_stamps_and_steps_put_calls_in_order_and_keys_do_not_see_each_other(
    data: st.DataObject, log: Log, window: str
) -> None:
    """What a key gives does not depend on what other keys there are; the one clock stands where it stands."""
    log = replace(log, order=("clock",), key=("k",))
    length, _ = data.draw(my.grids(log.kind("clock")))
    window = window.replace("time", f"time({my.text(length)})")
    clock = [Fraction(each) * seconds_per_unit(log.kind("clock")) for each in ticks_of(log.table["clock"])]
    options: dict[str, Any] = {"clock": max(clock, default=None)}
    whole = given_by(log, window, **options).to_pylist()
    for key in "xyz":
        one = replace(log, table=log.table.filter(pc.field("k") == key))
        pos = one.table["id"].to_pylist()
        alone = [
            {**row, "_pos": pos[row["_pos"]] if row["_pos"] is not None and row["_pos"] >= 0 else row["_pos"]}
            for row in given_by(one, window, **options).to_pylist()
        ]
        assert alone == [row for row in whole if row["k"] == key]
        assert alone == sorted(alone, key=lambda row: [(row[name] is None, row[name]) for name in SORTED])


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


def test_many_rows_of_one_pane() -> None:
    got = given_by(log_of(a=[1, 2]), "count(1)", operator=f"{__name__}:Many")
    assert len(got) == 240_000
    assert got["n"][-1].as_py() == 119_999
    assert [row for row, mark in enumerate(got["_mark"].to_pylist()) if mark] == [119_999, 239_999]


def test_no_rows_no_calls() -> None:
    assert len(given_by(log_of(a=[]), "count(1)")) == 0


def test_empty_ticks_sort_before_the_rows_of_their_instant() -> None:
    log = pa.table({"t": pa.array([0, 30], pa.timestamp("s")), "n": [1, 2], "symbol": ["a", "b"], "price": [1.0, 2.0]})
    name = "wincli.conf.examples.latest_moves:LatestMoves"
    found = wincli.aggregate(log, "time(10)", order_by=["t", "n"], empty="mark", operator=name)
    marks = [row for row in found.to_pylist() if row["_mark"] == "only"]
    assert [(row["_at"].second, row["_pos"], row["_turn"]) for row in marks] == [(20, -1, 0), (30, -1, 0)]
