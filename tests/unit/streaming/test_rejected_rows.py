"""Rejected rows as rows of the result: each row of the input is in windows, left out, or there with its reason."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.errors import ConfigError, DataError

LETTERS = st.one_of(st.none(), st.sampled_from(["a", "b", "7"]))
TIMES = st.one_of(st.none(), st.integers(0, 20))
FLOATS = st.one_of(st.none(), st.just(math.nan), st.floats(-3, 3))
WINDOWS: list[dict[str, Any]] = [
    {"window": "count(2)"},
    {"window": "delta(x, 1)"},
    {"window": "gap(t, 2) or count(3)", "where": "cast(word as int) > 0 or t < 9"},
    {"window": "count(3)", "let": "n=cast(word as int)", "aggregates": ["sum(n)", "count()"]},
    {"window": "count(3)", "aggregates": ["count()", "sum(cast(lag(word) as int))"]},
    {"window": "delta(t, 5 - previous(sum(x), 1))"},
    {"window": "timeInterval, intervalDuration(4)", "event_time": "t", "order_by": "arrival"},
    {"window": "time(4)"},
]


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.lists(st.tuples(LETTERS, TIMES, FLOATS, LETTERS), max_size=14))
    keys, times, values, words = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table({
        "id": pa.array(range(len(rows)), pa.int64()), "k": pa.array(keys, pa.string()),
        "t": pa.array(times, pa.int64()), "x": pa.array(values, pa.float64(), from_pandas=False),
        "word": pa.array(words, pa.string()),
    })  # fmt: skip


def options_of(case: dict[str, Any], keyed: bool) -> dict[str, Any]:
    return {"key": "k" if keyed else (), "order_by": "t", "aggregates": ["count()"], **case}


def reasons(table: pa.Table) -> list[tuple[int, str]]:
    rejected = table.filter(table["_rejected"].is_valid())["_rejected"].to_pylist()
    return [(each["row"]["id"], each["reason"]) for each in rejected]


@examples(90)
@given(logs(), st.sampled_from(WINDOWS), st.booleans(), st.lists(st.integers(0, 14), max_size=3).map(sorted))
def test_rows_of_windows_and_rejected_rows_are_the_rows(
    log: pa.Table, case: dict[str, Any], keyed: bool, cuts: list[int]
) -> None:
    options = options_of(case, keyed)
    found = wincli.aggregate(log, **options, rejected="column")
    windows = found.filter(found["_rejected"].is_null()).drop_columns(["_rejected"])
    dropped = wincli.aggregate(log, **options, rejected="drop")
    assert same(windows, dropped), difference(windows, dropped)
    rejected = found.filter(found["_rejected"].is_valid())
    assert all(rejected[name].null_count == len(rejected) for name in dropped.column_names)
    whole = pa.Table.from_struct_array(rejected["_rejected"].combine_chunks())
    rows = pa.Table.from_struct_array(whole["row"].combine_chunks()) if len(whole) else log.slice(0, 0)
    assert rows["id"].to_pylist() == sorted(set(rows["id"].to_pylist()))
    assert same(rows.cast(log.schema), log.take(rows["id"]))
    if "where" not in case and not case["window"].startswith("timeInterval"):
        assert pc.sum(windows["count"]).as_py() == (len(log) - len(rejected) or None)
    kept = log.filter(pc.invert(pc.is_in(log["id"], rows["id"])))
    if not any(word in str(case) for word in ("lag", "previous")):  # there a rejected row counts for those around it
        again = wincli.aggregate(kept, **options).drop_columns(["_pos"])
        assert same(again, dropped.drop_columns(["_pos"])), difference(again, dropped)
    if len(rejected):
        with pytest.raises(DataError, match="mend them, or say rejected='column' or 'drop'"):
            wincli.aggregate(log, **options)
    in_order = log.sort_by("t")
    wanted = wincli.aggregate(in_order, **options, rejected="column")
    parts = [in_order.slice(low, high - low) for low, high in pairwise([0, *cuts, 14])]
    reader = pa.RecordBatchReader.from_batches(log.schema, [batch for part in parts for batch in part.to_batches()])
    streamed = wincli.aggregate_stream(reader, **options, rejected="column").read_all()
    assert sorted(reasons(streamed)) == sorted(reasons(wanted))


def test_reasons_and_details_are_those_of_the_command_line() -> None:
    log = pa.table({"id": [0, 1, 2, 3], "k": ["a", None, "a", "b"], "t": [0, 1, None, 3], "word": ["1", "2", "3", "x"]})
    found = wincli.aggregate(
        log, "count(2)", key="k", order_by="t", where="cast(word as int) > 0", rejected="column", plain=True
    )
    assert found.column_names[-1] == "_rejected"
    assert found["_rejected"].to_pylist() == [
        None,
        {"reason": "null_key", "detail": None, "row": {"id": 1, "k": None, "t": 1, "word": "2"}},
        {"reason": "null_order", "detail": None, "row": {"id": 2, "k": "a", "t": None, "word": "3"}},
        {
            "reason": "expression_error",
            "detail": "--where CAST(word AS INT) > 0: 'x' is no INTEGER",
            "row": {"id": 3, "k": "b", "t": 3, "word": "x"},
        },
    ]


def test_mistakes_are_named() -> None:
    log = pa.table({"t": [1, None], "k": ["a", "b"]})
    with pytest.raises(ConfigError, match="rejected: 'colum' is none of 'error', 'drop', 'column'; say one of these"):
        wincli.aggregate(log, "count(2)", rejected="colum")
    with pytest.raises(ConfigError, match="two columns '_rejected'; give the aggregate or key another name"):
        wincli.aggregate(log, "count(2)", aggregates={"_rejected": "count()"}, rejected="column")
    found = wincli.aggregate(log, "count(2)", order_by="t", rejected="column")
    with pytest.raises(ConfigError, match="the rows with '_rejected' are in no window, so they are none of the next"):
        wincli.aggregate(found, "punct()")
    good = found.filter(found["_rejected"].is_null()).drop_columns(["_rejected"])
    assert len(wincli.aggregate(good, "punct()")) == 1


@pytest.mark.parametrize("cut", [None, 2, 3])
def test_a_row_that_its_lag_rejects_does_not_move_the_clock(cut: int | None) -> None:
    """Or ticks after the last row of a window would come out, which in runs do not."""
    log = pa.table({"t": [0, 1, 8, 20], "word": ["1", "2", "x", "4"]})
    options: dict[str, Any] = {
        "order_by": "t", "let": "y=cast(lag(word) as int)", "aggregates": ["count()", "sum(y)"], "empty": "mark",
        "rejected": "drop",
    }  # fmt: skip
    if cut is None:
        found = wincli.aggregate(log, "time(5)", **options).to_pylist()
    else:
        first, state = wincli.aggregate(log[:cut], "time(5)", state="new", at_end="hold", **options)
        rest, _ = wincli.aggregate(log[cut:], "time(5)", state=state, at_end="flush", **options)
        found = pa.concat_tables([first, rest]).to_pylist()
    assert [(row["window"], row["count"], row["closed_by"]) for row in found] == [(0, 2, "time"), (1, 1, "end")]
