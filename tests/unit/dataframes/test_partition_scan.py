"""What tasks do with the batches of a partition, without Spark: they pickle, and give the windows of the table."""

from __future__ import annotations

import pickle

import pyarrow as pa

import wincli
from wincli.windowing.dataframes.layout import layout_of
from wincli.windowing.dataframes.partition_scan import CLOCK, FindClock, Prepare, ScanPartition
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.streaming.keyed_scan import CODE

LOG = pa.table({"k": ["a", "a", "b", "b", "b"], "t": [0, 7, 1, 2, 30], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
CALLS = [parse_aggregate("sum(x)")]


def test_a_partition_gives_the_windows_of_the_table() -> None:
    plan = make_plan(parse_window("time(5)"), LOG.schema, ["k"], ["t"], CALLS)
    rows = LOG.append_column(CLOCK, pa.array([30] * 5))
    task = ScanPartition(plan, rows.schema, plan.schema, "error", layout_of(plan, None, None))
    rows = rows.append_column(CODE, pa.array([0, 7, *(1 << 50 | each for each in (1, 2, 30))]))
    rows = rows.rename_columns(["c0", "c1", "c2", "clock", "code"]).append_column("number", pa.array([1, 2, 1, 2, 3]))
    found = pa.Table.from_batches(pickle.loads(pickle.dumps(task))(rows.to_batches(2)))
    wanted = wincli.aggregate(LOG, "time(5)", key="k", order_by="t", aggregates="sum(x)")
    order = [("k", "ascending"), ("window", "ascending")]
    assert found.drop_columns(["_pos"]).sort_by(order).equals(wanted.drop_columns(["_pos"]).sort_by(order))
    assert list(task([])) == []


def test_the_clock_is_the_largest_of_the_rows_that_the_window_sees() -> None:
    options = Options(where=parse_expression("x < 5"))
    plan = make_plan(parse_window("time(5)"), LOG.schema, ["k"], ["t"], CALLS, options)
    task = FindClock(plan, LOG.schema, pa.schema({CLOCK: pa.int64()}), "drop")
    assert pa.Table.from_batches(task(LOG.to_batches())).to_pylist() == [{CLOCK: 7}]
    assert list(task([])) == []


def test_rows_are_prepared_with_the_columns_that_are_moved() -> None:
    options = Options(let=(parse_let("u=upper(k)"),), where=parse_expression("x <> 2"))
    plan = make_plan(parse_window("count(2)"), LOG.schema, ["u"], ["t"], CALLS, options)
    result = pa.schema({"u": pa.string(), "x": pa.float64()})
    found = pa.Table.from_batches(Prepare(plan, LOG.schema, result, "error")(LOG.to_batches()))
    assert found.to_pylist() == [{"c0": name, "c1": x} for name, x in zip("ABBB", [1.0, 3.0, 4.0, 5.0], strict=True)]
