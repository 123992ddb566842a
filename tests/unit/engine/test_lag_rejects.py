"""Rows for which a column with ``lag`` fails: rejected in the scan, and still the row before of those after them."""

from __future__ import annotations

from decimal import Decimal
from itertools import groupby
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
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.windowing.errors import DataError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.planning.plan import Plan, make_plan

FAILS = "CASE WHEN coalesce(a - lag(a) > 2, id % 3 = 0) THEN 'no' ELSE '1' END"
LET = f"v=CAST({FAILS} AS INT) + a - coalesce(lag(a), a)"
CALLS = ["count()", "ids=collect(id)", "v=sum(v)", "back=count() where v > 1"]
WHOLE = [case for case in [*WINDOWS, *MORE] if not case[0].startswith(("delta(x", "gap(x"))]
"""Windows that reject no row of themselves: NaN is there in x."""
OWN: list[WindowCase] = [
    ("when(v > 1)", ["t"], {}),
    ("while(v > -1) or count(3)", ["t"], {}),
    ("sliding, count(2), when(v > 0)", ["t"], {"partial": True}),
    ("change(v)", "arrival", {}),
    ("punct(v > 1)", "arrival", {}),
]


def plan_of(table: pa.Table, case: WindowCase, key: list[str], let: tuple[str, ...], **options: Any) -> Plan:
    window, order_by, own = case
    calls = [parse_aggregate(text) for text in CALLS]
    given_options = Options(let=tuple(map(parse_let, let)), **{**own, **options})
    return make_plan(parse_window(window), table.schema, key, order_by, calls, given_options)


def read_row_by_row(table: pa.Table, case: WindowCase, key: list[str], late: list[int]) -> tuple[pa.Table, list[int]]:
    """The log with the values of v, and whether it has one: over the rows of a key in order that are not too late.

    Also the ids of the rows that fail.
    """
    rows = [row for row in table.to_pylist() if row["id"] not in late]
    by_order = (lambda row: (row["t"], row["id"])) if case[1] == ["t"] else (lambda row: row["id"])
    found: dict[int, int | None] = {}
    ordered = sorted(sorted(rows, key=by_order), key=lambda row: str(row["k"]) if key else "")
    for _, of_key in groupby(ordered, lambda row: row["k"] if key else None):
        last: int | None = None
        for row in of_key:
            fails = row["id"] % 3 == 0 if last is None else row["a"] - last > 2
            found[row["id"]] = None if fails else 1 + row["a"] - (row["a"] if last is None else last)
            last = row["a"]
    values = [found.get(at) for at in range(len(table))]
    table = table.append_column("v", pa.array(values, pa.int32()))
    out = [at for at in range(len(table)) if values[at] is None and at not in late]
    return table.append_column("there", pa.array([value is not None for value in values])), out


@examples(150)
@given(st.data(), logs(), st.sampled_from([*WHOLE, *OWN, *OWN, *OWN]), st.booleans())
def test_rows_that_fail_are_rejected_whatever_the_cuts_and_units(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool
) -> None:
    keyed = (keyed or "partitioned" in case[0]) and case[2].get("empty") != "mark"
    key, end = ["k"] if keyed else [], data.draw(st.sampled_from(["flush", "drop"]))
    table = table.sort_by("t") if case[1] == ["t"] else table
    table = table.set_column(0, "id", pa.array(range(len(table))))
    plan = plan_of(table, case, key, (LET,), at_end=end)
    runs, whole = check_runs(data, plan, table, keyed, end)
    late = [row["row"]["id"] for row in whole.rejects.to_pylist() if row["reason"] == "late"]
    wanted, out = read_row_by_row(table, case, key, late)
    fallen = [row for result in runs.results for row in result.rejects.to_pylist() if row["reason"] != "late"]
    assert sorted(row["row"]["id"] for row in fallen) == out == ids_of(whole.rejects)
    assert {row["reason"] for row in fallen} <= {"expression_error"}
    assert all(row["detail"].startswith("v: 'no' is no INTEGER") for row in fallen)
    assert whole.counts.balanced
    source, whole = check_cuts(data, plan, table, keyed)
    assert ids_of(whole.rejects) == out
    if plan.kind.needs.clock or plan.kind.needs.watermark:
        return  # a row that is rejected has moved the clock
    if "lag(" in case[0]:
        return  # a row that is rejected is still the row before, and one that a condition leaves out is not
    plain = plan_of(wanted, case, key, (), at_end=end, where=parse_expression("there"))
    files = [wanted.slice(sum(map(len, source.tables[:i])), len(part)) for i, part in enumerate(source.tables)]
    expected = run_in_memory(plain, MemorySource(files, [[] for _ in files]), [], None)
    one, rows = in_emission_order(plan, whole.table), in_emission_order(plain, expected.table)
    assert same(one, rows), difference(one, rows)
    assert whole.counts.windowed == expected.counts.windowed


def ids_of(rejects: pa.Table) -> list[int]:
    return sorted(row["row"]["id"] for row in rejects.to_pylist() if row["reason"] != "late")


def test_a_run_whose_rows_are_all_rejected_begins_no_clock() -> None:
    """Ticks without rows are marked between rows, and the first row of all is in the second run."""
    names = ["id", "t", "a", "x", "u", "flag", "k"]
    rows = [pa.table([[n], pa.array([at], pa.timestamp("s")), [1], [0.5], ["p"], [True], ["a"]], names=names)
            for n, at in enumerate([91, 100])]  # fmt: skip
    plan = plan_of(rows[0], ("time(4)", ["t"], {"empty": "mark"}), [], (LET,), at_end="flush")
    runs = IncrementalRuns(plan, "files")
    for table, end in zip(rows, ["hold", "flush"], strict=True):
        runs.run([table], [[]], end, [], None)
    whole = run_in_memory(plan, MemorySource(rows, [[], []]), [], None, "files")
    assert whole.table.num_rows == 1
    assert same(in_emission_order(plan, runs.table), in_emission_order(plan, whole.table))


TABLE = pa.table({"k": list("abab"), "t": [1, 2, 3, 4], "p": [1, 5, 3, 4], "s": ["1", "2", "x", "4"]})


def test_the_library_raises_for_such_a_row_and_names_it() -> None:
    with pytest.raises(DataError, match=r"row 2 is expression_error: CAST\(s AS INT\) - lag\(p\): 'x' is no INTEGER"):
        wincli.aggregate(TABLE, "count(9)", aggregates=["max(CAST(s AS INT) - lag(p))"])


def test_the_library_drops_such_a_row_where_it_shall() -> None:
    aggregates = ["all=collect(CAST(s AS INT) - coalesce(lag(p), 0))"]
    found = wincli.aggregate(TABLE, "count(9)", aggregates=aggregates, rejected="drop")
    assert found["all"].to_pylist() == [[1, 1, 1]]  # the last row looks back at the one that is left out


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
