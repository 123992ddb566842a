"""The input and the stages of a job as a run plans them: the same objects, over outputs that are not opened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....conf.job import PIPE, Job
from ....conf.ranges.units import Unit
from ....windowing.columns.numeric import is_instant
from ....windowing.engine.tasks.task import FILES, NONE, STREAM
from ....windowing.language.sentences.sentences import sentences_of
from ....windowing.support.addresses.redaction import redacted_path
from ....writers.output.output import Output, output_to_plan
from ....writers.state.state import State
from ...console.progress import Show
from ...planning.job_plan import JobPlan, plan_job
from ...planning.open_input import NOTHING_KNOWN, AnySource, Earlier, enriched_input, open_unit, open_with
from ...planning.request import JobRequest
from ...planning.stage_plans import StagePlan
from ...run.incremental_run import IncrementalRun
from .column_origins import input_columns, result_columns
from .driver import driver_of
from .forecast import InputForecast, StageForecast

_MARKS = {FILES: "the end of each file", NONE: "nowhere", STREAM: "the result that is read"}


@dataclass(frozen=True, slots=True)
class OnState:
    """The place of a run on a state: the state, the unit, and the label of the unit that it begins from, or None."""

    state: State
    unit: Unit
    previous: str | None


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that is planned over its input.

    ``plan``: the plan, as a run makes it; its enrich tables are not read.
    ``mode``: how the run goes on from a state; None without one.
    ``input``: the forecast of its input.
    ``stages``: the forecasts of its stages.
    """

    plan: JobPlan
    mode: IncrementalRun | None
    input: InputForecast
    stages: tuple[StageForecast, ...]


def open_job(request: JobRequest, place: OnState | None, show: Show, earlier: Earlier | None = None) -> OpenJob:
    """Open the input of a job and plan its stages; write nothing. Raises what a run raises before it computes.

    ``show``: shows the progress of reading text files. ``earlier``: as `PlainRun` has it.
    """
    driver = replace(driver_of(request.job.master, request.job.spark_conf), show=show)
    mode = None if place is None else IncrementalRun(place.state, place.unit, place.previous, request.job.kept(1, 0))
    known = NOTHING_KNOWN if mode is None else mode.known(request)
    if earlier is None:
        source = enriched_input(request, open_with(request, driver, known=known), driver, known)
    else:
        source = enriched_input(request, open_unit(request, driver, earlier), driver)
    stage_outputs = (stage.stage.output for stage in request.stages[:-1])
    paths = [*stage_outputs, request.stdout or request.job.output]
    plan = plan_job(request, source, [_to_plan(path, request.job) if path else None for path in paths])
    if mode is not None:
        mode.check(plan.stages)
    return OpenJob(plan, mode, _input(request, source, plan), tuple(_stage(plan, stage) for stage in plan.stages))


def output_name(path: str) -> str:
    """Return an output as a plan shows it: without secrets."""
    return "stdout" if path == PIPE else redacted_path(path)


def _input(request: JobRequest, source: AnySource, plan: JobPlan) -> InputForecast:
    files = source.files
    return InputForecast(
        tuple(map(redacted_path, request.job.input)),
        len(files),
        redacted_path(files[0].path),
        redacted_path(files[-1].path),
        sum(file.size for file in files),
        sum(split.rows for split in source.splits),
        input_columns(request, source, plan.stages[0].plan),
        tuple(source.skipped),
        plan.cut_at,
    )


def _stage(plan: JobPlan, stage: StagePlan) -> StageForecast:
    bound, options = stage.plan, stage.request.stage
    is_first, is_last = stage is plan.stages[0], stage is plan.stages[-1]
    times = frozenset(field.name for field in bound.projection.schema if is_instant(field.type))
    sentences = sentences_of(bound.spec, bound.key, stage.request.calls, bound.options, times)
    output = plan.request.shown_output if is_last else options.output
    return StageForecast(
        stage.name,
        str(bound.spec),
        tuple(sentences),
        tuple(bound.key),
        tuple(bound.order.columns),
        _order_why(stage, is_first),
        None if bound.clock is None or not bound.kind.needs_clock else bound.clock,
        _marks(stage, is_first) if bound.takes_marks else None,
        None,
        None if output is None else output_name(output),
        options.output_format,
        result_columns(stage),
    )


def _order_why(stage: StagePlan, is_first: bool) -> str:
    plan = stage.plan
    if plan.pos is None or plan.order.columns:
        return plan.order.why
    return f"the order in which the {'result that is read' if is_first else 'stage before'} was emitted"


def _marks(stage: StagePlan, is_first: bool) -> str:
    if stage.marks == STREAM and not is_first:
        return "the stage before"
    return _MARKS.get(stage.marks, stage.marks.replace(":", " "))


def _to_plan(path: str, job: Job) -> Output:
    return output_to_plan(path, job.mode, job.evolve_schema)
