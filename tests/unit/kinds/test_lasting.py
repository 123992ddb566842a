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
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import lasting as lasting_reference
from references import tumbling as reference
from references.table import Window
from support import strategies as my
from support.pane_laws import check, drawn_clock, in_result_order, library_table, policy, seconds_of
from support.strategies import examples
from support.table_equality import difference, in_order, same
from support.table_windows import KEYS, nests, of_units, table_windows, tables_of_units, typed, windows_table
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
        ("gap(s, 5)", {}, r"--ends is for time, calendar, cron and table windows; .* merge with split\(s > max\(e\)\)"),
        ("time(5) or count(3)", {}, "--ends is for"),
        ("time(5), partitioned, partitionAge(3)", {"key": "v"}, "--ends is for"),
        ("sliding, time(5), time(5)", {}, "--ends is for"),
        ("time(5)", {"ends": "till"}, "there is no column 'till' for --ends"),
        ("time(5)", {"ends": None, "aggregates": "x=sum(v * _share)"}, "_share is the part of a row inside its window"),
        ("time(5)", {"ends": None, "aggregates": "sum(_overlap)"}, "rows have no end; give --ends COL"),
        ("time(5)", {"ends": None, "aggregates": "max_overlap()"}, "rows have no end; give --ends COL"),
        ("time(5)", {"aggregates": "x=sum(v * lag(_share))"}, "lag.. is known before windows"),
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


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("cut", [2, 3, 4])
def test_a_value_that_holds_goes_on_from_the_last_row_before_the_open_window(closed: Any, cut: int) -> None:
    # the window that is open holds the second row, which lasts on, and not the third, which has the value
    rows = {"ts": [61, 62, 68, 73, 90], "e": [62, 122, 70, 83, 91], "x": [2, 7, 1, -2, 0]}
    log, parts, state = pa.table(rows), list[pa.Table](), "new"
    job: dict[str, Any] = {"order_by": ["ts"], "ends": "e", "closed": closed, "aggregates": ["twa(x)"]}
    for part, at_end in ((log[:cut], "hold"), (log[cut:], "flush")):
        table, state = wincli.aggregate(part, "time(10)", state=state, at_end=at_end, **job)
        parts.append(table)
    whole, some = wincli.aggregate(log, "time(10)", **job), pa.concat_tables(parts)
    assert some["twa_x"].to_pylist() == whole["twa_x"].to_pylist()
    assert whole["twa_x"][1].as_py() == (3 * 1 - 7 * 2) / 10


# Windows of a table.

CLOCKS = [
    (pa.int64(), pa.int64()), (pa.float64(), pa.float64()), (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    (pa.timestamp("s"), pa.timestamp("ms")), (pa.date32(), pa.timestamp("s")),
    (pa.decimal128(9, 2), pa.decimal128(9, 2)),
]  # fmt: skip
"""Types of the clock and of the bounds of windows, which may be finer."""
TableRow = tuple[str, Fraction, Fraction, int]


@st.composite
def spans_in_order(draw: st.DrawFn) -> list[TableRow]:
    starts = sorted(draw(st.lists(st.integers(0, 20), max_size=12)))
    lengths = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 30])
    return [(draw(st.sampled_from(KEYS)), Fraction(s), Fraction(s + draw(lengths)), at) for at, s in enumerate(starts)]


def spans_table(rows: list[TableRow], kind: pa.DataType) -> pa.Table:
    keys, starts, ends, names = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    return pa.table({"k": pa.array(keys, pa.string()), "t": typed(starts, kind), "u": typed(ends, kind),
                     "id": pa.array(names, pa.int64())})  # fmt: skip


@examples(600)
@given(
    st.data(), spans_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]), st.sampled_from(CLOCKS), st.sampled_from(["flush", "drop"]),
)  # fmt: skip
def test_windows_of_a_table_are_those_of_the_reference(
    data: st.DataObject, rows: list[TableRow], keyed: bool, named: bool, closed: Any, empty: Any,
    kinds: tuple[pa.DataType, pa.DataType], at_end: Any,
) -> None:  # fmt: skip
    named &= keyed
    is_finer = pa.types.is_timestamp(kinds[0]) and kinds[0] != kinds[1]
    windows = data.draw(table_windows(named, 2 if is_finer else 1))
    if pa.types.is_date(kinds[0]):
        day = 86_400
        windows = [Window(each.start * day, each.end * day, each.key) for each in windows]
    told = [(key if keyed else "", start, end, name) for key, start, end, name in rows]
    per_day = 86_400 if pa.types.is_date(kinds[0]) else 1
    mode = "keys" if empty == "row" and named else empty
    wanted = lasting_reference.lasting_in_table(
        [(key, start * per_day, end * per_day, name) for key, start, end, name in told], windows,
        right=closed == "right", empty=mode, flush=at_end == "flush",
    )  # fmt: skip
    request = f"w {'on k=key ' if named else ''}from s to e take place as which"
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": ["t"], "ends": "u", "closed": closed}
    options |= {"empty": empty, "at_end": at_end}
    options |= {"windows": {request: windows_table(windows, kinds[1], [*range(len(windows))])}}
    calls = ["ids=collect(id)", "inside=collect(_overlap)", "parts=collect(_share)"]
    found = wincli.aggregate(spans_table(rows, kinds[0]), "table(w)", aggregates=calls, **options).to_pylist()
    unit = 1e-6 if kinds[0] == pa.timestamp("us", "UTC") else 1

    def near(values: Any) -> tuple[float, ...]:
        return tuple(round(float(value), 9) for value in values or ())

    got = [(row["k"] if keyed else "", row["which"], tuple(row["ids"] or ()), row["closed_by"], near(row["inside"]),
            near(row["parts"])) for row in found]  # fmt: skip
    want = [(each.pane.key, each.pane.window, each.pane.rows, each.pane.closed_by,
             near([part * unit for part in each.overlaps]), near(each.shares)) for each in wanted]  # fmt: skip
    assert got == want


@examples(400)
@given(
    st.data(), spans_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]),
)  # fmt: skip
def test_nights_that_have_the_windows_which_begin_in_them_are_one_run(
    data: st.DataObject, rows: list[TableRow], keyed: bool, named: bool, closed: Any, empty: Any
) -> None:
    """A row that lasts on is in windows that only the table of a later night has."""
    named &= keyed
    kind, windows = pa.int64(), data.draw(table_windows(named))
    if empty == "row" and keyed and not named:  # else the number of an empty window waits for the next row of its key
        windows = [each for at, each in enumerate(windows) if not any(map(nests, [each] * at, windows[:at]))]
    request = f"w {'on k=key ' if named else ''}from s to e"
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": ["t"], "closed": closed, "empty": empty}
    options |= {"ends": "u", "aggregates": ["n=count()", "ids=collect(id)", "sum(_overlap)", "max_overlap()"]}
    every = [*range(len(windows))]
    whole = wincli.aggregate(
        spans_table(rows, kind), "table(w)", windows={request: windows_table(windows, kind, every)}, **options
    )
    cuts = [0, *data.draw(st.lists(st.integers(0, len(rows)), max_size=3).map(sorted)), len(rows)]
    state: Any = "new"
    found, clock = [], None
    for night, (low, high) in enumerate(pairwise(cuts)):
        own = rows[low:high]
        after = max([row[1] for row in own], default=clock)
        is_last = night == len(cuts) - 2
        begins = [at for at in every if clock is None or windows[at].start > clock]
        must = {at for at in begins if is_last or (after is not None and windows[at].start <= after)}
        others = data.draw(st.sets(st.sampled_from(every))) if windows else set()
        tonight = {request: windows_table(windows, kind, sorted(must | others))}
        result, state = wincli.aggregate(
            spans_table(own, kind), "table(w)", windows=tonight, state=state, at_end="flush" if is_last else "hold",
            **options,
        )  # fmt: skip
        found.append(result)
        clock = after
    some = in_order(pa.concat_tables(found))
    assert same(some, in_order(whole)), difference(some, in_order(whole))


@examples(400)
@given(
    st.data(), spans_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]), st.booleans(),
)  # fmt: skip
def test_tables_of_units_add_up_to_those_of_one_run(
    data: st.DataObject, rows: list[TableRow], keyed: bool, named: bool, closed: Any, empty: Any, changes: bool
) -> None:
    """A row that lasts on is in windows of earlier tables that begin behind the last row of their unit."""
    named &= keyed
    kind, windows = pa.int64(), data.draw(table_windows(named))
    if empty == "row" and keyed and not named:  # else the number of an empty window waits for the next row of its key
        windows = [each for at, each in enumerate(windows) if not any(map(nests, [each] * at, windows[:at]))]
    request = f"w {'on k=key ' if named else ''}from s to e"
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": ["t"], "closed": closed, "empty": empty}
    options |= {"ends": "u", "aggregates": ["n=count()", "ids=collect(id)", "sum(_overlap)", "max_overlap()"]}
    cuts = [0, *data.draw(st.lists(st.integers(0, len(rows)), max_size=4).map(sorted)), len(rows)]
    clocks = [rows[cut - 1][1] if cut else None for cut in cuts[:-1]]
    every, tables, whole = data.draw(tables_of_units(windows, clocks, changes))
    one = {request: windows_table(every, kind, whole)}
    wanted = wincli.aggregate(spans_table(rows, kind), "table(w)", windows=one, **options)
    state: Any = "new"
    found = list[pa.Table]()
    for (low, high), table in zip(pairwise(cuts), tables, strict=True):
        at_end = "flush" if len(found) == len(tables) - 1 else "hold"
        tonight = {request: windows_table(every, kind, table)}
        with of_units():
            result, state = wincli.aggregate(
                spans_table(rows[low:high], kind), "table(w)", windows=tonight, state=state, at_end=at_end, **options
            )
        found.append(result)
    some = in_order(pa.concat_tables(found))
    assert same(some, in_order(wanted)), difference(some, in_order(wanted))


def test_nested_windows_of_many_rows_are_made_a_part_at_a_time_in_the_order_of_the_result() -> None:
    rows = spans_table([(KEYS[i % 3], Fraction(i), Fraction(i + i % 5), i) for i in range(40)], pa.int64())
    windows = [Window(Fraction(i % 7 * 3), Fraction(i % 7 * 3 + 1 + i * 5 % 19)) for i in range(30)]
    options: dict[str, Any] = {"key": "k", "order_by": "t", "ends": "u", "aggregates": ["ids=collect(id)"]}
    options |= {"windows": {"w from s to e": windows_table(windows, pa.int64(), [*range(30)])}}
    whole = wincli.aggregate(rows, "table(w)", **options)
    with patch("wincli.windowing.rows.membership.batches.__defaults__", (7, None)):
        assert wincli.aggregate(rows, "table(w)", **options).equals(whole)


def test_a_row_over_very_many_windows_of_a_table_is_an_error_that_names_it() -> None:
    windows = pa.table({"b": range(100_002), "d": range(1, 100_003)})
    options: dict[str, Any] = {"order_by": "s", "ends": "e", "windows": {"w from b to d": windows}}
    with pytest.raises(DataError, match=r"arrival position 1: lasts until 100001, over 100,001 windows of table\(w\)"):
        wincli.aggregate(lines((0, 9, 1.0), (0, 100_001, 1.0)), "table(w)", **options)
    assert len(wincli.aggregate(lines((0, 100_000, 1.0)), "table(w)", **options)) == 100_000
