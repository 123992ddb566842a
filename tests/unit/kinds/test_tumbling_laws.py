"""Tumbling windows over any stream: the library agrees with the reference, cell by cell.

delta(a, 2)     a   0 1 2 3 -50 5 6      count(2)   1 2 3 4 5       punct()   1 2 | 3 | |
                    [1 2 3] at 3                    [1 2]                     [1 2]
                          [4   5 6] at 6                [3 4]                       [3]
                                    [7] open                [5] open                    (a mark alone)
change(v)       v   1 1 2 2 null null 1
                    [1 1]                   at 2
                        [2 2]               at null
                            [null null]     at 1
                                       [1]  open
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from support import strategies as my
from support.pane_laws import check, drawn_clock, library_table, policy, seconds_of
from wincli.windowing.errors import ConfigError, DataError

ENDS = st.sampled_from(["flush", "drop"])
Drawn = tuple[my.Stream, str, reference.Policy]


# --- policies: a stream, a window over it, and the policy of the reference ------------------------------------------


@st.composite
def change(draw: st.DrawFn) -> Drawn:
    """Over the attribute or a column of few values, with nulls and NaN among them."""
    stream = draw(my.streams())
    size = len(stream.table)
    few = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
    mood = pa.array(draw(st.lists(few, min_size=size, max_size=size)), pa.float64())
    columns = draw(st.sampled_from([("mood",), ("flag",), ("flag", "mood"), ("a",)]))
    # an attribute that is a time would order the rows, where the stream does not say how
    columns = columns if stream.order else ("mood", "flag")
    table = stream.table.append_column("mood", mood)
    return replace(stream, table=table), f"change({', '.join(columns)})", reference.Change(columns)


@st.composite
def plain(draw: st.DrawFn, word: str) -> Drawn:
    stream = draw(my.streams())
    amount = Fraction(draw(st.integers(1, 7))) if word == "count" else draw(my.amounts(stream.kind("a")))
    return stream, *policy(word, amount, stream.kind("a"))


@st.composite
def time(draw: st.DrawFn) -> Drawn:
    stream = draw(my.clocked())
    length, origin = draw(my.grids(stream.kind("clock")))
    window, ends = policy("time", length, None, stream.kind("clock"), origin)
    return stream, f"tumbling, {window}", replace(ends, empty=draw(st.sampled_from(["skip", "mark", "row"])))


DRAWN: dict[str, st.SearchStrategy[Drawn]] = {
    **{word: plain(word) for word in ("count", "delta", "gap", "punct", "flag")},
    "change": change(),
    "time": time(),
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
@given(data=st.data(), at_end=ENDS)
def test_the_library_is_the_reference(drawn: st.SearchStrategy[Drawn], data: st.DataObject, at_end: Any) -> None:
    stream, window, ends = data.draw(drawn)
    rows, marks, clock, ticks = reference.read(stream.table), [], None, None
    options: dict[str, Any] = {"at_end": at_end}
    if isinstance(ends, reference.Time):
        clock, ticks = drawn_clock(data, stream), ends.result_type
        options |= {"empty": ends.empty, "origin": ends.origin, "clock": seconds_of(clock, ends.kind)}
    if isinstance(ends, reference.Punct) and ends.condition is None:
        marks = options["marks"] = data.draw(my.marks(len(rows)))
        if data.draw(st.booleans()):  # by a column
            options["marks"] = "flag"
            marks = [pos + 1 for pos, row in rows.items() if row["flag"]]
    more: dict[str, Any] = {"key": stream.key, "order": stream.order, "at_end": at_end}
    found = reference.tumbling(rows, ends, marks=marks, clock=clock, **more)
    check(stream, window, found.panes, ticks, **options)


@given(st.data(), my.streams())
def test_marks_mean_nothing_to_other_policies(data: st.DataObject, stream: my.Stream) -> None:
    marks = data.draw(my.marks(len(stream.table)))
    assert library_table(stream, "count(3)", marks=marks).equals(library_table(stream, "count(3)"))


# --- one by one ---------------------------------------------------------------------------------------------------


def test_an_empty_table_gives_an_empty_result_with_all_columns() -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "k": pa.array([], pa.string())})
    result = wincli.aggregate(empty, "count(2)", key="k")
    names = ["k", "window", "window_start", "window_end", "closed_by", "count", "_at", "_pos", "_mark"]
    assert (len(result), result.column_names) == (0, names)


def test_a_clock_given_as_a_datetime_completes_the_last_window() -> None:
    #   12:00:00 ......... 12:00:10 ......... 12:00:20
    #      [ 1     2          )                  clock stands at :09, then at :10
    start = datetime(2026, 11, 1, 12)
    table = pa.table({"id": [1, 2], "ts": pa.array([start, start.replace(second=3)], pa.timestamp("ms"))})
    for second, reason in ((9, "end"), (10, "time")):
        result = wincli.aggregate(table, "time(10)", aggregates=["collect(id)"], clock=start.replace(second=second))
        assert result["closed_by"].to_pylist() == [reason]
        assert result["window_end"].to_pylist() == [start.replace(second=10)]


def test_decimals_of_any_width_put_rows_in_order() -> None:
    table = pa.table({"id": [0, 1, 2], "t": pa.array([Decimal(10) ** 30, Decimal(1), -(Decimal(10) ** 30)])})
    result = wincli.aggregate(table, "count(3)", order_by=["t"], aggregates=["ids=collect(id)"])
    assert result["ids"].to_pylist() == [[2, 1, 0]]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        *((kind, 1, 0) for kind in (pa.uint64(), pa.date32(), pa.time64("ns"), pa.timestamp("ns", "Europe/Paris"))),
        (pa.duration("us"), 1, 0),
        (pa.int8(), 1, -1),
        (pa.bool_(), True, False),
        (pa.string(), "", "a"),
        (pa.large_string(), "b", "a"),
        (pa.binary(), b"", b"\0"),
        (pa.binary(2), b"ab", b"ba"),
        (pa.decimal128(5, 2), Decimal("1.50"), Decimal("-1.50")),
        (pa.decimal256(60, 0), Decimal(10**50), Decimal(10**50 + 1)),
        (pa.dictionary(pa.int8(), pa.string()), "b", "a"),
    ],
    ids=str,
)
def test_change_is_over_columns_of_any_type_that_sorts(kind: pa.DataType, first: Any, second: Any) -> None:
    assert runs(pa.array([first, first, None, None, second, first], kind)) == [[0, 1], [2, 3], [4], [5]]


def test_change_takes_all_nan_as_one_and_a_column_without_values() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000002], np.uint64)
    assert runs(pa.array(bits.view(np.float64))) == runs(pa.nulls(3)) == [[0, 1, 2]]
    with pytest.raises(ConfigError, match="whose values cannot be compared"):
        runs(pa.array([[1], [2]]))


def runs(values: pa.Array) -> list[list[int]]:
    table = pa.table({"id": range(len(values)), "v": values})
    result = wincli.aggregate(table, "change(v)", order_by="arrival", aggregates=["ids=collect(id)"])
    assert result["closed_by"].to_pylist() == ["change"] * (len(result) - 1) + ["end"]
    return result["ids"].to_pylist()


REJECTS: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3, 4, 5, 6],
    "k": ["x", None, "x", "x", "x", "x", "x"],
    "t": [1.0, 2.0, None, float("nan"), 5.0, 6.0, 7.0],
    "a": [0.0, 9.0, 9.0, 9.0, float("nan"), None, 1.0],
}


@pytest.mark.parametrize(
    ("window", "ids", "pos"),
    [("delta(a, 2)", [[0, 6]], [None]), ("count(2)", [[0, 4], [5, 6]], [4, 6])],
)
def test_rows_without_key_order_or_attribute_are_left_out_and_counted_in_positions(
    window: str, ids: list[list[int]], pos: list[int | None]
) -> None:
    options: dict[str, Any] = {"key": ["k"], "order_by": ["t"], "aggregates": ["ids=collect(id)"]}
    result = wincli.aggregate(pa.table(REJECTS), window, rejected="drop", **options)
    assert (result["ids"].to_pylist(), result["_pos"].to_pylist()) == (ids, pos)


@pytest.mark.parametrize("column", ["k", "t", "a"])
def test_a_null_where_the_window_looks_is_an_error_by_default(column: str) -> None:
    table = pa.table({**{name: cells[:1] * 2 for name, cells in REJECTS.items()}, column: [*REJECTS[column][:1], None]})
    with pytest.raises(DataError):
        wincli.aggregate(table, "delta(a, 2)", key=["k"], order_by=["t"], aggregates=["collect(id)"])
