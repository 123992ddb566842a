"""From a job request to committed results: open the input, plan, run the stages, commit, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from ...readers.open import open_source
from ...readers.source import FileSource
from ...windowing.engine.run import Outcome, run_window
from ...windowing.engine.tasks.sizing import Sizes
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.engine.warmup import warm
from ...windowing.errors import DataError
from ...windowing.ports import Counts, Part, Source, Split
from ...windowing.spark.boot import PendingExecutor, SparkExecutor
from ...writers.state.journal import commit_all
from ..console.counts import count_of, reason_counts
from .context import RunContext, owner
from .manifests import manifests_of
from .request import JobRequest
from .stage_names import stage_prefix
from .stage_outputs import StageOutput, open_outputs, plan_outputs
from .stage_plans import StagePlan, plan_stages
from .stage_runs import StageRun, run_stages
from .state_unit import IncrementalRun
from .summary import report_choices, report_rows_out, report_skipped

Finish = Callable[[], int]
"""Reports the outcome of a command, after the progress bar is gone, and returns the exit code."""


def run_job(request: JobRequest, context: RunContext, incremental: IncrementalRun | None = None) -> list[StageRun]:
    """Run a job once and commit its results.

    ``incremental``: the unit that the job is run as; its state is committed together with the results. If the run
    fails, Spark is stopped before the outputs are released, so that no task writes into them any more.
    """
    began = time.perf_counter()
    with ExitStack() as stack:
        if incremental is not None:
            stack.enter_context(incremental.begin(request))
        outputs = stack.enter_context(open_outputs(request, owner()))
        try:
            rows = incremental.input_rows if incremental is not None else None
            source = open_input(request, context) if rows is None else rows.source
            stages = plan_stages(request, source)
            stage_outputs = plan_outputs(request, stages, outputs)
            if incremental is not None:
                incremental.check(stages)
            if "choices" not in context.announced:
                report_choices(request, stages, context.messages)
                report_rows_out(stages[0], _rows_of(source.splits), context.messages)
                context.announced.add("choices")
            for stage in stages:  # while Java starts
                context.spark.warm(warm, stage.plan, stage.schema)
            report_skipped(source.skipped, context.messages)
            stage_runs = _run(request, stages, stage_outputs, source, context, incremental)
            source.check_unchanged()
            seconds = {"total": time.perf_counter() - (context.started if incremental is None else began)}
            manifests = manifests_of(request, source.files, stage_runs, seconds, len(source.skipped))
            if incremental is None:
                commit_all(manifests)
            else:
                incremental.commit(request, source.files, stage_runs, manifests, seconds, context.spark.session())
        except BaseException:
            context.spark.close()
            raise
    return stage_runs


def open_input(request: JobRequest, context: RunContext, files: Sequence[str] | None = None) -> FileSource:
    """Open the input of a job's first stage, or only ``files`` of it. Raises what `open_source` raises."""
    return open_source(
        request.inputs if files is None else files,
        request.reading,
        PendingExecutor(context.spark.session),
    )


def _run(
    request: JobRequest,
    stages: Sequence[StagePlan],
    stage_outputs: Sequence[StageOutput],
    source: Source,
    context: RunContext,
    incremental: IncrementalRun | None,
) -> list[StageRun]:
    """Run all stages on Spark; raise `DataError` as soon as more rows are rejected than the job allows."""
    job = request.job
    sizes = Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size)
    stage_runs: list[StageRun] = []

    def session() -> SparkExecutor:
        """Wait for Spark. Its progress names the unit and the running stage: the one after the finished ones."""
        started, which = context.spark.session(), stage_prefix(request, stages[len(stage_runs)].name)
        _warn_if_open(started, context)
        unit = f"{incremental.unit.label}: " if incremental is not None else ""
        rows = _rows_of(stage_runs[-1].outcome.parts if stage_runs else source.splits)
        started.on_progress = lambda seen: context.show(replace(seen, label=unit + which + seen.label, rows=rows))
        return started

    executor = PendingExecutor(session)

    def compute(stage: StagePlan, task: TaskContext) -> Outcome:
        return run_window(task if incremental is None else incremental.restore(stage, task), executor, sizes)

    for each in run_stages(request, stages, stage_outputs, source, compute, executor):
        stage_runs.append(each)
        _check_rejects(request, stage_runs)
    return stage_runs


def _warn_if_open(session: SparkExecutor, context: RunContext) -> None:
    """Write a note, once, if anyone who reaches the ports of this driver could send it messages."""
    if session.is_open and "open" not in context.announced:
        context.messages.note(
            "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
        )
        context.announced.add("open")


def _rows_of(parts: Sequence[Split] | Sequence[Part]) -> int:
    return sum(part.rows for part in parts)


def _check_rejects(request: JobRequest, stage_runs: Sequence[StageRun]) -> None:
    job, rejected = request.job, sum((each.outcome.counts for each in stage_runs), Counts()).rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        words = f"{count_of(total, 'row')} {'was' if total == 1 else 'were'} rejected ({reason_counts(rejected)})"
        raise DataError(
            f"{words}, more than the {job.max_rejects:,} allowed; nothing was written",
            f"run without --max-rejects{', and into a folder,' if request.stdout else ''} to see them in _rejected",
        )
