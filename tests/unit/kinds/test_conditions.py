"""Windows that follow conditions (sections 12, 13): the library is the reference, whole, cut anywhere, run by run.

So are those whose keys are evicted, and those whose amounts ask for the window before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.operator_events import Told, TumblingEvents
from references.tumbling import Partitions, ticks_of
from support.condition_cases import (
    SECONDS,
    ConditionCase,
    condition_cases,
    condition_logs,
    evicting_cases,
    look_back,
    previous_cases,
)
from support.event_logs import cut_up, sliced
from support.in_memory_engine import MemorySource, in_one_pass, run_in_memory
from support.incremental_runs import check_runs
from support.keeping_operators import ASKING, KEEPER, events_in
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.scan.segment_scan import can_be_cut

CALLS = ["n=count()", "ids=collect(id)", "sum(x)"]
ENDS = st.sampled_from(["flush", "drop"])
Cases = Callable[..., st.SearchStrategy[ConditionCase]]
KINDS: list[Cases] = [condition_cases, evicting_cases, partial(previous_cases, rejects=True)]
each_kind = pytest.mark.parametrize("cases", KINDS, ids=["conditions", "evicted keys", "the window before"])


def key_of(data: st.DataObject, case: ConditionCase) -> list[str]:
    return ["k"] if case.eviction or data.draw(st.booleans()) else []


def plan_of(table: pa.Table, case: ConditionCase, key: list[str], at_end: str, emit: str = "aggregates") -> Plan:
    calls = [parse_aggregate(text) for text in CALLS] if emit == "aggregates" else None
    options: Any = {"at_end": at_end, "emit": emit, "closed": case.closed, "emit_evicted": case.emit_evicted}
    order: Any = list(case.order) or "arrival"
    return make_plan(parse_window(case.window), table.schema, key, order, calls, Options(**options))


def window_of(kind: type[reference.Tumbling], table: pa.Table, case: ConditionCase, key: list[str], **more: Any) -> Any:
    """A window of the reference."""
    rows = look_back(reference.read(table), key, case.order)
    partitions = Partitions(case.eviction, SECONDS if case.order else None)
    given: dict[str, Any] = {"key": key, "order": case.order, "partitions": partitions, "emit": case.emit_evicted}
    return kind(rows=rows, policies=case.policies, **given, **more)


@each_kind
@examples(200)
@given(data=st.data(), table=condition_logs(), at_end=ENDS)
def test_the_library_is_the_reference(cases: Cases, data: st.DataObject, table: pa.Table, at_end: Any) -> None:
    """Windows, and the account of rows; also with marks before rows, and after the last."""
    case = data.draw(cases(with_marks=True))
    key, marks = key_of(data, case), sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    found = reference.play(window_of(reference.Tumbling, table, case, key), marks, None, at_end)
    result = wincli.aggregate(
        table, case.window, key=key, order_by=list(case.order) or "arrival", aggregates=CALLS, rejected="drop",
        closed=case.closed, emit_evicted=case.emit_evicted, marks=marks, at_end=at_end,
    )  # fmt: skip
    result = result.filter(pa.compute.equal(result["_mark"], "window"))
    names = [*key, "window", "ids", "closed_by", "window_start", "window_end", "_at", "_pos"]
    got = sorted(zip(*(map(str, ticks_of(result[name])) for name in names), strict=True))
    ids = table["id"].to_pylist()
    full = [pane for pane in found.panes if pane.mark == "window"]
    told = [(*(p.key or ()), p.number, [ids[i] for i in p.rows], p.closed_by, p.start, p.end, p.at and p.at[0], p.pos)
            for p in full]  # fmt: skip
    assert got == sorted(tuple(map(str, cells)) for cells in told), case.window
    counts = run_in_memory(plan_of(table, case, key, at_end), MemorySource([table], [[]]), [], None, "none").counts
    assert counts.balanced
    if not marks:
        assert counts.windowed == sum(len(pane.rows) for pane in full)
        assert counts.filtered == len(found.skipped) + len(found.evicted)
        assert counts.rejected == Counter(found.rejected.values())


@each_kind
@examples(150)
@given(data=st.data(), table=condition_logs())
def test_cuts_anywhere_do_not_change_the_result(cases: Cases, data: st.DataObject, table: pa.Table) -> None:
    """Slices between keys and inside of keys, and chunks in order, give the bits and the counts of one scan."""
    case = data.draw(cases(with_marks=True))
    key = key_of(data, case)
    plan = plan_of(table, case, key, data.draw(ENDS))
    assert not (can_be_cut(plan) and "previous" in case.window)
    whole = run_in_memory(plan, MemorySource([table], [[]]), [], None, "column:h")
    source, chunk_bounds, cuts = data.draw(cut_up(table, bool(key)))
    for slices in (cuts, sliced(plan, table, data.draw(st.integers(1, 9)))):
        found = run_in_memory(plan, source, chunk_bounds, slices, "column:h")
        assert same(found.table, whole.table), difference(found.table, whole.table)
        assert found.counts == whole.counts
    table = table.sort_by("t") if case.order else table
    if not key and can_be_cut(plan) and not plan.takes_marks:
        source, chunk_bounds, _ = data.draw(cut_up(table, False))
        whole = run_in_memory(plan, MemorySource(source.tables, [[] for _ in source.tables]), [], None, "none")
        cut = run_in_memory(plan, source, chunk_bounds, None, "none", in_order=in_one_pass)
        assert same(cut.table, whole.table), difference(cut.table, whole.table)
        assert (cut.counts, cut.falls) == (whole.counts, whole.falls)


@each_kind
@examples(150)
@given(data=st.data(), table=condition_logs(), emit=st.sampled_from(["aggregates", "rows"]))
def test_incremental_runs_give_the_result_of_one_run(
    cases: Cases, data: st.DataObject, table: pa.Table, emit: str
) -> None:
    """N runs with a state give the windows and the counts of one run."""
    case, end = data.draw(cases()), data.draw(ENDS)
    table, key = table.sort_by("t") if case.order else table, key_of(data, case)
    plan = plan_of(table, case, key, end, emit)
    check_runs(data, plan, table, bool(key), end)


@examples(200)
@given(data=st.data(), table=condition_logs(), at_end=ENDS)
def test_operators_are_told_all_events(data: st.DataObject, table: pa.Table, at_end: Any) -> None:
    """Also `partition_evicted`, with the rows of the open window."""
    case = data.draw(evicting_cases(with_marks=True))
    marks, told = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4))), Told()
    reference.play(window_of(TumblingEvents, table, case, ["k"], told=told), marks, None, at_end)
    if at_end == "flush":
        told.finish()
    options: Any = {"marks": marks, "at_end": at_end, "emit_evicted": case.emit_evicted, "operator": KEEPER}
    result = wincli.aggregate(table, case.window, key="k", order_by=list(case.order) or "arrival", **options)
    wanted = {key: [event[:2] for event in events] for key, events in told.events.items()}
    assert {key: [event[:2] for event in events] for key, events in events_in(result, ["k"]).items()} == wanted


@examples(150)
@given(data=st.data(), table=condition_logs(), operator=st.sampled_from([KEEPER, ASKING]))
def test_operators_are_called_as_in_one_run(data: st.DataObject, table: pa.Table, operator: str) -> None:
    """The rows of the window before are in the state, but an operator has seen them."""
    case, end = data.draw(previous_cases(rejects=True)), data.draw(ENDS)
    table, key = table.sort_by("t") if case.order else table, key_of(data, case)
    options: Any = Options(operator=operator, at_end=end, closed=case.closed)
    order: Any = list(case.order) or "arrival"
    plan = make_plan(parse_window(case.window), table.schema, key, order, None, options)
    check_runs(data, plan, table, bool(key), end)


def test_rows_are_rejected_in_the_windows_that_there_are_once_an_operator_has_evicted_its_key() -> None:
    """Row 3 asks for it, so the amount of row 5 is never that of the window before row 6, but that of row 6 is."""
    xs = [0.1] * 5 + [1e16, -3] + [0.1] * 5
    rows = pa.table({"id": pa.array(range(12), pa.int64()), "x": xs})
    options = Options(operator=ASKING, at_end="flush")
    plan = make_plan(parse_window("count(previous(max(x), 0.5))"), rows.schema, [], "arrival", None, options)
    counts = run_in_memory(plan, MemorySource([rows], [[]]), [], None, "files").counts
    assert (counts.windowed, counts.filtered, counts.rejected) == (6, 1, {"negative_amount": 5})


@pytest.mark.parametrize("limit", ["partitionCount(2)", "tupleCount(3)"])
def test_keys_are_evicted_where_a_window_reads_no_column(limit: str) -> None:
    """Rows in order of arrival without attributes are counted by their places: the ordered pass reads no column."""
    rows = pa.table({"id": pa.array(range(4), pa.int64()), "k": ["a", "a", "b", "c"]})
    spec, calls = parse_window(f"punct() or count(3), partitioned, {limit}"), [parse_aggregate("ids=collect(id)")]
    plan = make_plan(spec, rows.schema, ["k"], "arrival", calls, Options(at_end="flush"))
    for cuts in (None, pa.table({"k": pa.array([], pa.string())}), pa.table({"k": ["b"]})):
        found = run_in_memory(plan, MemorySource([rows], [[]]), [], cuts, "files").table
        assert found["ids"].to_pylist() == [[2], [3]]
