"""Every kind of window and output, however the work is cut: the answer of one scan, and every row accounted for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import cut_up, logs
from support.in_memory_engine import run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import AGGREGATES, WINDOWS, WindowCase, output_options
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan


@examples(300)
@given(st.data(), logs(), st.sampled_from(WINDOWS), st.booleans())
def test_cuts_into_files_chunks_and_slices_do_not_change_the_result(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
) -> None:
    window, order_by, options = case
    keyed |= "partitioned" in window
    key = ["k"] if keyed else []
    options = options | data.draw(st.composite(output_options)(window))
    options["at_end"] = data.draw(st.sampled_from(["flush", "drop"]))
    calls = AGGREGATES if options.get("emit", "aggregates") == "aggregates" else None
    source, chunk_bounds, cuts = data.draw(cut_up(table, keyed))
    whole = wincli.aggregate(
        table, window, key=key, order_by=order_by, aggregates=calls, rejected="drop", **options
    )  # fmt: skip
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    plan = make_plan(parse_window(window), table.schema, key, order_by, parsed, Options(**options))
    cut = run_in_memory(plan, source, chunk_bounds, cuts, "none")
    assert same(cut.table, whole), difference(cut.table, whole)
    assert cut.counts.rows_in == len(table)
    assert cut.counts.balanced
    assert cut.rejects["reason"].to_pylist() == ["late"] * sum(cut.counts.rejected.values())


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: f"{case[0]} {case[2]}")
@pytest.mark.parametrize("keyed", [False, True])
def test_an_input_without_rows_has_no_panes(case: WindowCase, keyed: bool) -> None:
    window, order_by, options = case
    columns = {"id": pa.int64(), "t": pa.timestamp("s"), "a": pa.int32(), "x": pa.float64(), "u": pa.string()}
    empty = pa.schema([*columns.items(), ("flag", pa.bool_()), ("k", pa.string())]).empty_table()
    key = ["k"] if keyed or "partitioned" in window else []
    result = wincli.aggregate(empty, window, key=key, order_by=order_by, aggregates=AGGREGATES, **options)
    assert len(result) == 0
