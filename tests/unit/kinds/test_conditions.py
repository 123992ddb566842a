"""Windows that follow conditions: the library agrees with the reference, whole, cut anywhere, and run by run."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from references import conditions as reference
from references.tumbling import read
from support.condition_cases import ConditionCase, condition_cases, condition_logs, look_back
from support.condition_laws import (
    check_cuts,
    check_incremental_runs,
    check_library_is_reference,
    draw_end,
    plan_of,
)
from support.event_logs import as_files
from support.in_memory_engine import MemorySource, in_one_pass, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.scan.segment_scan import can_be_cut


@examples(200)
@given(condition_logs(), condition_cases(with_marks=True), st.booleans(), st.sampled_from(["flush", "drop"]), st.data())
def test_the_library_is_the_reference(
    table: pa.Table, case: ConditionCase, keyed: bool, at_end: str, data: st.DataObject
) -> None:
    check_library_is_reference(data, table, case, keyed, at_end)


@examples(150)
@given(st.data(), condition_logs(), condition_cases(with_marks=True), st.booleans())
def test_cuts_anywhere_do_not_change_the_result(
    data: st.DataObject, table: pa.Table, case: ConditionCase, keyed: bool
) -> None:
    """Also inside keys, of rows in any order."""
    check_cuts(data, plan_of(table, case, ["k"] if keyed else [], draw_end(data)), table, keyed)


@examples(150)
@given(st.data(), condition_logs(), condition_cases(), st.booleans(), st.sampled_from(["aggregates", "rows"]))
def test_incremental_runs_give_the_result_of_one_run(
    data: st.DataObject, table: pa.Table, case: ConditionCase, keyed: bool, emit: str
) -> None:
    check_incremental_runs(data, table, case, keyed, emit)


def rows_in_no_window(table: pa.Table, case: ConditionCase, key: list[str]) -> int:
    return len(reference.any_of(look_back(read(table), key, case.order), case.rules, key=key, order=case.order).skipped)


@examples(100)
@given(condition_logs(), condition_cases(), st.booleans())
def test_rows_in_no_window_are_counted(table: pa.Table, case: ConditionCase, keyed: bool) -> None:
    key = ["k"] if keyed else []
    counts = run_in_memory(plan_of(table, case, key, "flush"), MemorySource([table], [[]]), [], None, "none").counts
    assert counts.filtered == rows_in_no_window(table, case, key)
    assert counts.windowed == len(table) - counts.filtered


@examples(200)
@given(st.data(), condition_logs(), condition_cases())
def test_chunks_in_order_are_slices_as_they_are(data: st.DataObject, table: pa.Table, case: ConditionCase) -> None:
    table = table.sort_by("t") if case.order else table
    plan = plan_of(table, case, [], draw_end(data))
    assume(can_be_cut(plan))
    source, chunk_bounds = as_files(data.draw, table, 6)
    whole = run_in_memory(plan, source, [], None, "none")
    cut = run_in_memory(plan, source, chunk_bounds, None, "none", in_order=in_one_pass)
    assert same(cut.table, whole.table), difference(cut.table, whole.table)
    assert (cut.counts, cut.falls) == (whole.counts, whole.falls)
