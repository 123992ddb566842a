"""The library reads a result as the command line does: known by its columns, in the order in which its panes came."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.in_memory_engine import MemorySource, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.arguments import as_calls, as_options
from wincli.windowing.engine.task import STREAM
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import Plan, make_plan, stream_of
from wincli.windowing.planning.result_schema import stream_of_columns

Stage = dict[str, Any]
DEFAULTS: Stage = {
    **{"let": (), "where": None, "having": None, "partial": False, "group_by": (), "emit": "aggregates", "sort_by": ()},
    **{"event_time": None, "lag": 0, "min_gap": 0, "emit_evicted": False, "operator": None, "plain": False},
    **{"at_end": "flush", "empty": "skip", "closed": "left", "origin": None},
}
TIMES = {"order_by": ["t"], "aggregates": ["x=sum(x)", "n=count()", "t=last(t)"]}
FIRST: list[Stage] = [
    {"window": window, **TIMES}
    for window in (
        "count(3)",
        "delta(t, 3)",
        "punct()",
        "gap(t, 1)",
        "sliding, time(5), time(2)",
        "retain 2",
        "within 3",
    )
]
FIRST += [
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


def run_stage(stage: Stage, table: pa.Table, before: Plan | None, splits: list[int]) -> tuple[pa.Table, Plan]:
    """One stage as the engine runs it over parts of a result, whose manifest says how to read it."""
    given = DEFAULTS | stage
    calls = None if stage["aggregates"] is None else as_calls(stage["aggregates"])
    stream = None if before is None or before.options.plain else stream_of(before)
    plan = make_plan(
        parse_window(stage["window"]), table.schema, stage["key"], stage["order_by"], calls, as_options(given), stream
    )
    edges = [0, *splits, len(table)]
    parts = [table.slice(low, high - low) for low, high in pairwise(edges)]
    source = MemorySource(parts, [[]] * len(parts), stream)
    return run_in_memory(plan, source, [], None, STREAM if stream else "none").table, plan


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("first", FIRST, ids=named)
def test_a_chain_of_calls_is_the_chain_of_stages(first: Stage, at: int) -> None:
    """Each first stage meets each kind of keys, and each second stage some first ones."""
    second, keys = SECOND[(FIRST.index(first) * 3 + at) % len(SECOND)], KEYS[at]
    if ("partitioned" in first["window"] and not keys[0]) or (first.get("plain") and second.get("emit") == "rows"):
        return  # it has no key, or two columns would have one name
    stages = [called(stage, key) for stage, key in zip((first, second, THIRD), (*keys, []), strict=True)]
    wanted = found = log(60, 3)
    plan = None
    for stage in stages:
        splits = sorted({0, 7 % (len(wanted) + 1)})
        wanted, plan = run_stage(stage, wanted, plan, splits)
        found = wincli.aggregate(found, **stage, rejected="drop")
        assert same(found, wanted), difference(found, wanted)
        if not plan.options.plain:
            found = found.take(pa.array(random.Random(1).sample(range(len(found)), len(found)), pa.int64()))


@pytest.mark.parametrize("first", FIRST, ids=named)
def test_columns_say_what_the_manifest_says(first: Stage) -> None:
    table, plan = log(20, 1), None
    for stage in (first, SECOND[FIRST.index(first) % len(SECOND)], THIRD):
        table, plan = run_stage(called(stage, ["k"] if stage is first else []), table, plan, [5])
        found = stream_of_columns(table.schema)
        assert found == (None if plan.options.plain else stream_of(plan))
        if found is None:
            return


@examples(40)
@given(st.data())
def test_rows_of_a_result_may_come_in_any_order(data: st.DataObject) -> None:
    first, second = called(data.draw(st.sampled_from(FIRST)), ["k"]), called(data.draw(st.sampled_from(SECOND)), [])
    result = wincli.aggregate(log(40, 2), **first)
    if first.get("plain"):
        return
    wanted = wincli.aggregate(result, **second, rejected="drop")
    places = data.draw(st.permutations(range(len(result))))
    found = wincli.aggregate(result.take(pa.array(places, pa.int64())), **second, rejected="drop")
    assert same(found, wanted), difference(found, wanted)


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


def test_columns_may_be_moved_or_left_out() -> None:
    result = wincli.aggregate(log(40, 1), "count(2)", key="k", order_by="t", aggregates="x=sum(x)")
    wanted = wincli.aggregate(result, "punct()", aggregates="xs=collect(x)")
    moved = result.select(["_mark", "x", "_at", "_pos", "k", "window"])
    found = wincli.aggregate(moved, "punct()", aggregates="xs=collect(x)")
    assert found["xs"].equals(wanted["xs"])


def test_a_stream_of_a_result_is_read_in_the_order_of_its_panes() -> None:
    result = wincli.aggregate(log(40, 1), "count(2)", order_by="t", aggregates="x=sum(x)")
    wanted = wincli.aggregate(result, "count(3)", aggregates="xs=collect(x)")
    found = wincli.aggregate_stream(result.to_reader(4), "count(3)", aggregates="xs=collect(x)").read_all()
    assert same(found, wanted), difference(found, wanted)


@pytest.mark.parametrize("second", [each for each in SECOND if "timeInterval" not in each["window"]], ids=named)
@pytest.mark.parametrize("first", ["count(3)", "time(4)", "gap(t, 2)"])
def test_a_chain_goes_on_from_states(first: str, second: Stage) -> None:
    if "order_by" in second:
        second = second | {"order_by": ["_at"], "window": second["window"].replace("(t,", "(_at,")}
    table = log(60, 5)
    stages = [called({"window": first, **TIMES}, ["k"]), called(second, [])]
    wanted = table
    for stage in stages:
        wanted = wincli.aggregate(wanted, **stage, at_end="hold", rejected="drop")
    states: list[Any] = ["new", "new"]
    found = []
    for part in (table.slice(0, 23), table.slice(23, 17), table.slice(40)):
        rows = part
        for at, stage in enumerate(stages):
            rows, states[at] = wincli.aggregate(rows, **stage, state=states[at], rejected="drop")
        found.append(rows)
    one, other = (
        each.sort_by([(name, "ascending") for name in ("window", "_row", "_at", "_pos") if name in each.column_names])
        for each in (pa.concat_tables(found), wanted)
    )
    assert same(one, other), difference(one, other)
