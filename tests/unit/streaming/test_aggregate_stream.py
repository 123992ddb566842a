"""A stream of batches gives the windows of one table, whatever the batches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.table_equality import difference, same
from support.window_cases import AGGREGATES, MORE, WINDOWS, WindowCase, output_options

MOST = 2**62


def stream_of(table: pa.Table, cuts: list[int]) -> pa.RecordBatchReader:
    parts = [table.slice(low, high - low) for low, high in pairwise([0, *cuts, len(table)])]
    return pa.RecordBatchReader.from_batches(table.schema, [batch for part in parts for batch in part.to_batches()])


def in_order(table: pa.Table) -> pa.Table:
    names = [name for name in ["k", "window", "_row", "u", "flag", "x", "_at", "_pos"] if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@settings(max_examples=250)
@given(st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans())
def test_batches_give_the_windows_of_the_table(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
) -> None:
    window, order_by, options = case
    keyed = keyed or "partitioned" in window
    options = options | data.draw(st.composite(output_options)(window))
    if "partitioned" in window and options.get("emit") in {"entered", "left"}:
        options["emit"] = "rows"
    table = table.sort_by("t") if order_by == ["t"] else table
    calls: Any = None
    if options.get("emit", "aggregates") == "aggregates":  # floats of groups may differ in their last bits
        calls = AGGREGATES[:4] if options.get("group_by") else AGGREGATES
    marks = "flag" if window.startswith("punct()") else None
    end = data.draw(st.sampled_from(["flush", "drop"]))
    given_options = {"key": ["k"] if keyed else [], "order_by": order_by, "aggregates": calls, "marks": marks}
    given_options |= {"at_end": end, "rejected": "drop", **options}
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=6).map(sorted))
    whole = in_order(wincli.aggregate(table, window, **given_options))
    found = in_order(aggregate_in_batches(table, cuts, window, given_options))
    assert same(found, whole), difference(found, whole)


def aggregate_in_batches(table: pa.Table, cuts: list[int], window: str, options: dict[str, Any]) -> pa.Table:
    from wincli.windowing.streaming import aggregate_stream as module

    most, module._BATCH_ROWS = module._BATCH_ROWS, 1
    try:
        return module.aggregate_stream(stream_of(table, cuts), window, **options).read_all()
    finally:
        module._BATCH_ROWS = most
