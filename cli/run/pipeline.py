"""From a job to committed results: open the input, plan, run the stages, commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ...conf.job import Job
from ...readers.files.file import Located
from ...readers.joined import join_sources
from ...readers.open import open_result
from ...readers.source import FileSource
from ...windowing.engine.enrich import TableState, load_tables
from ...windowing.engine.run import Outcome, run_window
from ...windowing.engine.strategy import LargestWindow
from ...windowing.engine.task import Sizes, TaskContext
from ...windowing.engine.warmup import warm
from ...windowing.enrichment.step import enrichments_of
from ...windowing.enrichment.window_table import read_windows
from ...windowing.errors import DataError
from ...windowing.planning.plan import stream_of
from ...windowing.ports import Counts, Executor, Part, Source
from ...windowing.spark.boot import PendingExecutor, Progress
from ...windowing.support.amounts import count_of, reason_counts
from ...writers.output.sink import copy_part
from ...writers.state.journal import commit_all
from ...writers.state.unit_record import UnitRecord
from .context import RunContext, Session, StagedJob, StageRun, observed, owner
from .job_plan import JobPlan, StageOutput, conditions_of, open_outputs, plan_job
from .mostly_late import EarlierUnits, announce_late
from .open_input import NOTHING_KNOWN, Earlier, KnownColumns, beside, enriched_input, open_input, open_unit
from .reports import announce, announce_window, check_expectations, manifests_of, note_late_windows
from .request import naming_stage, stage_prefix
from .stage_plans import StagePlan

# The executor of a stage: Spark, waited for when a task is first needed, with the stage in the labels of its
# progress.
#
# The engine reads samples on the driver while Java starts, so nothing may wait for Spark before the engine does.


class SparkStageExecutor(PendingExecutor):
    """An `Executor` over the Spark of a command that can be given the name of what it runs.

    ``context``: the context of the command.
    ``label``: the beginning of the labels of the progress.
    ``rows``: number of rows that all tasks read together; 0 while it is not known.
    """

    def __init__(self, context: RunContext, label: str = "", rows: int = 0) -> None:
        super().__init__(self._session)
        self._context, self._label, self._rows = context, label, rows

    def named(self, label: str, rows: int) -> SparkStageExecutor:
        """Return the executor of a stage; ``label`` begins its progress, ``rows`` is how many rows its tasks read."""
        return SparkStageExecutor(self._context, self._label + label, rows)

    def _session(self) -> Session:
        """Wait for Spark; its progress is shown under the label from now on. Raises `SparkError`."""
        session = self._context.spark.session()
        if session.is_open and self._context.is_first("open"):
            self._context.messages.note(
                "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
            )
        session.on_progress = self._show
        return session

    def _show(self, seen: Progress) -> None:
        self._context.show(replace(seen, label=self._label + seen.label, rows=self._rows))


# A run: what differs between one that begins from nothing and a unit on a state (`UnitRun`). No step looks for a state.


@dataclass(frozen=True, slots=True)
class PlainRun:
    """A run without a state: it reads its input, begins from nothing, and commits outputs only.

    Its methods are called once each, in this order; `restore` is called for each stage.

    ``began``: `time.perf_counter` from which on the seconds of the run are counted.
    ``label``: the beginning of the labels of its progress: ``2026-11-02: ``, or nothing.
    ``earlier``: gives the jobs of the units before a unit of a range; None: it is no unit of a range.
    """

    began: float
    label: str = ""
    earlier: Earlier | None = None

    def known(self, job: Job) -> KnownColumns:  # noqa: ARG002 - nothing: no run came before this one
        """Return what earlier runs say of the columns of the input and of its enrich tables."""
        return NOTHING_KNOWN

    def units_before(self) -> EarlierUnits | None:
        """Return the units before it on its state; None without a state."""
        return None

    def source(self, job: Job, context: RunContext) -> FileSource:
        """Open the rows of the first stage. Raises what `open_source` raises."""
        executor = PendingExecutor(context.spark.session)
        return open_input(job, executor) if self.earlier is None else open_unit(job, executor, self.earlier)

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise `ConfigError` where the stages cannot be run in this mode."""

    def tables(self, stage: StagePlan) -> TableState | None:  # noqa: ARG002 - no run comes after this one
        """Return where the last rows of enrich tables are kept, beside the state of the first ``stage``."""
        return None

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:  # noqa: ARG002 - windows begin with the input
        """Return the task context of a stage with the window state that it begins from, where there is one."""
        return task

    def stages(
        self, plan: JobPlan, executor: SparkStageExecutor, announce: Callable[[LargestWindow], None]
    ) -> list[StageRun]:
        """Run the stages. Raises as `run_stages` does."""
        return run_stages(plan, self, executor, announce)

    def commit(self, staged: StagedJob, executor: Executor) -> UnitRecord | None:  # noqa: ARG002 - it compares no states
        """Put all that the run has written in place; return the record that it leaves on its state.

        Raises `OutputError` as the journal does.
        """
        commit_all(staged.outputs)
        return None


# The stages of a job, one after the other: each reads rows and marks of the stage before in emission order.
#
# A stage writes Parquet parts for the next stage. If its own output is Parquet with stream columns, these parts are
# the output, and nothing is written twice. Else they are in a folder that is deleted when the next stage has read it.


def run_stages(
    plan: JobPlan,
    run: PlainRun,
    executor: SparkStageExecutor,
    announce: Callable[[LargestWindow], None] | None = None,
) -> list[StageRun]:
    """Run the stages of a job one after the other, and write their parts. Nothing is committed.

    ``run``: restores the window state of each stage, where it has one. ``announce``: as in `run_window`. Raises what
    the window of a stage raises, with the name of the stage, and `DataError` as soon as more rows are rejected than the
    job allows.
    """
    stage_runs: list[StageRun] = []
    for stage, stage_output in zip(plan.stages, plan.stage_outputs, strict=True):
        with naming_stage(plan.job, stage.name):
            stage_input: Source = plan.source
            if stage_runs:  # the parts of the stage before, as a stream
                before, sink = stage_runs[-1], stage_runs[-1].stage_output.sink
                shown = f"stage {before.stage.name}" if sink.parts_in else sink.shown
                folder = Located(sink.fs, f"{sink.staging}/{sink.parts_in}" if sink.parts_in else sink.root, shown)
                stream = stream_of(before.stage.plan)
                stage_input = open_result(folder, before.outcome.parts, stream, plan.job.split_size)
                if stage.sides is not None:
                    stage_input = join_sources(stage_input, plan.source.rights[stage.sides.join.name], stage.sides)
            rows = sum(split.rows for split in stage_input.splits)
            own = executor.named(stage_prefix(plan.job, stage.name), rows)
            task = run.restore(stage, task_of(plan, stage, stage_input, stage_output))
            outcome = run_window(task, own, sizes_of(plan.job), announce)
            if stage_runs:
                stage_runs[-1].stage_output.sink.delete_intermediate()
            stage_runs.append(StageRun(stage, stage_output, outcome, parts_of(stage_output, outcome, own)))
        check_rejects(plan.job, stage_runs)
    return stage_runs


def task_of(plan: JobPlan, stage: StagePlan, stage_input: Source, stage_output: StageOutput) -> TaskContext:
    """Return the task context of a stage, with what expectations and metrics ask of the rows it reads and writes."""
    bound, over_rows = plan.expectations, conditions_of(plan.expectations) if stage is plan.stages[-1] else ()
    is_needed = plan.job.metrics_file is not None or any(each.asks_span for each in bound)
    asks_span = is_needed and stage is plan.stages[0]
    task = TaskContext(stage.plan, stage_input, stage_output.sink, stage.marks)
    return replace(task, conditions=over_rows, asks_span=asks_span) if over_rows or asks_span else task


def sizes_of(job: Job) -> Sizes:
    """Return the bounds on the input of a task that a job asks for."""
    return Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size)


def parts_of(stage_output: StageOutput, outcome: Outcome, executor: Executor) -> tuple[Part, ...]:
    """Return the parts of a stage's own output, written once more where that has another format than the stage."""
    if not stage_output.is_own:
        return ()
    if stage_output.copy is None:
        return outcome.parts
    copies = executor.map(f"write {stage_output.copy.format}", partial(copy_part, stage_output.copy), outcome.parts)
    parts = sorted((part for files in copies for part in files), key=lambda part: part.rank)
    return tuple(parts) or stage_output.copy.write_parts(0, [])


def check_rejects(job: Job, stage_runs: Sequence[StageRun]) -> None:
    """Raise `DataError` where stages have rejected more rows than the job allows."""
    rejected = sum((each.outcome.counts for each in stage_runs), Counts()).rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        words = f"{count_of(total, 'row')} {'was' if total == 1 else 'were'} rejected ({reason_counts(rejected)})"
        raise DataError(
            f"{words}, more than the {job.max_rejects:,} allowed; nothing was written",
            f"run without --max-rejects{', and into a folder,' if job.places.stdout else ''} to see them in _rejected",
        )


# The tables of a job's enrichments: read before its windows run, gone when they have.


@contextmanager
def loaded_tables(plan: JobPlan, run: PlainRun, executor: Executor) -> Iterator[JobPlan]:
    """Read the tables of a job; yield the plan whose source finds their values, and whose stages have their windows.

    The files through which tasks share them are deleted at the end. Raises what `load_tables` raises.
    """
    plan, source = with_windows(plan), plan.source
    if not enrichments_of(source):
        yield plan
        return
    sink = plan.stage_outputs[-1].sink.for_tables()
    try:
        tables = run.tables(plan.stages[0])
        source, parts = load_tables(source, sink, executor, tables, plan.job.slice_size)
        yield replace(plan, source=source, table_parts=parts)
    finally:
        sink.drop_scratch()


def with_windows(plan: JobPlan) -> JobPlan:
    """Return a plan whose stages have the windows of their tables. Raises as `read_windows` does."""
    return replace(plan, stages=tuple(with_own_windows(stage, plan.source) for stage in plan.stages))


def with_own_windows(stage: StagePlan, source: FileSource) -> StagePlan:
    """Return a stage with the windows of its table, which ``source`` has beside it."""
    if stage.plan.windows is None:
        return stage
    bound = stage.plan.windows.bound
    table = next(each.table for each in source.windows if each.request == bound.request)
    return replace(stage, plan=replace(stage.plan, windows=read_windows(bound, table)))


def run_job(
    job: Job, mode: AbstractContextManager[PlainRun], context: RunContext
) -> tuple[StagedJob, UnitRecord | None]:
    """Run a job once and commit its results; return what was run, and the record that it leaves on a state.

    ``mode``: begins the run before any output is opened; if it ends without a commit, the run leaves no trace. Where
    the run fails, Spark is stopped before the outputs are released, so that no task writes into them any more.
    """
    with (
        mode as run,
        observed(context.observers, job, run.label) as committed,
        open_outputs(job, owner()) as outputs,
        _closing_spark(context),
    ):
        executor = PendingExecutor(context.spark.session)
        source = enriched_input(job, run.source(job, context), executor, run.known(job))
        plan = plan_job(job, source, outputs)
        run.check(plan.stages)
        announce(plan, context.is_first("choices"), context.messages)
        for stage in plan.stages:  # while Java starts
            context.spark.warm(warm, stage.plan, stage.schema)
        stage_executor = SparkStageExecutor(context, run.label)
        for output in filter(None, outputs):
            output.begin()
        with loaded_tables(plan, run, stage_executor) as plan:
            stage_runs = run.stages(plan, stage_executor, partial(announce_window, context))
        plan.source.check_unchanged()
        for table in beside(plan.source).values():
            table.check_unchanged()
        seconds = {"total": time.perf_counter() - run.began}
        found = check_expectations(plan, stage_runs, context.messages, run.label)
        staged = StagedJob(plan, stage_runs, manifests_of(plan, stage_runs, seconds, found), seconds, found)
        record = run.commit(staged, context.spark.session())
        committed(staged)
        note_late_windows(job, stage_runs, run.label, context.messages)
        announce_late(staged, run.units_before(), run.label, context.spark.session, context.messages)
        return staged, record


@contextmanager
def _closing_spark(context: RunContext) -> Iterator[None]:
    try:
        yield
    except BaseException:
        context.spark.close()
        raise
