"""Keys cut into pieces of three rows or so give what one scan gives, to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import logs, sliced
from support.in_memory_engine import STRICT, InOrder, MemorySink, MemorySource, in_one_pass, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import (
    AGGREGATES,
    AMOUNTS,
    ARRIVAL,
    MERGING,
    MORE,
    WINDOWS,
    T,
    WindowCase,
    overlaps,
    plan_of_case,
)
from wincli.windowing.engine.task import Chunk, TaskContext
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan, stream_of
from wincli.windowing.scan.segment_scan import WindowPart, continued_before, sends_partials


def planned(
    table: pa.Table,
    window: str,
    key: list[str],
    order_by: Any,
    options: dict[str, Any],
    calls: Sequence[str] = AGGREGATES,
) -> Plan:
    parsed = [parse_aggregate(text) for text in calls]
    return plan_of_case(window, table.schema, key, order_by, parsed, options)


def test_a_pane_that_was_none_before_drops_no_row() -> None:
    """Row 101 tripped, but nothing had been evicted yet; the last piece, behind evictions, would call it a pane."""
    a = [100, 100, 100, 100, 100, 100, 101, 103, 104, 104]
    table = pa.table({"t": pa.array([100] * 10, pa.timestamp("s")), "a": a, "k": list("aaaaabaaaa")})
    spec, options = parse_window("sliding, delta(a, 2), count(2)"), Options(partial=False, at_end="drop")
    plan = make_plan(spec, table.schema, ["k"], ["t"], [parse_aggregate("count()")], options)
    source = MemorySource([table], [[]])
    whole, cut = (run_in_memory(plan, source, [], cuts) for cuts in (None, sliced(plan, table, 3)))
    assert (whole.counts.windowed, whole.counts.dropped_at_end, whole.counts.filtered) == (2, 1, 7)
    assert cut.counts == whole.counts


def test_unsorted_rows_are_not_scanned_as_presorted() -> None:
    rising, falling = pa.table({"t": [1, 2, 2, 3]}), pa.table({"t": [1, 2, 1, 3]})
    plan = make_plan(parse_window("delta(t, 1)"), rising.schema, [], T)
    for table, expected in ((rising, True), (falling, False)):
        for cuts in ([1], [2], [3], []):
            work = TaskContext(plan, source := MemorySource([table], [cuts]), MemorySink(), "none")
            chunks = [Chunk(i, split.base, (split,)) for i, split in enumerate(source.splits)]
            assert (in_one_pass(work, chunks) is not None) == expected


def test_a_chunk_of_a_task_that_was_tried_again_is_missed() -> None:
    """Its second try finds no chunk that is left. Nothing that was written counts."""
    table = pa.table({"t": range(40)})
    plan = make_plan(parse_window("delta(t, 5)"), table.schema, [], T)
    work = TaskContext(plan, source := MemorySource([table], [[10, 20, 30]]), sink := MemorySink(), "none")
    chunks = [Chunk(i, split.base, (split,)) for i, split in enumerate(source.splits)]

    assert in_one_pass(work, chunks, replace(STRICT, lost=frozenset([0]))) is None
    assert sink.discarded
    assert not sink.parts
    assert in_one_pass(work, chunks) is not None


TWELVE = pa.table({
    "id": range(12), "t": pa.array(range(12), pa.timestamp("s")), "a": pa.array(range(12), pa.int32()),
    "x": np.arange(12.0), "flag": [False, True] * 6, "u": ["p", "q"] * 6, "k": ["a"] * 12,
    "till": pa.array(range(5, 17), pa.timestamp("s")),
})  # fmt: skip
WHOLE = ("partitioned, ", "retain all", "lag(", "split(abs", "split(u <>", "previous", "split(sum")


@pytest.mark.parametrize("case", [*WINDOWS, *MORE], ids=lambda case: f"{case[0]} {case[1]}")
def test_every_kind_of_window_is_cut_into_segments(case: WindowCase) -> None:
    """Else the law of `test_any_cut` would say nothing."""
    window, order_by, options = case
    key = [] if options.get("empty") == "mark" else ["k"]
    plan = plan_of_case(window, TWELVE.schema, key, order_by, None, options)
    cuts = sliced(plan, TWELVE, 3)
    assert (cuts is None) == (any(words in window for words in WHOLE) or options.get("empty") == "mark")
    assert cuts is None or cuts.inside.tolist() == [True] * 3


@pytest.mark.parametrize("case", [*WINDOWS, *MORE, *AMOUNTS], ids=lambda case: f"{case[0]} {case[2]}")
def test_open_windows_of_every_policy_travel_as_partial_aggregates(case: WindowCase) -> None:
    """Else the law of `test_any_cut` would say nothing."""
    window, order_by, options = case
    key = [] if options.get("empty") == "mark" else ["k"]
    for calls, merge in ((MERGING, True), ([*MERGING, "median(x)"], False), (["collect(x)"], False)):
        plan = planned(TWELVE, window, key, order_by, options, calls)
        assert sends_partials(plan, plan.projection.schema) == (merge and not overlaps(case))


@pytest.mark.parametrize("in_order", [in_one_pass, None])
def test_rows_of_a_window_stay_in_their_segment(in_order: InOrder | None) -> None:
    """One window, of which each segment combines its rows: the last merges as many rows as there are segments."""
    rows, segments = 60, 12
    table = pa.table({"t": pa.array(range(rows), pa.timestamp("s")), "a": range(rows)})
    plan = planned(table, "gap(t, 1h)", [], T, {}, ["count()", "sum(a)"])
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


def test_marks_beside_a_rule_that_counts_cut_no_key() -> None:
    """What a segment is run through for knows no marks."""
    table = pa.table({"t": range(12), "k": ["a"] * 12})
    plan = make_plan(parse_window("punct() or count(3)"), table.schema, ["k"], T)
    assert sliced(plan, table, 3) is None


def test_order_column_may_be_a_key_and_a_segment_may_be_all_rejected() -> None:
    table = pa.table({
        "k": ["a"] * 9 + ["b"] * 9, "t": [*range(9), *range(9)], "v": pa.array([None] * 9 + [*range(9)], pa.int64()),
    })  # fmt: skip
    plan = make_plan(parse_window("delta(v, 1)"), table.schema, ["k"], ["k", "t"])
    source, cuts = MemorySource([table], [[4, 11]]), sliced(plan, table, 3)
    assert cuts is not None
    assert cuts.inside.tolist() == [True, True, False, True, True]
    whole, cut = (run_in_memory(plan, source, [1, 2], given, "none") for given in (None, cuts))
    assert same(cut.table, whole.table), difference(cut.table, whole.table)
    assert cut.counts == whole.counts
    assert cut.counts.rejected == {"null_attribute": 9}
    nothing = table.slice(0, 9)
    cut = run_in_memory(plan, MemorySource([nothing], [[4]]), [1], sliced(plan, nothing, 3), "none")
    assert cut.table.num_rows == 0
    assert cut.counts.rejected == {"null_attribute": 9}


@examples(120)
@given(logs(), st.sampled_from(["count(2)", "time(4)", "sliding, count(2), count(1)"]), st.booleans(), st.booleans())
def test_result_of_a_stage_is_cut_like_any_input(table: pa.Table, first: str, keyed: bool, keyed_again: bool) -> None:
    """Its emission order has nulls, ties and columns that are keys; and as many marks as rows."""
    table = table.sort_by("t")
    calls = [parse_aggregate(text) for text in ("count()", "sum(a)")]
    one = make_plan(parse_window(first), table.schema, ["k"] if keyed else [], T, calls, Options())
    stage = run_in_memory(one, MemorySource([table], [[]]), [], None, "none").table
    again = [parse_aggregate(text) for text in ("count()", "sum(count)", "all=collect(sum_a)")]
    for second in ("punct()", "count(3)", "delta(count, 1)", "sliding, count(3), count(2)"):
        key = ["k"] if keyed and keyed_again else []
        two = make_plan(parse_window(second), one.schema, key, None, again, Options(), stream_of(one))
        source = MemorySource([stage], [[len(stage) // 3, len(stage) // 2]], stream_of(one))
        cuts = sliced(two, stage, 3)
        whole = run_in_memory(two, source, [], None, "stream")
        cut = run_in_memory(two, source, [1, 2], pa.table({}) if cuts is None else cuts, "stream")
        by = [(name, "ascending") for name in stream_of(two).order]
        some, alone = (found.table.sort_by(by).combine_chunks() for found in (cut, whole))
        assert same(some, alone), difference(some, alone)
        assert cut.counts == whole.counts


def test_retained_row_of_one_partition_stays_in_every_segment() -> None:
    #   row       1   2   3   4  ...  699
    #   part a   [1 ---------------------       retain 1: row 1 stays
    #   part b       [2] [3] [4] ... [699]      each row drives out the one before
    #   panes     1  1 2 1 3 1 4 ...  1 699
    table = pa.table({
        "id": range(1, 700), "t": pa.array([0] * 699, pa.timestamp("s")), "u": ["a", *"b" * 698],
        "v": [0, 0, *(1 + n % 2 for n in range(3, 700))],
    })  # fmt: skip
    plan = planned(
        table, "partition by u retain 1 with unique v", [], ARRIVAL, {"at_end": "flush"}, ["ids=collect(id)"]
    )
    cuts = sliced(plan, table, 70)
    assert cuts is not None
    assert cuts.inside.all()
    cut = run_in_memory(plan, MemorySource([table], [[200]]), [1], cuts, "none")
    assert cut.table["ids"].to_pylist() == [[1], *([1, n] for n in range(2, 700))]
