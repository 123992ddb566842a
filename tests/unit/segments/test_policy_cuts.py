"""Windows that a change or a date ends: however rows are cut into files, chunks, slices and runs, the same bits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import as_files, logs, sliced
from support.in_memory_engine import run_in_memory
from support.incremental_runs import IncrementalRuns, in_emission_order, run_parts_and_whole
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import AGGREGATES, WindowCase, output_options
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan

T, ARRIVAL = ["t"], "arrival"
CASES: list[WindowCase] = [
    ("change(u)", T, {}),
    ("change(x)", ARRIVAL, {}),
    ("change(flag, x)", T, {}),
    ('cron("* * * * *")', T, {}),
    ('cron("*/2 * * * *", "Asia/Kathmandu")', T, {"empty": "row"}),
    ('cron("1 0 * * *"), partitioned, tupleCount(3)', T, {"emit_evicted": True}),
    ("change(flag), partitioned, tupleCount(3)", T, {"emit_evicted": True}),
]


def planned(data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, end: str) -> Plan:
    window, order_by, options = case
    options = options | data.draw(st.composite(output_options)(window))
    calls: list[str] | None = None
    if options.get("emit", "aggregates") == "aggregates":  # floats of groups may differ in their last bits
        calls = AGGREGATES[:4] if options.get("group_by") else AGGREGATES
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    every: dict[str, Any] = options | {"at_end": end}
    return make_plan(parse_window(window), table.schema, ["k"] if keyed else [], order_by, parsed, Options(**every))


@examples(200)
@given(st.data(), logs(), st.sampled_from(CASES), st.booleans(), st.sampled_from([1, 2, 3, 5]))
def test_segments_of_any_size_give_the_result_of_one(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    plan = planned(data, table, case, keyed, data.draw(st.sampled_from(["flush", "drop"])))
    source, chunk_bounds = as_files(data.draw, table)
    cuts = sliced(plan, table, rows)
    whole = run_in_memory(plan, source, [], None, "files")
    cut = run_in_memory(plan, source, chunk_bounds, pa.table({}) if cuts is None else cuts, "files")
    assert same(cut.table, whole.table), difference(cut.table, whole.table)
    assert (cut.counts, cut.falls) == (whole.counts, whole.falls)


@examples(150)
@given(st.data(), logs(), st.sampled_from(CASES), st.booleans())
def test_runs_over_any_parts_give_the_result_of_one_run(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    table = table.sort_by("t") if case[1] == T else table
    end = data.draw(st.sampled_from(["flush", "drop"]))
    plan = planned(data, table, case, keyed, end)
    runs, whole = run_parts_and_whole(data, plan, table, keyed, end)
    one, some = in_emission_order(plan, whole.table), in_emission_order(plan, runs.table)
    assert same(some, one), difference(some, one)


def test_rows_before_the_last_row_of_the_run_before_are_late() -> None:
    """As under other policies: a row that would have changed an earlier window is rejected."""
    table = pa.table({
        "id": pa.array([0, 1, 2, 3], pa.int64()),
        "t": pa.array([10, 20, 15, 30], pa.timestamp("s")),
        "u": ["p", "p", "q", "p"],
        "k": ["a"] * 4,
    })  # fmt: skip
    plan = make_plan(parse_window("change(u)"), table.schema, [], T, [parse_aggregate("ids=collect(id)")], Options())
    runs = IncrementalRuns(plan, "files")
    runs.run([table.slice(0, 2)], [[]], "hold", [], None)
    runs.run([table.slice(2)], [[]], "flush", [], None)
    assert runs.table["ids"].to_pylist() == [[0, 1, 3]]
    assert runs.results[1].counts.rejected == {"late": 1}
