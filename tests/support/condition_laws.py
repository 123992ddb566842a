"""Laws of windows that follow conditions: the library is the reference, and neither cuts nor runs change a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import wincli
from references import conditions as reference
from references.eviction import any_of as evicting_any_of
from references.tumbling import Pane, read, ticks_of
from support.condition_cases import ConditionCase, look_back
from support.event_logs import cut_up, sliced
from support.in_memory_engine import MemorySource, run_in_memory
from support.incremental_runs import in_emission_order, run_parts_and_whole
from support.table_equality import difference, same
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan

CALLS = ["n=count()", "ids=collect(id)", "sum(x)"]


def by_library(table: pa.Table, case: ConditionCase, key: list[str], **options: Any) -> list[tuple[Any, ...]]:
    result = wincli.aggregate(
        table, case.window, key=key, order_by=list(case.order) or "arrival", aggregates=CALLS,
        closed=case.closed, emit_evicted=case.emit_evicted, **options,
    )  # fmt: skip
    result = result.filter(pa.compute.equal(result["_mark"], "window"))
    names = [*key, "window", "ids", "closed_by", "window_start", "window_end", "_at", "_pos"]
    return sorted(zip(*(map(str, ticks_of(result[name])) for name in names), strict=True))


def by_reference(table: pa.Table, case: ConditionCase, key: list[str], **options: Any) -> list[tuple[Any, ...]]:
    rows = look_back(read(table), key, case.order)
    found = windows_of(table, case, key, **options)
    panes = []
    for pane in found.panes:
        at = pane.at[0] if isinstance(pane.at, tuple) else pane.at
        ids = [rows[pos]["id"] for pos in pane.rows]
        start, end = bounds(case.rules, pane)
        cells = [*(pane.key or ()), pane.number, ids, pane.closed_by, start, end, at, pane.pos]
        panes.append(tuple(map(str, cells)))
    return sorted(panes)


def windows_of(table: pa.Table, case: ConditionCase, key: list[str], **options: Any) -> reference.AnyOf:
    """What the reference makes of a table."""
    rows = look_back(read(table), key, case.order)
    if case.eviction is None:
        return reference.any_of(rows, case.rules, key=key, order=case.order, **options)
    kind = table.schema.field(case.order[0]).type if case.order else None
    options |= {"eviction": case.eviction, "kind": kind, "emit_evicted": case.emit_evicted}
    return evicting_any_of(rows, case.rules, key=key, order=case.order, **options)


def bounds(rules: Sequence[reference.Rule], pane: Pane) -> tuple[Any, Any]:
    """Of windows that are ``time`` and nothing else those of the grid; else the order values of the two ends."""
    grid = rules[0].grid
    if len(rules) > 1 or grid is None:
        return pane.start, pane.end
    k = grid.window_of(pane.start)
    return grid.result_value(k - 1), grid.result_value(k)


def plan_of(table: pa.Table, case: ConditionCase, key: list[str], at_end: Any, emit: Any = "aggregates") -> Plan:
    calls = [parse_aggregate(text) for text in CALLS] if emit == "aggregates" else None
    options = Options(at_end=at_end, emit=emit, closed=case.closed, emit_evicted=case.emit_evicted)
    return make_plan(parse_window(case.window), table.schema, key, list(case.order) or "arrival", calls, options)


def draw_end(data: st.DataObject) -> Any:
    return data.draw(st.sampled_from(["flush", "drop"]))


def check_library_is_reference(
    data: st.DataObject, table: pa.Table, case: ConditionCase, keyed: bool, at_end: str, rejected: str = "error"
) -> None:
    """Also with marks before rows, and after the last. ``rejected``: as in `wincli.aggregate`."""
    marks = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    options: dict[str, Any] = {"marks": marks, "at_end": at_end}
    key = ["k"] if keyed else []
    found = by_library(table, case, key, rejected=rejected, **options)
    assert found == by_reference(table, case, key, **options), case.window


def check_cuts(data: st.DataObject, plan: Plan, table: pa.Table, keyed: bool) -> None:
    """Slices between keys and inside keys give the bits and the counts of one scan."""
    whole = run_in_memory(plan, MemorySource([table], [[]]), [], None, "column:h")
    source, chunk_bounds, cuts = data.draw(cut_up(table, keyed))
    inside = sliced(plan, table, data.draw(st.integers(1, 9)))
    for slices in (cuts, inside):
        found = run_in_memory(plan, source, chunk_bounds, slices, "column:h")
        assert same(found.table, whole.table), difference(found.table, whole.table)
        assert found.counts == whole.counts
    assert whole.counts.balanced


def check_incremental_runs(data: st.DataObject, table: pa.Table, case: ConditionCase, keyed: bool, emit: str) -> None:
    """N runs with a state give the windows and the counts of one run."""
    table = table.sort_by("t") if case.order else table
    end = draw_end(data)
    plan = plan_of(table, case, ["k"] if keyed else [], end, emit)
    runs, whole = run_parts_and_whole(data, plan, table, keyed, end)
    one, some = in_emission_order(plan, whole.table), in_emission_order(plan, runs.table)
    assert same(some, one), difference(some, one)
    counts = sum((result.counts for result in runs.results[1:]), runs.results[0].counts)
    assert (counts.windowed, counts.filtered) == (whole.counts.windowed, whole.counts.filtered)
    assert counts.rejected == whole.counts.rejected
