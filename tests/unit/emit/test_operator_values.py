"""The rows, keys and panes that an operator is given, as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from support.operator_calls import PLAIN, given_by, plan_of, replayed
from support.operator_logs import Log, log_of
from wincli.windowing.emit.operator_blocks import python_values
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.context import window_marks
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window
from wincli.windowing.operator import Operator, PaneInfo
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.sequence import build, one_batch


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
    panes, marks = kind_of(plan.spec).panes(sequences, signals, PLAIN)
    got = replayed(log, plan, sequences, marks, panes, signals, PLAIN)
    assert got["seen"].to_pylist() == ["[('k', 'x'), ('a', 1), ('clock', 10), ('k', 'x'), 10, 10, None, None]"]


@pytest.mark.parametrize("kind", [pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC")])
def test_times_are_those_of_arrow(kind: pa.DataType) -> None:
    column = pa.array([-1, None, 0, 10**9], pa.int64()).cast(kind)
    for part in (column, column.slice(1, 2), column.slice(2), column.slice(0, 0), pa.chunked_array([column, column])):
        assert python_values("clock", part) == part.to_pylist()


@pytest.mark.parametrize("tick", [2**62, -(2**63)])
def test_times_beyond_those_of_python_are_told(tick: int) -> None:
    with pytest.raises(DataError, match="beyond Python's"):
        python_values("clock", pa.array([0, tick, None], pa.timestamp("us")))


def test_times_beyond_those_of_python() -> None:
    table = pa.table({"clock": pa.array([2**62], pa.timestamp("us"))})
    with pytest.raises(DataError, match=r"column 'clock' holds timestamp\[us\] beyond Python's"):
        given_by(Log(table, (), ("clock",)), "count(1)")
