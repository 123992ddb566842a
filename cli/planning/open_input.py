"""The input of a job, opened: tasks find the types of text files, where these are large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...readers.open import open_source
from ...readers.schema.unify import Named
from ...readers.source import FileSource
from ...windowing.expressions.syntax import Expression
from ...windowing.kinds.registry import kind_of
from ...windowing.language.spec import AggregateCall, Column
from ...windowing.ports import Executor
from ...windowing.spark.boot import PendingExecutor
from ..request.request import JobRequest, StageRequest

_MARKS = ("auto", "files", "none")


class Starting(Protocol):
    """A Spark that may still be starting, or what stands in its place."""

    def session(self) -> Executor:
        """Wait until tasks can run."""
        ...


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """What earlier runs say of the columns that a job reads: schemas, each with what messages call it.

    ``input``: of its input.
    ``tables``: of its enrich tables, by the name of the enrichment.
    """

    input: tuple[Named, ...] = ()
    tables: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)


NOTHING_KNOWN = KnownColumns()


def open_input(
    request: JobRequest,
    spark: Starting,
    files: Sequence[str] | None = None,
    known: KnownColumns = NOTHING_KNOWN,
) -> FileSource:
    """Open the input of a job's first stage, or only ``files`` of it. Raises what `open_source` raises.

    Spark is waited for only if tasks are needed.
    """
    return open_with(request, PendingExecutor(spark.session), files, known)


def open_with(
    request: JobRequest,
    executor: Executor,
    files: Sequence[str] | None = None,
    known: KnownColumns = NOTHING_KNOWN,
) -> FileSource:
    """Open the input of a job as `open_input` does; ``executor``: scans large text."""
    paths = request.inputs if files is None else files
    return open_source(paths, request.reading, executor, known.input, named_columns(request))


def named_columns(request: JobRequest) -> frozenset[str]:
    """Return the names that the first stage of a job has for columns; some are those of expressions."""
    found = set(_named(request.stages[0]))
    found |= {pair.left for each in request.enrichments for pair in each.keys}
    found |= {each.asof.order.left for each in request.enrichments if each.asof is not None}
    return frozenset(found)


def _named(one: StageRequest) -> Iterator[str]:
    options, kind, stage = one.options, kind_of(one.spec), one.stage
    yield from (*stage.key, *(stage.order_by or ()), *kind.attributes, *options.group_by, *options.sort_by)
    if options.event_time is not None:
        yield options.event_time
    if stage.marks not in _MARKS:
        yield stage.marks
    yield from (name for _, each in options.let for name in each.columns)
    yield from (name for each in kind.expressions.values() for name in each.columns)
    yield from options.where.columns if options.where is not None else ()
    for item in one.calls or ():
        for call in item.calls:
            yield from _named_by(call)


def _named_by(call: AggregateCall) -> Iterator[str]:
    for each in (*call.arguments, call.where):
        if isinstance(each, Column):
            yield from (each.name, each.name.partition(".")[0])
        elif isinstance(each, Expression):
            yield from each.columns
