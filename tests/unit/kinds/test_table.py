"""Windows of a table against the reference, row at a time; and night after night, each with a table of its own."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.table import table_panes
from support.strategies import examples
from support.table_equality import difference, in_order, same
from support.table_windows import KEYS, nests, of_units, table_windows, tables_of_units, typed, windows_table
from wincli.windowing.errors import ConfigError, DataError

CLOCKS = [pa.int64(), pa.float64(), pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(9, 2)]


@st.composite
def rows_in_order(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    clocks = sorted(draw(st.lists(st.integers(0, 20), max_size=14)))
    return [(draw(st.sampled_from(KEYS)), clock, at) for at, clock in enumerate(clocks)]


def log_of(rows: list[tuple[str, int, int]], kind: pa.DataType) -> pa.Table:
    keys, clocks, names = ([row[at] for row in rows] for at in range(3))
    return pa.table({"k": pa.array(keys, pa.string()), "t": typed(clocks, kind), "id": pa.array(names, pa.int64())})


@examples(600)
@given(
    st.data(), rows_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]), st.sampled_from(CLOCKS), st.sampled_from(["flush", "drop"]),
)  # fmt: skip
def test_windows_are_those_of_the_reference(
    data: st.DataObject, rows: list[tuple[str, int, int]], keyed: bool, named: bool, closed: str, empty: str,
    kind: pa.DataType, at_end: str,
) -> None:  # fmt: skip
    named &= keyed
    windows = data.draw(table_windows(named))
    told = [(key if keyed else "", clock, name) for key, clock, name in rows]
    mode = "keys" if empty == "row" and named else empty
    wanted = table_panes(told, windows, right=closed == "right", empty=mode, flush=at_end == "flush")
    request = f"w {'on k=key ' if named else ''}from s to e take place as which"
    found = wincli.aggregate(
        log_of(rows, kind), "table(w)", key=["k"] if keyed else [], order_by=["t"], closed=closed, empty=empty,
        at_end=at_end, windows={request: windows_table(windows, kind)}, aggregates=["n=count()", "ids=collect(id)"],
    ).to_pylist()  # fmt: skip
    panes = [(row["k"] if keyed else "", row["which"], tuple(row["ids"] or ()), row["closed_by"]) for row in found]
    assert sorted(panes, key=str) == sorted(((p.key, p.window, p.rows, p.closed_by) for p in wanted), key=str)
    for key in {pane[0] for pane in panes}:
        own = sorted((row for row in found if (row["k"] if keyed else "") == key), key=lambda row: row["window"])
        assert [row["window"] for row in own] == list(range(len(own)))
        assert [row["which"] for row in own] == [pane.window for pane in wanted if pane.key == key]


@examples(400)
@given(
    st.data(), rows_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]),
)  # fmt: skip
def test_nights_that_have_the_windows_which_begin_in_them_are_one_run(
    data: st.DataObject, rows: list[tuple[str, int, int]], keyed: bool, named: bool, closed: str, empty: str
) -> None:
    """Whatever else their tables have: windows that are over, or known, and those of later nights."""
    named &= keyed
    kind, windows = pa.int64(), data.draw(table_windows(named))
    if empty == "row" and keyed and not named:  # else the number of an empty window waits for the next row of its key
        windows = [each for at, each in enumerate(windows) if not any(map(nests, [each] * at, windows[:at]))]
    request = f"w {'on k=key ' if named else ''}from s to e"
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": ["t"], "closed": closed, "empty": empty}
    options |= {"aggregates": ["n=count()", "ids=collect(id)"]}
    whole = wincli.aggregate(
        log_of(rows, kind), "table(w)", windows={request: windows_table(windows, kind)}, at_end="flush", **options
    )
    cuts = [0, *data.draw(st.lists(st.integers(0, len(rows)), max_size=3).map(sorted)), len(rows)]
    state: Any = "new"
    found, clock = [], None
    for night, (low, high) in enumerate(pairwise(cuts)):
        own = rows[low:high]
        after = max([clock, *(row[1] for row in own)], key=lambda each: -1 if each is None else each)
        is_last = night == len(cuts) - 2
        begins = [at for at, each in enumerate(windows) if clock is None or each.start > clock]
        must = {at for at in begins if is_last or (after is not None and windows[at].start <= after)}
        others = data.draw(st.sets(st.sampled_from(range(len(windows))))) if windows else set()
        places = sorted(must | others)
        at_end = "flush" if is_last else "hold"
        tonight = {request: windows_table(windows, kind, places)}
        result, state = wincli.aggregate(
            log_of(own, kind), "table(w)", windows=tonight, state=state, at_end=at_end, **options
        )
        found.append(result)
        clock = after
    some = in_order(pa.concat_tables(found))
    assert same(some, in_order(whole)), difference(some, in_order(whole))


@examples(400)
@given(
    st.data(), rows_in_order(), st.booleans(), st.booleans(), st.sampled_from(["left", "right"]),
    st.sampled_from(["skip", "row"]), st.sampled_from(CLOCKS), st.booleans(),
)  # fmt: skip
def test_tables_of_units_add_up_to_those_of_one_run(
    data: st.DataObject, rows: list[tuple[str, int, int]], keyed: bool, named: bool, closed: str, empty: str,
    kind: pa.DataType, changes: bool,
) -> None:  # fmt: skip
    """Wherever rows of a unit end, or where it has none: windows that begin go on to the units behind it."""
    named &= keyed
    windows = data.draw(table_windows(named))
    if empty == "row" and keyed and not named:  # else the number of an empty window waits for the next row of its key
        windows = [each for at, each in enumerate(windows) if not any(map(nests, [each] * at, windows[:at]))]
    request = f"w {'on k=key ' if named else ''}from s to e"
    options: dict[str, Any] = {"key": ["k"] if keyed else [], "order_by": ["t"], "closed": closed, "empty": empty}
    options |= {"aggregates": ["n=count()", "ids=collect(id)"]}
    cuts = [0, *data.draw(st.lists(st.integers(0, len(rows)), max_size=4).map(sorted)), len(rows)]
    clocks = [rows[cut - 1][1] if cut else None for cut in cuts[:-1]]
    every, tables, whole = data.draw(tables_of_units(windows, clocks, changes))
    log, one = log_of(rows, kind), {request: windows_table(every, kind, whole)}
    wanted = wincli.aggregate(log, "table(w)", windows=one, at_end="flush", **options)
    state, found = "new", list[pa.Table]()
    for (low, high), table in zip(pairwise(cuts), tables, strict=True):
        own, at_end = log[low:high], "flush" if len(found) == len(tables) - 1 else "hold"
        tonight = {request: windows_table(every, kind, table)}
        with of_units():
            result, state = wincli.aggregate(own, "table(w)", windows=tonight, state=state, at_end=at_end, **options)
        found.append(result)
    some = in_order(pa.concat_tables(found))
    assert same(some, in_order(wanted)), difference(some, in_order(wanted))


def known(state: pa.Table) -> list[tuple[int, int]]:
    """The bounds of the windows that a state knows."""
    registers = next(each for each in state["_registers"].to_pylist() if each is not None)
    return [(each["s"], each["e"]) for each in registers["windows"]]


def test_windows_that_begin_are_known_until_they_are_over_and_a_whole_list_says_them_itself() -> None:
    def night(clocks: list[int], windows: list[tuple[int, int]], state: Any, adds_up: bool = True) -> Any:
        table = pa.table({"s": pa.array([s for s, _ in windows], pa.int64()), "e": [e for _, e in windows]})
        table = table.set_column(1, "e", table["e"].cast(pa.int64()))
        with of_units() if adds_up else nullcontext():
            return wincli.aggregate(
                pa.table({"t": pa.array(clocks, pa.int64())}), "table(w)", order_by="t", state=state,
                windows={"w from s to e": table},
            )  # fmt: skip

    _, first = night([], [(5, 9), (2, 3)], "new")
    assert known(first) == [(5, 9), (2, 3)]
    _, second = night([4], [(7, 8), (5, 6)], first)
    assert known(second) == [(7, 8), (5, 6)]
    result, third = night([5, 7, 20], [], second)
    assert (result["window_start"].to_pylist(), known(third)) == ([5, 7], [])
    for state, others in ((second, []), (second, [(7, 9)])):  # what begins is as the list says, which is the whole
        result, _ = night([5, 7, 20], others, state, False)
        assert list(zip(*(result[name].to_pylist() for name in ("window_start", "window_end")), strict=True)) == others
    _, listed = night([4], [(1, 9), (7, 8)], "new", False)  # as states have been that tables of units go on from
    assert known(listed) == [(1, 9)]
    result, _ = night([5, 6, 20], [(6, 7)], listed)
    assert result["window_start"].to_pylist() == [6, 1]


LOG = pa.table({"k": ["a", "a", "b"], "t": [1, 5, 9], "x": [1, 2, 3]})


def told(windows: Any, spec: str = "table(w)", **options: Any) -> str:
    with pytest.raises((ConfigError, DataError)) as caught:
        wincli.aggregate(LOG, spec, order_by=["t"], windows=windows, **options)
    return str(caught.value)


def test_a_table_whose_row_is_no_window_is_an_error_that_names_the_row() -> None:
    for values, words in (
        (([0, 3], [2, None]), "--windows w: row 2 of the table has no end"),
        (([None, 3], [2, 4]), "--windows w: row 1 of the table has no start"),
        (([0, 3], [2, 1]), "--windows w: row 2 of the table ends (1) before it begins (3)"),
        (([0.0, float("nan")], [2.0, 4.0]), "--windows w: row 2 of the table has no start"),
    ):
        table = pa.table({"s": values[0], "e": values[1]})
        assert words in told({"w from s to e": table})
    table = pa.table({"s": [0, 1], "e": [2, 3], "k": ["a", None]})
    assert "--windows w: row 2 of the table has no k" in told({"w on k from s to e": table}, key="k")


def test_a_table_that_does_not_fit_the_window_is_refused() -> None:
    table = pa.table({"s": [0], "e": [2], "k": ["a"], "plant": ["p"], "text": ["x"]})
    for request, words in (
        ("w on plant from s to e", "'plant' is no key of the window; give --key plant"),
        ("w from text to e", "'text' is string and 't' is int64: these do not compare"),
        ("w from s to nothing", "its table has no column 'nothing'"),
        ("v from s to e", 'table(w) needs its windows; --windows "w=PATH [on KEY] from START to END"'),
    ):
        assert words in told({request: table}), request
    assert "windows: 'w' is used by no window" in told({"w from s to e": table}, "count(2)")
    assert "windows: builtins.str is no mapping of texts to tables" in told("w from s to e")
    assert "--empty mark" in told({"w from s to e": table}, empty="mark")
    assert "--emit left is for" in told({"w from s to e": table}, emit="left")


@pytest.mark.parametrize("ends", [{}, {"ends": "t"}])
def test_a_row_at_the_last_instant_is_not_lost(ends: dict[str, str]) -> None:
    """A window that is closed on the right there would have to end behind it."""
    last = 2**63 - 1
    rows, windows = pa.table({"t": [1, last - 1, last]}), pa.table({"s": [0, last], "e": [last, last]})

    def found(rows: pa.Table, windows: pa.Table, closed: str) -> list[Any]:
        options: dict[str, Any] = {"order_by": "t", "closed": closed, "windows": {"w from s to e": windows}, **ends}
        return wincli.aggregate(rows, "table(w)", aggregates=["ids=collect(t)"], **options)["ids"].to_pylist()

    with pytest.raises(DataError, match=f"a row is at {last}, where a window ends that is closed on the right"):
        found(rows, windows, "right")
    assert found(rows, windows, "left") == found(rows[:2], windows, "right") == [[1, last - 1]]
    assert found(rows, windows[1:], "right") == []


def test_bounds_that_no_clock_holds_are_told_as_such() -> None:
    far = pa.array([2**63 + 5], pa.uint64())
    for rows in (pa.table({"t": [1]}), pa.table({"t": pa.array([1], pa.uint64())})):
        with pytest.raises(DataError, match=r"--windows w: 'e' holds numbers beyond 2\*\*63 - 1; write that number"):
            wincli.aggregate(rows, "table(w)", order_by="t", windows={"w from s to e": pa.table({"s": [0], "e": far})})
    rows = pa.table({"t": pa.array([1, 10**11], pa.timestamp("s")), "x": [1.0, 2.0]})
    windows = pa.table({name: pa.array([at], pa.timestamp("ns")) for name, at in (("s", 0), ("e", 5 * 10**9))})
    with pytest.raises(
        DataError, match=r"1,000,000,000 ticks a second.*; give the bounds no finer unit than the clock"
    ):
        wincli.aggregate(rows, "table(w)", order_by="t", aggregates="twa(x)", windows={"w from s to e": windows})


def test_empty_windows_alone_have_no_groups() -> None:
    log, windows = pa.table({"t": [5, 30, 70]}), pa.table({"s": [19, 46], "e": [19, 47]})
    options: dict[str, Any] = {"empty": "row", "closed": "right", "group_by": "t", "order_by": "t"}
    for call in ("count()", "collect(t)"):
        found = wincli.aggregate(log, "table(w)", aggregates=call, windows={"w from s to e": windows}, **options)
        assert found.num_rows == 0
