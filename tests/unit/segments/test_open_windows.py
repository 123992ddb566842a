"""Windows that go through many segments travel as partial aggregates, and come out with the bits of one scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import as_files, logs, sliced
from support.in_memory_engine import InOrder, MemorySource, in_one_pass, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import WindowCase
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.scan.segment_scan import WindowPart, continued_before, sends_partials

T, ARRIVAL = ["t"], "arrival"
WINDOWS: list[WindowCase] = [
    ("count(2)", T, {}),
    ("count(7)", ARRIVAL, {}),
    ("count(1000)", T, {}),
    ("delta(a, 2)", T, {}),
    ("delta(a, 9)", ARRIVAL, {}),
    ("delta(x, 0.5)", ARRIVAL, {}),
    ("delta(t, 20)", T, {}),
    ("gap(t, 1)", T, {}),
    ("gap(t, 5)", T, {}),
    ("gap(a, 3)", ARRIVAL, {}),
    ("gap(x, 0.2)", ARRIVAL, {}),
    ("change(u)", T, {}),
    ("change(flag)", ARRIVAL, {}),
    ("time(4)", T, {}),
    ("time(15)", T, {"empty": "row"}),
    ("time(15)", T, {"closed": "right"}),
    ('calendar(day, tz="Europe/Paris", at=00:01)', T, {}),
    ('cron("* * * * *")', T, {}),
    ('cron("*/2 * * * *", "Asia/Kathmandu")', T, {"empty": "row"}),
    ('calendar(day, tz="Europe/Paris", at=00:01)', T, {"closed": "right"}),
    ("punct(flag)", T, {}),
    ("punct()", T, {}),
    ("punct()", ARRIVAL, {}),
    ("when(flag)", T, {}),
    ("while(a > 98)", ARRIVAL, {}),
    ("from(flag, until=a > 100)", T, {}),
    ("reaches(sum(a), 700)", T, {}),
    ("reaches(range(t), 6)", T, {}),
    ("gap(t, 3) or count(9)", T, {}),
    ("delta(t, 9) or time(20) or change(u)", T, {}),
    ("gap(t, 2 + a % 3)", T, {}),
    ("delta(t, a % 9)", ARRIVAL, {}),
    ("count(1 + a % 9)", ARRIVAL, {}),
]
CALLS = [
    "count()", "count(x)", "sum(a)", "sum(x)", "mean(x)", "mean(a)", "min(x)", "max(x)", "min(u)", "max(t)",
    "bool_and(flag)", "bool_or(flag)", "ups=sum(a) where flag", "first(x)", "last(u)", "nth(x, 2)", "nth(a, -2)",
    "arg_min(id, x)", "arg_max(u, a)", "range(a)", "range(t)", "min_count(x)", "max_count(a)", "var(x)", "stddev(a)",
    "var_pop(x)", "rise=last(a) - first(a)",
    "all=support.merging_functions:words(u)", "way=support.merging_functions:way(a)",
    "ways=support.merging_functions:way(a) where flag", "late=support.merging_functions:last_above(x, 0.5)",
    "top=support.merging_functions:largest(a, 3)", "both=support.merging_functions:way(a) + sum(a)",
]  # fmt: skip


def planned(data: st.DataObject, table: pa.Table, case: WindowCase, key: list[str], calls: list[str]) -> Plan:
    """A plan over some of the calls, whole or by group, with a condition or not, whatever the end brings out."""
    window, order_by, options = case
    options = options | {"at_end": data.draw(st.sampled_from(["flush", "flush", "drop"]))}
    if options.get("empty") is None:
        options["group_by"] = data.draw(st.sampled_from([(), (), ("u",), ("flag", "x")]))
    options["having"] = data.draw(st.sampled_from([None, None, parse_expression("window % 2 = 0")]))
    options["plain"] = options["having"] is not None or data.draw(st.booleans())  # marks that are left alone end a part
    parsed = [parse_aggregate(text) for text in calls]
    return make_plan(parse_window(window), table.schema, key, order_by, parsed, Options(**options))


@examples(500)
@given(st.data(), logs(), st.sampled_from(WINDOWS), st.booleans(), st.sampled_from([1, 2, 3, 5]))
def test_slices_of_any_size_and_chunks_in_order_give_the_bits_of_one(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int
) -> None:
    table = table.sort_by("t") if case[1] == T and data.draw(st.booleans()) else table
    calls = data.draw(st.lists(st.sampled_from(CALLS), unique=True, min_size=1, max_size=6))
    plan = planned(data, table, case, ["k"] if keyed else [], calls)
    source, chunk_bounds = as_files(data.draw, table, 6)
    marks = data.draw(st.sampled_from(["files", "column:flag"])) if plan.takes_marks else "none"
    uneven = st.lists(st.integers(0, 9), min_size=len(table), max_size=len(table))
    cuts = sliced(plan, table, rows, data.draw(st.none() | uneven))
    whole = run_in_memory(plan, source, [], None, marks)
    found = [run_in_memory(plan, source, chunk_bounds, pa.table({}) if cuts is None else cuts, marks)]
    is_in_order = case[1] != T or table["t"].equals(table.sort_by("t")["t"])
    if not keyed and not plan.takes_marks and is_in_order:
        found.append(run_in_memory(plan, source, chunk_bounds, None, marks, in_order=in_one_pass))
    for cut in found:
        assert same(cut.table, whole.table), difference(cut.table, whole.table)
        assert (cut.counts, cut.falls) == (whole.counts, whole.falls)


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: f"{case[0]} {case[1]}")
def test_open_windows_of_every_policy_travel_as_partial_aggregates(case: WindowCase) -> None:
    """Else the law above would say nothing."""
    window, order_by, options = case
    columns = {"t": pa.timestamp("s"), "a": pa.int32(), "x": pa.float64(), "u": pa.string(), "flag": pa.bool_()}
    schema = pa.schema([*columns.items(), ("k", pa.string()), ("id", pa.int64())])
    for calls, is_sent in ((CALLS, True), ([*CALLS, "median(x)"], False), (["collect(x)"], False)):
        parsed = [parse_aggregate(text) for text in calls]
        plan = make_plan(parse_window(window), schema, ["k"], order_by, parsed, Options(**options))
        assert sends_partials(plan, plan.projection.schema) == is_sent


@pytest.mark.parametrize("in_order", [in_one_pass, None])
def test_rows_of_a_window_stay_in_their_segment(in_order: InOrder | None) -> None:
    """One window, of which each segment combines its rows: the last merges as many rows as there are segments."""
    rows, segments = 60, 12
    table = pa.table({"t": pa.array(range(rows), pa.timestamp("s")), "a": range(rows)})
    calls = [parse_aggregate(text) for text in ("count()", "sum(a)")]
    plan = make_plan(parse_window("gap(t, 1h)"), table.schema, [], T, calls)
    source = MemorySource([table], [list(range(5, rows, 5))])
    merged: list[int] = []

    def merge(plan: Plan, parts: Sequence[WindowPart], *others: Any) -> Any:
        merged.append(sum(part.partials.num_rows for part in parts))
        return continued_before(plan, parts, *others)

    with mock.patch("wincli.windowing.engine.prefix_scan.continued_before", merge):
        cuts = sliced(plan, table, rows // segments) if in_order is None else None
        found = run_in_memory(plan, source, [*range(segments)], cuts, "none", in_order=in_order)
    (row,) = found.table.to_pylist()
    assert (row["window_start"], row["window_end"]) == (table["t"][0].as_py(), table["t"][-1].as_py())
    assert (row["count"], row["sum_a"]) == (rows, sum(range(rows)))
    assert max(merged) == segments - 1
    assert found.counts.windowed == rows
