"""What operators are given, and the rows that they give: as Python values, in order, with stamps and marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.tumbling import seconds_per_unit, ticks_of
from support import strategies as my
from support.keeping_operators import Keeper
from support.operator_logs import ENDS, Log, given_by, log_of, logs
from support.strategies import examples
from wincli.windowing.emit.operator_blocks import python_values
from wincli.windowing.errors import DataError
from wincli.windowing.in_memory import aggregate
from wincli.windowing.operator import Operator, PaneInfo

Rows = Sequence[Mapping[str, Any]]


class Kinds(Operator):
    output: ClassVar = {"seen": "string"}

    def trigger(self, rows: Rows, pane: PaneInfo) -> list[dict[str, Any]]:
        with pytest.raises(TypeError):
            rows[0]["a"] = 1  # type: ignore[index]
        values = [*rows[0].items(), *self.key.items(), pane.start, pane.end, pane.timing, pane.index]
        return [{"seen": repr(values)}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("s", "datetime.datetime(1970, 1, 1, 0, 0, 5)"), ("us", "datetime.datetime(1970, 1, 1, 0, 0, 0, 5)"), ("ns", "5")],
)
def test_values_are_those_of_python_and_nanoseconds_are_numbers(kind: str, value: str) -> None:
    table = pa.table({"k": ["x"], "a": pa.array([None], pa.int8()), "clock": pa.array([5], pa.timestamp(kind))})
    got = given_by(Log(table, ("k",), ("clock",)), "count(1)", operator=f"{__name__}:Kinds")
    row = f"('k', 'x'), ('clock', {value}), ('a', None)"
    assert got["seen"].to_pylist() == [f"[{row}, ('k', 'x'), {value}, {value}, None, None]"]


class Holding(Operator):
    """Makes sure that it is given the rows that came in, and no others."""

    output: ClassVar = {"held": int}

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def insert(self, row: Mapping[str, Any]) -> None:
        assert row["id"] not in self.rows
        assert all(row[name] == value for name, value in self.key.items())
        self.rows[row["id"]] = row

    def evict(self, rows: Rows) -> None:
        assert rows
        assert all(self.rows.pop(row["id"]) is row for row in rows)

    def trigger(self, rows: Rows, pane: PaneInfo) -> list[dict[str, Any]]:
        assert all(self.rows[row["id"]] is row for row in rows)
        return [{"held": len(self.rows)}]


@pytest.mark.parametrize(
    "window",
    [
        "count(3)",
        "sliding, delta(a, 2), count(2)",
        "sliding, time(3), time(2)",
        "time(6) every 3",
        "within 4",
        "retain 3 every 2",
    ],
)
def test_rows_that_leave_or_are_shown_are_those_that_came_in(window: str) -> None:
    log = log_of(a=[1, 2, 3, 1, 9, 8, 9, 9], clock=[1, 1, 2, 4, 5, 9, 9, 12], k=list("xyxxyxyx"), key=("k",))
    assert max(given_by(log, window, operator=f"{__name__}:Holding")["held"].drop_null().to_pylist()) >= 2


@pytest.mark.parametrize("tick", [2**62, -(2**63)])
def test_times_beyond_those_of_python_are_told(tick: int) -> None:
    table = pa.table({"clock": pa.array([tick], pa.timestamp("us"))})
    with pytest.raises(DataError, match=r"column 'clock' holds timestamp\[us\] beyond Python's"):
        given_by(Log(table, (), ("clock",)), "count(1)")


COLUMNS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(allow_nan=False, width=32),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "ü", "\x00"]) | st.text(max_size=3),
    pa.large_string(): st.text(max_size=3),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["row", "end", ""]),
    **{
        pa.timestamp(unit, zone): st.none() | st.integers(-1, 10**9)
        for unit in ("s", "ms", "us")
        for zone in (None, "UTC")
    },
    pa.date32(): st.dates(),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=2),
}


@pytest.mark.parametrize("dtype", COLUMNS, ids=str)
@given(data=st.data(), sliced=st.integers(0, 3))
def test_values_are_those_of_arrow(dtype: pa.DataType, data: st.DataObject, sliced: int) -> None:
    values = data.draw(st.lists(COLUMNS[dtype], max_size=9) | st.lists(st.none() | COLUMNS[dtype], max_size=9))
    column = pa.array(values, dtype).slice(sliced)
    found = python_values("x", column)
    assert found == column.to_pylist()
    assert [type(value) for value in found] == [type(value) for value in column.to_pylist()]


def test_equal_texts_are_one_object() -> None:
    first, second, third = python_values("x", pa.array(["long ago"] * 3))
    assert first is second is third


# --- the rows that they give --------------------------------------------------------------------------------------

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


class Loud(Keeper):
    """Asks for an eviction at some panes."""

    def trigger(self, rows: Rows, pane: PaneInfo) -> list[dict[str, Any]]:
        if sum(row["id"] for row in rows) % 4 == 1:
            self.evict_partition()
        return super().trigger(rows, pane)


class Silent(Loud):
    insert, evict, initial_full, finish = Operator.insert, Operator.evict, Operator.initial_full, Operator.finish


@pytest.mark.parametrize(
    "window", ["count(3)", "delta(a, 2)", "sliding, count(3), count(2)", "sliding, count(2), delta(a, 1)"]
)
@examples(60)
@given(logs(clocked=True), ENDS)
def test_an_operator_that_inherits_methods_is_told_the_rest_as_others_are(window: str, log: Log, at_end: Any) -> None:
    """In the same steps: methods that it inherits are not called."""
    loud, silent = (given_by(log, window, f"{__name__}:{name}", at_end=at_end) for name in ("Loud", "Silent"))
    same = [name for name in loud.column_names if name not in {"turn", "seen", "_row"}]
    is_pane = pc.is_in(loud["what"], value_set=pa.array(["trigger", "gone", None]))
    assert silent.select(same).to_pylist() == loud.select(same).filter(is_pane).to_pylist()


class Later(Operator):
    """Gets one method when it is made, and others at its second pane."""

    output: ClassVar = {"ids": str}

    def __init__(self) -> None:
        self.finish = lambda: [{"ids": "finish"}]  # type: ignore[method-assign]

    def trigger(self, rows: Rows, pane: PaneInfo) -> None:
        if pane.window == 1:
            self.insert = lambda row: [{"ids": f"in {row['id']}"}]  # type: ignore[method-assign]
            self.evict = lambda rows: [{"ids": f"out {[row['id'] for row in rows]}"}]  # type: ignore[method-assign]


class Early(Later):
    def __init__(self) -> None:
        super().__init__()
        self.insert = lambda row: [{"ids": f"first {row['id']}"}]  # type: ignore[method-assign]


@pytest.mark.parametrize(("name", "first"), [("Later", []), ("Early", [f"first {n}" for n in range(4)])])
def test_methods_that_are_set_on_an_operator_are_called_from_then_on(name: str, first: list[str]) -> None:
    table = pa.table({"id": list(range(6))})
    given = aggregate(table, "count(2)", order_by="id", operator=f"{__name__}:{name}", plain=True)
    then = ["out [2, 3]", "in 4", "in 5", "out [4, 5]", "finish"]
    assert given.column("ids").to_pylist() == [*first, *then]


class Sparse(Operator):
    """Speaks of panes with a large first row only."""

    output: ClassVar = {"x": "int64", "y": "string"}

    def trigger(self, rows: Rows, pane: PaneInfo) -> list[dict[str, Any]] | None:
        return [{"x": rows[0]["a"]}] if rows[0]["a"] > 2 else None


def test_a_pane_without_rows_is_a_mark_alone_and_plain_results_have_none() -> None:
    log = log_of(a=[1, 5], k=["x", "y"], key=("k",))
    got, plain = (given_by(log, "count(1)", operator=f"{__name__}:Sparse", plain=plain) for plain in (False, True))
    rows = got.select(["k", "window", "closed_by", "x", "y", "_at", "_pos", "_row", "_mark"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (None, None, None, None, None, 10, 0, None, "only"),
        ("y", 0, "count", 5, None, 11, 1, 0, "window"),
    ]
    assert [tuple(row.values()) for row in plain.to_pylist()] == [("y", 0, 11, 11, "count", 5, None)]


class Many(Operator):
    output: ClassVar = {"n": pa.int32()}

    def trigger(self, rows: Rows, pane: PaneInfo) -> Iterator[dict[str, Any]]:
        return ({"n": n} for n in range(120_000))


def test_many_rows_of_one_pane() -> None:
    got = given_by(log_of(a=[1, 2]), "count(1)", operator=f"{__name__}:Many")
    assert len(got) == 240_000
    assert got["n"][-1].as_py() == 119_999
    assert [row for row, mark in enumerate(got["_mark"].to_pylist()) if mark] == [119_999, 239_999]


def test_empty_ticks_sort_before_the_rows_of_their_instant() -> None:
    log = pa.table({"t": pa.array([0, 30], pa.timestamp("s")), "n": [1, 2], "symbol": ["a", "b"], "price": [1.0, 2.0]})
    name = "wincli.conf.examples.latest_moves:LatestMoves"
    found = aggregate(log, "time(10)", order_by=["t", "n"], empty="mark", operator=name)
    marks = [row for row in found.to_pylist() if row["_mark"] == "only"]
    assert [(row["_at"].second, row["_pos"], row["_turn"]) for row in marks] == [(20, -1, 0), (30, -1, 0)]
