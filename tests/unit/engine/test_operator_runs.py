"""Operators over several runs and slices: the calls, and all that they give, are those of one run."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import logs
from support.incremental_runs import in_emission_order, run_parts_and_whole
from support.keeping_operators import ASKING, KEEPER
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import make_plan

T = ["t"]


@examples(200)  # test_incremental_runs has 250 of states, test_operator_events 600 of calls
@given(
    st.data(),
    logs(),
    st.one_of(st.sampled_from(WINDOWS), st.sampled_from(MORE)),
    st.booleans(),
    st.sampled_from(["flush", "drop"]),
    st.booleans(),
)
def test_runs_that_go_on_give_the_calls_of_one_run(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, end: str, asks: bool
) -> None:
    window, order_by, options = case
    evicts = any(word in window for word in ("partitionAge", "partitionCount", "tupleCount"))
    keyed = (keyed or "partitioned" in window) and options.get("empty") != "mark"
    table = table.sort_by("t") if order_by == T else table
    own = {name: value for name, value in options.items() if name not in {"emit", "group_by", "sort_by"}}
    chosen = Options(**own, at_end=end, operator=ASKING if asks and not evicts else KEEPER)
    plan = make_plan(parse_window(window), table.schema, ["k"] if keyed else [], order_by, None, chosen)
    runs, whole = run_parts_and_whole(data, plan, table, keyed, end)
    one, some = in_emission_order(plan, whole.table), in_emission_order(plan, runs.table)
    assert same(some, one), difference(some, one)
    counts = sum((result.counts for result in runs.results[1:]), runs.results[0].counts)
    assert (counts.rows_in, counts.windowed) == (whole.counts.rows_in, whole.counts.windowed)
    assert (counts.filtered, counts.dropped_at_end) == (whole.counts.filtered, whole.counts.dropped_at_end)
