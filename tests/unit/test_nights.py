"""The answer of some nights is the answer of one run over all of them."""
from __future__ import annotations
from typing import Any
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
import windowing
from tests.nights import Nights
from tests.unit.test_engine_kinds import WINDOWS, AGGREGATES, logs, same, difference, what_comes_out
from windowing.options import Options
from windowing.parse import parse_aggregate, parse_window
from windowing.plan import make_plan, stream_of


@settings(max_examples=1500)
@given(st.data(), logs(), st.sampled_from(WINDOWS), st.booleans())
def test_nights(data, table, asked, keyed):
    window, order_by, options = asked
    keyed |= "partitioned" in window
    key = ["k"] if keyed else []
    options = options | data.draw(st.composite(what_comes_out)(window))
    if "partitioned" in window and options.get("emit") in ("entered", "left"): options["emit"] = "rows"
    if order_by == ["t"]: table = table.sort_by("t") if len(table) else table
    calls = AGGREGATES[:-2] if options.get("emit", "aggregates") == "aggregates" else None
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    plan = make_plan(parse_window(window), table.schema, key, order_by, parsed, Options(**options))
    end = data.draw(st.sampled_from(["flush", "drop", "hold"]))
    whole = windowing.aggregate(table, window, key=key, order_by=order_by, aggregates=calls, rejected="drop", at_end=end, **options)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=6)))
    edges = [0, *cuts, len(table)]
    nights = Nights(plan)
    parts = []
    for i, (low, high) in enumerate(zip(edges, edges[1:])):
        parts.append(nights.night(table.slice(low, high - low), "hold" if i < len(cuts) else end))
    got = pa.concat_tables(parts)
    names = [*key, "window"] + (["_row"] if "_row" in got.column_names else [])
    order = [(n, "ascending") for n in stream_of(plan).order]
    a, b = got.sort_by(order), whole.sort_by(order)
    assert same(a.combine_chunks(), b.combine_chunks()), difference(a, b)
