"""New columns and conditions: a run is that of the same rows with these columns, wherever the input is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.in_memory_engine import MemorySink, MemorySource
from wincli.windowing.engine.run import run_window
from wincli.windowing.engine.task import Sizes, TaskContext
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_let, parse_window
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.ports import Counts

WINDOWS = [
    ("count(2)", []),
    ("delta(t, 3)", ["t"]),
    ("gap(t, 1)", ["t"]),
    ("time(4)", ["t"]),
    ("sliding, count(3), count(2)", []),
    ("sliding, delta(t, 4), count(1)", ["t"]),
    ("timeInterval, intervalDuration(4), creationPeriod(2), discardAge(50)", None),
    ("timeInterval, intervalDuration(3)", "arrival"),  # rows are late, but not by one for which an expression fails
    ("within 5 every 2", ["t"]),
    ("retain 2", ["t"]),
    ("change(x)", ["t"]),
]
CONDITIONS = {
    "x % 3 <> 1": lambda row: row["x"] is not None and row["x"] % 3 != 1,
    "x IS NULL OR y > 2": lambda row: row["x"] is None or row["x"] * 2 + row["t"] > 2,
    "NOT (k = 'a' AND t > 4)": lambda row: not (row["k"] == "a" and row["t"] > 4),
    "CAST(s AS INT) >= 0": lambda row: row["s"].lstrip("-").isdigit() and int(row["s"]) >= 0,
    "FALSE": lambda row: False,
    "t >= 0": lambda row: True,
}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 12), st.sampled_from("abc"), st.none() | st.integers(0, 5), st.sampled_from(["1", "-2", "u"])
    ),
    max_size=25,
)


def table_of(rows: Sequence[tuple[int, str, int | None, str]]) -> pa.Table:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("x", pa.int64()), ("s", pa.string())])
    return pa.table([pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)], schema=schema)


def run(
    table: pa.Table, cuts: Sequence[int], files: int, window: str, order: Any, key: list[str], tiny: bool,
    seed: int, marks: str = "none", **expressions: object,
) -> tuple[pa.Table, Counts, pa.Table]:  # fmt: skip
    """The result, the row accounting and the rejects of a run over files that are cut into splits."""
    plan = make_plan(
        parse_window(window), table.schema, key, order,
        [parse_aggregate(text) for text in expressions.pop("aggregates")], Options(**expressions),
    )  # fmt: skip
    edges = [0, *sorted(table.num_rows * i // files for i in range(1, files)), table.num_rows]
    tables = [table.slice(low, high - low) for low, high in pairwise(edges)]
    source, sink = MemorySource(tables, [cuts] * files), MemorySink()
    sizes = Sizes(1, 1, 60) if tiny else Sizes()
    outcome = run_window(
        TaskContext(plan, source, sink, marks), LocalExecutor(2, is_one_machine=False, pickles=True, seed=seed), sizes
    )
    parts = [part.cast(plan.schema) for _, part in sorted(sink.parts.items()) if part.num_columns]
    rejects = pa.concat_tables(list(sink.rejects.values())) if sink.rejects else pa.table({})
    return pa.concat_tables([plan.schema.empty_table(), *parts]), outcome.counts, rejects


def sorted_rows(table: pa.Table, columns: Sequence[str]) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.select(columns).to_pylist()), key=repr)


@given(
    ROWS, st.sampled_from(WINDOWS), st.sampled_from(sorted(CONDITIONS)), st.lists(st.integers(1, 20), max_size=3),
    st.integers(1, 3), st.booleans(), st.booleans(), st.integers(0, 9),
)  # fmt: skip
def test_a_condition_and_a_new_column_are_as_if_the_files_had_them(
    rows: list[tuple[int, str, int | None, str]], window: tuple[str, Any], condition: str,
    cuts: list[int], files: int, keyed: bool, tiny: bool, seed: int,
) -> None:  # fmt: skip
    table = table_of(rows)
    spec, order = window
    key = ["k"] if keyed else []
    fails = condition.startswith("CAST")
    kept = [i for i, row in enumerate(table.to_pylist()) if CONDITIONS[condition](row)]
    bad = [i for i, row in enumerate(table.to_pylist()) if fails and row["s"] == "u"]
    aggregates = ["n=count()", "p=collect(_arrival)", "y=sum(y)", "z=sum(x * 10) where x > 1"]
    names = [*key, "window", "n", "p", "y", "z"]
    event = {"event_time": "t"} if "timeInterval" in spec else {}
    found, counts, rejects = run(
        table, cuts, files, spec, order, key, tiny, seed, aggregates=aggregates,
        let=(parse_let("y=x*2+t"),), where=parse_expression(condition), **event,
    )  # fmt: skip
    plain = table.take(pa.array(kept, pa.int64())).append_column("p", pa.array(kept, pa.int64()))
    y = pa.array([None if row["x"] is None else row["x"] * 2 + row["t"] for row in plain.to_pylist()], pa.int64())
    z = pa.array([row["x"] * 10 if (row["x"] or 0) > 1 else None for row in plain.to_pylist()], pa.int64())
    wanted = wincli.aggregate(
        plain.append_column("y", y).append_column("z", z), spec, key=key, order_by=order,
        aggregates=["n=count()", "p=collect(p)", "y=sum(y)", "z=sum(z)"], plain=True, rejected="drop", **event,
    )  # fmt: skip
    shown = found.filter(found["window"].is_valid())
    assert sorted_rows(shown, names) == sorted_rows(wanted, names)
    assert counts.balanced
    assert counts.rows_in == len(rows)
    _, plainly, _ = run(plain, [], 1, spec, order, key, tiny, seed, aggregates=["n=count()"], **event)
    assert counts.filtered == plainly.filtered + len(rows) - len(kept) - len(bad)
    assert counts.rejected.get("expression_error", 0) == len(bad) == rejects.num_rows
    if bad:
        assert set(rejects["detail"].to_pylist()) == {"--where CAST(s AS INT) >= 0: 'u' is no INTEGER"}


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2, 3]])
def test_a_row_for_which_an_expression_fails_makes_no_row_late(cuts: list[int], tiny: bool) -> None:
    """Else the result depends on splits: the watermark before one does not know such rows, that inside of it did."""
    table = table_of([(0, "a", 0, "1"), (12, "a", 0, "u"), (1, "a", 0, "1"), (2, "a", 0, "1")])
    where = parse_expression("CAST(s AS INT) >= 0")
    spec, event = "timeInterval, intervalDuration(3)", {"event_time": "t", "aggregates": ["n=count()"]}
    found, counts, _ = run(table, cuts, 1, spec, "arrival", [], tiny, 1, where=where, **event)
    assert found["n"].to_pylist() == [3]
    assert counts.rejected == {"expression_error": 1}


@pytest.mark.parametrize("tiny", [False, True])
def test_marks_of_rows_that_are_left_out_stay(tiny: bool) -> None:
    table = table_of([(i, "a", i, "1") for i in range(6)]).append_column("m", pa.array([i == 2 for i in range(6)]))
    expressions = {"aggregates": ["x=collect(x)"], "where": parse_expression("x NOT IN (2, 5)")}
    found, _, _ = run(table, [3], 1, "punct()", [], [], tiny, 1, "column:m", **expressions)
    assert found["x"].to_pylist() == [[0, 1], [3, 4]]
    found, _, _ = run(table, [], 2, "punct()", ["t"], [], tiny, 1, "files", **expressions)
    assert found["_pos"].to_pylist() == [2, 5]  # the files end where they did
    assert found["x"].to_pylist() == [[0, 1], [3, 4]]


@given(ROWS, st.lists(st.integers(1, 20), max_size=3), st.booleans(), st.integers(0, 9))
def test_a_condition_of_results_leaves_out_rows_and_no_mark(
    rows: list[tuple[int, str, int | None, str]], cuts: list[int], tiny: bool, seed: int
) -> None:
    table = table_of(rows)
    aggregates = {"aggregates": ["n=count()", "s=sum(x)", "rise=max(x) - min(x)"]}
    whole, _, _ = run(table, cuts, 1, "delta(t, 3)", ["t"], ["k"], tiny, seed, **aggregates)
    found, counts, _ = run(
        table, cuts, 1, "delta(t, 3)", ["t"], ["k"], tiny, seed, having=parse_expression("rise > 0"), **aggregates
    )
    rises = [row["rise"] is not None and row["rise"] > 0 for row in whole.to_pylist()]
    own = found.filter(found["window"].is_valid())
    shown = whole.filter(pa.array(rises, pa.bool_()))
    assert sorted_rows(own, whole.column_names) == sorted_rows(shown, whole.column_names)
    assert counts.panes_hidden == rises.count(False)
    assert counts.windowed == len(rows)
    marks = ["_at", "_pos"]
    hidden = whole.filter(pa.array(np.invert(np.array(rises, np.bool_))))
    assert sorted_rows(found.filter(found["window"].is_null()), marks) == sorted_rows(hidden, marks)
    assert set(found.filter(found["window"].is_null())["_mark"].to_pylist()) <= {"only"}
