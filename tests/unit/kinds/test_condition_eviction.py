"""Windows that follow conditions whose keys are evicted: the library agrees with the reference, whole and by runs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references.conditions import play
from references.eviction import Partitions
from references.operator_events import AnyOfEvents, Told
from references.tumbling import read
from support.condition_cases import SECONDS, ConditionCase, condition_logs, evicting_cases, look_back
from support.condition_laws import (
    check_cuts,
    check_incremental_runs,
    check_library_is_reference,
    draw_end,
    plan_of,
    windows_of,
)
from support.in_memory_engine import MemorySource, run_in_memory
from support.keeping_operators import KEEPER
from support.strategies import examples
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan


@examples(200)
@given(condition_logs(), evicting_cases(with_marks=True), st.sampled_from(["flush", "drop"]), st.data())
def test_the_library_is_the_reference(table: pa.Table, case: ConditionCase, at_end: str, data: st.DataObject) -> None:
    check_library_is_reference(data, table, case, True, at_end)


@examples(100)
@given(st.data(), condition_logs(), evicting_cases(with_marks=True))
def test_cuts_between_keys_do_not_change_the_result(data: st.DataObject, table: pa.Table, case: ConditionCase) -> None:
    check_cuts(data, plan_of(table, case, ["k"], draw_end(data)), table, True)


@examples(150)
@given(st.data(), condition_logs(), evicting_cases(), st.sampled_from(["aggregates", "rows"]))
def test_incremental_runs_give_the_result_of_one_run(
    data: st.DataObject, table: pa.Table, case: ConditionCase, emit: str
) -> None:
    check_incremental_runs(data, table, case, True, emit)


@examples(100)
@given(condition_logs(), evicting_cases(), st.sampled_from(["flush", "drop"]))
def test_rows_that_no_pane_shows_are_counted(table: pa.Table, case: ConditionCase, at_end: str) -> None:
    """Rows in no window, and rows that went with their key."""
    counts = run_in_memory(plan_of(table, case, ["k"], at_end), MemorySource([table], [[]]), [], None, "none").counts
    found = windows_of(table, case, ["k"], at_end=at_end)
    assert counts.filtered == len(found.skipped) + len(getattr(found, "evicted", ()))
    assert counts.windowed == sum(len(pane.rows) for pane in found.panes)
    assert counts.windowed + counts.filtered + counts.dropped_at_end == len(table)


@examples(200)
@given(st.data(), condition_logs(), evicting_cases(with_marks=True), st.sampled_from(["flush", "drop"]))
def test_operators_are_told_all_events(data: st.DataObject, table: pa.Table, case: ConditionCase, at_end: Any) -> None:
    """Also `partition_evicted`, with the rows of the open window."""
    assert case.eviction is not None
    marks = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    partitions, told = Partitions(case.eviction, SECONDS if case.order else None), Told(lambda *_: False)
    rules: Any = (look_back(read(table), ["k"], case.order), case.rules, ["k"], case.order)
    play(AnyOfEvents(*rules, partitions=partitions, emit=case.emit_evicted, told=told), marks, at_end)
    if at_end == "flush":
        told.finish()
    order: Any = list(case.order) or "arrival"
    options: Any = {"marks": marks, "at_end": at_end, "emit_evicted": case.emit_evicted}
    result = wincli.aggregate(table, case.window, key="k", order_by=order, operator=KEEPER, **options)
    events: dict[Any, list[Any]] = {}
    for row in result.to_pylist():
        if row["what"] is not None:
            events.setdefault((row["k"],), []).append((row["what"], tuple(row["ids"])))
    assert events == dict(told.events)


@pytest.mark.parametrize("limit", ["partitionCount(2)", "tupleCount(3)"])
def test_keys_are_evicted_where_a_window_reads_no_column(limit: str) -> None:
    """Rows in order of arrival without attributes are counted by their places: the ordered pass reads no column."""
    rows = pa.table({"id": pa.array(range(4), pa.int64()), "k": ["a", "a", "b", "c"]})
    spec, calls = parse_window(f"punct() or count(3), partitioned, {limit}"), [parse_aggregate("ids=collect(id)")]
    plan = make_plan(spec, rows.schema, ["k"], "arrival", calls, Options(at_end="flush"))
    for cuts in (None, pa.table({"k": pa.array([], pa.string())}), pa.table({"k": ["b"]})):
        found = run_in_memory(plan, MemorySource([rows], [[]]), [], cuts, "files").table
        assert found["ids"].to_pylist() == [[2], [3]]
