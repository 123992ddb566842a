"""A stream of batches in the order of buckets of keys gives the windows of one table, whatever the batches."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.strategies import examples
from support.stream_cases import in_order, is_by_key, options_of
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.arguments import clock_measure
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.streaming.batch_rows import GivenSignals
from wincli.windowing.streaming.batch_scan import BatchScan, TieOrder
from wincli.windowing.streaming.keyed_scan import COARSE_BITS, CODE, KeyedScan

BY_KEY = [case for case in [*WINDOWS, *MORE] if is_by_key(case)]


@examples(80)
@given(st.data(), logs(), st.sampled_from(BY_KEY), st.booleans())
def test_batches_in_the_order_of_buckets_give_the_windows_of_the_table(
    data: st.DataObject, table: pa.Table, case: WindowCase, has_arrival: bool
) -> None:
    options = data.draw(options_of(case, True))
    has_arrival = has_arrival or case[1] != ["t"]
    ties = [] if has_arrival else [name for name in table.column_names if name not in {"k", "t"}]
    if case[1] == ["t"]:
        table = table.sort_by([(name, "ascending") for name in ("t", *ties)])
    whole = in_order(wincli.aggregate(table, case[0], **options))
    table = with_codes(data, table.append_column("pos", pa.array(np.arange(len(table)))), case[1])
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=6).map(sorted))
    order = TieOrder(tuple(ties), "pos" if has_arrival else None)
    with patch("wincli.windowing.streaming.keyed_scan._MOST_HELD", data.draw(st.sampled_from([0, 3, 100]))):
        found = in_order(scan_by_key(table, cuts, case[0], options, order))
    if not has_arrival:
        at_once = in_order(scan_by_key(table, [], case[0], options, order))
        assert same(found, at_once), difference(found, at_once)
        found, whole = (each.drop_columns(["_pos"]) if "_pos" in each.column_names else each for each in (found, whole))
    assert same(found, whole), difference(found, whole)


def with_codes(data: st.DataObject, table: pa.Table, order: list[str]) -> pa.Table:
    """Return rows in the order of codes, in which the rows of a step of some seconds are in any order."""
    buckets = dict(zip("abcd", data.draw(st.lists(st.integers(-2, 2), min_size=4, max_size=4)), strict=True))
    steps = np.array(table["t" if order == ["t"] else "pos"].cast(pa.int64()).fill_null(0).to_pylist(), np.int64)
    bucket = np.array([buckets.get(key, 0) for key in table["k"].to_pylist()], np.int64)
    codes = (bucket << COARSE_BITS) + steps // data.draw(st.integers(1, 9))
    picks = np.array(data.draw(st.permutations(range(len(table)))), np.int64)
    table = table.append_column(CODE, pa.array(codes)).take(pa.array(picks))
    return table.sort_by(CODE)


def scan_by_key(table: pa.Table, cuts: list[int], window: str, options: dict[str, Any], order: TieOrder) -> pa.Table:
    schema = table.drop_columns([CODE]).schema
    calls = None if options["aggregates"] is None else [parse_aggregate(text) for text in options["aggregates"]]
    names = {each.name for each in fields(Options)} & set(options)
    plan = make_plan(
        parse_window(window), table.drop_columns([CODE, "pos"]).schema, options["key"], options["order_by"], calls,
        Options(**{name: options[name] for name in names}),
    )  # fmt: skip
    clock = clock_measure(plan, max(table["t"].to_pylist(), default=None))
    scan = KeyedScan(BatchScan(schema, plan, GivenSignals(), "drop", clock, ties=order, is_sorted=True))
    found = [part for low, high in pairwise([0, *cuts, len(table)]) for part in scan.scan(table[low:high])]
    return pa.concat_tables([plan.schema.empty_table(), *(part.cast(plan.schema) for part in [*found, *scan.end()])])
