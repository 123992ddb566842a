"""Keys of joins cut into pieces of three rows or so give what one scan gives, to the bit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import sliced
from support.in_memory_engine import MemorySource, run_in_memory
from support.strategies import examples
from support.table_equality import difference, same
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.joins import LEFT, RIGHT, SIDE, parse_join
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan

OUTER = ["around(2, 1)", "around(-1, 4)", "around(5, 5)", "around(0, 0)"]
OTHERS = ["around(3, 0, prevailing)", "at(0)", "at(-2, 1) within 3", "at(3, 0)"]
SIDES = [
    "sliding, count(2) join time(3)", "sliding, time(2) join time(1)", "sliding, count(0) join count(1)",
    "sliding, delta(x, 1) join count(3)",
]  # fmt: skip
BATCHED = [
    "within 3 join retain 2", "within 2 every 3 join within 4", "retain 2 every 3 join retain 1",
    "retain 3 join within 2 with unique x",
]  # fmt: skip
PREVIOUS = "split(count() > 1 + previous(count(), 2, 0.5))"
ONE = [
    "time(3)",
    "gap(t, 1)",
    "count(4)",
    "punct()",
    "split(x < last(x))",
    "time(2) or count(3)",
    "punct() or count(3)",
    PREVIOUS,
]
PANES = ["timeInterval, intervalDuration(4), creationPeriod(2)", "timeInterval, intervalDuration(3)"]
HOWS = ("inner", "left", "semi", "anti", "right", "full")
CASES = [
    *[(window, how) for window in (*OUTER, *SIDES, *ONE, *PANES) for how in HOWS],
    *[(window, how) for window in OTHERS for how in ("inner", "left")],
    *[(window, "inner") for window in BATCHED],
]
ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([LEFT, RIGHT]), st.integers(0, 4)), max_size=30)


def table_of(rows: list[tuple[int, int, int]], is_one_log: bool) -> pa.Table:
    t, side, x = ([each[at] for each in sorted(rows, key=lambda each: each[0])] for at in range(3))
    values, key = pa.array(x, pa.float64()), pa.array(["a"] * len(t), pa.string())
    if is_one_log:
        return pa.table({"k": key, "t": pa.array(t, pa.int64()), "s": pa.array(side, pa.int64()), "x": values})
    columns = {"r_x": values, SIDE: pa.array(side, pa.int8()), "k": key, "t": pa.array(t, pa.int64()), "x": values}
    return pa.table(columns)


def plan_of(table: pa.Table, window: str, how: str, match: bool, calls: list[str], **more: Any) -> Plan:
    is_one_log, parsed = SIDE not in table.column_names, [parse_aggregate(text) for text in calls] or None
    join = parse_join(f"r on k by t {how} where (s <> 1)" if is_one_log else f"r=R on k by t {how}")
    where = parse_expression("s <> 2 or x > 2") if is_one_log else None
    condition = parse_expression("r_x > x - 1") if match else None
    if window in PANES:
        more["event_time"] = "t"
    options = Options(join=join, match=condition, where=where, **more)
    return make_plan(parse_window(window), table.schema, ["k"], ["t"], parsed, options)


@st.composite
def outputs(draw: st.DrawFn, window: str, how: str) -> dict[str, Any]:
    """What a join of this window may write: pairs, which of them, or aggregates, also by group."""
    more: dict[str, Any] = {"calls": [], "at_end": draw(st.sampled_from(["flush", "drop"]))}
    may_aggregate = how == "inner" or (how == "left" and window in OUTER)
    if window in ONE[:1]:
        more["empty"] = draw(st.sampled_from(["skip", "row"]))
    if may_aggregate and "count(0)" not in window and "at(" not in window and draw(st.booleans()):
        more["calls"] = ["n=count()", "total=sum(r_x)", "all=sum(x + r_x)", "last(r_x)"][: draw(st.integers(1, 4))]
        return more | {"group_by": () if "around" in window else draw(st.sampled_from([(), ("x",)]))}
    if window not in (*SIDES, *BATCHED):
        return more
    return more | {"emit": draw(st.sampled_from(["entered", "left", "rows"])) if how == "inner" else "entered"}


@given(st.data(), ROWS, st.sampled_from(CASES), st.booleans(), st.booleans())
@examples(1500)
def test_any_cut_of_a_join_is_one_scan(
    data: st.DataObject, rows: list[Any], case: tuple[str, str], is_one_log: bool, match: bool
) -> None:
    table, more = table_of(rows, is_one_log), data.draw(outputs(*case))
    plan = plan_of(table, *case, match, **more)
    parts = [table.slice(at, 7) for at in range(0, len(table), 7)]  # each ends with a mark
    source = MemorySource(parts or [table], [[] for _ in parts or [table]])
    cuts = sliced(plan, table, data.draw(st.integers(2, 6)))
    if cuts is not None:
        whole, cut = run_in_memory(plan, source, [], None), run_in_memory(plan, source, [], cuts)
        assert same(whole.table, cut.table), difference(whole.table, cut.table)
        assert whole.counts == cut.counts


@pytest.mark.parametrize(("window", "how"), CASES)
def test_joins_are_cut(window: str, how: str) -> None:
    """Else the law would say nothing."""
    rows = [(t, LEFT + t % 2, 1) for t in range(12)]
    for is_one_log in (True, False):
        table = table_of(rows, is_one_log)
        assert sliced(plan_of(table, window, how, False, []), table, 3) is not None
