"""Where a layout says that keys are apart, the windows of parts of the keys are those of all of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import logs
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import AGGREGATES, MORE, WINDOWS, WindowCase, output_options
from wincli.windowing.columns.arrays import ClockValue
from wincli.windowing.dataframes.layout import layout_of
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.streaming.batch_rows import clock_after
from wincli.windowing.streaming.batch_scan import BatchScan

COUPLED = ("partitioned", "timeInterval", "punct()")


def windows_of(plan: Plan, table: pa.Table, clock: ClockValue | None) -> pa.Table:
    pos = table["place"].to_numpy()
    parts = BatchScan(table.schema, plan, rejected="drop", clock=clock).end(table, pos)
    return pa.concat_tables([plan.schema.empty_table(), *(part.cast(plan.schema) for part in parts)])


def in_order(table: pa.Table) -> pa.Table:
    names = [name for name in ["k", "window", "_row", "u", "flag", "x", "_at", "_pos"] if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@examples(100)
@given(st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]))
def test_windows_of_keys_that_are_apart_are_those_of_all_keys(
    data: st.DataObject, table: pa.Table, case: WindowCase
) -> None:
    window, order_by, options = case
    options = {"at_end": data.draw(st.sampled_from(["flush", "drop"])), **options}
    options |= data.draw(st.composite(output_options)(window))
    if "partitioned" in window and options.get("emit") in {"entered", "left"}:
        options["emit"] = "rows"
    texts = AGGREGATES[:4] if options.get("group_by") else AGGREGATES
    calls = None if options.get("emit", "aggregates") != "aggregates" else [parse_aggregate(text) for text in texts]
    known = {name: options[name] for name in {each.name for each in fields(Options)} & set(options)}
    plan = make_plan(parse_window(window), table.schema, ["k"], order_by, calls, Options(**known))
    table = table.append_column("place", pa.array(np.arange(len(table))))
    layout = layout_of(plan, "id", None)
    assert layout.by_key == (not window.startswith(COUPLED[1:]) and COUPLED[0] not in window and not is_mark(options))
    if not layout.by_key:
        return
    first = pc.fill_null(pc.is_in(table["k"], pa.array(data.draw(st.sets(st.sampled_from("abc"))), pa.string())), False)
    parts = [table.filter(first), table.filter(pc.invert(first))]
    clocks = [clock_after(plan, part) for part in parts if layout.clock]
    clock = max((each for each in clocks if each is not None), default=None)
    found = in_order(pa.concat_tables([windows_of(plan, part, clock) for part in parts]))
    whole = in_order(windows_of(plan, table, None))
    assert same(found, whole), difference(found, whole)


def is_mark(options: dict[str, object]) -> bool:
    return options.get("empty") == "mark"
