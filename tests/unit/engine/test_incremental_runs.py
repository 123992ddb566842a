"""Chains of stages over some nights, late rows and old states. That nights are one run says `test_any_cut`."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.event_logs import logs
from support.in_memory_engine import MemorySource, run_in_memory
from support.incremental_runs import IncrementalRuns
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, WindowCase, plan_of_case
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import make_plan, stream_of

T, ARRIVAL = ["t"], "arrival"
FIRST: list[WindowCase] = [case for case in [*WINDOWS, *MORE] if case[1] in (T, ARRIVAL) and "empty" not in case[2]]
SECOND = [
    "count(2)",
    "punct()",
    "delta(count, 1)",
    "sliding, count(3), count(2)",
    "sliding, delta(sum_a, 50), count(1)",
    "retain 2 every 2",
    "retain all",
]


@examples(150)
@given(st.data(), logs(), st.sampled_from(FIRST), st.sampled_from(SECOND), st.booleans(), st.booleans())
def test_incremental_runs_of_a_chain_give_the_result_of_one_run(
    data: st.DataObject, table: pa.Table, case: WindowCase, second: str, keyed: bool, keyed_again: bool
) -> None:
    """Stage two goes on from its own state, over what stage one gave that night."""
    window, order_by, options = case
    keyed |= "partitioned" in window
    keyed_again &= keyed
    table = table.sort_by("t") if order_by == T else table
    calls = [parse_aggregate(text) for text in ("count()", "sum(a)", "top=max(a)")]
    one = plan_of_case(window, table.schema, ["k"] if keyed else [], order_by, calls, options | {"at_end": "flush"})
    again = [parse_aggregate(text) for text in ("count()", "sum(count)", "all=collect(top)")]
    two = make_plan(
        parse_window(second), one.schema, ["k"] if keyed_again else [], None, again, Options(), stream_of(one)
    )
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=6).map(sorted))
    firsts, seconds = IncrementalRuns(one, "none"), IncrementalRuns(two, "stream")
    for i, (low, high) in enumerate(pairwise([0, *cuts, len(table)])):
        end = "flush" if i == len(cuts) else "hold"
        firsts.run([table.slice(low, high - low)], [[]], end, [], None)
        given_tonight = firsts.results[-1].table
        seconds.run([given_tonight], [[]], end, [], None, stream_of(one))
    seconds.starts = firsts.starts
    whole = run_in_memory(one, MemorySource([table], [[]]), [], None, "none").table
    expected = run_in_memory(two, MemorySource([whole], [[]], stream_of(one)), [], None, "stream").table
    order = [(name, "ascending") for name in stream_of(two).order]
    some, alone = (found.sort_by(order).combine_chunks() for found in (seconds.table, expected))
    assert same(some, alone), difference(some, alone)


@examples(150)
@given(
    st.data(), logs(),
    st.sampled_from(["count(2)", "delta(a, 2)", "time(3)", "change(u)", "punct()", "sliding, time(4), count(2)"]),
)  # fmt: skip
def test_rows_before_the_newest_row_of_earlier_runs_are_late(data: st.DataObject, table: pa.Table, window: str) -> None:
    """All keys together, and equal is not late; the others give what one run over them gives.

    The mark behind a late row is late itself: else it would end windows of rows that came after it.
    """
    plan = make_plan(parse_window(window), table.schema, ["k"], T, [parse_aggregate("ids=collect(id)")], Options())
    cuts = data.draw(st.lists(st.integers(0, len(table)), min_size=1, max_size=4).map(sorted))
    nights, kept, newest = IncrementalRuns(plan, "column:flag"), [], None
    for i, (low, high) in enumerate(pairwise([0, *cuts, len(table)])):
        night = table.slice(low, high - low)
        chunks, slices = data.draw(st.just([1, 2])), data.draw(st.sampled_from([None, pa.table({"k": ["b", "c"]})]))
        nights.run([night], [[3, 5]], "flush" if i == len(cuts) else "hold", chunks, slices)
        in_time = [row["id"] for row in night.to_pylist() if newest is None or row["t"] >= newest]
        kept += in_time
        late = len(night) - len(in_time)
        assert nights.results[-1].counts.rejected == ({"late": late} if late else {})
        newest = max([*night["t"].to_pylist(), *([] if newest is None else [newest])], default=None)
    whole = run_in_memory(plan, MemorySource([table.take(pa.array(kept, pa.int64()))], [[]]), [], None, "column:flag")
    by = [("k", "ascending"), ("window", "ascending")]
    some, one = (found.drop_columns(["_pos"]).sort_by(by).combine_chunks() for found in (nights.table, whole.table))
    assert same(some, one), difference(some, one)


def test_state_with_a_column_of_hidden_rows_is_restored() -> None:
    """Up to 0.4.1 rows of a state had a column for that, and other parts hid, too: now the rows themselves tell."""
    #   run      first          second
    #   t        1      2       3
    #   part a   [1 ---------------
    #   part b          [2]     [3]
    #   panes    1      1 2     1 3
    clock = pa.array([1, 2, 3], pa.timestamp("s"))
    table = pa.table({"id": [1, 2, 3], "t": clock, "u": ["a", "b", "b"], "v": [0, 0, 1]})
    calls = [parse_aggregate("ids=collect(id)")]
    window = parse_window("partition by u retain 1 with unique v")
    nights = IncrementalRuns(make_plan(window, table.schema, [], T, calls, Options(at_end="flush")), "none")
    nights.run([table.slice(0, 2)], [[]], "hold", [], None)
    assert nights.files is not None
    for part in nights.files.parts("rows"):
        rows = nights.files.tables[part.name]
        nights.files.tables[part.name] = rows.append_column("__gone", pa.array([True, False]))
    nights.run([table.slice(2)], [[]], "flush", [], None)
    assert nights.table["ids"].to_pylist() == [[1], [1, 2], [1, 3]]
