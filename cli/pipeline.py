"""From a job to its committed results: open, plan, run the stages, commit, tell."""

from __future__ import annotations

import datetime as dt
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from cli.asked import Asked
from cli.manifests import manifests_of
from cli.messages import Messages
from cli.naming import about
from cli.outputs import Route, open_outputs, route_stages
from cli.plans import PlannedStage, plan_stages
from cli.progress import show_progress
from cli.stages import RanStage, run_stages
from cli.summary import tell_choices, tell_outcome
from cli.words import by_reason
from conf.job import Job
from readers.open import open_source
from windowing.engine.ports import Counts, Source
from windowing.engine.run import Outcome, run_window
from windowing.engine.session import Boot, Progress, Session
from windowing.engine.slices import Sizes
from windowing.engine.warm import warm
from windowing.engine.work import Work
from windowing.errors import DataError
from writers.journal import commit_all
from writers.lock import Owner

Show = Callable[[Progress], None]


def run_job(asked: Asked, spark: Boot, messages: Messages, started: float) -> None:
    """Run a job on a Spark that is starting, and end it before the outputs are let go.

    ``started``: when the command began, by `time.perf_counter`.
    """
    job = asked.job
    with open_outputs(asked, _owner()) as outputs, spark:
        with show_progress(job.progress, messages) as show:
            source = open_source(
                job.input, asked.reading, lambda f, items: spark.session().each("read types", f, items)
            )
            stages = plan_stages(asked, source)
            routes = route_stages(asked, stages, outputs)
            tell_choices(asked, stages, messages)
            for stage in stages:  # while Java starts
                warm(stage.plan, stage.schema)
            ran = _run(asked, stages, routes, source, spark, show)
        commit_all(manifests_of(asked, source.files, ran, {"total": time.perf_counter() - started}))
    tell_outcome(asked, ran, time.perf_counter() - started, messages)


def _run(
    asked: Asked, stages: Sequence[PlannedStage], routes: Sequence[Route], source: Source, spark: Boot, show: Show
) -> list[RanStage]:
    """Run all stages on Spark; raise as soon as more rows are rejected than are allowed."""
    job = asked.job
    sizes = Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size)
    ran: list[RanStage] = []

    def session() -> Session:
        """Wait for Spark. Its progress names the stage that is at work: the one after those that have run."""
        started, which = spark.session(), about(asked, stages[len(ran)].name)
        started.on_progress = lambda seen: show(replace(seen, label=which + seen.label))
        return started

    def compute(_: PlannedStage, work: Work) -> Outcome:
        return run_window(work, session, sizes)

    for each in run_stages(asked, stages, routes, source, compute, lambda *work: session().each(*work)):
        ran.append(each)
        _check_rejects(job, ran)
    return ran


def _check_rejects(job: Job, ran: Sequence[RanStage]) -> None:
    rejected = sum((each.outcome.counts for each in ran), Counts()).rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        raise DataError(
            f"{total:,} rows were rejected ({by_reason(rejected)}), more than the {job.max_rejects:,} allowed; "
            "nothing was written",
            "run without --max-rejects to see them in _rejected",
        )


def _owner() -> Owner:
    return Owner(os.getpid(), socket.gethostname(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds"))
