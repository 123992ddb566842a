"""Rows that go as one give what they give one by one, to the bit."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import as_files, logs, sliced
from support.in_memory_engine import MemorySink, MemorySource, Result, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import WindowCase
from wincli.windowing.emit.aggregate_rows import merging_plan
from wincli.windowing.engine.strategy import reduction_factor
from wincli.windowing.engine.task import TaskContext
from wincli.windowing.errors import DataError
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.sequence import build
from wincli.windowing.scan.scan import can_preaggregate, preaggregate

NO_TASKS: Any = None
"""An executor that fails where it is used."""

T = ["t"]
BY_TIME = {"event_time": "t"}
WINDOWS: list[WindowCase] = [
    ("time(1)", T, {}),
    ("time(4)", T, {}),
    ("time(4)", T, {"empty": "row"}),
    ("time(4)", T, {"empty": "mark"}),
    ("time(4)", T, {"origin": Fraction(3, 2)}),
    ("time(2.5)", ["t", "a"], {"plain": True}),
    ('calendar(day, tz="Europe/Paris", at=00:01)', T, {}),
    ("time(6) every 2", T, {}),
    ('calendar(day, tz="Europe/Paris", at=00:01) every 7', T, {"closed": "right"}),
    ("timeInterval, intervalDuration(4)", T, BY_TIME),
    ("timeInterval, intervalDuration(6), creationPeriod(4), intervalOffset(1)", T, BY_TIME),
    ("timeInterval, intervalDuration(2), creationPeriod(3)", T, BY_TIME),
    ("timeInterval, intervalDuration(3), creationPeriod(1)", T, BY_TIME | {"plain": True}),
    ("timeInterval, intervalDuration(4)", "arrival", BY_TIME),
    ("timeInterval, intervalDuration(5), discardAge(9)", "arrival", BY_TIME),
    ("timeInterval, intervalDuration(9), creationPeriod(4), discardAge(40)", "arrival", BY_TIME | {"lag": Fraction(2)}),
    ("timeInterval, intervalDuration(40), discardAge(40)", "arrival", BY_TIME),
    ("timeInterval, intervalDuration(2), creationPeriod(3), discardAge(5)", "arrival", BY_TIME | {"plain": True}),
]
HUGE = 2**62
EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "v": (pa.float64(), [0.1, 1e16, -1e16, 1e300, -1e300, 5e-324, 0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, None]),
    "y": (pa.float64(), [0.1, 0.2, 1e-9, 12.25, 3e7, None]),
    "h": (pa.float32(), [0.1, 1e10, -0.0, 0.0, None]),
    "i": (pa.int64(), [HUGE, -HUGE, 1, 0, None]),
    "w": (pa.uint64(), [2**63 - 1, 0, 7, None]),
    "d": (pa.decimal128(38, 2), [decimal.Decimal("9" * 35 + ".99"), decimal.Decimal("-0.01"), None]),
    "p": (pa.duration("us"), [1, -5, 2**40, None]),
    "s": (pa.string(), ["", "a", "aâ", "b", None]),
    "f": (pa.bool_(), [True, False, None]),
}
CALLS = [
    "count()", "count(x)", "sum(a)", "sum(x)", "sum(v)", "mean(v)", "mean(a)", "min(v)", "max(v)", "max(x)", "sum(y)",
    "mean(y)", "sum(h)", "min(h)", "mean(i)", "min(i)", "mean(w)", "max(w)", "mean(d)", "max(d)", "sum(p)", "min(p)",
    "min(s)", "max(s)", "sum(f)", "mean(f)", "bool_and(f)", "bool_or(f)", "max(t)", "min(u)", "a1=min(a)",
]  # fmt: skip


@st.composite
def wide_logs(draw: st.DrawFn) -> pa.Table:
    """Logs with columns of many types, and of few values each, so that rows meet."""
    table = draw(logs())
    for name, (dtype, values) in EXTREMES.items():
        picked = draw(st.lists(st.sampled_from(values), min_size=len(table), max_size=len(table)))
        table = table.append_column(name, pa.array(picked, dtype))
    return table


def planned(table: pa.Table, case: WindowCase, key: list[str], calls: list[str]) -> Plan:
    window, order_by, options = case
    parsed = [parse_aggregate(text) for text in calls]
    return make_plan(parse_window(window), table.schema, key, order_by, parsed, Options(**options))


def both(data: st.DataObject, plan: Plan, table: pa.Table, rows: int) -> tuple[Result, Result]:
    """What comes of all rows in one task, and of chunks that combine what they have for slices of so many rows."""
    source, chunk_bounds = as_files(data.draw, table)
    cuts = sliced(plan, table, rows)
    whole = run_in_memory(plan, source, [], None)
    return whole, run_in_memory(plan, source, chunk_bounds, pa.table({}) if cuts is None else cuts, combine=True)


@examples(300)
@given(st.data(), wide_logs(), st.sampled_from(WINDOWS), st.booleans(), st.sampled_from([2, 5, 1000]))
def test_partial_aggregation_gives_the_result_of_one_task(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, rows: int
) -> None:
    calls = data.draw(st.lists(st.sampled_from(CALLS), unique=True, min_size=1, max_size=8))
    options = case[2] | {"at_end": data.draw(st.sampled_from(["flush", "drop"]))}
    key = ["k"] if keyed and options.get("empty") != "mark" else []
    plan = planned(table, (case[0], case[1], options), key, calls)
    assert can_preaggregate(plan, table.schema)
    whole, combined = both(data, plan, table, rows)
    assert same(combined.table, whole.table), difference(combined.table, whole.table)
    assert combined.counts == whole.counts
    assert same(combined.rejects, whole.rejects)


def test_rows_of_a_key_and_a_grid_cell_are_combined() -> None:
    """Three rows of key a in ``[0, 4)``, of which the first lends its place."""
    table = pa.table({
        "t": pa.array([0, 1, 3, 4, 2], pa.timestamp("s")), "k": ["a", "a", "a", "a", "b"],
        "x": [1e16, 1.0, None, 2.0, 3.0], "i": pa.array([1, 2, 3, 4, 5], pa.int64()),
    })  # fmt: skip
    plan = planned(table, ("time(4)", T, {}), ["k"], ["sum(x)", "mean(i)", "max(x)"])
    (batch,) = table.to_batches()
    then = merging_plan(plan)
    rows = preaggregate(
        plan, then, build(batch, np.arange(5), plan.key, plan.sort, plan.values), no_marks(batch, plan.sort)
    )
    assert rows.bounds.tolist() == [0, 2, 3]
    assert rows.pos.tolist() == [0, 3, 4]
    assert rows.rows.schema.names == list(then.values)


@examples(200)
@given(st.data(), st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ab")), min_size=2, max_size=16))
def test_late_rows_are_not_combined_with_those_before_the_watermark(
    data: st.DataObject, rows: list[tuple[int, str]]
) -> None:
    """Rows that go back and forth in time, of keys that complete each other's panes."""
    table = pa.table({"t": pa.array([t for t, _ in rows], pa.timestamp("s")), "k": [k for _, k in rows]})
    window = data.draw(st.sampled_from([case[0] for case in WINDOWS if case[1] == "arrival"]))
    plan = planned(table, (window, "arrival", BY_TIME), ["k"], ["count()", "min(t)"])
    source = MemorySource([table], [[]])
    whole = run_in_memory(plan, source, [], None)
    combined = run_in_memory(plan, source, [], pa.table({}), combine=True)
    assert same(combined.table, whole.table), difference(combined.table, whole.table)
    assert (combined.counts, combined.rejects.num_rows) == (whole.counts, whole.rejects.num_rows)


def test_reduction_factor_is_sampled_from_the_middle_split() -> None:
    """Of three splits the middle one: four rows without a null, of three cells."""
    ticks = [0, 0, 0, None, 5, 6, 9, 12, 40, 40]
    table = pa.table({"t": pa.array(ticks, pa.timestamp("s")), "k": ["a"] * 10})
    source = MemorySource([table], [[3, 8]], in_rows=False)
    for case, key, wanted in ((WINDOWS[1], ["k"], 4 / 3), (("count(3)", T, {}), [], 1.0)):
        plan = planned(table, case, key, ["count()"])
        assert reduction_factor(TaskContext(plan, source, MemorySink(), "none"), NO_TASKS) == wanted


def test_overflow_is_judged_by_the_final_sum() -> None:
    """Only all rows together tell: on the way a sum may be beyond 64 bit."""

    def combined(values: list[int]) -> Result:
        table = pa.table({"t": pa.array([0, 1, 2], pa.timestamp("s")), "i": pa.array(values, pa.int64())})
        plan = planned(table, ("time(4)", T, {}), [], ["sum(i)"])
        return run_in_memory(plan, MemorySource([table], [[2]]), [1], pa.table({}), combine=True)

    assert combined([HUGE, HUGE, -HUGE]).table.column("sum_i").to_pylist() == [HUGE]
    with pytest.raises(DataError, match=r"^sum\(i\) does not fit int64 in window 0 \(column 'i'\)"):
        combined([HUGE, HUGE, 0])


@pytest.mark.parametrize(
    ("case", "calls"),
    [
        (("time(4)", T, {}), ["first(x)"]),
        (("time(4)", T, {}), ["count()", "collect(x)"]),
        (("time(4)", T, {}), ["var(x)"]),
        (("time(4)", T, {}), ["sum(wide)"]),
        (("time(4)", T, {"group_by": ("u",)}), ["count()"]),
        (("time(4), partitioned, partitionAge(3)", T, {}), ["count()"]),
        (("count(3)", T, {}), ["count()"]),
        (("delta(t, 3)", T, {}), ["count()"]),
        (("sliding, time(4), time(2)", T, {}), ["count()"]),
        (("timeInterval, intervalDuration(4)", "arrival", BY_TIME | {"min_gap": Fraction(2)}), ["count()"]),
    ],
)
def test_windows_and_aggregates_that_need_rows_are_not_preaggregated(case: WindowCase, calls: list[str]) -> None:
    columns = {"t": pa.timestamp("s"), "a": pa.int32(), "x": pa.float64(), "u": pa.string(), "k": pa.string()}
    schema = pa.schema([*columns.items(), ("wide", pa.decimal256(70, 2))])
    key = ["k"] if "partitioned" in case[0] else []
    assert not can_preaggregate(planned(schema.empty_table(), case, key, calls), schema)


def test_input_columns_with_internal_names_do_not_collide() -> None:
    table = pa.table({"__of_rows": pa.array([0, 1], pa.timestamp("s")), "___of_0_0": [1, 2]})
    plan = planned(table, ("time(4)", ["__of_rows"], {}), [], ["sum(___of_0_0)"])
    found = run_in_memory(plan, MemorySource([table], [[1]]), [1], pa.table({}), combine=True)
    assert found.table.column("sum____of_0_0").to_pylist() == [3]
    assert found.counts.windowed == 2
