"""What is computed of rows of one side of a join, and what of pairs; and what comes of names, types and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wincli
from wincli.windowing.emit import pane_rows
from wincli.windowing.language.joins import LEFT, RIGHT, SIDE, parse_join
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.sides import bind_sides, merge_sides
from wincli.windowing.rows.membership import ranges
from wincli.windowing.rows.pairs import Pairs
from wincli.windowing.rows.panes import Panes, rows_shown

LEFTS = pa.table({"k": ["a", "a", "b", "b"], "t": [1, 4, 4, 8], "x": [10, 0, 30, 40]})
RIGHTS = pa.table({"id": ["a", "a", "b", "b"], "at": [1, 3, 8, 9], "y": [1, 0, 3, 4]})
ON = "q on k=id by t=at"


def joined(window: str, how: str = "", left: pa.Table = LEFTS, right: pa.Table = RIGHTS, **more: Any) -> list[Any]:
    """The rows of a join, without stream columns."""
    return wincli.aggregate(left, window, join={f"{ON} {how}": right}, plain=True, **more).to_pylist()


def shown(rows: list[Any], *names: str) -> list[Any]:
    return [tuple(row[name] for name in names) for row in rows]


# --- both sides as one sequence


def test_rows_of_both_sides_have_the_columns_of_one_sequence() -> None:
    right = RIGHTS.set_column(1, "at", pa.array([1.0, 2.5, 8.0, 9.0]))
    sides = bind_sides(parse_join(f"{ON} where (id <> '')".replace("q ", "q=P ")), parse_window("around(2, 1)"),
                       LEFTS.schema, right.schema)  # fmt: skip
    assert sides.schema.names == ["q_at", "q_y", SIDE, "k", "t", "x"]
    assert sides.schema.field("t").type == pa.float64()
    assert (sides.key, sides.order_by) == (("k",), ("t",))
    assert sides.reads(RIGHT, ["t", "x", "q_y", SIDE, "k"]) == ("at", "y", "id")
    assert sides.reads(LEFT, ["t", "x", "q_y"]) == ("t", "x")
    merged = merge_sides(sides, LEFTS.slice(0, 1), right.slice(1, 1))
    assert merged.to_pylist() == [
        {"q_at": 2.5, "q_y": 0, SIDE: RIGHT, "k": "a", "t": 2.5, "x": None},
        {"q_at": None, "q_y": None, SIDE: LEFT, "k": "a", "t": 1.0, "x": 10},
    ]
    assert merge_sides(sides, None, right).num_rows == 4


def test_under_strict_the_left_arrives_first() -> None:
    sides = bind_sides(parse_join("q=P by t=at strict"), parse_window("around(2, 1)"), LEFTS.schema, RIGHTS.schema)
    assert merge_sides(sides, LEFTS, RIGHTS)[SIDE].to_pylist() == [LEFT] * 4 + [RIGHT] * 4


@pytest.mark.parametrize(
    ("join", "window", "given", "says"),
    [
        (f"{ON} take nope", "around(2, 1)", {}, "--join q: the right has no column 'nope'"),
        ("q on x by t=at", "around(2, 1)", {}, "right has no column 'x'; known: id, at, y; where the right calls it"),
        (ON, "around(2, 1)", {"match": "q.y > 1"}, "the column 'q' is not there; did you mean 'q_y'?"),
        ("q on k=id by t", "around(2, 1)", {"order_by": "x"}, "leave one of both out; by x=t orders each side"),
        (f"{ON} take y as x", "around(2, 1)", {}, "a column 'x' already"),
        (f"{ON} where (z > 1)", "around(2, 1)", {}, "the column 'z' is not there"),
        ("q on k=at by t=at", "around(2, 1)", {}, "do not compare"),
        (ON, "around(2, 1)", {"key": "x"}, "joins on k, and the key is x"),
        (ON, "around(2, 1)", {"order_by": "x"}, "is by t, and --order-by is x"),
        ("q on k=id", "count(2)", {}, "no common order of arrival"),
        ("q on k=id by t=at", "around(2, 1)", {"match": "q_z = 1"}, "the column 'q_z' is not there"),
        (ON, "around(2, 1)", {"aggregates": "sum(q_z)"}, "no column 'q_z'"),
        (ON, "around(2, 1)", {"let": {"x": "t"}}, "there is a column 'x' already"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_it(join: str, window: str, given: Any, says: str) -> None:
    with pytest.raises(wincli.WincliError, match=says):
        wincli.aggregate(LEFTS, window, join={join: RIGHTS}, **given)


def test_two_columns_are_no_key_of_one_log() -> None:
    with pytest.raises(wincli.ConfigError, match="read the log twice"):
        wincli.aggregate(LEFTS, "around(1, 1)", join="q on k=x by t")


def test_a_path_is_no_table() -> None:
    with pytest.raises(wincli.ConfigError, match="are not there"):
        wincli.aggregate(LEFTS, "around(1, 1)", join="q=b.csv on k by t")
    with pytest.raises(wincli.ConfigError, match="is a path, and a table is given"):
        wincli.aggregate(LEFTS, "around(1, 1)", join={"q=b.csv on k by t": RIGHTS})


# --- expressions


def test_expressions_see_rows_of_their_side_alone() -> None:
    """A row of the other side has no value, and cannot fail."""
    left, right = LEFTS.append_column("v", [["1", "2", "?", "4"]]), RIGHTS.append_column("w", [["1", "2", "3", "?"]])
    given = {"left": left, "right": right, "rejected": "column"}
    rows = joined("around(2, 1)", "full", let={"z": "coalesce(cast(v as bigint), 9)"}, **given)
    assert shown([row for row in rows if not row["_rejected"]], "x", "z", "q_y") == [
        (10, 1, 1), (0, 2, 0), (40, 4, 3), (40, 4, 4),
    ]  # fmt: skip
    assert [row["_rejected"]["detail"] for row in rows if row["_rejected"]] == ["z: '?' is no BIGINT"]
    rows = joined(
        "around(2, 1)", "full where (cast(w as bigint) < 3)", where="coalesce(cast(v as bigint), 9) > 1", **given
    )
    assert shown([row for row in rows if not row["_rejected"]], "x", "q_y") == [(None, 1), (0, 0), (40, None)]
    assert len([row for row in rows if row["_rejected"]]) == 2


def test_a_column_that_names_the_right_is_one_of_pairs() -> None:
    let = {"double": "x * 2", "both": "double + q_y", "more": "both + 1"}
    rows = joined("around(2, 1)", let=let, match="more > 30", sort_by="more desc")
    assert shown(rows, "x", "double", "both", "more") == [(40, 80, 84, 85), (40, 80, 83, 84)]
    calls = ["s=sum(more)", "n=count() where both > 83"]
    assert shown(joined("around(2, 1)", "left", let=let, aggregates=calls), "x", "s", "n") == [
        (10, 22, 0), (0, 1, 0), (30, None, 0), (40, 169, 1),
    ]  # fmt: skip


def test_pairs_are_grouped_and_hidden_as_rows_are() -> None:
    rows = joined("around(9, 9)", aggregates=["n=count()", "s=sum(x)"], group_by="q_y", having="n >= 1 and s > 0")
    assert shown(rows, "k", "window", "q_y", "n", "s") == [
        ("a", 0, 0, 1, 10), ("a", 0, 1, 1, 10), ("b", 0, 3, 1, 30), ("b", 0, 4, 1, 30), ("b", 1, 3, 1, 40),
        ("b", 1, 4, 1, 40),
    ]  # fmt: skip


def test_one_log_is_both_sides() -> None:
    log = pa.table({"k": [1] * 4, "t": [1, 2, 3, 4], "kind": ["a", "b", "a", "c"], "v": [1, 2, 3, 4]})
    given = {"join": "q on k by t where (kind <> 'a')", "where": "kind <> 'b'", "plain": True}
    rows = wincli.aggregate(log, "around(2, 1)", **given)
    assert shown(rows.to_pylist(), "v", "q_v") == [(1, 2), (3, 2), (3, 4), (4, 2), (4, 4)]
    sums = wincli.aggregate(log, "around(2, 1)", aggregates=["s=sum(q_v * 2)", "l=last(q_kind)"], **given)
    assert shown(sums.to_pylist(), "v", "kind", "s", "l") == [(1, "a", 4, "b"), (3, "a", 12, "c"), (4, "c", 12, "c")]


# --- fast or by pairs


@settings(max_examples=60)
@given(st.data())
def test_aggregates_of_the_right_are_the_same_with_and_without_pairs(data: st.DataObject) -> None:
    """A condition that is always true makes pairs of what else are ranges of right rows."""

    def log(value: str) -> pa.Table:
        size = data.draw(st.integers(0, 20))
        numbers = st.lists(st.integers(0, 9), min_size=size, max_size=size)
        return pa.table({name: pa.array(data.draw(numbers), pa.int64()) for name in ("t", value)})

    left, right = log("x"), log("y")
    how = data.draw(st.sampled_from(["inner", "left"]))
    window = data.draw(st.sampled_from(["around(2, 1)", "around(-1, 3)", "around(1, 1, prevailing)"]))
    calls = [
        "count()",
        "sum(q_y)",
        "first(q_y)",
        "a=max(q_y * 2) where q_y > 2",
        "collect(q_y)",
        "d=count_distinct(q_y)",
    ]
    given = {"join": {f"q by t {how}": right}, "aggregates": calls}
    fast = wincli.aggregate(left, window, **given)
    assert wincli.aggregate(left, window, match="x = x", **given).equals(fast)


def test_pairs_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"let": {"z": "x + q_y"}, "join": {f"{ON} full": RIGHTS}}
    at_once = wincli.aggregate(LEFTS, "around(9, 9)", **given)
    monkeypatch.setattr(pane_rows, "_PAIRS", 2)
    assert wincli.aggregate(LEFTS, "around(9, 9)", **given).combine_chunks().equals(at_once.combine_chunks())


# --- results


def test_a_result_is_joined_and_a_join_is_a_stream() -> None:
    """Marks of a result are no rows; what a join gives is windowed in the one order."""
    result = wincli.aggregate(LEFTS, "count(1)", key="k", order_by="t", aggregates="x=last(x)", having="x > 0")
    given = {"join": {"q on k=id by _at=at left": RIGHTS}}
    pairs = wincli.aggregate(result, "around(2, 1)", **given)
    assert shown([row for row in pairs.to_pylist() if row["k"]], "k", "x", "q_y") == [
        ("a", 10, 1), ("b", 30, None), ("b", 40, 3), ("b", 40, 4),
    ]  # fmt: skip
    again = wincli.aggregate(pairs, "count(2)", aggregates="x=collect(x)", plain=True)
    assert again["x"].to_pylist() == [[10, 30], [40, 40]]


def test_of_equal_instants_the_rows_of_a_result_come_behind_those_of_the_right() -> None:
    result = wincli.aggregate(LEFTS.slice(1, 2), "count(1)", order_by="t", aggregates="x=last(x)")
    right = pa.table({"at": [4], "y": [7]})
    found = {
        how: wincli.aggregate(result, "sliding, count(0) join count(1)", join={f"q by _at=at {how}": right})
        for how in ("", "strict")
    }
    assert found[""]["x"].to_pylist() == [0, 30]
    assert not found["strict"].num_rows


def test_panes_stand_behind_the_rows_of_their_instant() -> None:
    result = wincli.aggregate(LEFTS, "around(2, 0)", join={f"{ON} full": RIGHTS})
    assert set(result["_turn"].drop_null().to_pylist()) == {2}
    assert set(result["_pos"].drop_null().to_pylist()) == {-1}


def test_offsets_are_columns_of_pairs() -> None:
    rows = joined("at(0, -1, 0.5)", "left", aggregates=None)
    assert shown(rows, "x", "q_offset", "q_y")[:6] == [
        (10, 0.0, 1), (10, -1.0, None), (10, 0.5, 1), (0, 0.0, 0), (0, -1.0, 0), (0, 0.5, 0),
    ]  # fmt: skip
    assert shown(joined("at(0, -1)", aggregates=["n=count()"], group_by="q_offset"), "q_offset", "n")[0] == (0, 1)


def test_rows_that_panes_of_pairs_show() -> None:
    pairs = Pairs(
        np.array([0, 2, 3]), np.array([1, 5, -1]), np.array([0, 2, 2]), np.array([2, 2, 3]), np.array([0, 2, 4])
    )
    nothing, closed = np.zeros(2, np.int64), np.zeros(2, np.int8)
    panes = Panes(nothing, np.arange(2), ranges(nothing, nothing), nothing, closed, pairs=pairs)
    assert np.flatnonzero(rows_shown(panes, 6)).tolist() == [0, 1, 2, 4, 5]
    assert np.flatnonzero(rows_shown(panes.take(np.array([1])), 6)).tolist() == [4]
