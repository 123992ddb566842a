"""The input of a job, opened: tasks find the types of text files, where these are large."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ...conf.job import Job, ReadBeside, RightSide, Stage
from ...readers.joined import join_sources, sides_of
from ...readers.open import NoColumnError, open_source
from ...readers.source import FileSource, WindowSource
from ...readers.values.types import Named
from ...windowing.columns.arrays import is_instant
from ...windowing.enrichment.binding import bind_enrichment
from ...windowing.enrichment.step import Enrich, enrichments_of
from ...windowing.errors import InputError, WincliError
from ...windowing.expressions.syntax import Expression
from ...windowing.kinds.registry import kind_of
from ...windowing.language.enrichment import Enrichment
from ...windowing.language.joins import LEFT
from ...windowing.language.options import sort_key
from ...windowing.language.spec import HIDDEN, AggregateCall, Column, Joined
from ...windowing.planning.join_rules import check_join
from ...windowing.planning.matched_calls import matched_calls
from ...windowing.planning.one_sequence import one_sequence
from ...windowing.planning.pane_columns import OVERLAP, SHARE
from ...windowing.planning.sides import SIDES, Sides, bind_sides
from ...windowing.ports import Executor, Source, StreamInfo
from ...windowing.rows.projection import VIRTUAL, RowExpressions
from .request import naming_stage, read_options

_MARKS = ("auto", "files", "none")


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """What earlier runs say of the columns that a job reads: schemas, each with what messages call it.

    ``input``: of its input.
    ``tables``: of the tables beside it, by their names.
    """

    input: tuple[Named, ...] = ()
    tables: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)


NOTHING_KNOWN = KnownColumns()
Earlier: TypeAlias = "Callable[[], Iterable[Job]]"
"""Gives the jobs of the units before a unit, the nearest first."""


def open_input(
    job: Job,
    executor: Executor,
    files: Sequence[str] | None = None,
    known: KnownColumns = NOTHING_KNOWN,
) -> FileSource:
    """Open the input of a job's first stage, or only ``files`` of it; of a join both sides, as one input.

    ``executor``: scans large text. Raises what `open_source` and `bind_sides` raise.
    """
    paths, stage = job.inputs if files is None else files, job.stages[0]
    with naming_stage(job, stage.name):
        check_join(stage.spec, stage.options, stage.calls, ())
    source = open_source(paths, read_options(job), executor, known.input, named_columns(job))
    return with_right(job, source, executor, known)


def with_right(
    job: Job,
    source: FileSource,
    executor: Executor,
    known: KnownColumns = NOTHING_KNOWN,
    paths: Mapping[str, Sequence[str]] = {},
) -> FileSource:
    """Return the input of the first stage with the right side of its join, where that is another log.

    ``paths``: where the right side is, by the name of the join; else it is where the job says. Raises as `open_input`.
    """
    stage = job.stages[0]
    asked = job.right_of(stage)
    if asked is None:
        return source
    right = _open_table(job, asked, executor, known.tables.get(asked.name, ()), paths.get(asked.name))
    with naming_stage(job, stage.name):
        own = {f"{each.name}_": f"--enrich {each.name}" for each in job.enrichments}
        own |= {part.name: f"--enrich {each.name}" for each in job.enrichments for part in each.take or () if part.name}
        sides = sides_with(stage, right, source.schema, source.stream, frozenset(source.constants), own)
    return join_sources(source, right, sides)


def sides_with(
    stage: Stage,
    right: FileSource,
    left: pa.Schema,
    stream: StreamInfo | None,
    of_folders: Collection[str],
    computed: Mapping[str, str] = {},
) -> Sides:
    """Return both sides of a stage's join; ``left``, ``stream`` and ``of_folders`` are of its input.

    ``computed``: columns that it gets besides those of ``--let``, as `bind_sides` takes them.
    """
    order_by: Any = "arrival" if stage.order_by == ("arrival",) else stage.order_by
    spec = stage.spec
    assert isinstance(spec, Joined), "a stage with another log joins it"
    computed = {**computed, **{name: "--let" for name, _ in stage.options.let}}
    return bind_sides(
        *(spec.join, spec.window, left, right.schema, stage.key, order_by, of_folders, stream, own_columns(right)),
        computed=computed,
    )


def open_unit(job: Job, executor: Executor, earlier: Earlier) -> FileSource:
    """Open the input of a unit of a range without a state: a column without a type has that of the unit before.

    That is the nearest unit before it that knows one, by its files, whether it was run or not. Files are looked at only
    where a column that the job names is missing or has no value. Raises what `open_source` raises.
    """
    source, failure = None, None
    try:
        source = open_input(job, executor)
    except NoColumnError as error:
        failure = error
    lacking = _Lacking.of(job, source)
    known: list[Named] = []
    tables: dict[str, tuple[Named, ...]] = {}
    for own in earlier() if lacking else ():
        try:
            before = open_input(own, executor)
        except InputError:  # it says nothing, or cannot be read any more
            continue
        found, sides = lacking.found_in(before), sides_of(before)
        if sides is not None and found:
            place, of_right = before.files[0].path, sides.of_right
            right = pa.schema([field.with_name(of_right[field.name]) for field in found if field.name in of_right])
            tables[sides.join.name] = (*tables.get(sides.join.name, ()), (place, right))
            found = pa.schema([field for field in found if field.name in sides.left.names])
        if found:
            known.append((before.files[0].path, found))
        if lacking.is_settled(before):
            break
    if known or tables:
        return open_input(job, executor, known=KnownColumns(tuple(known), tables))
    if source is None:
        assert failure is not None
        raise failure
    return source


@dataclass(slots=True)
class _Lacking:
    """What the input of a unit does not say of the columns that its job names.

    ``missing``: the columns that no file has.
    ``untyped``: the columns without a value.
    ``needs_clock``: whether the window needs a time that no column is.
    ``needs_all``: whether there is no column at all.
    """

    missing: set[str]
    untyped: set[str]
    needs_clock: bool
    needs_all: bool

    @classmethod
    def of(cls, job: Job, source: FileSource | None) -> _Lacking:
        one = job.stages[0]
        schema = pa.schema([]) if source is None else source.schema
        named = {name for name in named_columns(job) if name.partition(".")[0] not in schema.names}
        named |= {name for name in named_columns(job) if name in schema.names}
        untyped = {name for name in named if name in schema.names and pa.types.is_null(schema.field(name).type)}
        needs_clock = kind_of(one.spec).needs.clock and one.order_by is None
        needs_clock |= kind_of(one.spec).needs.watermark and one.options.event_time is None
        has_instant = any(is_instant(field.type) for field in schema)
        return cls(named - {*schema.names}, untyped, needs_clock and not has_instant, source is None)

    def __bool__(self) -> bool:
        return bool(self.missing or self.untyped or self.needs_clock or self.needs_all)

    def found_in(self, source: FileSource) -> pa.Schema:
        """Return the columns of an earlier input that say what is lacking, which is then lacking no more."""
        wanted = {*self.missing, *self.untyped}
        fields = [
            field
            for field in source.schema
            if not pa.types.is_null(field.type)
            and (self.needs_all or field.name in wanted or (self.needs_clock and is_instant(field.type)))
        ]
        found = {field.name for field in fields}
        self.missing -= found
        self.untyped -= found
        self.needs_clock &= not any(is_instant(field.type) for field in fields)
        self.needs_all &= not fields
        return pa.schema(fields)

    def is_settled(self, source: FileSource) -> bool:
        """Whether no unit before an earlier one has to be looked at.

        A column that is always there and never has a value is looked for in one unit with rows: text takes time.
        """
        has_rows = any(split.rows for split in source.splits)
        return not (self.missing or self.needs_clock or self.needs_all or (self.untyped and not has_rows))


def row_expressions(job: Job, source: FileSource) -> RowExpressions:
    """Return the expressions over the rows of a job's input, in which each side of a join has its own."""
    stage, sides = job.stages[0], sides_of(source)
    options, key, order_by = stage.options, stage.key, stage.order_by
    if options.join is None:
        return RowExpressions(options.let, options.where)
    if sides is not None:
        options, key, order_by = replace(options, join=sides.join), sides.key, sides.order_by
    spec = stage.spec.window if isinstance(stage.spec, Joined) else stage.spec
    return one_sequence(spec, source.schema, key, order_by, stage.calls, options, source.stream).expressions


def named_columns(job: Job) -> frozenset[str]:
    """Return the columns of its input that a job names; not those that expressions or enrich tables give its rows.

    A name with a dot may be that of a field of a column.
    """
    found = set(_named(job.stages[0]))
    found |= {pair.left for each in job.enrichments for pair in each.keys}
    found |= {each.asof.order.left for each in job.enrichments if each.asof is not None}
    join = job.stages[0].options.join
    found |= {pair.left for pair in (*join.keys, *join.orders)} if join is not None else set()
    found -= {
        *VIRTUAL,
        *((OVERLAP, SHARE) if job.stages[0].options.ends else kind_of(job.stages[0].spec).needs.pane_columns),
        *(name for name, _ in job.stages[0].options.let),
    }
    given = [(each.name, each.take) for each in job.enrichments] + ([] if join is None else [(join.name, join.take)])
    for prefix, take in given:
        taken = {taken.name for taken in take or ()}
        found -= {name for name in found if name in taken or name.startswith(f"{prefix}_")}
    return frozenset(name for name in found if not name.startswith(HIDDEN))


def _named(stage: Stage) -> Iterator[str]:
    options, kind = stage.options, kind_of(stage.spec)
    order = () if stage.order_by == ("arrival",) else stage.order_by or ()
    yield from (*stage.key, *order, *kind.needs.attributes, *options.group_by)
    yield from (sort_key(text, ()).name for text in options.sort_by)
    yield from (name for name in (options.event_time, options.ends) if name is not None)
    if stage.marks not in _MARKS:
        yield stage.marks
    yield from (name for _, each in options.let for name in each.columns)
    yield from (name for each in kind.needs.expressions.values() for name in each.columns)
    yield from options.where.columns if options.where is not None else ()
    yield from options.distinct.columns if options.distinct is not None else ()
    for item in matched_calls(stage.calls or (), stage.spec):
        for call in item.calls:
            yield from columns_of_call(call)


def columns_of_call(call: AggregateCall) -> Iterator[str]:
    """Yield the columns that a call of an aggregate names."""
    for each in (*call.arguments, call.where):
        if isinstance(each, Column):
            yield each.name
        elif isinstance(each, Expression):
            yield from each.columns


# The input of a job with the columns of its enrich tables: these are opened and bound, but not read yet.


def enriched_input(
    job: Job,
    source: FileSource,
    executor: Executor,
    known: KnownColumns = NOTHING_KNOWN,
) -> FileSource:
    """Return the input of a job's first stage, with the columns of the job's enrich tables, and tables of windows.

    ``known``: what earlier runs say of the columns of these. Raises what `open_source` raises for a table, and
    `ConfigError` where a table does not fit the rows.
    """
    sides = sides_of(source)
    for enrichment in job.enrichments:
        table = _open_table(job, enrichment, executor, known.tables.get(enrichment.name, ()))
        bound = bind_enrichment(enrichment, source.schema, table.schema, own_columns(table))
        side = None if sides is None else SIDES[LEFT] if sides.join.how == "union" else LEFT
        source = source.with_steps([*source.steps, Enrich(bound, table, side=side)])
    for request in job.window_tables:
        table = _open_table(job, request, executor, known.tables.get(request.name, ()))
        source = replace(source, windows=(*source.windows, WindowSource(request, table)))
    for stage in job.stages[1:]:
        asked = job.right_of(stage)
        if asked is not None:
            with naming_stage(job, stage.name):
                right = _open_table(job, asked, executor, known.tables.get(asked.name, ()))
            source = replace(source, rights={**source.rights, asked.name: right})
    return source


def own_columns(table: FileSource) -> tuple[str, ...]:
    """Return the columns that a table has as a stream of wincli, which are taken only by name."""
    return tuple(name for name in table.stream.own if name.startswith("_")) if table.stream is not None else ()


def beside(source: FileSource) -> dict[str, Source]:
    """Return the tables that a job reads beside its input, by their names."""
    found: dict[str, Source] = {each.bound.enrichment.name: each.table for each in enrichments_of(source)}
    return {**found, **{each.request.name: each.table for each in source.windows}, **source.rights}


def _open_table(
    job: Job, request: ReadBeside, executor: Executor, known: Sequence[Named], paths: Sequence[str] | None = None
) -> FileSource:
    own = read_options(job)
    reading = replace(
        own,
        format="auto",
        schema=(),
        stdin=None,
        bases=(),
        skip_unreadable=False,
        version=None,
        limit=None,
    )
    try:
        paths = [request.path] if paths is None else paths
        table = open_source(paths, reading, executor, known)
        texts = {field.name for field in table.schema if pa.types.is_string(field.type)}
        given = [(name, text) for name, text in own.schema if name in texts]
        if not given:
            return table
        return open_source(paths, replace(reading, schema=tuple(given)), executor, known)
    except WincliError as error:
        option = (
            "enrich" if isinstance(request, Enrichment) else "join" if isinstance(request, RightSide) else "windows"
        )
        error.what = f"--{option} {request.name}: {error.what}"
        raise
