"""Every window of a job bound to what it reads, before any of them runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from ...conf.job import Stage
from ...readers.formats.parquet import file_schema
from ...windowing.engine.tasks.task import FILES, NONE, STREAM
from ...windowing.errors import ClockError, ConfigError
from ...windowing.planning.plan import Plan, make_plan, stream_of
from ...windowing.planning.result_schema import MARK
from ...windowing.ports import Source, StreamInfo
from ...windowing.support.suggest import did_you_mean
from ...writers.formats import parquet
from ...writers.output.sink import check_types
from .request import JobRequest, StageRequest
from .stage_names import naming_stage

_DEEPEST = 60
"""How many levels a column may nest: Arrow sends 63, and an aggregate or a blob adds some."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage bound to its input, whose columns are ``schema``.

    ``plan``: of what is computed, which has stream columns wherever another stage reads it. ``result``: the columns
    that are written, without them where the stage is to be plain. ``marks``: where window marks come from (see
    `TaskContext`).
    """

    request: StageRequest
    schema: pa.Schema
    plan: Plan
    result: pa.Schema
    marks: str

    @property
    def name(self) -> str:
        """How messages and the state call it."""
        return self.request.stage.name

    @property
    def stream(self) -> StreamInfo | None:
        """How what is written is a stream again; None where it is plain."""
        return None if self.request.options.plain else stream_of(self.plan)


@dataclass(frozen=True, slots=True)
class _Input:
    """What a stage knows of its input beforehand."""

    schema: pa.Schema
    stream: StreamInfo | None
    explain: Callable[[str], str | None]
    advise: Callable[[str | None], str | None]
    is_stage: bool


def plan_stages(asked: JobRequest, source: Source) -> tuple[StagePlan, ...]:
    """Plan all stages of a job: the first over ``source``, each other over the result of the one before.

    Raises `ConfigError` naming the stage where a window, its key, options or marks do not fit its input, or where a
    column of its result cannot be handed on.
    """
    reads = _Input(source.schema, source.stream, source.explain_type, _adviser(asked, source), is_stage=False)
    planned: list[StagePlan] = []
    for stage in asked.stages:
        with naming_stage(asked, stage.stage.name):
            planned.append(_plan_stage(stage, reads, is_last=stage is asked.stages[-1]))
            if len(planned) < len(asked.stages):
                plan = planned[-1].plan
                reads = _Input(
                    schema_after_parquet(plan.schema), stream_of(plan), _unexplained, _unexplained, is_stage=True
                )
    return tuple(planned)


def schema_after_parquet(schema: pa.Schema) -> pa.Schema:
    """Return the columns that a reader finds in Parquet parts written with ``schema``: the format lacks some types.

    Raises `ConfigError` naming a column that it cannot hold at all.
    """
    check_types("parquet", schema)
    written = pa.BufferOutputStream()
    parquet.encode([], schema, written)
    return file_schema(pq.ParquetFile(pa.BufferReader(written.getvalue())))


def _plan_stage(asked: StageRequest, reads: _Input, is_last: bool) -> StagePlan:
    stage = asked.stage
    order_by: Any = "arrival" if stage.order_by == ("arrival",) else stage.order_by
    options = asked.options if is_last else replace(asked.options, plain=False)
    try:
        plan = make_plan(
            asked.spec, reads.schema, stage.key, order_by, asked.calls, options, reads.stream, reads.explain
        )
    except ClockError as error:
        raise ConfigError(error.what, reads.advise(error.column) or error.do) from error
    _check_levels(plan, reads.schema)
    return StagePlan(asked, reads.schema, plan, _result_schema(plan, stage.plain), _marks(stage, reads, plan))


def _check_levels(plan: Plan, schema: pa.Schema) -> None:
    """Raise `ConfigError` for a column that nests deeper than what is sent from task to task may."""
    for name in plan.columns:
        if (levels := _levels(schema.field(name).type)) > _DEEPEST:
            what = f"column {name!r} nests {levels} levels, and a column that a job needs may nest {_DEEPEST}"
            raise ConfigError(what, f'leave it out, or read it as text with --schema "{name}:string"')


def _levels(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 0
    return 1 + max((_levels(kind.field(at).type) for at in range(kind.num_fields)), default=0)


def _result_schema(plan: Plan, plain: bool) -> pa.Schema:
    left_out = {*plan.stream_names, *plan.place_names, MARK} if plain and not plan.options.plain else set()
    return pa.schema([field for field in plan.schema if field.name not in left_out])


def _marks(stage: Stage, reads: _Input, plan: Plan) -> str:
    """Where window marks come from (design section 1)."""
    if stage.empty == "mark" and plan.key:
        raise ConfigError("--empty mark is for windows without a key", "say --empty row, or leave out --key")
    if stage.marks == "auto":
        return STREAM if reads.stream else FILES
    if stage.marks == FILES and reads.is_stage:
        raise ConfigError("--marks files: what a stage before gives is no files", "leave it out, or name a column")
    if stage.marks in (FILES, NONE):
        return stage.marks
    if stage.marks not in reads.schema.names:
        raise ConfigError(f"--marks: there is no column {stage.marks!r}", did_you_mean(stage.marks, reads.schema.names))
    found = reads.schema.field(stage.marks).type
    if not pa.types.is_boolean(found):
        raise ConfigError(f"--marks needs a boolean column, and {stage.marks!r} is {found}", "name another column")
    return f"column:{stage.marks}"


def _adviser(asked: JobRequest, source: Source) -> Callable[[str | None], str | None]:
    """Return what looks for a time in an input that seems to have none."""

    def advise(column: str | None) -> str | None:
        from ...readers.time_hints import advise  # noqa: PLC0415 - only where a run ends with an error

        return advise(source, column, asked.reading.schema)

    return advise


def _unexplained(_: str | None) -> str | None:
    return None
