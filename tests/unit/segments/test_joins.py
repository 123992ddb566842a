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
CASES = [
    *[(window, how) for window in OUTER for how in ("inner", "left", "semi", "anti", "right", "full")],
    *[(window, how) for window in OTHERS for how in ("inner", "left")],
]
ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([LEFT, RIGHT]), st.integers(0, 4)), max_size=30)


def table_of(rows: list[tuple[int, int, int]], is_one_log: bool) -> pa.Table:
    t, side, x = ([each[at] for each in sorted(rows, key=lambda each: each[0])] for at in range(3))
    values, key = pa.array(x, pa.float64()), pa.array(["a"] * len(t))
    if is_one_log:
        return pa.table({"k": key, "t": pa.array(t, pa.int64()), "s": pa.array(side, pa.int64()), "x": values})
    columns = {"r_x": values, SIDE: pa.array(side, pa.int8()), "k": key, "t": pa.array(t, pa.int64()), "x": values}
    return pa.table(columns)


def plan_of(table: pa.Table, window: str, how: str, match: bool, calls: list[str], at_end: Any = "flush") -> Plan:
    is_one_log, parsed = SIDE not in table.column_names, [parse_aggregate(text) for text in calls] or None
    join = parse_join(f"r on k by t {how} where (s <> 1)" if is_one_log else f"r=R on k by t {how}")
    where = parse_expression("s <> 2 or x > 2") if is_one_log else None
    condition = parse_expression("r_x > x - 1") if match else None
    options = Options(join=join, match=condition, where=where, at_end=at_end)
    return make_plan(parse_window(window), table.schema, ["k"], ["t"], parsed, options)


@given(st.data(), ROWS, st.sampled_from(CASES), st.booleans(), st.booleans())
@examples(600)
def test_any_cut_of_a_join_is_one_scan(
    data: st.DataObject, rows: list[Any], case: tuple[str, str], is_one_log: bool, match: bool
) -> None:
    window, how = case
    calls = [["n=count()", "total=sum(r_x)"], []] if "around" in window and how in {"inner", "left"} else [[]]
    table, at_end = table_of(rows, is_one_log), data.draw(st.sampled_from(["flush", "drop"]))
    plan = plan_of(table, window, how, match, data.draw(st.sampled_from(calls)), at_end)
    source = MemorySource([table], [[]])
    cuts = sliced(plan, table, data.draw(st.integers(2, 6)))
    if cuts is not None:
        whole, cut = run_in_memory(plan, source, [], None), run_in_memory(plan, source, [], cuts)
        assert same(whole.table, cut.table), difference(whole.table, cut.table)
        assert whole.counts == cut.counts


@pytest.mark.parametrize(("window", "how"), CASES)
def test_joins_are_cut_unless_a_bit_says_whether_a_right_row_had_a_partner(window: str, how: str) -> None:
    rows = [(t, LEFT + t % 2, 1) for t in range(12)]
    for is_one_log in (True, False):
        table = table_of(rows, is_one_log)
        cuts = sliced(plan_of(table, window, how, False, []), table, 3)
        assert (cuts is None) == (how in {"right", "full"} and not is_one_log)
