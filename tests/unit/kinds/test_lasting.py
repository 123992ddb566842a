"""Rows that last in windows of the clock: the library agrees with the reference, row by row.

time(10)    0         10        20        30
            |---A-----|---------|-        |        A lasts over three windows
            |      B  |         |         |        B is an instant
            |         C---------|         |        C is in the window that it fills, and in no other
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import lasting as lasting_reference
from references import tumbling as reference
from support import strategies as my
from support.pane_laws import check, drawn_clock, in_result_order, library_table, policy, seconds_of
from wincli.windowing.errors import ConfigError, DataError

LENGTHS = [0, 0, 1, 1, 2, 3, 5, 7, 20, 60, 200]


@st.composite
def lasting_rows(draw: st.DrawFn) -> my.Stream:
    """A clock that creeps, and for each row until when it lasts."""
    stream = draw(my.clocked())
    size, kind = len(stream.table), stream.kind("clock")
    unit = my.value_of(1, kind)
    lengths = draw(st.lists(st.sampled_from(LENGTHS), min_size=size, max_size=size))
    starts = reference.ticks_of(stream.table["clock"])
    top = my.value_of(my.limits(kind)[1], kind)
    ends = [min(top, start + length * unit) for start, length in zip(starts, lengths, strict=True)]
    if pa.types.is_floating(kind):
        ends = [max(start, pa.scalar(end, kind).as_py()) for start, end in zip(starts, ends, strict=True)]
    return replace(stream, table=stream.table.append_column("end", my.array(ends, kind)))


@given(st.data(), lasting_rows(), st.sampled_from(["flush", "drop"]), st.sampled_from(["skip", "row"]))
def test_the_library_is_the_reference(data: st.DataObject, stream: my.Stream, at_end: Any, empty: Any) -> None:
    kind = stream.kind("clock")
    length, origin = data.draw(my.grids(kind))
    window, grid = policy("time", length, None, kind, origin)
    closed = data.draw(st.sampled_from(["left", "right"]))
    if closed == "right":
        grid = reference.RightClosed(length, kind, origin or Fraction(0))
    grid, clock = replace(grid, empty=empty), drawn_clock(data, stream)
    wanted = lasting_reference.lasting(
        reference.read(stream.table), grid, "end", stream.key, stream.order, clock, at_end
    )
    options: dict[str, Any] = {"at_end": at_end, "empty": empty, "origin": grid.origin, "closed": closed, "ends": "end"}
    options |= {"clock": seconds_of(clock, kind)}
    check(stream, window, [each.pane for each in wanted], grid.result_type, **options)
    panes = {id(each.pane): each for each in wanted}
    ordered = [panes[id(pane)] for pane in in_result_order([each.pane for each in wanted])]
    calls = ["a=collect(_overlap)", "s=collect(_share)", "m=max_overlap()"]
    found = library_table(stream, window, **{**options, "aggregates": calls})
    assert found["m"].to_pylist() == [each.most for each in ordered]
    for name, values in (("a", [each.overlaps for each in ordered]), ("s", [each.shares for each in ordered])):
        for got, want in zip(found[name].to_pylist(), values, strict=True):
            assert len(got or ()) == len(want)
            for one, other in zip(got or (), want, strict=True):
                near = 1e-12 if pa.types.is_floating(kind) else 0.0
                assert math.isclose(one, other, rel_tol=near, abs_tol=near)
    shown = library_table(stream, window, **{**options, "aggregates": None, "emit": "rows"})
    ids = [pos for each in ordered for pos in each.pane.rows]
    assert [each for each in shown["id"].to_pylist() if each is not None] == ids


def told(table: pa.Table, *calls: str, **options: Any) -> list[tuple[Any, ...]]:
    found = wincli.aggregate(table, "time(10)", order_by="s", ends="e", aggregates=list(calls), **options)
    names = ["window_start", *(name for name in found.column_names[4:] if not name.startswith("_"))]
    return list(zip(*(found[name].to_pylist() for name in names), strict=True))


def lines(*spans: tuple[Any, ...]) -> pa.Table:
    names = ["s", "e", "v"][: len(spans[0])]
    return pa.table([list(column) for column in zip(*spans, strict=True)], names=names)


def test_a_row_is_in_every_window_that_it_shares_time_with() -> None:
    #   0         10        20        30
    #   |---------A---------|         |          [10, 20)
    #   |    B----|----     |         |          [5, 14)
    rows = lines((5, 14, 9.0), (10, 20, 1.0))
    assert told(rows, "v=sum(v * _share)", "o=sum(_overlap)") == [(0, 5.0, 5.0), (10, 5.0, 14.0)]
    assert told(rows, "v=sum(v * _share)", "o=sum(_overlap)", closed="right") == [(0, 5.0, 5.0), (10, 5.0, 14.0)]


def test_a_row_of_no_length_is_where_its_instant_is() -> None:
    #   0         10        20
    #   |         A         |         A lasts [10, 10)
    rows = lines((10, 10, 4.0))
    calls = ("n=count()", "v=sum(v * _share)", "o=sum(_overlap)", "m=max_overlap()")
    assert told(rows, *calls) == [(10, 1, 4.0, 0.0, 1)]
    assert told(rows, *calls, closed="right") == [(0, 1, 4.0, 0.0, 1)]


def test_the_most_rows_at_once_is_of_each_window_and_one_that_ends_frees_its_place_first() -> None:
    #   0         10        20
    #   A----     |         |         [0, 5)
    #   |    B----|---------|--       [5, 22)
    #   |    C    |         |         an instant at 5
    #   |         |  D--    |         [13, 16)
    rows = lines((0, 5), (5, 22), (5, 5), (13, 16))
    assert told(rows, "m=max_overlap()") == [(0, 2), (10, 2), (20, 1)]
    assert told(rows, "m=max_overlap() where e > 5") == [(0, 1), (10, 2), (20, 1)]
    assert told(rows, "m=max_overlap() where _share = 1") == [(0, 1), (10, 1), (20, 0)]


def test_an_end_that_is_null_or_before_the_beginning_is_a_reject() -> None:
    rows = pa.table({"s": [1, 2, 3], "e": pa.array([5, None, 2], pa.int64())})
    found = wincli.aggregate(rows, "time(10)", order_by="s", ends="e", rejected="column")
    assert found["count"].drop_null().to_pylist() == [1]
    reasons = [each["reason"] for each in found["_rejected"].to_pylist() if each]
    assert sorted(reasons) == ["inverted_interval", "null_attribute"]


def test_ends_may_be_coarser_than_the_clock_and_not_finer() -> None:
    rows = pa.table({"s": pa.array([1_500], pa.timestamp("ms")), "e": pa.array([12], pa.timestamp("s"))})
    found = wincli.aggregate(rows, "time(10)", order_by="s", ends="e", aggregates=["o=sum(_overlap)"])
    assert found["o"].to_pylist() == [8.5, 2.0]
    finer = rows.rename_columns(["e", "s"])
    with pytest.raises(ConfigError, match=r"'e' is timestamp\[ms\] and 's' is timestamp\[s\]: these do not compare"):
        wincli.aggregate(finer, "time(10)", order_by="s", ends="e")


@pytest.mark.parametrize(
    ("window", "options", "what"),
    [
        ("gap(s, 5)", {}, r"--ends is for time, calendar and cron windows, .* merge with split\(s > max\(e\)\)"),
        ("time(5) or count(3)", {}, "--ends is for"),
        ("time(5), partitioned, partitionAge(3)", {"key": "v"}, "--ends is for"),
        ("sliding, time(5), time(5)", {}, "--ends is for"),
        ("time(5)", {"ends": "till"}, "there is no column 'till' for --ends"),
        ("time(5)", {"ends": None, "aggregates": "x=sum(v * _share)"}, "_share is the part of a row inside its window"),
        ("time(5)", {"ends": None, "aggregates": "sum(_overlap)"}, "rows have no end; give --ends COL"),
        ("time(5)", {"ends": None, "aggregates": "max_overlap()"}, "rows have no end; give --ends COL"),
        ("time(5)", {"aggregates": "x=sum(lag(v) * _share)"}, "lag.. is known before windows"),
        ("time(5)", {"operator": "support.keeping_operators:Keeper"}, "--operator does not go with --ends"),
    ],
)
def test_what_does_not_go_with_rows_that_last(window: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        wincli.aggregate(lines((1, 2, 3.0)), window, **{"order_by": "s", "ends": "e", **options})


def test_a_row_over_very_many_windows_is_an_error_that_names_it() -> None:
    with pytest.raises(DataError, match=r"lasts until 4070908800, over 407,090,8\d\d windows of time\(10\); the most"):
        wincli.aggregate(lines((0, 9, 1.0), (1, 4_070_908_800, 1.0)), "time(10)", order_by="s", ends="e")
    assert len(told(lines((5, 10 * 100_000, 1.0)), "n=count()")) == 100_000
    with pytest.raises(DataError, match=r"over 100,001 windows of time\(10\); the most is 100,000"):
        told(lines((5, 10 * 100_000 + 1, 1.0)), "n=count()")


def test_an_expression_that_fails_in_a_window_is_an_error() -> None:
    with pytest.raises(DataError, match="fails for a row of window 0 or behind it"):
        told(lines((0, 5, 1.0)), "x=sum(cast(_share * 1e300 as integer))")


def test_the_time_of_the_rows_is_never_until_when_they_last() -> None:
    rows = pa.table({"e": pa.array([12], pa.timestamp("s")), "s": pa.array([1], pa.timestamp("s"))})
    assert wincli.aggregate(rows, "time(10)", ends="e")["window_start"].cast(pa.int64()).to_pylist() == [0, 10]
