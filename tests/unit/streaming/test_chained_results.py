"""A result is a stream again: the next stage sees its rows and marks in emission order (semantics section 10)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wincli
from support.chained_input import as_input
from support.in_memory_engine import MemorySource, run_in_memory
from support.table_equality import difference, in_order, same
from wincli.windowing.arguments import as_calls, as_options
from wincli.windowing.engine.task import STREAM
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import Plan, make_plan, stream_of
from wincli.windowing.planning.result_schema import stream_of_columns
from wincli.windowing.ports import StreamInfo

Stage = dict[str, Any]
TIMES = {"order_by": ["t"], "aggregates": ["x=sum(x)", "n=count()", "t=last(t)"]}
FIRST: list[Stage] = [
    {"window": window, **TIMES}
    for window in (
        "count(3)",
        "delta(t, 3)",
        "punct(flag)",
        "gap(t, 1)",
        "sliding, count(3), count(2)",
        "sliding, time(5), time(2)",
        "time(6) every 2",
        "sliding, delta(t, 3), delta(x, 20)",
        "retain 2",
        "within 3",
        "within 5 every 2 with unique flag",
    )
]
FIRST += [
    {"window": "punct()", **TIMES, "marks": "flag"},
    {"window": "time(4)", **TIMES, "empty": "mark"},
    {"window": "time(4)", "order_by": ["t", "x"], "aggregates": TIMES["aggregates"], "group_by": ["flag"]},
    {"window": "within 3", "order_by": ["t", "x"], "aggregates": TIMES["aggregates"]},
    {"window": "time(4), partitioned, tupleCount(5)", **TIMES, "emit_evicted": True},
    {"window": "count(4)", "order_by": ["t"], "emit": "rows", "sort_by": ["x desc"]},
    {"window": "within 3", "order_by": ["t"], "emit": "left"},
    {"window": "timeInterval, intervalDuration(4)", "event_time": "t", "aggregates": TIMES["aggregates"], "lag": 1},
    {"window": "timeInterval, intervalDuration(4)", "event_time": "t", "emit": "rows"},
    {"window": "count(2)", "aggregates": TIMES["aggregates"], "having": "x > 40", "let": "y=x + 1"},
    {"window": "count(2)", "aggregates": TIMES["aggregates"], "plain": True},
]
SECOND: list[Stage] = [
    {"window": "punct()", "aggregates": ["xs=collect(x)", "x=sum(window)"]},
    {"window": "punct()", "aggregates": ["x=sum(x)"], "where": "x % 2 = 0"},
    {"window": "count(2)", "aggregates": ["x=sum(x)", "t=last(t)"]},
    {"window": "count(2)", "emit": "rows"},
    {"window": "delta(rest, 0)", "aggregates": ["x=sum(x)", "t=last(t)"], "let": "rest=x % 5"},
    {"window": "delta(t, 4)", "order_by": ["t"], "aggregates": ["x=sum(x)", "t=first(t)"]},
    {"window": "within 4", "order_by": ["t"], "aggregates": ["x=sum(x)", "t=last(t)"]},
    {"window": "sliding, count(3), count(2)", "aggregates": ["x=max(x)", "t=last(t)"], "let": "y=x + 1"},
    {"window": "timeInterval, intervalDuration(5)", "event_time": "t", "aggregates": ["x=sum(x)", "t=last(t)"]},
]
THIRD: Stage = {"window": "punct()", "aggregates": ["xs=collect(x)"]}
KEYS: list[tuple[list[str], ...]] = [(["k"], []), (["k"], ["k"]), ([], [])]


def named(stage: Stage) -> str:
    return " ".join([stage["window"], *(str(stage[name]) for name in ("emit", "order_by", "where") if name in stage)])


def log(size: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "t": pa.array(np.sort(rng.integers(0, size, size)), pa.timestamp("s")),
        "k": pa.array([f"k{i}" for i in rng.integers(0, 4, size)]),
        "flag": rng.random(size) < 0.3,
        "x": rng.integers(0, 100, size),
    })  # fmt: skip


def called(stage: Stage, key: list[str]) -> Stage:
    stage = {"order_by": None, "aggregates": None, "key": key, **stage}
    is_shared = stage["window"].startswith("time(4),") or (stage.get("empty") == "mark" and key)
    return stage | ({"empty": "skip"} if is_shared else {})


def run_stage(stage: Stage, table: pa.Table, before: Plan | None) -> tuple[pa.Table, Plan]:
    """One stage as the engine runs it over parts of a table, or of a result, whose manifest says how to read it."""
    calls = None if stage["aggregates"] is None else as_calls(stage["aggregates"])
    stream = None if before is None or before.options.plain else stream_of(before)
    plan = make_plan(
        parse_window(stage["window"]), table.schema, stage["key"], stage["order_by"], calls, as_options(stage), stream
    )
    edges = [0, min(7, len(table)), min(7, len(table)), len(table)]
    parts = [table.slice(low, high - low) for low, high in pairwise(edges)]
    source = MemorySource(parts, [[2], [], [5]], stream)
    marks = STREAM if stream else f"column:{stage['marks']}" if "marks" in stage else "none"
    cuts = pa.table({"k": ["k1", "k3"]}) if stage["key"] else pa.table({})
    found = run_in_memory(plan, source, [1, 3], cuts, marks)
    assert found.counts.balanced
    return found.table, plan


def emitted(result: pa.Table, plan: Plan) -> pa.Table:
    """The rows and marks of a result in emission order: what caused them, then window, then key; nulls last."""
    if plan.options.plain:
        return result
    return result.sort_by([(name, "ascending") for name in stream_of(plan).order]).combine_chunks()


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("first", FIRST, ids=named)
def test_a_stage_reads_a_result_as_its_rows_and_marks_in_emission_order(first: Stage, at: int) -> None:
    """By the command line and by the library, which knows a result by its columns alone, whatever its order.

    Each first stage meets each kind of keys, and each second stage some first ones.
    """
    second, keys = SECOND[(FIRST.index(first) * 3 + at) % len(SECOND)], KEYS[at]
    if ("partitioned" in first["window"] and not keys[0]) or (first.get("plain") and second.get("emit") == "rows"):
        return  # it has no key, or two columns would have one name
    stages = [called(stage, key) for stage, key in zip((first, second, THIRD), (*keys, []), strict=True)]
    result = read = log(60, 3)
    plan: Plan | None = None
    for stage in stages:
        before, given = plan, result
        result, plan = run_stage(stage, result, plan)
        read = wincli.aggregate(read, **stage, rejected="drop")
        one, other = emitted(read, plan), emitted(result, plan)
        assert same(one, other), difference(one, other)
        assert stream_of_columns(result.schema) == (None if plan.options.plain else stream_of(plan))
        if before is not None and not before.options.plain and plan.options.emit == "aggregates":
            rows, marks = as_input(emitted(given, before))
            order_by = stage["order_by"] or "arrival"
            plain = wincli.aggregate(rows, **{**stage, "order_by": order_by}, marks=marks, rejected="drop")
            stamps = {"window_start", "window_end", "_at", "_pos", *plan.stream_names}
            names = [name for name in plain.column_names if name not in stamps]
            assert same(result.select(names), plain.select(names)), difference(result.select(names), plain)
        if not plan.options.plain:
            read = read.take(pa.array(random.Random(1).sample(range(len(read)), len(read)), pa.int64()))


ROWS = [("time(4)", {"emit": "rows", "sort_by": ["x desc"]}), ("within 3", {"emit": "entered"})]
ROWS += [
    ("within 3", {"emit": "left"}),
    ("count(4)", {"emit": "rows"}),
    ("sliding, time(5), time(2)", {"emit": "rows"}),
]
GROUPS = [("count(4)", {"group_by": ["flag"]}), ("within 3", {"group_by": ["flag", "t"]})]


@pytest.mark.parametrize(("window", "options"), [*ROWS, *GROUPS])
@pytest.mark.parametrize("key", [["k"], []])
def test_marks_of_a_result_give_its_panes_back(window: str, options: Stage, key: list[str]) -> None:
    calls = None if "emit" in options else ["x=sum(x)"]
    stage, one = run_stage(
        called({"window": window, "order_by": ["t"], "aggregates": calls, **options}, key), log(60, 7), None
    )
    found, _ = run_stage(
        called({"window": "punct()", "aggregates": ["xs=collect(x)", "w=collect(window)"]}, []), stage, one
    )
    panes: dict[Any, list[Any]] = {}
    for row in emitted(stage, one).to_pylist():
        if row["_mark"] != "only":
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
    two = make_plan(parse_window("count(1)"), nights.schema, [], None, as_calls("x=first(x)"), stream=info)
    second = run_in_memory(two, MemorySource([nights], [[2]], info), [1], pa.table({}), STREAM).table
    assert second["x"].to_pylist() == ["a", "b", "c", "d"]
    assert stream_of(two).order == ("_tie", "_at", "_pos", "_tie_2", "window")
    third, _ = run_stage(called({"window": "count(9)", "aggregates": ["xs=collect(x)"]}, []), second, two)
    assert third["xs"].to_pylist() == [["a", "b", "c", "d"]]


def test_a_third_stage_keeps_the_order_of_the_first() -> None:
    #  t:   0   1   2   3   4   5        stage 1, key k, count(1): every row comes out as it came in,
    #  k:   b   a   b   a   b   a        though its file is sorted by key
    table = pa.table({"t": pa.array(range(6), pa.timestamp("s")), "k": list("bababa"), "x": range(6)})
    each = {"window": "count(1)", "aggregates": ["x=first(x)"]}
    stage, one = run_stage(called({**each, "order_by": ["t"]}, ["k"]), table, None)
    assert stage["x"].to_pylist() == [1, 3, 5, 0, 2, 4]
    second, two = run_stage(called(each, []), stage, one)
    assert second["x"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert second["_at"].to_pylist() == table["t"].to_pylist()
    assert second["_pos"].to_pylist() == [0, 1, 2, 3, 4, 5]
    third, _ = run_stage(called({"window": "count(2)", "aggregates": ["xs=collect(x)"]}, []), second, two)
    assert third["xs"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert third["_pos"].to_pylist() == [1, 3, 5]


def test_a_nan_of_any_sign_is_the_last_group_and_sorts_last() -> None:
    nan = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]  # what 0/0 gives on many machines
    table = pa.table({"g": [1.0, nan, 2.0], "x": [1, 2, 3]})
    stage, one = run_stage(
        called({"window": "count(3)", "aggregates": ["x=sum(x)"], "group_by": ["g"]}, []), table, None
    )
    found, _ = run_stage(called(THIRD, []), stage, one)
    assert found["xs"].to_pylist() == [[1, 3, 2]]
    rows = wincli.aggregate(table, "count(3)", emit="rows", sort_by=["g"])
    assert rows["x"].to_pylist() == [1, 3, 2]


def test_rows_leave_only_the_stage_behind() -> None:
    table = pa.table({"index": [1, 2], "timing": ["a", "b"], "_x": [3, 4], "k": ["p", "p"]})
    stage, one = run_stage(called({"window": "count(2)", "emit": "rows"}, ["k"]), table, None)
    found, _ = run_stage(called({"window": "count(2)", "emit": "rows"}, []), stage, one)
    assert found.select(table.column_names).to_pylist() == table.to_pylist()


def test_a_part_of_a_result_is_refused() -> None:
    result = wincli.aggregate(log(20, 1), "count(2)", key="k", aggregates="x=sum(x)")
    for name in ("_at", "_pos", "window"):
        with pytest.raises(ConfigError, match=f"a result of wincli, and it lacks its column '{name}'"):
            wincli.aggregate(result.drop_columns([name]), "count(2)")
    floats = result.set_column(result.column_names.index("_pos"), "_pos", result["_pos"].cast(pa.float64()))
    with pytest.raises(ConfigError, match="column '_pos' of a result of wincli is double"):
        wincli.aggregate(floats, "count(2)")
    own = pa.table({"_mark": ["x", "y"]})
    assert wincli.aggregate(own, "count(2)", aggregates="m=collect(_mark)")["m"].to_pylist() == [["x", "y"]]


def test_columns_may_be_moved_or_left_out_and_a_stream_of_a_result_is_read_in_the_order_of_its_panes() -> None:
    result = wincli.aggregate(log(40, 1), "count(2)", key="k", order_by="t", aggregates="x=sum(x)")
    wanted = wincli.aggregate(result, "punct()", aggregates="xs=collect(x)")
    moved = result.select(["_mark", "x", "_at", "_pos", "k", "window"])
    assert wincli.aggregate(moved, "punct()", aggregates="xs=collect(x)")["xs"].equals(wanted["xs"])
    result = wincli.aggregate(log(40, 1), "count(2)", order_by="t", aggregates="x=sum(x)")
    wanted = wincli.aggregate(result, "count(3)", aggregates="xs=collect(x)")
    found = wincli.aggregate_stream(result.to_reader(4), "count(3)", aggregates="xs=collect(x)").read_all()
    assert same(found, wanted), difference(found, wanted)


GROUPED: Stage = {"window": "time(9)", **TIMES, "group_by": ["flag"]}


@pytest.mark.parametrize("second", [each for each in SECOND if "timeInterval" not in each["window"]], ids=named)
@pytest.mark.parametrize("first", [FIRST[0], GROUPED, FIRST[3], FIRST[10]], ids=named)
def test_a_chain_goes_on_from_states(first: Stage, second: Stage) -> None:
    if "order_by" in second:
        second = second | {"order_by": ["_at"], "window": second["window"].replace("(t,", "(_at,")}
    table = log(60, 5)
    stages = [called(stage, key) for stage, key in ((first, ["k"]), (second, []), (THIRD, []))]
    stages = stages[: 2 if second.get("emit") == "rows" else 3]
    wanted = table
    for stage in stages:
        wanted = wincli.aggregate(wanted, **stage, rejected="drop")
    states: list[Any] = ["new"] * len(stages)
    found = []
    for part, at_end in zip(
        (table.slice(0, 23), table.slice(23, 17), table.slice(40)), ("hold", "hold", "flush"), strict=True
    ):
        rows = part
        for at, stage in enumerate(stages):
            rows, states[at] = wincli.aggregate(rows, **stage, state=states[at], at_end=at_end, rejected="drop")
        found.append(rows)
    one, other = in_order(pa.concat_tables(found)), in_order(wanted)
    assert same(one, other), difference(one, other)
