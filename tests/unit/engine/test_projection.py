"""New columns and conditions: a run is that of the same rows with these columns, wherever the input is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.in_memory_engine import MemorySink, MemorySource
from support.strategies import examples
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


@examples(170)
@given(
    ROWS, st.sampled_from(WINDOWS), st.sampled_from(sorted(CONDITIONS)), st.lists(st.integers(1, 20), max_size=3),
    st.integers(1, 3), st.booleans(), st.booleans(), st.integers(0, 9), st.booleans(),
)  # fmt: skip
def test_conditions_and_new_columns_are_as_if_the_files_had_them(
    rows: list[tuple[int, str, int | None, str]], window: tuple[str, Any], condition: str,
    cuts: list[int], files: int, keyed: bool, tiny: bool, seed: int, hides: bool,
) -> None:  # fmt: skip
    """A condition of results leaves out rows, and none of the marks that windows bring."""
    table = table_of(rows)
    spec, order = window
    key = ["k"] if keyed else []
    fails = condition.startswith("CAST")
    kept = [i for i, row in enumerate(table.to_pylist()) if CONDITIONS[condition](row)]
    bad = [i for i, row in enumerate(table.to_pylist()) if fails and row["s"] == "u"]
    aggregates = ["n=count()", "p=collect(_arrival)", "y=sum(y)", "z=sum(x * 10) where x > 1"]
    names = [*key, "window", "n", "p", "y", "z"]
    event = {"event_time": "t"} if "timeInterval" in spec else {}
    having = parse_expression("n > 1 and y is not null") if hides else None
    found, counts, rejects = run(
        table, cuts, files, spec, order, key, tiny, seed, aggregates=aggregates,
        let=(parse_let("y=x*2+t"),), where=parse_expression(condition), having=having, **event,
    )  # fmt: skip
    plain = table.take(pa.array(kept, pa.int64())).append_column("p", pa.array(kept, pa.int64()))
    y = pa.array([None if row["x"] is None else row["x"] * 2 + row["t"] for row in plain.to_pylist()], pa.int64())
    z = pa.array([row["x"] * 10 if (row["x"] or 0) > 1 else None for row in plain.to_pylist()], pa.int64())
    plain = plain.append_column("y", y).append_column("z", z)
    wanted, plainly, _ = run(
        plain,
        [],
        1,
        spec,
        order,
        key,
        tiny,
        seed,
        aggregates=["n=count()", "p=collect(p)", "y=sum(y)", "z=sum(z)"],
        **event,
    )
    is_shown = pa.array(
        [not hides or (row["n"] > 1 and row["y"] is not None) for row in wanted.to_pylist()], pa.bool_()
    )
    hidden = wanted.filter(pc.invert(is_shown))
    assert sorted_rows(found.filter(found["window"].is_valid()), names) == sorted_rows(wanted.filter(is_shown), names)
    marks = found.filter(found["window"].is_null())
    assert marks["_mark"].to_pylist() == ["only"] * len(hidden)
    if order == ["t"]:
        assert sorted_rows(marks, ["_at"]) == sorted_rows(hidden, ["_at"])
    assert counts.balanced
    assert (counts.rows_in, counts.windowed, counts.panes_hidden) == (len(rows), plainly.windowed, len(hidden))
    assert counts.filtered == plainly.filtered + len(rows) - len(kept) - len(bad)
    assert counts.rejected.get("expression_error", 0) == len(bad) == rejects.num_rows
    if bad:
        assert set(rejects["detail"].to_pylist()) == {"--where CAST(s AS INT) >= 0: 'u' is no INTEGER"}


@pytest.mark.parametrize("tiny", [False, True])
def test_marks_of_rows_that_are_left_out_stay(tiny: bool) -> None:
    table = table_of([(i, "a", i, "1") for i in range(6)]).append_column("m", pa.array([i == 2 for i in range(6)]))
    expressions = {"aggregates": ["x=collect(x)"], "where": parse_expression("x NOT IN (2, 5)")}
    found, _, _ = run(table, [3], 1, "punct()", [], [], tiny, 1, "column:m", **expressions)
    assert found["x"].to_pylist() == [[0, 1], [3, 4]]
    found, _, _ = run(table, [], 2, "punct()", ["t"], [], tiny, 1, "files", **expressions)
    assert found["_pos"].to_pylist() == [2, 5]  # the files end where they did
    assert found["x"].to_pylist() == [[0, 1], [3, 4]]
