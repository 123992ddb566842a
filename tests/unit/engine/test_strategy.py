"""Any strategy, over any number of tasks, chunks and slices, gives the bits of one scan in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from support.event_logs import as_files, logs
from support.in_memory_engine import STRICT, MemorySink, MemorySource
from support.in_process import done, wincli_here
from support.processes import table as rows_of
from support.strategies import examples
from support.table_equality import difference, same
from support.window_cases import (
    AGGREGATES,
    MORE,
    OF_LASTING,
    OF_MATCHES,
    WINDOWS,
    WindowCase,
    output_options,
    plan_of_case,
)
from wincli.windowing.engine import strategy as sampling
from wincli.windowing.engine.run import Outcome, run_window
from wincli.windowing.engine.strategy import Strategy, choose_strategy, take_sample
from wincli.windowing.engine.task import Sizes, TaskContext
from wincli.windowing.language.parser import parse_aggregate
from wincli.windowing.local_executor import LocalExecutor

EXECUTORS = st.builds(
    LocalExecutor, st.integers(1, 4), is_one_machine=st.booleans(), pickles=st.just(True), seed=st.integers(0, 9)
)
BYTES = st.sampled_from([1, 100, 300, 1 << 20])
SIZES = st.builds(Sizes, st.sampled_from([0, 0, 0, 500]), BYTES, BYTES, st.sampled_from([0, 1 << 20]))
TINY = Sizes(small=0, chunk=200, slice=200)
SORTED: list[WindowCase] = [("count(7)", "arrival", {}), ("delta(t, 3)", ["t"], {}), ("time(4)", ["t"], {})]


def work_of(
    source: MemorySource,
    window: str,
    key: list[str],
    order_by: list[str] | str,
    calls: list[str] | None,
    **options: Any,
) -> TaskContext:
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    plan = plan_of_case(window, source.schema, key, order_by, parsed, options)
    return TaskContext(plan, source, MemorySink(), "none")


def result_of(work: TaskContext, outcome: Outcome) -> pa.Table:
    assert isinstance(work.sink, MemorySink)
    parts = [work.sink.parts[number] for number in sorted(work.sink.parts)]
    assert sum(part.rows for part in outcome.parts) == sum(table.num_rows for table in parts)
    filled = [table.cast(work.plan.schema) for table in parts if table.num_columns]
    return pa.concat_tables([work.plan.schema.empty_table(), *filled])


@examples(100)
@given(
    st.data(), logs(), st.one_of(st.sampled_from([*WINDOWS, *MORE]), st.sampled_from(SORTED)), st.booleans(),
    EXECUTORS, SIZES, st.booleans(),
)  # fmt: skip
def test_any_strategy_gives_the_bits_of_one_scan_in_memory(
    data: st.DataObject, table: pa.Table, case: WindowCase, keyed: bool,
    executor: LocalExecutor, sizes: Sizes, columnar: bool,
) -> None:  # fmt: skip
    window, order_by, options = case
    keyed = (keyed or "partitioned" in window) and options.get("empty") != "mark"
    options = options | data.draw(st.composite(output_options)(window))
    options["at_end"] = data.draw(st.sampled_from(["flush", "drop"]))
    table = table.sort_by("t") if order_by == ["t"] and data.draw(st.booleans()) else table
    key = ["k"] if keyed else []
    calls = [*AGGREGATES, *data.draw(st.sampled_from([[], ["rise=max(a - lag(a))"]]))]
    calls = [*calls, *OF_LASTING] if "ends" in options else calls
    calls = [*calls, *OF_MATCHES] if "p = " in window else calls
    calls = calls if options.get("emit", "aggregates") == "aggregates" else None
    whole = wincli.aggregate(
        table, window, key=key, order_by=order_by, aggregates=calls, rejected="drop", **options
    )  # fmt: skip
    source, _ = as_files(data.draw, table, 6)
    source.columnar = columnar
    work = work_of(source, window, key, order_by, calls, **options)
    outcome = run_window(work, executor, sizes)
    found = result_of(work, outcome)
    assert same(found, whole), difference(found, whole)
    assert outcome.counts.rows_in == len(table)


def test_rows_out_of_order_are_exchanged_after_all() -> None:
    """The sample sees one row of four thousand splits; the scan sees all, and nothing that it wrote stays."""
    rows = np.arange(400)
    rows[[301, 302]] = rows[[302, 301]]
    table = pa.table({"t": rows, "a": rows, "x": rows / 7, "id": rows})
    source = MemorySource([table], [list(range(20, 400, 20))])
    whole = wincli.aggregate(table, "delta(t, 30)", order_by=["t"], aggregates=AGGREGATES)
    work = work_of(source, "delta(t, 30)", [], ["t"], AGGREGATES)
    executor = replace(STRICT, is_one_machine=True)
    with mock.patch.multiple(sampling, _SAMPLED_ROWS=10, _ROWS_OF_SLICE=0):
        outcome = run_window(work, executor, TINY)
    assert outcome.strategy.reason == "the rows are not in order"
    assert same(result_of(work, outcome).drop_columns("_pos"), whole.drop_columns("_pos"))


def chosen(table: pa.Table, window: str, key: list[str], order_by: list[str] | str, **given: Any) -> Strategy:
    source = MemorySource([table], [list(range(100, len(table), 100))], columnar=given.pop("columnar", True))
    executor = LocalExecutor(is_one_machine=given.pop("is_one_machine", True))
    work = work_of(source, window, key, order_by, AGGREGATES)
    return choose_strategy(work, take_sample(work, executor, given.pop("sizes", TINY)))


def test_a_strategy_is_chosen_with_a_reason() -> None:
    rows = np.arange(1000)
    log = pa.table({"t": rows, "a": rows, "x": rows / 7, "id": rows, "k": [str(row % 9) for row in rows]})
    mixed = log.take(pa.array(np.random.default_rng(1).permutation(rows)))
    small = chosen(log, "delta(t, 5)", [], ["t"], sizes=Sizes())
    assert small.name == "one task"
    assert small.reason == "the columns it reads take about 0.0 MiB, no more than 16 MiB"
    in_order = chosen(log, "delta(t, 5)", [], ["t"])
    assert in_order.name == "presorted"
    assert in_order.reason == "there is no key, and the sampled rows are in order"
    assert len(in_order.sample.chunks) > 4
    exchanged = {
        "the rows have a key": chosen(log, "delta(t, 5)", ["k"], ["t"]),
        "the rows are not in order": chosen(mixed, "delta(t, 5)", [], ["t"]),
        "windows may show rows of several chunks": chosen(log, "sliding, count(3), count(2)", [], ["t"]),
        "windows end at marks": chosen(log, "punct()", [], "arrival"),
        "the window cannot be scanned in segments": chosen(log, "retain all", [], "arrival"),
        "tasks on several machines cannot wait for each other": chosen(
            log, "delta(t, 5)", [], ["t"], is_one_machine=False
        ),
    }
    for reason, strategy in exchanged.items():
        assert strategy.name == "exchange", reason
        assert (strategy.reason, strategy.scan_plan) == (reason, None)
    assert chosen(log, "delta(t, 5)", [], ["t"], columnar=False).name == "presorted"


def test_partial_aggregation_is_part_of_the_strategy() -> None:
    rows = np.arange(1000)
    log = pa.table({"t": pa.array(rows, pa.timestamp("s")), "a": rows, "x": rows / 7, "id": rows, "k": ["a"] * 1000})
    source = MemorySource([log], [list(range(100, 1000, 100))], in_rows=False)
    work = work_of(source, "time(50)", ["k"], ["t"], ["sum(a)"])
    strategy = choose_strategy(work, take_sample(work, LocalExecutor(), TINY))
    assert strategy.name == "exchange"
    assert strategy.scan_plan is not None
    assert strategy.reason.startswith("the rows have a key; map tasks aggregate about ")
    assert strategy.factor > 4


@pytest.mark.parametrize(
    ("window", "sizes", "words"),
    [
        (("-w", "count(3)"), (), "one task: the columns it reads take about 0."),
        (("-w", "count(3)"), ("--slice-size", "4KiB", "--split-size", "2KiB"), "presorted: there is no key"),
        (("-w", "count(3)", "-k", "k"), ("--slice-size", "4KiB", "--split-size", "2KiB"), "exchange: the rows have a"),
    ],
)
def test_verbose_says_which_strategy_was_taken_and_why(
    tmp_path: Path, window: tuple[str, ...], sizes: tuple[str, ...], words: str
) -> None:
    (tmp_path / "in.csv").write_text("k,x\n" + "".join(f"{i % 5},{i}\n" for i in range(2000)))
    quiet = wincli_here("run", *window, *sizes, "in.csv", "quiet", cwd=tmp_path)
    ran = wincli_here("run", "-v", *window, *sizes, "in.csv", "out", cwd=tmp_path)
    assert (quiet.code, ran.code) == (0, 0), ran.err
    (line,) = [line for line in ran.err.splitlines() if words in line]
    assert line.startswith("wincli: ")
    assert words not in quiet.err


def test_a_night_of_which_a_condition_leaves_out_all_rows_weighs_the_rows_of_the_state(tmp_path: Path) -> None:
    job = ("-w", "gap(t, 5)", "-k", "k", "--order-by", "t", "--agg", "a=collect(t)", "--where", "x > 0")
    for night, x in enumerate((1, 0, 1)):
        pq.write_table(pa.table({"t": [3 * night], "k": ["a"], "x": [x]}), tmp_path / f"{night}.parquet")
        more = ("--state", "st", "--slice-size", "1", "--at-end", "hold" if night < 2 else "flush")
        done(tmp_path, "run", *job, *more, f"{night}.parquet", f"out{night}")
    assert rows_of(tmp_path / "out2")["a"].to_pylist() == [[0], [6]]
