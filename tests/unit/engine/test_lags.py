"""``lag`` looks back over rows in order: what it computes are columns, and a row for which it fails is rejected."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import logs
from support.in_memory_engine import MemorySource, run_in_memory
from support.incremental_runs import IncrementalRuns, check_cuts, check_runs, in_emission_order
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import MORE, WINDOWS, WindowCase, plan_of_case
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.parser import parse_aggregate, parse_let
from wincli.windowing.planning.plan import Plan

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
FAILS = "CASE WHEN coalesce(a - lag(a) > 2, id % 3 = 0) THEN 'no' ELSE '1' END"
FAILING = f"v=CAST({FAILS} AS INT) + a - coalesce(lag(a), a)"
OF_FAILING = ["v=sum(v)", "back=count() where v > 1"]
LOOKING_BACK = [  # with lag or by columns of --let, and over columns of the table
    ("when(d > 0)", "when(d > 0)"),
    ("when(a - lag(a) > 0)", "when(d > 0)"),
    ("while(not a < lag(a))", "while(not fall)"),
    ("change(a - lag(a), u)", "change(d, u)"),
    ("punct(a < lag(a))", "punct(fall)"),
    ("reaches(sum((a - lag(a)) * 1), 4)", "reaches(sum(d), 4)"),
    ("from(d * -1 > 0, until=a < lag(a)) or delta(a, 5)", "from(d * -1 > 0, until=fall) or delta(a, 5)"),
    ("count(coalesce(abs(d - lag(d, 2)), 1))", "count(coalesce(abs(e), 1))"),
    ("count(coalesce(abs(e), 1))", "count(coalesce(abs(e), 1))"),
    ("sliding, count(3), when(a < lag(a))", "sliding, count(3), when(fall)"),
    ("sliding, time(4), when(u <> lag(u))", "sliding, time(4), when(change)"),
    ("sliding, delta(a, 2), when(d < 0 or lag(id, 2) % 2 = 0)", "sliding, delta(a, 2), when(fall or id_2 % 2 = 0)"),
    ("sliding, count(2), when(d < 0), partitioned, tupleCount(5)",
     "sliding, count(2), when(fall), partitioned, tupleCount(5)"),
    ("sliding, count(2), when(a < lag(a)), partitioned, partitionCount(1)",
     "sliding, count(2), when(fall), partitioned, partitionCount(1)"),
    ("sliding, time(3), when(a < lag(a)), partitioned, partitionAge(2)",
     "sliding, time(3), when(fall), partitioned, partitionAge(2)"),
]  # fmt: skip
KNOWN = st.sampled_from([(case, case[0]) for case in [*WINDOWS, *MORE]])
OWN: list[WindowCase] = [
    ("when(v > 1)", ["t"], {}),
    ("while(v > -1) or count(3)", ["t"], {}),
    ("sliding, count(2), when(v > 0)", ["t"], {"partial": True}),
    ("change(v)", "arrival", {}),
    ("punct(v > 1)", "arrival", {}),
]
BACK = st.sampled_from([((window, ["t"], {}), plain) for window, plain in LOOKING_BACK])

FAILING_ALONE = st.sampled_from([(case, case[0]) for case in OWN])


def plan_of(table: pa.Table, case: WindowCase, key: list[str], texts: list[str], **options: Any) -> Plan:
    window, order_by, own = case
    calls = [parse_aggregate(text) for text in texts]
    return plan_of_case(window, table.schema, key, order_by, calls, own | options)


def with_columns(table: pa.Table, case: WindowCase, key: list[str], out: set[int]) -> pa.Table:
    """Row by row: the columns as section 11 defines them, over the rows of a key in order that are not in ``out``.

    ``there``: whether a row is among these, and has a value of ``v``.
    """
    rows = table.to_pylist()
    names = ["d", "e", "g", "v", "fall", "id_2", "u_1", "change", "one", "k_1", "there"]
    found: list[dict[str, Any]] = [dict.fromkeys(names) for _ in rows]
    order = (lambda i: (rows[i]["t"], i)) if case[1] == ["t"] else (lambda i: i)
    earlier: dict[Any, list[int]] = {}
    for i in sorted(range(len(rows)), key=order):
        if rows[i]["id"] in out:
            continue
        before = earlier.setdefault(rows[i]["k"] if key else None, [])
        row, new = rows[i], found[i]
        fails, rise = row["id"] % 3 == 0, 0
        if before:
            last = rows[before[-1]]
            rise = row["a"] - last["a"]
            fails = rise > 2
            new |= {"d": rise, "fall": rise < 0, "g": row["a"] + 1 - (last["a"] + 1) * 2}
            new |= {"u_1": last["u"], "change": row["u"] != last["u"], "one": 1, "k_1": last["k"]}
        new |= {"v": None if fails else 1 + rise, "there": not fails}
        if len(before) > 1:
            new["id_2"] = rows[before[-2]]["id"]
            past = found[before[-2]]["d"]
            new["e"] = None if past is None else new["d"] - past
        before.append(i)
    kinds = {"u_1": pa.string(), "k_1": pa.string(), "id_2": pa.int64()}
    kinds |= dict.fromkeys(("fall", "change", "there"), pa.bool_())
    for name in names:
        table = table.append_column(name, pa.array([new[name] for new in found], kinds.get(name, pa.int32())))
    return table


def ids_of(rejects: pa.Table, *reasons: str) -> set[int]:
    return {row["row"]["id"] for row in rejects.to_pylist() if row["reason"] in reasons}


@examples(360)
@given(st.data(), logs(), KNOWN | KNOWN | BACK | FAILING_ALONE, st.booleans(), st.booleans(), st.booleans())
def test_lags_are_columns_whatever_the_cuts_and_units(
    data: st.DataObject, table: pa.Table, cases: tuple[WindowCase, str], keyed: bool, filtered: bool, grouped: bool
) -> None:
    """In aggregates and in windows, also where keys are evicted; and rows for which one fails are rejected."""
    case, plain_window = cases
    if case[0] != plain_window and "sliding" in plain_window:
        case = (case[0], case[1], {"partial": data.draw(st.booleans())})
    fails = case in OWN or data.draw(st.booleans())
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    key, end = ["k"] if keyed else [], data.draw(st.sampled_from(["flush", "drop"]))
    table = table.sort_by("t") if case[1] == ["t"] else table
    table = table.set_column(0, "id", pa.array(range(len(table)), pa.int64()))
    options: dict[str, Any] = {"at_end": end}
    if grouped and "empty" not in case[2]:
        options["group_by"] = ("flag",)
    let = tuple(map(parse_let, [*LET, FAILING] if fails else LET))
    where = parse_expression(WHERE) if filtered else None
    plan = plan_of(table, case, key, LAGS + OF_FAILING * fails, let=let, where=where, **options)
    runs, once = check_runs(data, plan, table, keyed, end)
    source, whole = check_cuts(data, plan, table, keyed)
    assert whole.counts.balanced
    left_out = {i for i in range(30) if i % 5 == 3} if filtered else set()
    out = left_out | ids_of(whole.rejects, "late", "nan_attribute", "null_attribute")
    plainly = with_columns(table, case, key, out)
    if fails:
        failed = {i for i, row in enumerate(plainly.to_pylist()) if row["there"] is False}
        for rejects in (once.rejects, whole.rejects, pa.concat_tables([result.rejects for result in runs.results])):
            assert ids_of(rejects, "expression_error") == failed
            assert all(
                row["detail"].startswith("v: 'no' is no INTEGER") for row in rejects.to_pylist() if row["detail"]
            )
        if plan.kind.needs.clock or plan.kind.needs.watermark:
            return  # a row that is rejected has moved the clock
        if "lag(" in plain_window:
            return  # a row that is rejected is still the row before, and one that a condition leaves out is not
        where = parse_expression("there")
    texts = COLUMNS + OF_FAILING * fails
    plain = plan_of(plainly, (plain_window, *case[1:]), key, texts, where=where, **options)
    edges = [plainly.slice(sum(map(len, source.tables[:i])), len(part)) for i, part in enumerate(source.tables)]
    expected = run_in_memory(plain, MemorySource(edges, [[] for _ in edges]), [], None)
    one, wanted = in_emission_order(plan, whole.table), in_emission_order(plain, expected.table)
    assert same(one, wanted), difference(one, wanted)
    assert whole.counts.windowed == expected.counts.windowed


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


def test_a_run_whose_rows_are_all_rejected_begins_no_clock() -> None:
    """Ticks without rows are marked between rows, and the first row of all is in the second run."""
    names = ["id", "t", "a", "x", "u", "flag", "k"]
    rows = [pa.table([[n], pa.array([at], pa.timestamp("s")), [1], [0.5], ["p"], [True], ["a"]], names=names)
            for n, at in enumerate([91, 100])]  # fmt: skip
    let = (parse_let(FAILING),)
    plan = plan_of(rows[0], ("time(4)", ["t"], {"empty": "mark"}), [], OF_FAILING, let=let, at_end="flush")
    runs = IncrementalRuns(plan, "files")
    for table, end in zip(rows, ["hold", "flush"], strict=True):
        runs.run([table], [[]], end, [], None)
    whole = run_in_memory(plan, MemorySource(rows, [[], []]), [], None, "files")
    assert whole.table.num_rows == 1
    assert same(in_emission_order(plan, runs.table), in_emission_order(plan, whole.table))


@pytest.mark.parametrize(
    ("aggregate", "message", "kept"),
    [
        # the last row looks back at the one that is left out
        (
            "CAST(s AS INT) - coalesce(lag(p), 0)",
            r"row 2 is expression_error: CAST\(s AS INT\) - coalesce.*: 'x' is no",
            [1, 1, 1],
        ),
        ("coalesce(lag(CAST(s AS INT)), 0)", r"row 2: CAST\(s AS INT\): 'x' is no INTEGER", [0, 1, 2]),
    ],
)
def test_the_library_names_a_row_for_which_a_column_fails_or_drops_it(
    aggregate: str, message: str, kept: list[int]
) -> None:
    calls = [f"all=collect({aggregate})"]
    with pytest.raises(DataError, match=message):
        wincli.aggregate(TABLE, "count(9)", aggregates=calls)
    assert wincli.aggregate(TABLE, "count(9)", aggregates=calls, rejected="drop")["all"].to_pylist() == [kept]


@pytest.mark.parametrize(
    ("window", "reason", "kept"),
    [
        ("count(lag(p))", "null_attribute", [[1], [2, 3]]),
        ("delta(t, p - lag(p))", "null_attribute", [[1, 3]]),
        ("count(coalesce(p - lag(p), 2))", "negative_amount", [[0, 1], [3]]),
        ("count(coalesce(lag(sqrt(p - 2)), 2))", "nan_attribute", [[0, 2], [3]]),
        ("reaches(sum(lag(big)), 3)", "type_overflow", [[0, 2, 3]]),
    ],
)
def test_amounts_that_look_back_reject_their_rows_as_others_do(window: str, reason: str, kept: list[list[int]]) -> None:
    """The reason of the first such row; the others are in windows as if it were not there."""
    big = pa.array([Decimal(10**30), Decimal(1), Decimal(1), Decimal(1)], pa.decimal128(38, 0))
    table = TABLE.append_column("id", pa.array(range(4))).append_column("big", big)
    with pytest.raises(DataError, match=f"is {reason}"):
        wincli.aggregate(table, window, order_by="t", aggregates=["ids=collect(id)"])
    found = wincli.aggregate(table, window, order_by="t", aggregates=["ids=collect(id)"], rejected="drop")
    assert found["ids"].to_pylist() == kept
