"""The outputs of a job, and where in them the rows of each stage go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ...windowing.engine.tasks.rejects import reject_schema
from ...writers.folders.lock import Owner
from ...writers.output.output import Output, open_output
from ...writers.output.overlap import refuse_each_other
from ...writers.output.sink import FileSink
from .request import JobRequest
from .stage_names import naming_stage
from .stage_plans import StagePlan


@dataclass(frozen=True, slots=True)
class StageOutput:
    """Where the rows of a stage go: into the staging folder of ``output``, its own where ``is_own``, or the job's.

    ``sink``: what the tasks of its window write with. ``copy``: what the parts are written once more with, where the
    output of the stage has another form than the next stage reads.
    """

    output: Output
    is_own: bool
    sink: FileSink
    copy: FileSink | None


@contextmanager
def open_outputs(asked: JobRequest, owner: Owner) -> Iterator[tuple[Output | None, ...]]:
    """Lock and open every output of a job, by stage: None for a stage that has none; the last has that of the job.

    Those that are not committed when the context ends leave no trace. Raises `ConfigError`, nothing touched, where
    outputs overlap each other, and as `open_output` does.
    """
    job = asked.job
    paths = [*(stage.stage.output for stage in asked.stages[:-1]), asked.stdout or job.output]
    refuse_each_other([path for path in paths if path])
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(open_output(path, job.mode, asked.inputs, owner)) if path else None for path in paths
        )


def plan_outputs(
    asked: JobRequest, stages: Sequence[StagePlan], outputs: Sequence[Output | None]
) -> tuple[StageOutput, ...]:
    """Decide where the rows of each stage go. Raises `ConfigError` where a format cannot hold a column."""
    home = outputs[-1]
    assert home is not None
    routes = []
    for stage, own in zip(stages, outputs, strict=True):
        with naming_stage(asked, stage.name):
            routes.append(_plan_output(stage, own, home, is_last=own is home))
    return tuple(routes)


def _plan_output(stage: StagePlan, own: Output | None, home: Output, is_last: bool) -> StageOutput:
    rejects = reject_schema(stage.schema)
    if own is None:
        sink = home.sink("parquet", stage.plan.schema, rejects).without_output(stage.name)
        return StageOutput(home, is_own=False, sink=sink, copy=None)
    asked = stage.request.stage
    sink = own.sink(asked.output_format, stage.result, rejects)
    if is_last or (asked.output_format == "parquet" and not asked.plain):
        return StageOutput(own, is_own=True, sink=sink, copy=None)
    between = own.sink("parquet", stage.plan.schema, rejects).for_next_stage(stage.name)
    return StageOutput(own, is_own=True, sink=between, copy=sink)
