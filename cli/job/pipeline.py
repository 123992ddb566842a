"""From a job request to committed results: open the input, plan, run the stages, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...readers.merged_source import MergedSource
from ...readers.source import FileSource
from ...windowing.engine.warmup import warm
from ..planning.open_outputs import open_outputs
from ..planning.stage_outputs import plan_outputs
from ..planning.stage_plans import StagePlan, plan_stages
from ..request.request import JobRequest
from .choices import report_choices, report_rows_out, report_skipped
from .context import RunContext, owner
from .executor import SparkStageExecutor
from .manifests import manifests_of
from .run_mode import RunMode
from .stage_runs import run_stages
from .staged_job import StagedJob, StageRun

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CommittedJob(Generic[R]):
    """A job that has run and is committed.

    ``stage_runs``: its stages, in the order of the job.
    ``record``: what the commit has left: the record of the unit on a state, else None.
    """

    stage_runs: Sequence[StageRun]
    record: R


def run_job(request: JobRequest, mode: RunMode[R], context: RunContext) -> CommittedJob[R]:
    """Run a job once and commit its results, as ``mode`` says.

    If the run fails, Spark is stopped before the outputs are released, so that no task writes into them any more.
    """
    with mode.begin(request) as run, open_outputs(request, owner()) as outputs, _closing_spark(context):
        source = run.source(request, context)
        stages = plan_stages(request, source)
        stage_outputs = plan_outputs(request, stages, outputs)
        run.check(stages)
        _announce(request, stages, source, context)
        executor = SparkStageExecutor(context, run.label)
        stage_runs = run_stages(request, stages, stage_outputs, source, run, executor)
        source.check_unchanged()
        seconds = {"total": time.perf_counter() - run.began}
        manifests = manifests_of(request, source.files, stage_runs, seconds, len(source.skipped))
        job = StagedJob(request, source, stage_runs, manifests, seconds)
        return CommittedJob(stage_runs, run.commit(job, context.spark.session()))


@contextmanager
def _closing_spark(context: RunContext) -> Iterator[None]:
    """End Spark at once if the body fails."""
    try:
        yield
    except BaseException:
        context.spark.close()
        raise


def _announce(
    request: JobRequest, stages: Sequence[StagePlan], source: FileSource | MergedSource, context: RunContext
) -> None:
    """Write notes on what was chosen, once a command, and load or compile what tasks need while Java starts."""
    if context.is_first("choices"):
        report_choices(request, stages, context.messages)
        report_rows_out(stages[0], sum(split.rows for split in source.splits), context.messages)
    for stage in stages:
        context.spark.warm(warm, stage.plan, stage.schema)
    report_skipped(source.skipped, context.messages)
