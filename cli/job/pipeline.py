"""From a job request to committed results: open the input, plan, run the stages, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ...windowing.engine.warmup import warm
from ...windowing.spark.boot import PendingExecutor
from ..planning.enriched_input import enriched_input
from ..planning.job_plan import plan_job
from ..planning.open_outputs import open_outputs
from ..request.request import JobRequest
from .context import RunContext, owner
from .enrich_tables import loaded_tables
from .executor import SparkStageExecutor
from .observer import observed
from .reports.choices import announce
from .reports.expectations import check_expectations
from .reports.largest_window import announce_window
from .reports.manifests import manifests_of
from .reports.mostly_late import announce_late
from .run_mode import RunMode
from .stage_runs import run_stages
from .staged_job import StagedJob, StageRun

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CommittedJob(Generic[R]):
    """A job that has run and is committed.

    ``stage_runs``: its stages, in the order of the job.
    ``record``: what the commit has left: the record of the unit on a state, else None.
    ``cut_at``: how many rows of the input were read, where it has more than the limit of the job; else None.
    """

    stage_runs: Sequence[StageRun]
    record: R
    cut_at: int | None = None


def run_job(request: JobRequest, mode: RunMode[R], context: RunContext) -> CommittedJob[R]:
    """Run a job once and commit its results, as ``mode`` says.

    If the run fails, Spark is stopped before the outputs are released, so that no task writes into them any more.
    """
    with (
        mode.begin(request) as run,
        observed(context.observers, request, run.label) as committed,
        open_outputs(request, owner()) as outputs,
        _closing_spark(context),
    ):
        executor = PendingExecutor(context.spark.session)
        source = enriched_input(request, run.source(request, context), executor, run.known(request))
        plan = plan_job(request, source, outputs)
        run.check(plan.stages)
        announce(plan, context.is_first("choices"), context.messages)
        for stage in plan.stages:  # while Java starts
            context.spark.warm(warm, stage.plan, stage.schema)
        stage_executor = SparkStageExecutor(context, run.label)
        for output in filter(None, outputs):
            output.begin()
        with loaded_tables(plan, run, stage_executor) as plan:
            stage_runs = run_stages(plan, run, stage_executor, partial(announce_window, context))
        plan.source.check_unchanged()
        seconds = {"total": time.perf_counter() - run.began}
        found = check_expectations(plan, stage_runs, context.messages, run.label)
        job = StagedJob(plan, stage_runs, manifests_of(plan, stage_runs, seconds, found), seconds, found)
        record = run.commit(job, context.spark.session())
        committed(job)
        announce_late(job, run.units_before, run.label, context.spark.session, context.messages)
        return CommittedJob(stage_runs, record, plan.cut_at)


@contextmanager
def _closing_spark(context: RunContext) -> Iterator[None]:
    """End Spark at once if the body fails."""
    try:
        yield
    except BaseException:
        context.spark.close()
        raise
