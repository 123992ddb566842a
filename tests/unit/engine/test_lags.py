"""``lag`` in aggregates and new columns: as if the input had a column with the value of the n-th row before."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.in_memory_engine import MemorySink, MemorySource, run_in_memory
from support.incremental_runs import check_cuts, check_runs, in_emission_order
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.engine.run import run_window
from wincli.windowing.engine.task import Sizes, TaskContext
from wincli.windowing.errors import ConfigError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import Plan, make_plan

LET = ("b=a + 1", "d=a - lag(a)", "e=d - lag(d, 2)", "g=b - lag(b * 2)")
LAGS = [
    "count()", "rise=max(a - lag(a))", "falls=count() where a < lag(a)", "ids=collect(lag(id, 2))", "top=max(d)",
    "e=sum(e)", "g=collect(g)", "texts=collect(lag(u)) where u <> lag(u)", "firsts=sum(id) where lag(1) is null",
    "keys=collect(lag(k))",
]  # fmt: skip
COLUMNS = [
    "count()", "rise=max(d)", "falls=count() where fall", "ids=collect(id_2)", "top=max(d)", "e=sum(e)",
    "g=collect(g)", "texts=collect(u_1) where change", "firsts=sum(id) where one is null", "keys=collect(k_1)",
]  # fmt: skip
WHERE = "id % 5 <> 3"


def plan_of(table: pa.Table, case: WindowCase, key: list[str], texts: list[str], **options: Any) -> Plan:
    window, order_by, own = case
    calls = [parse_aggregate(text) for text in texts]
    return make_plan(parse_window(window), table.schema, key, order_by, calls, Options(**own, **options))


def with_columns(table: pa.Table, case: WindowCase, key: list[str], out: set[int]) -> pa.Table:
    """Row by row: the columns as section 11 defines them, over the rows of a key in order that are not in ``out``."""
    rows = table.to_pylist()
    names = ["d", "e", "g", "fall", "id_2", "u_1", "change", "one", "k_1"]
    found: list[dict[str, Any]] = [dict.fromkeys(names) for _ in rows]
    order = (lambda i: (rows[i]["t"], i)) if case[1] == ["t"] else (lambda i: i)
    earlier: dict[Any, list[int]] = {}
    for i in sorted(range(len(rows)), key=order):
        if rows[i]["id"] in out:
            continue
        before = earlier.setdefault(rows[i]["k"] if key else None, [])
        row, new = rows[i], found[i]
        if before:
            last = rows[before[-1]]
            new |= {"d": row["a"] - last["a"], "fall": row["a"] < last["a"], "g": row["a"] + 1 - (last["a"] + 1) * 2}
            new |= {"u_1": last["u"], "change": row["u"] != last["u"], "one": 1, "k_1": last["k"]}
        if len(before) > 1:
            new["id_2"] = rows[before[-2]]["id"]
            past = found[before[-2]]["d"]
            new["e"] = None if past is None else new["d"] - past
        before.append(i)
    kinds = {"fall": pa.bool_(), "change": pa.bool_(), "u_1": pa.string(), "k_1": pa.string(), "id_2": pa.int64()}
    for name in names:
        table = table.append_column(name, pa.array([new[name] for new in found], kinds.get(name, pa.int32())))
    return table


@examples(200)
@given(st.data(), logs(), st.sampled_from([*WINDOWS, *MORE]), st.booleans(), st.booleans(), st.booleans())
def test_lags_are_columns_whatever_the_cuts_and_units(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool, filtered: bool, grouped: bool
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    key, end = ["k"] if keyed else [], data.draw(st.sampled_from(["flush", "drop"]))
    table = table.sort_by("t") if case[1] == ["t"] else table
    options = {"where": parse_expression(WHERE) if filtered else None, "group_by": ("flag",) if grouped else ()}
    options |= {"at_end": end}
    if grouped and "empty" in case[2]:
        del options["group_by"]
    plan = plan_of(table, case, key, LAGS, let=tuple(map(parse_let, LET)), **options)
    check_runs(data, plan, table, keyed, end)
    source, whole = check_cuts(data, plan, table, keyed)
    one = in_emission_order(plan, whole.table)
    out = {row["id"] for row in whole.rejects["row"].to_pylist()} | (
        {i for i in range(30) if i % 5 == 3} if filtered else set()
    )
    plainly = with_columns(table, case, key, out)
    plain = plan_of(plainly, case, key, COLUMNS, **options)
    edges = MemorySource(
        [plainly.slice(sum(map(len, source.tables[:i])), len(part)) for i, part in enumerate(source.tables)],
        [[] for _ in source.tables],
    )
    wanted = in_emission_order(plain, run_in_memory(plain, edges, [], None).table)
    assert same(one, wanted), difference(one, wanted)


@examples(60)
@given(st.data(), logs(), st.booleans(), st.integers(0, 9))
def test_no_strategy_changes_what_lag_is(data: st.DataObject, table: pa.Table, keyed: bool, seed: int) -> None:
    """Also where rows stand in order, and where map tasks could combine rows."""
    case = (data.draw(st.sampled_from(["time(4)", "delta(a, 2)", "sliding, count(3), count(2)"])), ["t"], {})
    table, key = table.sort_by("t"), ["k"] if keyed else []
    plan = plan_of(table, case, key, LAGS, let=tuple(map(parse_let, LET)))
    source, sink = MemorySource([table], [data.draw(st.lists(st.integers(0, 30), max_size=4))]), MemorySink()
    executor = LocalExecutor(2, is_one_machine=data.draw(st.booleans()), pickles=True, seed=seed)
    run_window(TaskContext(plan, source, sink, "none"), executor, Sizes(1, 1, 60))
    parts = [part.cast(plan.schema) for _, part in sorted(sink.parts.items()) if part.num_columns]
    found = in_emission_order(plan, pa.concat_tables([plan.schema.empty_table(), *parts]))
    wanted = in_emission_order(plan, run_in_memory(plan, MemorySource([table], [[]]), [], None, "none").table)
    assert same(found, wanted), difference(found, wanted)


WRITTEN = {  # with new columns, and without
    "when(d > 0)": "when(a - lag(a) > 0)",
    "while(not fell)": "while(not a < lag(a))",
    "change(d, u)": "change(a - lag(a), u)",
    "punct(fell)": "punct(a < lag(a))",
    "reaches(sum(e), 4)": "reaches(sum((a - lag(a)) * 2), 4)",
    "from(d * -1 > 0, until=fell) or delta(a, 5)": "from((a - lag(a)) * -1 > 0, until=a < lag(a)) or delta(a, 5)",
    "count(coalesce(abs(d), 1))": "count(coalesce(abs(a - lag(a)), 1))",
}


@examples(80)
@given(st.data(), logs(), st.sampled_from(sorted(WRITTEN)), st.booleans())
def test_conditions_over_new_columns_are_conditions_over_their_expressions(
    data: st.DataObject, table: pa.Table, window: str, keyed: bool
) -> None:
    table, key = table.sort_by("t"), ["k"] if keyed else []
    let = tuple(map(parse_let, ["d=a - lag(a)", "e=d * 2", "fell=a < lag(a)"]))
    texts = ["ids=collect(id)", "d=collect(d)"]
    one = plan_of(table, (window, ["t"], {}), key, texts, let=let)
    other = plan_of(table, (WRITTEN[window], ["t"], {}), key, texts, let=let)
    _, whole = check_runs(data, one, table, keyed, "flush")
    wanted = in_emission_order(other, run_in_memory(other, MemorySource([table], [[]]), [], None, "none").table)
    found = in_emission_order(one, whole.table)
    assert same(found, wanted), difference(found, wanted)


TRIGGERS = {  # over columns, and with lag
    "sliding, count(3), when(fall)": "sliding, count(3), when(a < lag(a))",
    "sliding, time(4), when(change)": "sliding, time(4), when(u <> lag(u))",
    "sliding, delta(a, 2), when(fall or id_2 % 2 = 0)": "sliding, delta(a, 2), when(d < 0 or lag(id, 2) % 2 = 0)",
    "sliding, count(2), when(fall), partitioned, tupleCount(5)":
        "sliding, count(2), when(d < 0), partitioned, tupleCount(5)",
    "sliding, count(2), when(fall), partitioned, partitionCount(1)":
        "sliding, count(2), when(a < lag(a)), partitioned, partitionCount(1)",
    "sliding, time(3), when(fall), partitioned, partitionAge(2)":
        "sliding, time(3), when(a < lag(a)), partitioned, partitionAge(2)",
}  # fmt: skip


@examples(120)
@given(st.data(), logs(), st.sampled_from(sorted(TRIGGERS)), st.booleans(), st.sampled_from(["aggregates", "rows"]))
def test_triggers_look_back(data: st.DataObject, table: pa.Table, window: str, keyed: bool, emit: str) -> None:
    """Whole, cut between keys and run by run, also where keys are evicted, it is a trigger on a column."""
    table, key = table.sort_by("t"), ["k"] if keyed or "partitioned" in window else []
    texts = ["ids=collect(id)"] if emit == "aggregates" else []
    options: dict[str, Any] = {"partial": data.draw(st.booleans()), "emit": emit}
    options["at_end"] = data.draw(st.sampled_from(["flush", "drop"]))
    plainly = with_columns(table, (window, ["t"], {}), key, set())
    plain = plan_of(plainly, (window, ["t"], {}), key, texts, **options)
    wanted = in_emission_order(plain, run_in_memory(plain, MemorySource([plainly], [[]]), [], None, "none").table)
    let = () if emit == "rows" else (parse_let("d=a - lag(a)"),)
    text = TRIGGERS[window].replace("d < 0", "a - lag(a) < 0") if emit == "rows" else TRIGGERS[window]
    plan = plan_of(table, (text, ["t"], {}), key, texts, let=let, **options)
    _, whole = check_runs(data, plan, table, bool(key), options["at_end"])
    check_cuts(data, plan, table, bool(key))
    found, wanted = in_emission_order(plan, whole.table), wanted.select(plan.schema.names)
    assert same(found, wanted), difference(found, wanted)


TABLE = pa.table({"k": list("abab"), "t": [1, 2, 3, 4], "p": [1, 5, 3, 4], "s": ["1", "2", "x", "4"]})
D = {"let": ["d=p - lag(p)"]}


@pytest.mark.parametrize(
    ("window", "options", "label"),
    [
        ("count(2)", {"where": "p > lag(p)"}, "--where: lag()"),
        ("count(2)", {**D, "where": "d > 1"}, "--where: 'd'"),
        ("count(2)", {**D, "key": "d"}, "--key: 'd'"),
        ("count(2)", {**D, "order_by": "d"}, "--order-by: 'd'"),
        ("count(2)", {**D, "group_by": "d"}, "--group-by: 'd'"),
        ("timeInterval, intervalDuration(2)", {**D, "event_time": "d"}, "--event-time: 'd'"),
        ("punct()", {"let": ["d=p > lag(p)"], "marks": "d"}, "--marks: 'd'"),
        ("delta(d, 2)", D, "delta(d, 2): 'd'"),
        ("count(2)", {**D, "emit": "rows"}, "--emit rows shows rows as they are"),
        ("count(2)", {"having": "lag(window) = 1"}, "--having: lag()"),
    ],
)  # fmt: skip
def test_lag_is_an_error_where_rows_have_no_order(window: str, options: dict[str, Any], label: str) -> None:
    with pytest.raises(ConfigError, match=r"order|results") as caught:
        wincli.aggregate(TABLE, window, **options)
    assert label in str(caught.value)


def test_a_failure_inside_of_a_lag_rejects_the_row() -> None:
    aggregates = ["all=collect(coalesce(lag(CAST(s AS INT)), 0))"]
    found = wincli.aggregate(TABLE, "count(9)", aggregates=aggregates, rejected="drop")
    assert found["all"].to_pylist() == [[0, 1, 2]]
