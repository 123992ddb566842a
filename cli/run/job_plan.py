"""The plan of a job: its input, its stages, and where the rows of each stage go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ...conf.job import Job
from ...conf.option_values import Expectation, parse_expectation, partition_column
from ...readers.source import FileSource
from ...windowing.engine.rejects import order_column, reject_columns, reject_schema
from ...windowing.errors import SpecError
from ...windowing.expressions.binding import BoundExpression, bind_condition
from ...windowing.planning.result_schema import MARK
from ...windowing.ports import InputFile, Part
from ...windowing.support.formats import INTERMEDIATE, file_format
from ...writers.commit.tables import table_of
from ...writers.output.output import Output, open_output, refuse_each_other, refuse_overlap
from ...writers.output.partitioning import bind_partitions
from ...writers.output.sink import FileSink
from ...writers.places.lock import Owner
from ...writers.state.store_storage import storage_of
from .open_input import beside
from .request import naming_stage
from .stage_plans import StagePlan, plan_stages

# The output that the rows of each stage are written to, and in which format.


@dataclass(frozen=True, slots=True)
class StageOutput:
    """The output of a stage's rows.

    ``output``: the output in whose staging folder they are written: that of the stage, or else that of the job.
    ``is_own``: whether ``output`` is that of the stage.
    ``sink``: the sink that the tasks of its window write with.
    ``copy``: the sink that writes the parts once more, where the stage's output has another format than the next
        stage reads; else None.
    """

    output: Output
    is_own: bool
    sink: FileSink
    copy: FileSink | None


def plan_outputs(job: Job, stages: Sequence[StagePlan], outputs: Sequence[Output | None]) -> tuple[StageOutput, ...]:
    """Choose the output of each stage's rows. Raises `ConfigError` where a format cannot hold a column."""
    job_output = outputs[-1]
    assert job_output is not None
    stage_outputs = []
    for stage, own in zip(stages, outputs, strict=True):
        with naming_stage(job, stage.name):
            stage_outputs.append(_plan_output(stage, own, job_output, job.max_open_files))
    return tuple(stage_outputs)


def _plan_output(stage: StagePlan, own: Output | None, job_output: Output, most_open: int) -> StageOutput:
    rejects = reject_schema(reject_columns(stage.plan, stage.schema))
    if own is None:
        sink = job_output.sink(INTERMEDIATE, stage.plan.schema, rejects).without_output(stage.name)
        return StageOutput(job_output, is_own=False, sink=sink, copy=None)
    options = stage.request
    columns = [partition_column(entry) for entry in options.partition_by]
    partitioning = bind_partitions(columns, stage.result, most_open)
    sink = own.result_sink(file_format(options.output_format), stage.result, rejects, partitioning)
    is_read_on = options.output_format == INTERMEDIATE and not options.plain and partitioning is None
    if own is job_output or (is_read_on and sink.table is None):
        return StageOutput(own, is_own=True, sink=sink, copy=None)
    between = own.sink(INTERMEDIATE, stage.plan.schema, rejects).for_next_stage(stage.name)
    return StageOutput(own, is_own=True, sink=between, copy=sink)


# Expectations of a job bound to the numbers of its units, and to the columns of its result (semantics section 14).


FIRST_AT, LAST_AT, SINCE = "first_at", "last_at", "seconds_since_last"
SPAN = (FIRST_AT, LAST_AT, SINCE)
"""Numbers that need the order values of rows."""
COUNTS = ("rows_in", "rows_filtered", "rows_rejected", "late", "windows", "panes_hidden", "held")
SHARES = ("rejected_share", "late_share")


@dataclass(frozen=True, slots=True)
class BoundExpectation:
    """An expectation that is bound to its columns.

    ``expectation``: as the job has it.
    ``condition``: what must be true.
    """

    expectation: Expectation
    condition: BoundExpression

    @property
    def asks_span(self) -> bool:
        return self.expectation.scope == "numbers" and not {*SPAN}.isdisjoint(self.condition.columns)


def bind_expectations(texts: Sequence[str], stages: Sequence[StagePlan]) -> tuple[BoundExpectation, ...]:
    """Bind the expectations of a job. Raises `SpecError` for unknown columns, and types that do not go together."""
    bound = []
    for text, expectation in ((each, parse_expectation(each)) for each in texts):
        schema = number_schema(stages[0])
        if expectation.scope != "numbers":
            schema = pa.schema([field for field in stages[-1].plan.schema if field.name != MARK])
        try:
            bound.append(BoundExpectation(expectation, bind_condition(expectation.expression, schema)))
        except SpecError as error:
            calls = expectation.expression.calls & {"all", "any"}
            do = f"{min(calls)}(..) stands alone: give two expectations" if calls else error.do
            raise SpecError(f"--expect: {error.what}", text, error.span, do) from None
    return tuple(bound)


def conditions_of(expectations: Sequence[BoundExpectation]) -> tuple[BoundExpression, ...]:
    """Return the conditions over rows of the result, in the order of the expectations."""
    return tuple(each.condition for each in expectations if each.expectation.scope != "numbers")


def number_schema(first: StagePlan) -> pa.Schema:
    """Return the numbers of a unit, with their types; ``first``: the stage that reads its rows."""
    name = order_column(first.plan)
    at = pa.null() if name is None else first.plan.projection.schema.field(name).type
    fields = [(name, pa.int64()) for name in COUNTS] + [(FIRST_AT, at), (LAST_AT, at)]
    return pa.schema([*fields, *((name, pa.float64()) for name in (SINCE, *SHARES))])


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job that is bound to its input and outputs, and checked.

    ``job``: the job.
    ``source``: the input of its first stage.
    ``stages``: the plans of its stages, in order.
    ``stage_outputs``: for each stage, where its rows are written.
    ``table_parts``: what the enrich tables have left in the state; they belong to its first stage.
    ``expectations``: what must be true before anything is committed.
    """

    job: Job
    source: FileSource
    stages: tuple[StagePlan, ...]
    stage_outputs: tuple[StageOutput, ...]
    table_parts: tuple[Part, ...] = ()
    expectations: tuple[BoundExpectation, ...] = ()

    @property
    def cut_at(self) -> int | None:
        """How many rows of the input are read, where it has more than the limit of the job; else None."""
        return self.job.limit if self.source.is_cut else None


def table_files(plan: JobPlan) -> dict[str, tuple[InputFile, ...]]:
    """Return the files of each table that a job reads beside its input, by its name."""
    return {name: tuple(table.files) for name, table in beside(plan.source).items()}


def plan_job(job: Job, source: FileSource, outputs: Sequence[Output | None]) -> JobPlan:
    """Plan all stages of a job over ``source`` and choose their outputs among ``outputs``, which are open.

    Raises `ConfigError` as `plan_stages` and `plan_outputs` do.
    """
    stages = plan_stages(job, source)
    expectations = bind_expectations(job.expect, stages)
    return JobPlan(job, source, stages, plan_outputs(job, stages, outputs), expectations=expectations)


# The outputs of a job, locked and opened before any input is read: a run that cannot write fails at once.


@contextmanager
def open_outputs(job: Job, owner: Owner) -> Iterator[tuple[Output | None, ...]]:
    """Lock and open every output of a job: one for each stage, None for a stage without one, the job's own last.

    Outputs that are not committed when the context ends leave no trace. Raises `ConfigError`, with nothing touched,
    where outputs overlap each other, an enrich table or the job file, and what `open_output` raises.
    """
    paths = job.stage_outputs
    refuse_overlaps(job, [path for path in paths if path])
    with ExitStack() as stack:

        def opened(path: str) -> Output:
            held = open_output(path, job.mode, job.inputs, owner, evolve=job.evolve_schema)
            return stack.enter_context(held)

        yield tuple(opened(path) if path else None for path in paths)


def refuse_overlaps(job: Job, outputs: Sequence[str]) -> None:
    """Raise `ConfigError` where outputs overlap each other, an enrich table or the job file.

    `open_output` looks at the inputs of the job.
    """
    refuse_each_other(outputs)
    for place in (table_of(path).place for path in outputs):
        for what, path in job.read_besides:
            refuse_overlap(place, [path], what)


def refuse_state_overlap(job: Job) -> None:
    """Raise `ConfigError` where the state of a job without a range overlaps what it reads: it would be read, too.

    Of a range each unit reads a folder of its own.
    """
    if job.state is None or job.start is not None:
        return
    place = storage_of(job.state).place
    for what, path in (*(("input", path) for path in job.inputs), *job.read_besides):
        refuse_overlap(place, [path], what, "state")
