"""From a job to its committed results: open, plan, run the stages, commit, tell."""

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
from ...windowing.spark.boot import SparkExecutor
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
"""Tells how a command has ended, once the progress is gone, and returns the exit code."""


def run_job(asked: JobRequest, desk: RunContext, onto: IncrementalRun | None = None) -> list[StageRun]:
    """Run a job once and commit what it gives; ``onto``: as a unit of a state, which is committed with it.

    Where it fails, Spark is ended before the outputs are let go.
    """
    began = time.perf_counter()
    with ExitStack() as stack:
        if onto is not None:
            stack.enter_context(onto.begin(asked))
        outputs = stack.enter_context(open_outputs(asked, owner()))
        try:
            source = open_input(asked, desk) if onto is None or onto.input_rows is None else onto.input_rows.source
            stages = plan_stages(asked, source)
            routes = plan_outputs(asked, stages, outputs)
            if onto is not None:
                onto.check(stages)
            if "choices" not in desk.announced:
                report_choices(asked, stages, desk.messages)
                report_rows_out(stages[0], _rows_of(source.splits), desk.messages)
                desk.announced.add("choices")
            for stage in stages:  # while Java starts
                desk.spark.warm(warm, stage.plan, stage.schema)
            report_skipped(source.skipped, desk.messages)
            ran = _run(asked, stages, routes, source, desk, onto)
            source.check_unchanged()
            seconds = {"total": time.perf_counter() - (desk.started if onto is None else began)}
            manifests = manifests_of(asked, source.files, ran, seconds, len(source.skipped))
            if onto is None:
                commit_all(manifests)
            else:
                onto.commit(asked, source.files, ran, manifests, seconds, desk.spark.session().map)
        except BaseException:
            desk.spark.close()
            raise
    return ran


def open_input(asked: JobRequest, desk: RunContext, files: Sequence[str] | None = None) -> FileSource:
    """Open what the first stage of a job reads, or only those ``files`` of it. Raises as `open_source` does."""
    return open_source(
        asked.inputs if files is None else files,
        asked.reading,
        lambda f, items: desk.spark.session().map("read types", f, items),
    )


def _run(
    asked: JobRequest,
    stages: Sequence[StagePlan],
    routes: Sequence[StageOutput],
    source: Source,
    desk: RunContext,
    onto: IncrementalRun | None,
) -> list[StageRun]:
    """Run all stages on Spark; raise as soon as more rows are rejected than are allowed."""
    job = asked.job
    sizes = Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size)
    ran: list[StageRun] = []

    def session() -> SparkExecutor:
        """Wait for Spark. Its progress names the unit and the stage at work: the one after those that have run."""
        started, which = desk.spark.session(), stage_prefix(asked, stages[len(ran)].name)
        _warn_if_open(started, desk)
        unit = f"{onto.unit.label}: " if onto is not None else ""
        rows = _rows_of(ran[-1].outcome.parts if ran else source.splits)
        started.on_progress = lambda seen: desk.show(replace(seen, label=unit + which + seen.label, rows=rows))
        return started

    def compute(stage: StagePlan, work: TaskContext) -> Outcome:
        return run_window(work if onto is None else onto.restore(stage, work), session, sizes)

    for each in run_stages(asked, stages, routes, source, compute, lambda *work: session().map(*work)):
        ran.append(each)
        _check_rejects(asked, ran)
    return ran


def _warn_if_open(session: SparkExecutor, desk: RunContext) -> None:
    """Tell once that a cluster is set up so that strangers could send messages to this driver."""
    if session.is_open and "open" not in desk.announced:
        desk.messages.note(
            "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
        )
        desk.announced.add("open")


def _rows_of(pieces: Sequence[Split] | Sequence[Part]) -> int:
    return sum(piece.rows for piece in pieces)


def _check_rejects(asked: JobRequest, ran: Sequence[StageRun]) -> None:
    job, rejected = asked.job, sum((each.outcome.counts for each in ran), Counts()).rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        words = f"{count_of(total, 'row')} {'was' if total == 1 else 'were'} rejected ({reason_counts(rejected)})"
        raise DataError(
            f"{words}, more than the {job.max_rejects:,} allowed; nothing was written",
            f"run without --max-rejects{', and into a folder,' if asked.stdout else ''} to see them in _rejected",
        )
