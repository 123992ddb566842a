"""What a run does step by step: what it asks of its mode, what a failure leaves, and when it waits for Spark."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import Here
from support.in_process import Session as LocalSession
from wincli.cli.console.messages import Messages
from wincli.cli.run.context import RunContext
from wincli.cli.run.pipeline import PlainRun, SparkStageExecutor, run_job
from wincli.cli.run.request import parse_job
from wincli.conf.job import Job
from wincli.windowing.errors import InputError
from wincli.windowing.spark.boot import Progress


@dataclass
class Log:
    """Steps of a run in the order in which they happen; a step named ``fails_at`` fails."""

    steps: list[str] = field(default_factory=list)
    fails_at: str = ""

    def add(self, step: str) -> None:
        self.steps.append(step)
        if step == self.fails_at:
            raise InputError(step, "")


@dataclass(frozen=True, kw_only=True)
class WatchedRun(PlainRun):
    """A plain run that logs what it is asked. It begins with no output open, and its commit leaves ``"done"``."""

    log: Log
    out: Path

    @contextmanager
    def begin(self) -> Iterator[Any]:
        self.log.add(f"begin, output open: {self.is_output_open()}")
        try:
            yield self
        finally:
            self.log.steps.append(f"end, output open: {self.is_output_open()}")

    def is_output_open(self) -> bool:
        return any(self.out.parent.glob(f".{self.out.name}.*"))

    def source(self, job: Job, context: RunContext) -> Any:
        self.log.add(f"source, output open: {self.is_output_open()}")
        return PlainRun.source(self, job, context)

    def known(self, job: Job) -> Any:
        self.log.add("known")
        return PlainRun.known(self, job)

    def check(self, stages: Any) -> None:
        self.log.add("check " + ", ".join(stage.name for stage in stages))

    def restore(self, stage: Any, task: Any) -> Any:
        self.log.add(f"restore {stage.name}")
        return task

    def commit(self, staged: Any, executor: Any) -> Any:
        self.log.add(f"commit of {len(staged.stage_runs)}")
        PlainRun.commit(self, staged, executor)
        return "done"


@dataclass
class Boot(Here):
    """Stands in for Spark, and logs its end."""

    log: Log

    def close(self) -> None:
        self.log.steps.append("Spark ends")


STEPS = [
    "begin, output open: False",
    "source, output open: True",
    "known",
    "check window",
    "restore window",
    "commit of 1",
    "end, output open: False",
]


def watched(folder: Path, fails_at: str = "") -> tuple[Log, Any]:
    """Run a job in a watched mode; return the log, and what the run left."""
    pq.write_table(pa.table({"ts": [1, 2, 9], "x": [1, 2, 3]}), folder / "in.parquet")
    log, out = Log(fails_at=fails_at), folder / "out"
    flags = {"window": "delta(ts, 5)", "order_by": ("ts",), "paths": (str(folder / "in.parquet"), str(out))}
    context = RunContext(Boot(log), lambda _: None, Messages(-1, False), time.perf_counter())
    try:
        return log, run_job(parse_job(flags), WatchedRun(began=0.0, log=log, out=out).begin(), context)[1]
    except InputError as error:
        return log, error.what


def test_a_run_asks_its_mode_for_each_step_once_and_returns_what_the_commit_leaves(tmp_path: Path) -> None:
    log, record = watched(tmp_path)
    assert (log.steps, record) == (STEPS, "done")
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_run_that_fails_ends_spark_before_the_outputs_are_released_and_leaves_nothing(
    step: str, tmp_path: Path
) -> None:
    log, why = watched(tmp_path, step)
    assert why.endswith(step)
    after = [] if step == STEPS[0] else ["Spark ends", "end, output open: False"]
    assert log.steps == [*STEPS[: STEPS.index(step) + 1], *after]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


# The executor of a stage


class Session(LocalSession):
    """A running Spark whose every action is half done when it is looked at."""

    def map(self, label: str, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        self.on_progress(Progress(label, 1, 2, 1, 1))
        return super().map(label, function, items)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_stage_waits_for_spark_when_it_needs_a_task_and_progress_names_unit_and_stage_and_has_its_rows(
    is_open: bool,
) -> None:
    up, waited, shown, said = Session(), list[int](), list[Progress](), io.StringIO()
    up.is_open = is_open
    boot = Here()
    boot.session = lambda: (waited.append(1), up)[1]  # type: ignore[method-assign]
    executor = SparkStageExecutor(RunContext(boot, shown.append, Messages(stream=said), 0.0), "2026-11-02: ")
    first, second = executor.named("stage a: ", 10), executor.named("stage b: ", 4)
    assert waited == []
    for stage, label in ((first, "scan"), (second, "scan"), (first, "write csv")):
        assert stage.map(label, abs, [-1]) == [1]
    assert waited == [1, 1, 1]
    assert [(seen.label, seen.rows, seen.done, seen.total) for seen in shown] == [
        ("2026-11-02: stage a: scan", 10, 1, 2),
        ("2026-11-02: stage b: scan", 4, 1, 2),
        ("2026-11-02: stage a: write csv", 10, 1, 2),
    ]
    assert said.getvalue().count("this cluster has spark.authenticate off") == is_open
    assert len(said.getvalue().splitlines()) == is_open
