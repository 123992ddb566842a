"""A result is a stream again: the next stage sees its rows and marks in emission order (semantics section 10)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wincli
from support.chained_input import as_input
from support.in_memory_engine import MemorySource, run_in_memory
from wincli.windowing.columns.sort_keys import sort_keys
from wincli.windowing.engine.task import STREAM
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan, stream_of
from wincli.windowing.ports import StreamInfo

FIRST = ["count(3)", "delta(t, 3)", "time(4)", "punct(flag)", "punct()", "gap(t, 1)"]
FIRST += ["sliding, count(3), count(2)", "sliding, time(5), time(2)", "sliding, delta(t, 3), delta(x, 20)", "retain 2"]
FIRST += ["within 3", "within 5 every 2 with unique flag", "time(4), partitioned, tupleCount(5)"]
SECOND = ["punct()", "count(2)", "delta(n, 0)"]


def log(size: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "t": pa.array(np.sort(rng.integers(0, size, size)), pa.timestamp("s")),
        "k": pa.array([f"k{i}" for i in rng.integers(0, 4, size)]),
        "flag": rng.random(size) < 0.3,
        "x": rng.integers(0, 100, size),
    })  # fmt: skip


def plan_of(window: str, table: pa.Table, key: list[str], aggregates: list[str], **options: Any) -> Plan:
    calls = [parse_aggregate(text) for text in aggregates] or None
    return make_plan(parse_window(window), table.schema, key, calls=calls, **options)


def emitted(result: pa.Table, plan: Plan) -> pa.Table:
    """The rows and marks of a result in emission order: what caused them, then window, then key; nulls last."""
    return result.sort_by([(name, "ascending") for name in stream_of(plan).order])


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize(("at", "key", "next_key"), [(0, ["k"], []), (1, ["k"], ["k"]), (2, [], [])])
def test_the_next_stage_reads_rows_and_marks_as_they_were_emitted(
    first: str, at: int, key: list[str], next_key: list[str]
) -> None:
    second = SECOND[(FIRST.index(first) + at) % len(SECOND)]
    if "partitioned" in first and not key:
        return
    table = log(60, 3)
    evicted = "tupleCount" in first
    shared = {"order_by": ["t"], "options": Options(empty=empty_of(first, key), emit_evicted=evicted)}
    one = plan_of(first, table, key, ["n=count()", "x=sum(x)"], **shared)
    source = MemorySource([table.slice(0, 31), table.slice(31)], [[10], []])
    cuts = pa.table({"k": ["k2"]}) if key else pa.table({})
    stage = run_in_memory(one, source, [1, 2], cuts).table
    if first == "punct()":
        assert stage.num_rows > 1
    rows, marks = as_input(emitted(stage, one))
    aggregates = ["xs=collect(x)", "ns=sum(n)"]
    wanted = wincli.aggregate(
        rows, second, key=next_key, order_by="arrival", aggregates=aggregates, marks=marks
    )  # fmt: skip
    two = plan_of(second, stage, next_key, aggregates, stream=stream_of(one))
    parts = [stage.slice(low, high - low) for low, high in pairwise([0, 7, 7, stage.num_rows])]
    found = run_in_memory(two, MemorySource(parts, [[2], [], [5]], stream_of(one)), [1, 3], cuts_of(next_key), STREAM)
    where = ["window_start", "window_end", *two.stream_names]
    assert found.table.drop(where).equals(wanted.drop(["window_start", "window_end", "_at", "_pos"]))
    assert found.counts.rows_in == rows.num_rows
    assert found.counts.balanced


@pytest.mark.parametrize("first", FIRST)
def test_a_third_stage_sees_the_rows_as_the_second_did(first: str) -> None:
    table, next_key = log(60, 5), [[], ["k"], ["n"]][FIRST.index(first) % 3]
    options = Options(emit_evicted="tupleCount" in first)
    one = plan_of(first, table, ["k"], ["n=count()", "x=sum(x)"], order_by=["t"], options=options)
    stage = run_in_memory(one, MemorySource([table], [[20]]), [1], pa.table({"k": ["k2"]})).table
    two = plan_of("count(1)", stage, next_key, ["x=first(x)"], stream=stream_of(one))
    second = run_in_memory(two, MemorySource([stage], [[9]], stream_of(one)), [1], None, STREAM).table
    three = plan_of("count(1000)", second, [], ["xs=collect(x)"], stream=stream_of(two))
    third = run_in_memory(three, MemorySource([second], [[]], stream_of(two)), [], None, STREAM).table
    rows, _ = as_input(emitted(stage, one))
    assert third["xs"].to_pylist() == [rows["x"].to_pylist()]


ROWS = [("time(4)", {"emit": "rows", "sort_by": ("x desc",)}), ("within 3", {"emit": "entered"})]
ROWS += [
    ("within 3", {"emit": "left"}),
    ("count(4)", {"emit": "rows"}),
    ("sliding, time(5), time(2)", {"emit": "rows"}),
]
GROUPS = [("count(4)", {"group_by": ("flag",)}), ("within 3", {"group_by": ("flag", "t")})]


@pytest.mark.parametrize(("window", "options"), [*ROWS, *GROUPS])
@pytest.mark.parametrize("key", [["k"], []])
def test_marks_of_a_result_give_its_panes_back(window: str, options: dict[str, Any], key: list[str]) -> None:
    table = log(60, 7)
    calls = [] if "emit" in options else ["x=sum(x)"]
    one = plan_of(window, table, key, calls, order_by=["t"], options=Options(**options))
    stage = run_in_memory(one, MemorySource([table], [[20]]), [1], cuts_of(key)).table
    two = plan_of("punct()", stage, [], ["xs=collect(x)", "w=collect(window)"], stream=stream_of(one))
    found = run_in_memory(two, MemorySource([stage], [[9]], stream_of(one)), [1], None, STREAM).table
    rows = [row for row in emitted(stage, one).to_pylist() if row["_mark"] != "only"]
    panes: dict[Any, list[Any]] = {}
    for row in rows:
        panes.setdefault((*(row[name] for name in key), row["window"]), []).append(row["x"])
    assert [row["xs"] for row in found.to_pylist() if row["window"] is not None] == list(panes.values())
    assert all(len(set(row["w"])) == 1 for row in found.to_pylist() if row["window"] is not None)


def test_several_results_stay_one_after_the_other() -> None:
    # two nights, each with a window open at its end: those come out last in their night, not in the whole
    info = StreamInfo(("_stream", "_at", "_pos", "window"), ("_at",))
    nights = pa.table({
        "_stream": [0, 0, 1, 1], "_at": [5, None, 7, None], "_pos": [1, None, 4, None], "window": [0, 1, 0, 1],
        "x": ["a", "b", "c", "d"], "_mark": ["window"] * 4,
    })  # fmt: skip
    two = plan_of("count(1)", nights, [], ["x=first(x)"], stream=info)
    second = run_in_memory(two, MemorySource([nights], [[2]], info), [1], pa.table({}), STREAM).table
    assert second["x"].to_pylist() == ["a", "b", "c", "d"]
    assert stream_of(two).order == ("_tie", "_at", "_pos", "_tie_2", "window")
    three = plan_of("count(9)", second, [], ["xs=collect(x)"], stream=stream_of(two))
    third = run_in_memory(three, MemorySource([second], [[]], stream_of(two)), [], None, STREAM).table
    assert third["xs"].to_pylist() == [["a", "b", "c", "d"]]


def test_zeros_of_both_signs_tie_among_nulls_too() -> None:
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        assert sort_keys(pa.array([first, second, None])).tolist() == [0, 0, 2**63 - 1]


def empty_of(window: str, key: list[str]) -> str:
    return "mark" if window.startswith("time") and not key else "skip"


def cuts_of(key: list[str]) -> pa.Table:
    return pa.table({"k": ["k1", "k3"]}) if key else pa.table({})


def test_a_third_stage_keeps_the_order_of_the_first() -> None:
    #  t:   0   1   2   3   4   5        stage 1, key k, count(1): every row comes out as it came in,
    #  k:   b   a   b   a   b   a        though its file is sorted by key
    table = pa.table(
        {"t": pa.array([0, 1, 2, 3, 4, 5], pa.timestamp("s")), "k": list("bababa"), "x": [0, 1, 2, 3, 4, 5]}
    )
    one = plan_of("count(1)", table, ["k"], ["x=first(x)"], order_by=["t"])
    stage = run_in_memory(one, MemorySource([table], [[]]), [], None).table
    assert stage["x"].to_pylist() == [1, 3, 5, 0, 2, 4]
    two = plan_of("count(1)", stage, [], ["x=first(x)"], stream=stream_of(one))
    second = run_in_memory(two, MemorySource([stage], [[]], stream_of(one)), [], None, STREAM).table
    assert second["x"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert second["_at"].to_pylist() == table["t"].to_pylist()
    assert second["_pos"].to_pylist() == [0, 1, 2, 3, 4, 5]
    three = plan_of("count(2)", second, [], ["xs=collect(x)"], stream=stream_of(two))
    third = run_in_memory(three, MemorySource([second], [[3]], stream_of(two)), [1], pa.table({}), STREAM).table
    assert third["xs"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert third["_pos"].to_pylist() == [1, 3, 5]


def test_a_nan_of_any_sign_is_the_last_group_and_sorts_last() -> None:
    nan = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]  # what 0/0 gives on many machines
    table = pa.table({"g": [1.0, nan, 2.0], "x": [1, 2, 3]})
    one = plan_of("count(3)", table, [], ["x=sum(x)"], options=Options(group_by=("g",)))
    stage = run_in_memory(one, MemorySource([table], [[]]), [], None).table
    two = plan_of("punct()", stage, [], ["xs=collect(x)"], stream=stream_of(one))
    found = run_in_memory(two, MemorySource([stage], [[]], stream_of(one)), [], None, STREAM).table
    assert found["xs"].to_pylist() == [[1, 3, 2]]
    rows = wincli.aggregate(table, "count(3)", emit="rows", sort_by=["g"])
    assert rows["x"].to_pylist() == [1, 3, 2]


def test_rows_leave_only_the_stage_behind() -> None:
    table = pa.table({"index": [1, 2], "timing": ["a", "b"], "_x": [3, 4], "k": ["p", "p"]})
    one = plan_of("count(2)", table, ["k"], [], options=Options(emit="rows"))
    stage = run_in_memory(one, MemorySource([table], [[]]), [], None).table
    two = plan_of("count(2)", stage, [], [], options=Options(emit="rows"), stream=stream_of(one))
    found = run_in_memory(two, MemorySource([stage], [[]], stream_of(one)), [], None, STREAM).table
    assert (
        found.select(["k", "index", "timing", "_x"]).to_pylist()
        == table.select(["k", "index", "timing", "_x"]).to_pylist()
    )
