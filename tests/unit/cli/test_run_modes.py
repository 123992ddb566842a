"""Modes of a run: what a run asks of its mode, in which order, and what is left when it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import Here
from wincli.cli.console.messages import Messages
from wincli.cli.run.context import RunContext
from wincli.cli.run.pipeline import PlainRun, run_job
from wincli.cli.run.request import parse_job
from wincli.conf.job import Job
from wincli.windowing.errors import InputError


@dataclass
class Log:
    """Steps of a run in the order in which they happen; a step named ``fails_at`` fails."""

    steps: list[str] = field(default_factory=list)
    fails_at: str = ""

    def add(self, step: str) -> None:
        self.steps.append(step)
        if step == self.fails_at:
            raise InputError(step, "")


@dataclass
class WatchedRun:
    """A plain run that logs what it is asked. It begins with no output open, and its commit leaves ``"done"``."""

    log: Log
    out: Path
    began: float = 0.0
    label: str = "2026-11-02: "

    def units_before(self) -> None:
        """None: there is no state."""

    @contextmanager
    def begin(self) -> Iterator[WatchedRun]:
        self.log.add(f"begin, output open: {self.is_output_open()}")
        try:
            yield self
        finally:
            self.log.steps.append(f"end, output open: {self.is_output_open()}")

    def is_output_open(self) -> bool:
        return any(self.out.parent.glob(f".{self.out.name}.*"))

    def source(self, job: Job, context: RunContext) -> Any:
        self.log.add(f"source, output open: {self.is_output_open()}")
        return PlainRun(0.0).source(job, context)

    def known(self, job: Job) -> Any:
        self.log.add("known")
        return PlainRun(0.0).known(job)

    def check(self, stages: Any) -> None:
        self.log.add("check " + ", ".join(stage.name for stage in stages))

    def restore(self, stage: Any, task: Any) -> Any:
        self.log.add(f"restore {stage.name}")
        return task

    def commit(self, job: Any, executor: Any) -> str:
        self.log.add(f"commit of {len(job.stage_runs)}")
        PlainRun(0.0).commit(job, executor)
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
    context = RunContext(Boot(log), lambda _: None, Messages(-1, False), time.perf_counter())  # type: ignore[arg-type]
    try:
        return log, run_job(parse_job(flags), WatchedRun(log, out).begin(), context)[1]
    except InputError as error:
        return log, error.what


def test_a_run_asks_its_mode_for_each_step_once_and_returns_what_the_commit_leaves(tmp_path: Path) -> None:
    log, record = watched(tmp_path)
    assert (log.steps, record) == (STEPS, "done")
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize("step", STEPS[1:-1])
def test_a_run_that_fails_ends_spark_before_the_outputs_are_released_and_leaves_nothing(
    step: str, tmp_path: Path
) -> None:
    log, why = watched(tmp_path, step)
    assert why.endswith(step)
    assert log.steps == [*STEPS[: STEPS.index(step) + 1], "Spark ends", "end, output open: False"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_a_run_that_cannot_begin_opens_nothing(tmp_path: Path) -> None:
    log, why = watched(tmp_path, STEPS[0])
    assert (log.steps, why) == (STEPS[:1], STEPS[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]
