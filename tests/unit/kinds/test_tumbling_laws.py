"""What holds for tumbling windows over any stream: the library agrees with the reference, and with itself.

delta(a, 2)     a   0 1 2 3 -50 5 6      count(2)   1 2 3 4 5       punct()   1 2 | 3 | |
                    [1 2 3] at 3                    [1 2]                     [1 2]
                          [4   5 6] at 6                [3 4]                       [3]
                                    [7] open                [5] open                    (a mark alone)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from support import strategies as my
from wincli.windowing.errors import DataError

AGGREGATES = ["n=count()", "ids=collect(id)", "lo=first(id)", "hi=last(id)"]
ENDS = st.sampled_from(["flush", "drop"])
Result = dict[str, list[Any]]


# --- both sides ---------------------------------------------------------------------------------------------------


def by_library(stream: my.Stream, window: str, **options: Any) -> pa.Table:
    return wincli.aggregate(
        stream.table, window, key=stream.key, order_by=stream.order_by, aggregates=AGGREGATES, **options
    )


def as_lists(table: pa.Table) -> Result:
    return {name: reference.ticks_of(table[name]) for name in table.column_names}


def by_reference(stream: my.Stream, policy: reference.Policy, **options: Any) -> Result:
    rows = reference.read(stream.table)
    panes = reference.tumbling(rows, policy, key=stream.key, order=stream.order, **options)
    full = [pane for pane in panes if pane.key is not None]
    panes = [*sorted(full, key=lambda p: (p.key, p.number)), *(p for p in panes if p.mark == "only")]
    records = [record(pane, rows, stream) for pane in panes]
    return {name: [record[name] for record in records] for name in columns_of(stream)}


def columns_of(stream: my.Stream) -> list[str]:
    more = [f"_at_{index}" for index in range(2, len(stream.order) + 1)]
    own = ["window", "window_start", "window_end", "closed_by", "n", "ids", "lo", "hi", "_at", *more, "_pos", "_mark"]
    return [*stream.key, *own]


def record(pane: reference.Pane, rows: dict[int, reference.Row], stream: my.Stream) -> dict[str, Any]:
    """A pane as a row of the result."""
    ids = [rows[pos]["id"] for pos in pane.rows]
    at = pane.at or (None,) * max(1, len(stream.order))
    return {
        **dict(zip(stream.key, pane.key or (None,) * len(stream.key), strict=True)),
        "window": pane.number,
        "window_start": pane.start,
        "window_end": pane.end,
        "closed_by": pane.closed_by,
        "n": None if pane.mark == "only" else len(ids),
        "ids": ids or None,
        "lo": ids[0] if ids else None,
        "hi": ids[-1] if ids else None,
        **{"_at" if index == 0 else f"_at_{index + 1}": value for index, value in enumerate(at)},
        "_pos": pane.pos,
        "_mark": pane.mark,
    }


def check(
    stream: my.Stream, window: str, policy: reference.Policy, told: dict[str, Any] | None = None, **both: Any
) -> None:
    """The library's table is the reference's, cell by cell. ``told``: options that only the library needs."""
    got = by_library(stream, window, **{**both, **(told or {})})
    want = by_reference(stream, policy, **both)
    assert got.column_names == list(want)
    assert types_of(got) == wanted_types(stream, policy)
    for name, cells in as_lists(got).items():
        assert cells == want[name], f"{window}: column {name}"


def types_of(table: pa.Table) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in table.schema}


def wanted_types(stream: my.Stream, policy: reference.Policy) -> dict[str, pa.DataType]:
    order = [stream.kind(name) for name in stream.order] or [pa.int64()]
    if isinstance(policy, reference.Time):
        order = [reference.type_of_ticks(policy.kind, policy.length, policy.origin)]
    ats = [name for name in columns_of(stream) if name.startswith("_at")]
    fixed = {"closed_by": pa.string(), "_mark": pa.string(), "ids": pa.list_(pa.int64())}
    fixed |= {"window_start": order[0], "window_end": order[0], **dict(zip(ats, order, strict=True))}
    return {
        name: stream.kind(name) if name in stream.key else fixed.get(name, pa.int64()) for name in columns_of(stream)
    }


# --- the library is the reference ---------------------------------------------------------------------------------


@given(my.streams(), st.integers(1, 7), ENDS)
def test_count(stream: my.Stream, n: int, at_end: str) -> None:
    check(stream, f"tumbling, count({n})", reference.Count(n), at_end=at_end)


@given(st.data(), my.streams(), ENDS)
def test_delta(data: st.DataObject, stream: my.Stream, at_end: str) -> None:
    amount = data.draw(my.amounts(stream.kind("a")))
    policy = reference.Delta("a", amount, stream.kind("a"))
    check(stream, f"delta(a, {my.text(amount)})", policy, at_end=at_end)


@given(st.data(), my.streams(), ENDS)
def test_gap(data: st.DataObject, stream: my.Stream, at_end: str) -> None:
    amount = data.draw(my.amounts(stream.kind("a")))
    policy = reference.Gap("a", amount, stream.kind("a"))
    check(stream, f"gap(a, {my.text(amount)})", policy, at_end=at_end)


@given(st.data(), my.streams(), ENDS)
def test_change(data: st.DataObject, stream: my.Stream, at_end: str) -> None:
    """Over the attribute or a column of few values, with nulls and NaN among them."""
    size = len(stream.table)
    few = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
    mood = pa.array(data.draw(st.lists(few, min_size=size, max_size=size)), pa.float64())
    stream = replace(stream, table=stream.table.append_column("mood", mood))
    columns = data.draw(st.sampled_from([("mood",), ("flag",), ("flag", "mood"), ("a",)]))
    # an attribute that is a time would order the rows, where the stream does not say how
    columns = columns if stream.order_by else ("mood", "flag")
    check(stream, f"change({', '.join(columns)})", reference.Change(columns), at_end=at_end)


@given(st.data(), my.streams(), ENDS)
def test_punct(data: st.DataObject, stream: my.Stream, at_end: str) -> None:
    marks = data.draw(my.marks(len(stream.table)))
    check(stream, "punct()", reference.Punct(), marks=marks, at_end=at_end)


@given(my.streams(), ENDS)
def test_punct_by_a_column_of_marks(stream: my.Stream, at_end: str) -> None:
    flags = stream.table["flag"].to_pylist()
    got = by_library(stream, "punct()", marks="flag", at_end=at_end)
    marks = [pos + 1 for pos, flag in enumerate(flags) if flag]
    assert as_lists(got) == by_reference(stream, reference.Punct(), marks=marks, at_end=at_end)


@given(my.streams(), ENDS)
def test_punct_expression(stream: my.Stream, at_end: str) -> None:
    check(stream, "punct(flag)", reference.PunctColumn("flag"), at_end=at_end)


@given(st.data(), my.clocked(), ENDS, st.sampled_from(["skip", "mark", "row"]))
def test_time(data: st.DataObject, stream: my.Stream, at_end: str, empty: Any) -> None:
    kind = stream.kind("clock")
    length, origin = data.draw(my.grids(kind))
    policy = reference.Time(length, kind, origin or Fraction(0), empty)
    told: dict[str, Any] = {"empty": empty, "origin": policy.origin}
    clock = None
    if len(stream.table) and data.draw(st.booleans()):
        clock = max(reference.ticks_of(stream.table["clock"])) + data.draw(later(kind))
        told["clock"] = policy.clock(clock)
    check(stream, f"tumbling, time({my.text(length)})", policy, told, clock=clock, at_end=at_end)


def later(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """How far the clock goes on behind the last row."""
    return st.integers(0, 100).map(lambda n: my.value_of(n, kind))


@given(st.data(), my.streams())
def test_marks_mean_nothing_to_other_policies(data: st.DataObject, stream: my.Stream) -> None:
    marks = data.draw(my.marks(len(stream.table)))
    assert by_library(stream, "count(3)", marks=marks).equals(by_library(stream, "count(3)"))


# --- laws ---------------------------------------------------------------------------------------------------------


@st.composite
def windows(draw: st.DrawFn, stream: my.Stream) -> str:
    """Any tumbling window that needs no clock, over the stream's attribute."""
    amount = my.text(draw(my.amounts(stream.kind("a"))))
    n = draw(st.integers(1, 5))
    return draw(
        st.sampled_from(
            [f"count({n})", f"delta(a,{amount})", f"gap(a,{amount})", "change(flag)", "punct()", "punct(flag)"]
        )
    )


def by_key(result: pa.Table, stream: my.Stream) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The panes of each key in the order of the result, mark-only rows left out."""
    lists = as_lists(result)
    out: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for cells in zip(*lists.values(), strict=True):
        pane = dict(zip(lists, cells, strict=True))
        if pane["_mark"] == "window":
            out[tuple(pane[name] for name in stream.key)].append(pane)
    return out


@given(st.data(), my.streams())
def test_every_row_is_in_one_pane_and_panes_in_a_row_are_the_sequence(data: st.DataObject, stream: my.Stream) -> None:
    result = by_library(stream, data.draw(windows(stream)), marks="flag")
    rows = reference.read(stream.table)
    wanted = defaultdict(list)
    for pos in reference.in_order(rows, stream.order):
        wanted[tuple(rows[pos][name] for name in stream.key)].append(pos)
    got = by_key(result, stream)
    assert {key: [i for pane in panes for i in pane["ids"]] for key, panes in got.items()} == wanted


@given(st.data(), my.streams())
def test_numbers_count_up_from_zero_per_key_and_keys_ascend(data: st.DataObject, stream: my.Stream) -> None:
    got = by_key(by_library(stream, data.draw(windows(stream)), marks="flag"), stream)
    assert list(got) == sorted(got)
    for panes in got.values():
        assert [pane["window"] for pane in panes] == list(range(len(panes)))


@given(st.data(), my.streams())
def test_drop_leaves_out_what_flush_gives_at_the_end(data: st.DataObject, stream: my.Stream) -> None:
    window = data.draw(windows(stream))
    flushed = by_library(stream, window, marks="flag")
    closed = pa.array([reason != "end" for reason in flushed["closed_by"].to_pylist()], pa.bool_())
    assert by_library(stream, window, marks="flag", at_end="drop").equals(flushed.filter(closed))


@given(st.data(), my.streams(orders=1))
def test_shuffled_rows_change_nothing_where_the_order_columns_decide(data: st.DataObject, stream: my.Stream) -> None:
    decided = my.Stream(stream.table, stream.key, (*stream.order, "id"))
    shuffle = pa.array(data.draw(st.permutations(range(len(stream.table)))), pa.int64())
    shuffled = my.Stream(stream.table.take(shuffle), decided.key, decided.order)
    window = data.draw(windows(stream))
    one = by_library(decided, window, marks="flag")
    two = by_library(shuffled, window, marks="flag")
    assert one.drop_columns("_pos").equals(two.drop_columns("_pos"))


@given(st.data(), my.streams())
def test_a_key_on_its_own_gives_its_part_of_the_whole(data: st.DataObject, stream: my.Stream) -> None:
    window = data.draw(windows(stream).filter(lambda text: text != "punct()"))
    whole = by_key(by_library(stream, window), stream)
    rows = reference.read(stream.table)
    for key, panes in whole.items():
        mine = [pos for pos, row in rows.items() if tuple(row[name] for name in stream.key) == key]
        alone = by_key(
            by_library(my.Stream(stream.table.take(pa.array(mine, pa.int64())), stream.key, stream.order), window),
            stream,
        )
        assert [pane["ids"] for pane in alone[key]] == [pane["ids"] for pane in panes]


@given(st.data(), my.streams(attribute=my.TIMESTAMPS))
def test_delta_over_timestamps_is_delta_over_their_ticks(data: st.DataObject, stream: my.Stream) -> None:
    kind = stream.kind("a")
    amount = data.draw(my.amounts(kind))
    place = stream.table.column_names.index("a")
    ticks = stream.table.set_column(place, "a", stream.table["a"].cast(pa.int64()))
    one = by_library(stream, f"delta(a, {my.text(amount)})")
    in_ticks = amount / reference.seconds_per_unit(kind)
    two = by_library(my.Stream(ticks, stream.key, stream.order), f"delta(a, {my.text(in_ticks)})")
    assert as_lists(one) == as_lists(two)


@given(st.data(), my.streams())
def test_delta_without_keys_over_a_sorted_attribute_never_spans_more(data: st.DataObject, stream: my.Stream) -> None:
    amount = data.draw(my.amounts(stream.kind("a")))
    result = wincli.aggregate(
        stream.table, f"delta(a, {my.text(amount)})", order_by=["a"], aggregates=["first(a)", "last(a)"]
    )
    first, last = (reference.ticks_of(result[name]) for name in ("window_start", "window_end"))
    for a, b in zip(first, last, strict=True):
        assert not reference.rises_by_more(b, a, amount, stream.kind("a"))


# --- one by one ---------------------------------------------------------------------------------------------------


def test_an_empty_table_gives_an_empty_result_with_all_columns() -> None:
    stream = my.Stream(pa.table({"id": pa.array([], pa.int64()), "k": pa.array([], pa.string())}), ("k",), ())
    result = by_library(stream, "count(2)")
    assert len(result) == 0
    assert result.column_names == columns_of(stream)


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
    #   t    -10**30   1   10**30
    #       [2         1   0     ]
    table = pa.table({"id": [0, 1, 2], "t": pa.array([Decimal(10) ** 30, Decimal(1), -(Decimal(10) ** 30)])})
    result = wincli.aggregate(table, "count(3)", order_by=["t"], aggregates=["ids=collect(id)"])
    assert result["ids"].to_pylist() == [[2, 1, 0]]


def test_a_mark_before_every_row_closes_nothing_whatever_the_order() -> None:
    #   | 0  1        the mark stands before row 0 and finds nothing open
    table = pa.table({"id": [0, 1], "t": [5, 7]})
    result = wincli.aggregate(table, "punct()", order_by=["t"], marks=[0], aggregates=["ids=collect(id)"])
    assert result["closed_by"].to_pylist() == ["end", None]
    assert result["_mark"].to_pylist() == ["window", "only"]
    assert result["_pos"].to_pylist() == [None, -1]


def test_a_float_on_a_tick_belongs_to_the_next_window() -> None:
    #   0.1 )[ 0.2 )[ 0.3 )     3 * 0.1 is not the float 0.3, but the third tick is
    table = pa.table({"id": [0, 1, 2], "t": [0.1, 0.2, 0.3]})
    result = wincli.aggregate(table, "time(0.1)", order_by=["t"], aggregates=["ids=collect(id)"])
    assert result["ids"].to_pylist() == [[0], [1], [2]]
    assert result["window_start"].to_pylist() == [0.1, 0.2, 0.3]


REJECTS: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3, 4, 5, 6],
    "k": ["x", None, "x", "x", "x", "x", "x"],
    "t": [1.0, 2.0, None, float("nan"), 5.0, 6.0, 7.0],
    "a": [0.0, 9.0, 9.0, 9.0, float("nan"), None, 1.0],
}


def test_rows_without_key_order_or_attribute_are_left_out() -> None:
    #   pos  0  1     2       3      4      5       6
    #        ok no key no order NaN   NaN a  null a  ok      delta(a, 2): one window [0, 6]
    result = wincli.aggregate(
        pa.table(REJECTS), "delta(a, 2)", key=["k"], order_by=["t"], aggregates=["ids=collect(id)"], rejected="drop"
    )
    assert result["ids"].to_pylist() == [[0, 6]]
    assert result["window_start"].to_pylist() == [1.0]
    assert result["window_end"].to_pylist() == [7.0]


def test_positions_count_rejected_rows_too() -> None:
    #   pos    0   1   2   3   4   5   6
    #   valid [0               4] [5   6]      count(2)
    result = wincli.aggregate(
        pa.table(REJECTS), "count(2)", key=["k"], order_by=["t"], aggregates=["ids=collect(id)"], rejected="drop"
    )
    assert result["ids"].to_pylist() == [[0, 4], [5, 6]]
    assert result["_pos"].to_pylist() == [4, 6]


@pytest.mark.parametrize("column", ["k", "t", "a"])
def test_a_null_where_the_window_looks_is_an_error_by_default(column: str) -> None:
    table = pa.table({**{name: cells[:1] * 2 for name, cells in REJECTS.items()}, column: [*REJECTS[column][:1], None]})
    with pytest.raises(DataError):
        wincli.aggregate(table, "delta(a, 2)", key=["k"], order_by=["t"], aggregates=["collect(id)"])
