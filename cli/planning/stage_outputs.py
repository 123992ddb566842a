"""The output that the rows of each stage are written to, and in which format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...conf.partition_columns import partition_column
from ...windowing.engine.tasks.rejects import reject_schema
from ...windowing.support.formats import INTERMEDIATE, file_format
from ...writers.output.output import Output
from ...writers.output.partitioning import Partitioning, bind_partitions
from ...writers.output.sink import FileSink
from ..request.request import JobRequest
from ..request.stage_names import naming_stage
from .stage_plans import StagePlan


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


def plan_outputs(
    request: JobRequest, stages: Sequence[StagePlan], outputs: Sequence[Output | None]
) -> tuple[StageOutput, ...]:
    """Choose the output of each stage's rows. Raises `ConfigError` where a format cannot hold a column."""
    job_output = outputs[-1]
    assert job_output is not None
    stage_outputs = []
    for stage, own in zip(stages, outputs, strict=True):
        with naming_stage(request, stage.name):
            stage_outputs.append(_plan_output(stage, own, job_output, request.job.max_open_files))
    return tuple(stage_outputs)


def _plan_output(stage: StagePlan, own: Output | None, job_output: Output, most_open: int) -> StageOutput:
    hidden = stage.plan.projection.hidden
    rejects = reject_schema(pa.schema([field for field in stage.schema if field.name not in hidden]))
    if own is None:
        sink = job_output.sink(INTERMEDIATE, stage.plan.schema, rejects).without_output(stage.name)
        return StageOutput(job_output, is_own=False, sink=sink, copy=None)
    options = stage.request.stage
    partitioning = _partitioning(options.partition_by, stage.result, most_open)
    sink = own.result_sink(file_format(options.output_format), stage.result, rejects, partitioning)
    is_read_on = options.output_format == INTERMEDIATE and not options.plain and partitioning is None
    if own is job_output or (is_read_on and sink.table is None):
        return StageOutput(own, is_own=True, sink=sink, copy=None)
    between = own.sink(INTERMEDIATE, stage.plan.schema, rejects).for_next_stage(stage.name)
    return StageOutput(own, is_own=True, sink=between, copy=sink)


def _partitioning(entries: Sequence[str], result: pa.Schema, most_open: int) -> Partitioning | None:
    columns = [partition_column(entry) for entry in entries]
    return bind_partitions([(column.name, column.expression) for column in columns], result, most_open)
