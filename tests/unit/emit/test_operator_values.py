"""The rows, keys and panes that an operator is given, as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator_logs import Log, given_by, log_of
from wincli.windowing.emit.operator_blocks import python_values
from wincli.windowing.errors import DataError
from wincli.windowing.operator import Operator, PaneInfo


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

    def evict(self, rows: Sequence[Mapping[str, Any]]) -> None:
        assert rows
        assert all(self.rows.pop(row["id"]) is row for row in rows)

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> list[dict[str, Any]]:
        assert all(self.rows[row["id"]] is row for row in rows)
        return [{"held": len(self.rows)}]


@pytest.mark.parametrize(
    "window",
    ["count(3)", "sliding, delta(a, 2), count(2)", "sliding, time(3), time(2)", "within 4", "retain 3 every 2"],
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
