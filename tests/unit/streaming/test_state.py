"""N calls that go on from the state of the call before give the windows of one; a state says what it is of."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.strategies import examples
from support.stream_cases import options_of
from support.table_equality import difference, in_order, same
from support.window_cases import MORE, WindowCase
from wincli.windowing.errors import ConfigError

LOG = pa.table({
    "user": ["ann", "bob", "ann", "ann", "bob"], "t": [0, 10, 45, 70, 90], "amount": [5.0, 1.0, 2.5, 4.0, 3.0],
})  # fmt: skip
DELTA: dict[str, Any] = {"window": "delta(t, 60)", "key": "user", "order_by": "t", "aggregates": "sum(amount)"}


@examples(30)
@given(st.data(), logs(), st.sampled_from(MORE), st.booleans())
def test_streams_give_the_state_of_the_table(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
) -> None:
    options = data.draw(options_of(case, keyed or "partitioned" in case[0])) | {"at_end": "hold"}
    table = table.sort_by("t") if case[1] == ["t"] else table
    result, state = wincli.aggregate(table, case[0], state="new", **options)
    with patch("wincli.windowing.streaming.batch_rows._MOST_ROWS", 1):
        windows, after = wincli.aggregate_stream(table.to_reader(7), case[0], state="new", **options)
        assert same(in_order(windows.read_all()), in_order(result))
    found = after.read_all()
    assert same(found, state), difference(found, state)


def test_state_of_one_key_goes_on_alone() -> None:
    _, state = wincli.aggregate(LOG[:3], state="new", **DELTA)
    one = state.filter((pc.field("user") == "ann") | (pc.field("_part") == -1))
    said = pa.table({"user": ["ann"], "t": [70], "amount": [4.0]})
    result, after = wincli.aggregate(said, state=one, **DELTA)
    assert result.select(["user", "window_end", "sum_amount"]).to_pylist() == [
        {"user": "ann", "window_end": 45, "sum_amount": 7.5}
    ]
    assert after["user"].to_pylist() == [None, "ann"]
    registers = pa.array([state["_registers"][0].as_py()], state.schema.field("_registers").type)
    beside = one[1:].set_column(4, "_registers", registers)
    again, after_beside = wincli.aggregate(said, state=beside, **DELTA)
    assert again.equals(result)
    assert after_beside.equals(after)


def test_windows_are_numbered_on_after_a_flush() -> None:
    first, state = wincli.aggregate(LOG[:3], state="new", at_end="flush", **DELTA)
    second, _ = wincli.aggregate(LOG[3:], state=state, at_end="flush", **DELTA)
    assert [(row["user"], row["window"]) for row in first.to_pylist()] == [("ann", 0), ("bob", 0)]
    assert [(row["user"], row["window"]) for row in second.to_pylist()] == [("ann", 1), ("bob", 1)]


@pytest.mark.parametrize("options", [{"distinct": "amount count 9"}, {"aggregates": "before=last(lag(amount))"}])
def test_behind_a_flush_no_key_looks_back_whether_or_not_it_had_rows_in_that_call(options: dict[str, Any]) -> None:
    job = DELTA | {"window": "count(1)", "at_end": "flush"} | options
    _, whole = wincli.aggregate(LOG[:4], state="new", **job)
    _, state = wincli.aggregate(LOG[:2], state="new", **job | {"at_end": "hold"})
    _, parts = wincli.aggregate(LOG[2:4], state=state, **job)  # none of bob
    more = pa.table({"user": ["bob", "ann"], "t": [80, 81], "amount": [1.0, 4.0]})
    found = [wincli.aggregate(more, state=each, **job)[0].to_pylist() for each in (whole, parts)]
    assert found[0] == found[1]
    assert [row["user"] for row in found[0]] == ["ann", "bob"]


def test_rows_before_those_of_the_call_before_are_late() -> None:
    _, state = wincli.aggregate(LOG[2:], state="new", **DELTA)
    with pytest.raises(wincli.DataError, match="2 rows have no place in the window: row 3 is late"):
        wincli.aggregate(LOG[:2], state=state, **DELTA)


def test_the_mark_of_a_late_row_is_late() -> None:
    """Or it would cut the open window in two, long after rows behind the cut have come."""
    options: dict[str, Any] = {"order_by": "t", "aggregates": "a=collect(t)", "marks": "m", "rejected": "drop"}
    log = pa.table({"t": [0, 1, 2], "m": [False] * 3})
    _, state = wincli.aggregate(log, "punct()", state="new", **options)
    more = pa.table({"t": [1, 3], "m": [True, False]})
    found, _ = wincli.aggregate(more, "punct()", state=state, at_end="flush", **options)
    assert found["a"].to_pylist() == [[0, 1, 2, 3]]


def test_numbers_of_marks_are_counted_in_each_call() -> None:
    log = pa.table({"made": [3, 1, 4, 1, 5, 9]})
    options: dict[str, Any] = {"aggregates": ["made=collect(made)"]}
    first, state = wincli.aggregate(log[:3], "punct()", marks=[2], state="new", **options)
    second, _ = wincli.aggregate(log[3:], "punct()", marks=[1], at_end="flush", state=state, **options)
    assert [first["made"].to_pylist(), second["made"].to_pylist()] == [[[3, 1]], [[4, 1], [5, 9]]]
    with pytest.raises(ConfigError, match="mark 0 comes before the rows"):
        wincli.aggregate(log[3:], "punct()", marks=[0], state=state, **options)


def test_a_state_has_more_columns_than_a_call_needs_but_none_fewer() -> None:
    _, state = wincli.aggregate(LOG[:3], state="new", **DELTA)
    result, less = wincli.aggregate(LOG[3:], state=state, **DELTA | {"aggregates": "count()"})
    assert result["count"].to_pylist() == [2, 1]
    with pytest.raises(ConfigError, match="the state is of another job: it does not hold column amount"):
        wincli.aggregate(LOG[3:], state=less, **DELTA)


BROKEN = {
    "the state has no registers": lambda state: state.filter(pc.field("_part") >= 0),
    "the state has not each part of a key once": lambda state: pa.concat_tables([state, state[1:]]),
    "the state has not each part": lambda state: state.take([0, 2, 3]),
    "the state has no column '_rows'": lambda state: state.drop_columns(["_rows"]),
    "the state has no column '_part'": lambda _: LOG,
}


@pytest.mark.parametrize("words", BROKEN)
def test_what_is_no_whole_state_is_refused(words: str) -> None:
    with patch("wincli.windowing.state.one_table._PART_BYTES", 8):
        _, state = wincli.aggregate(LOG[:3], state="new", **DELTA)
    assert state["_part"].to_pylist() == [-1, 0, 1, 0]
    with pytest.raises(ConfigError, match=words):
        wincli.aggregate(LOG[3:], state=BROKEN[words](state), **DELTA)


@pytest.mark.parametrize(("options", "words"), [
    ({"window": "delta(t, 61)"}, r"its window is tumbling, delta\(t, 60\), not tumbling, delta\(t, 61\)"),
    ({"key": []}, "its key is user, not none"),
    ({"where": "amount > 0"}, "its where is none, not amount > 0"),
    ({"state": "old"}, "'old' is no state"),
    ({"clock": 90}, "the clock goes on"),
    ({"since": 0}, "the state says where the clock stands"),
    ({"watermarks": [(0, 1)]}, "watermarks do not go with a state"),
])  # fmt: skip
def test_a_state_of_another_job_is_refused(options: dict[str, Any], words: str) -> None:
    _, state = wincli.aggregate(LOG[:3], state="new", **DELTA)
    with pytest.raises(ConfigError, match=words):
        wincli.aggregate(LOG[3:], **{"state": state, **DELTA, **options})


def test_what_cannot_go_on_is_refused() -> None:
    log = LOG.rename_columns(["_rows", "t", "amount"])
    with pytest.raises(ConfigError, match="the key column '_rows' has the name of a column of states"):
        wincli.aggregate(log, state="new", **DELTA | {"key": "_rows"})
    window = "sliding, count(3), count(1), partitioned, partitionCount(2)"
    with pytest.raises(ConfigError, match="--emit entered of a window that evicts partitions"):
        wincli.aggregate(LOG, window, key="user", emit="entered", state="new")


def test_the_state_of_a_stream_comes_after_its_result() -> None:
    _, state = wincli.aggregate_stream(LOG.to_reader(), state="new", **DELTA)
    with pytest.raises(ConfigError, match="the state is known when the result has been read"):
        state.read_all()


def test_a_class_of_an_operator_that_is_not_there_is_named() -> None:
    log = pa.table({"t": [1]})
    with pytest.raises(ConfigError, match="cannot import module 'no_such_module': ModuleNotFoundError"):
        wincli.aggregate_stream(log.to_reader(), "count(2)", operator="no_such_module:Op")
