"""Plans of stages: every window of a job is bound to its input and checked before any of them runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from ...conf.job import Job, Stage
from ...readers.formats.parquet import file_schema
from ...readers.joined import sides_of
from ...readers.options import SchemaTypes
from ...readers.source import FileSource
from ...windowing.columns.arrays import is_condition
from ...windowing.engine.task import FILES, NONE, STREAM
from ...windowing.enrichment.step import enrichments_of, without_enrichments
from ...windowing.enrichment.window_table import GivenTable
from ...windowing.errors import ClockError, ConfigError, SpecError, did_you_mean
from ...windowing.language.joins import SIDE
from ...windowing.planning.plan import Plan, make_plan, stream_of
from ...windowing.planning.result_schema import MARK
from ...windowing.planning.sides import Sides
from ...windowing.planning.validation import Epoch, check_marks
from ...windowing.ports import StreamInfo
from ...windowing.support.column_types import schema_entry
from ...writers.formats import parquet
from ...writers.output.sink import check_types
from .open_input import named_columns, own_columns, sides_with
from .request import naming_stage, read_options

_DELIMITERS = {";": "';'", "\t": "'\\t'", "|": "'|'"}
"""What text files have between columns in place of a comma, and how a shell takes it."""
_DEEPEST = 60
"""How many levels a column may nest: Arrow sends 63, and an aggregate or a block adds some."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage bound to its input.

    ``request``: the stage as the job has it.
    ``schema``: the columns of the input, and those that expressions add.
    ``plan``: the plan of its window; its result has stream columns wherever another stage reads it.
    ``result``: the columns that are written: without stream columns where the stage is plain.
    ``marks``: where window marks come from (see `TaskContext`).
    ``enrichments``: what the rows of its input are enriched with: a name and all but the path, of the first stage.
    ``enriched``: of the first stage, the columns that enrich tables have given its input.
    ``tables``: of the first stage, the columns of each table that the job reads beside its input, by its name.
    ``places``: of the first stage, by column, the file or what else made its type what it is.
    ``sides``: both sides of its join; None where it has none, or where its input is both sides itself.
    """

    request: Stage
    schema: pa.Schema
    plan: Plan
    result: pa.Schema
    marks: str
    enrichments: tuple[str, ...] = ()
    enriched: frozenset[str] = frozenset()
    tables: Mapping[str, pa.Schema] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    sides: Sides | None = None

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def stream(self) -> StreamInfo | None:
        """How the written result is read back as a stream; None where it is plain."""
        return None if self.request.plain else stream_of(self.plan)


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of a stage, as far as planning needs it.

    ``schema``: its columns.
    ``stream``: how it is read as a stream; None for plain data.
    ``read``: the input of the job, to look at where an error is to be explained; None for the result of a stage.
    ``declared``: the types that the user has given its columns.
    ``of_folders``: the columns whose values are in names of folders.
    ``tables``: the tables of windows that the job reads beside it.
    ``sides``: both sides of the join whose rows it has; None: it has one side.
    """

    schema: pa.Schema
    stream: StreamInfo | None
    read: FileSource | None = None
    declared: SchemaTypes = ()
    of_folders: frozenset[str] = frozenset()
    tables: tuple[GivenTable, ...] = ()
    sides: Sides | None = None

    def explain(self, column: str) -> str | None:
        """Return the reason for the type of a column; None where there is none to give."""
        return None if self.read is None else self.read.explain_type(column)

    def advise(self, column: str | None) -> str | None:
        """Return the advice where a column, or None, lacks a clock; None where there is none to give."""
        if self.read is None or (column is not None and column not in self.read.schema.names):
            return None
        from ...readers.time_hints import advise  # noqa: PLC0415 - only where a run ends with an error

        return advise(self.read, column, self.declared)

    def look(self, column: str) -> Epoch | None:
        """Return what the values of a column look like."""
        if self.read is None or column not in self.read.schema.names:
            return None
        from ...readers.time_hints import reading, time_guesses  # noqa: PLC0415 - few windows need it

        guess = next(time_guesses(self.read, [column]), None)
        return Epoch(guess.epoch_unit, reading(guess, self.declared)) if guess and guess.types else None

    def delimit(self) -> str | None:
        """Return the advice where a text file has another delimiter than it is read with; None where it has not."""
        names = [] if self.read is None else self.read.schema.names
        own = [name for name in names if any(mark in name for mark in _DELIMITERS)]
        is_csv = self.read is not None and getattr(self.read.kinds[0].reader, "delimiter", None) == ","
        if len(own) != 1 or not is_csv:
            return None
        mark = max(_DELIMITERS, key=own[0].count)
        return f"the columns stand between other characters than commas: say --delimiter {_DELIMITERS[mark]}"


def plan_stages(job: Job, source: FileSource) -> tuple[StagePlan, ...]:
    """Plan all stages of a job: the first over ``source``, each other over the result of the stage before.

    Raises `ConfigError` with the name of the stage where a window, its key, options or marks do not fit its input, or
    where the next stage could not read a column of its result.
    """
    read = without_enrichments(source)  # no table has been read yet
    tables = tuple(GivenTable(request, table.schema, own_columns(table)) for request, table in source.windows)
    stage_input = _Input(
        source.schema,
        source.stream,
        read,
        read_options(job).schema,
        frozenset(read.constants),
        tables,
        sides_of(source),
    )
    planned: list[StagePlan] = []
    for stage in job.stages:
        with naming_stage(job, stage.name):
            if planned:
                stage_input = _with_right(job, stage, stage_input, source)
            with _offering_schema(job, source) if not planned else nullcontext():
                planned.append(_plan_stage(job, stage, stage_input))
            if len(planned) < len(job.stages):
                plan = planned[-1].plan
                stage_input = _Input(schema_after_parquet(plan.schema), stream_of(plan), tables=tables)
    texts = tuple(f"{each.name} {each.clauses}" for each in job.enrichments)
    first = replace(planned[0], enrichments=texts, places=read.type_places)
    return (_with_tables(first, source, planned), *planned[1:])


def _with_right(job: Job, stage: Stage, stage_input: _Input, source: FileSource) -> _Input:
    asked = job.right_of(stage)
    if asked is None:
        return stage_input
    sides = sides_with(stage, source.rights[asked.name], stage_input.schema, stage_input.stream, ())
    return replace(stage_input, schema=sides.schema, sides=sides)


@contextmanager
def _offering_schema(job: Job, source: FileSource) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        missing = [name for name in sorted(named_columns(job)) if f"no column {name!r}" in error.what]
        if missing and missing[0] not in source.schema.names and (error.do or "").startswith("known: "):
            entry = schema_entry(missing[0], "TYPE")
            error.do = (
                f"{error.do}; or declare it with {entry}: it is null where a file, as {source.files[0].path}, lacks it"
            )
        raise


def _with_tables(stage: StagePlan, source: FileSource, planned: Sequence[StagePlan]) -> StagePlan:
    tables = {}
    found = enrichments_of(source)
    for each in found:
        tables[each.bound.enrichment.name] = pa.schema([each.table.schema.field(name) for name in each.bound.right])
    for windows in filter(None, (each.plan.windows for each in planned)):
        own = next(each.table for each in source.windows if each.request == windows.bound.request)
        tables[windows.bound.request.name] = pa.schema([own.schema.field(name) for name in windows.bound.right])
    enriched = frozenset(column.name for each in found for column in each.bound.fields)
    if stage.sides is not None:
        right, needed = stage.sides.of_right, stage.plan.projection.needs(stage.plan.columns)
        of_right = {name: right[name] for name in needed if name in right and name not in stage.sides.left.names}
        tables[stage.sides.join.name] = pa.schema([stage.sides.right.field(name) for name in of_right.values()])
        enriched |= {*of_right, SIDE}
    return replace(stage, enriched=enriched, tables=tables)


def schema_after_parquet(schema: pa.Schema) -> pa.Schema:
    """Return the columns that a reader finds in Parquet parts written with ``schema``: the format lacks some types.

    Raises `ConfigError` naming a column that it cannot hold at all.
    """
    check_types("parquet", schema)
    of_type = {field.type: field for field in schema}  # a long chain of stages has many columns, and few types
    written = pa.BufferOutputStream()
    parquet.ENCODER.encode([], pa.schema(of_type.values()), written)
    found = file_schema(pq.ParquetFile(pa.BufferReader(written.getvalue())))
    read = dict(zip(of_type, found.types, strict=True))
    return pa.schema([pa.field(field.name, read[field.type]) for field in schema])


def _plan_stage(job: Job, stage: Stage, stage_input: _Input) -> StagePlan:
    order_by: Any = "arrival" if stage.order_by == ("arrival",) else stage.order_by
    is_plain = stage.plain and stage is job.stages[-1]
    options = replace(stage.options, plain=is_plain, max_rows=job.max_rows_out)
    key, sides = stage.key, stage_input.sides
    if sides is not None:
        key, order_by, options = sides.key, sides.order_by, replace(options, join=sides.join)
    try:
        plan = make_plan(
            stage.spec,
            stage_input.schema,
            key,
            order_by,
            stage.calls,
            options,
            stage_input.stream,
            stage_input.explain,
            stage_input.look,
            stage_input.of_folders,
            stage_input.tables,
        )
    except ClockError as error:
        because = stage_input.explain(error.column) if error.column is not None else None
        what = error.what if because is None or because in error.what else f"{error.what}: {because}"
        raise ConfigError(what, stage_input.delimit() or stage_input.advise(error.column) or error.do) from error
    except (ConfigError, SpecError) as error:
        error.do = stage_input.delimit() or error.do
        raise
    if stage.options.join is not None and sides is not None and stage.order_by is None:
        why = "--join says so" if stage.options.join.orders else "the only time column of the left"
        plan = replace(plan, order=replace(plan.order, why=why))
    schema = plan.projection.schema
    for name in plan.columns:
        if (levels := _levels(schema.field(name).type)) > _DEEPEST:
            what = f"column {name!r} nests {levels} levels, and a column that a job needs may nest {_DEEPEST}"
            raise ConfigError(what, f'leave it out, or read it as text with --schema "{name}:string"')
    left_out = {*plan.stream_names, *plan.place_names, MARK} if stage.plain and not plan.options.plain else set()
    result = pa.schema([field for field in plan.schema if field.name not in left_out])
    return StagePlan(stage, schema, plan, result, _marks(stage, stage_input, plan), sides=sides)


def _levels(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 0
    return 1 + max((_levels(kind.field(at).type) for at in range(kind.num_fields)), default=0)


def _marks(stage: Stage, stage_input: _Input, plan: Plan) -> str:
    """Return where window marks come from. Raises `ConfigError` where they cannot."""
    if stage.options.empty == "mark" and plan.key:
        raise ConfigError("--empty mark is for windows without a key", "say --empty row, or leave out --key")
    if stage.marks == "auto":
        return STREAM if stage_input.stream else FILES
    if stage.marks == FILES and stage_input.read is None:
        raise ConfigError("--marks files: what a stage before gives is no files", "leave it out, or name a column")
    if stage.marks in (FILES, NONE):
        return stage.marks
    check_marks(plan.projection, stage.marks)
    names = plan.projection.schema.names
    if stage.marks not in names:
        raise ConfigError(f"--marks: there is no column {stage.marks!r}", did_you_mean(stage.marks, names))
    found = plan.projection.schema.field(stage.marks).type
    if not is_condition(found):
        raise ConfigError(f"--marks needs a boolean column, and {stage.marks!r} is {found}", "name another column")
    return f"column:{stage.marks}"
