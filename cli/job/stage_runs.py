"""The stages of a job, one after the other: each reads rows and marks of the stage before in emission order.

A stage writes Parquet parts for the next stage. If its own output is Parquet with stream columns, these parts are the
output, and nothing is written twice. Else they are in a folder that is deleted when the next stage has read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...conf.job import Job
from ...readers.files.file import Located
from ...readers.open import open_result
from ...windowing.engine.run import Outcome, run_window
from ...windowing.engine.tasks.sizing import Sizes
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.engine.window_memory import LargestWindow
from ...windowing.errors import DataError
from ...windowing.planning.plan import stream_of
from ...windowing.ports import Counts, Executor, Part, Source
from ...writers.output.convert_part import copy_part
from ..console.counts import count_of, reason_counts
from ..planning.expectations import conditions_of
from ..planning.job_plan import JobPlan
from ..planning.stage_outputs import StageOutput
from ..planning.stage_plans import StagePlan
from ..request.request import JobRequest
from ..request.stage_names import naming_stage, stage_prefix
from .executor import StageExecutor
from .run_mode import OpenRun
from .staged_job import StageRun


def run_stages(
    plan: JobPlan,
    run: OpenRun[Any],
    executor: StageExecutor,
    announce: Callable[[LargestWindow], None] | None = None,
) -> list[StageRun]:
    """Run the stages of a job one after the other, and write their parts. Nothing is committed.

    ``run``: restores the window state of each stage, where it has one. ``announce``: as in `run_window`. Raises what
    the window of a stage raises, with the name of the stage, and `DataError` as soon as more rows are rejected than the
    job allows.
    """
    stage_runs: list[StageRun] = []
    for stage, stage_output in zip(plan.stages, plan.stage_outputs, strict=True):
        with naming_stage(plan.request, stage.name):
            stage_input = _stream(stage_runs[-1], plan.request.job.split_size) if stage_runs else plan.source
            rows = sum(split.rows for split in stage_input.splits)
            own = executor.named(stage_prefix(plan.request, stage.name), rows)
            task = run.restore(stage, task_of(plan, stage, stage_input, stage_output))
            outcome = run_window(task, own, sizes_of(plan.request.job), announce)
            if stage_runs:
                stage_runs[-1].stage_output.sink.delete_intermediate()
            stage_runs.append(StageRun(stage, stage_output, outcome, _parts(stage_output, outcome, own)))
        _check_rejects(plan.request, stage_runs)
    return stage_runs


def task_of(plan: JobPlan, stage: StagePlan, stage_input: Source, stage_output: StageOutput) -> TaskContext:
    """Return the task context of a stage, with what expectations and metrics ask of the rows it reads and writes."""
    bound, over_rows = plan.expectations, conditions_of(plan.expectations) if stage is plan.stages[-1] else ()
    is_needed = plan.request.job.metrics_file is not None or any(each.asks_span for each in bound)
    asks_span = is_needed and stage is plan.stages[0]
    task = TaskContext(stage.plan, stage_input, stage_output.sink, stage.marks)
    return replace(task, conditions=over_rows, asks_span=asks_span) if over_rows or asks_span else task


def sizes_of(job: Job) -> Sizes:
    """Return the bounds on the input of a task that a job asks for."""
    return Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size)


def _stream(before: StageRun, split_size: int) -> Source:
    """Return the result of a stage as the input of the next."""
    sink = before.stage_output.sink
    shown = f"stage {before.stage.name}" if sink.parts_in else sink.shown
    folder = Located(sink.fs, f"{sink.staging}/{sink.parts_in}" if sink.parts_in else sink.root, shown)
    return open_result(folder, before.outcome.parts, stream_of(before.stage.plan), split_size)


def _parts(stage_output: StageOutput, outcome: Outcome, executor: Executor) -> tuple[Part, ...]:
    """Return the parts of a stage's own output, converted where it has another format than the next stage reads."""
    if not stage_output.is_own:
        return ()
    if stage_output.copy is None:
        return outcome.parts
    copies = executor.map(f"write {stage_output.copy.format}", partial(copy_part, stage_output.copy), outcome.parts)
    parts = sorted((part for files in copies for part in files), key=lambda part: part.rank)
    return tuple(parts) or stage_output.copy.write_parts(0, [])


def _check_rejects(request: JobRequest, stage_runs: Sequence[StageRun]) -> None:
    job, rejected = request.job, sum((each.outcome.counts for each in stage_runs), Counts()).rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        words = f"{count_of(total, 'row')} {'was' if total == 1 else 'were'} rejected ({reason_counts(rejected)})"
        raise DataError(
            f"{words}, more than the {job.max_rejects:,} allowed; nothing was written",
            f"run without --max-rejects{', and into a folder,' if request.stdout else ''} to see them in _rejected",
        )
