"""Before a run it is known how much memory the largest window takes whose rows one task has to hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.in_memory_engine import MemorySink, MemorySource
from wincli.cli.run.reports import window_words
from wincli.windowing.engine.run import run_window
from wincli.windowing.engine.strategy import LargestWindow, largest_window, take_sample
from wincli.windowing.engine.task import Sizes, TaskContext
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import make_plan

ROWS = 1000
TINY = Sizes(small=0, chunk=200, slice=200)
LOG = pa.table({
    "t": pa.array(range(ROWS), pa.timestamp("s")), "x": np.arange(ROWS) / 7,
    "k": ["a" if i % 4 else "b" for i in range(ROWS)],
})  # fmt: skip


def work_of(window: str, key: list[str], calls: list[str] | None, **options: Any) -> TaskContext:
    parsed = None if calls is None else [parse_aggregate(text) for text in calls]
    plan = make_plan(parse_window(window), LOG.schema, key, ["t"], parsed, Options(**options))
    return TaskContext(plan, MemorySource([LOG], [list(range(100, ROWS, 100))], in_rows=False), MemorySink(), "none")


def found(work: TaskContext, sizes: Sizes = TINY) -> LargestWindow | None:
    return largest_window(work, take_sample(work, LocalExecutor(), sizes))


@pytest.mark.parametrize(
    ("window", "key", "rows"),
    [
        ("gap(t, 1h)", [], ROWS),
        ("gap(t, 1h)", ["k"], 750),
        ("gap(x, 1)", ["k"], 750),
        ("count(300)", [], 300),
        ("count(300)", ["k"], 300),
        ("count(5000)", ["k"], 750),
        ("time(200)", [], 200),
        ("time(200)", ["k"], 150),
        ("delta(t, 99)", [], 100),
        ("delta(x, 1)", [], ROWS),
    ],
)
def test_rows_of_the_largest_window_are_those_of_its_policy_or_of_the_heaviest_key(
    window: str, key: list[str], rows: int
) -> None:
    largest = found(work_of(window, key, ["sum(x)", "median(x)"]))
    assert largest is not None
    assert largest.calls == ("median(x)",)
    assert 0.9 * rows <= largest.rows <= 1.1 * rows


def test_windows_whose_rows_merge_and_windows_that_fit_take_no_more_than_a_task_has() -> None:
    assert found(work_of("gap(t, 1h)", [], ["sum(x)", "var(x)", "first(x)"])) is None
    assert found(work_of("count(2)", [], ["median(x)"])) is None
    assert found(work_of("sliding, count(3), count(2)", [], ["median(x)"])) is None
    assert found(work_of("gap(t, 1h)", [], ["median(x)"]), Sizes()) is None
    assert found(work_of("gap(t, 1h)", [], ["median(x)"]), Sizes(small=0)) is None


def test_a_run_says_it_before_its_tasks_begin() -> None:
    work = work_of("gap(t, 1h)", [], ["median(x)", "collect(x)"])
    said: list[LargestWindow] = []

    def say(largest: LargestWindow) -> None:
        assert isinstance(work.sink, MemorySink)
        assert not work.sink.parts
        said.append(largest)

    run_window(work, LocalExecutor(), TINY, say)
    assert window_words(said[0]) == (
        "median(x) and collect(x) need all rows of a window at once: "
        "the largest may have about 1,000 rows and take about 70.3 KiB of memory in one task"
    )
    run_window(work_of("gap(t, 1h)", [], None, emit="rows"), LocalExecutor(), TINY, said.append)
    assert said[1].calls == ("--emit rows",)
