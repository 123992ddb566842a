"""A `RunObserver` that sends OpenLineage events: of the command, and of each unit as a run below it."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.uuid import generate_new_uuid

from ...conf.job import plain_path
from ...conf.ranges import unit_of
from ...windowing.enrichment.source import EnrichedSource
from ...windowing.errors import shown
from ...windowing.ports import InputFile
from ...windowing.support.redaction import redacted, redacted_path
from ..console.messages import Messages, Stopped
from ..planning.open_input import AnySource
from ..planning.request import JobRequest
from ..run.context import ObservedRun, StagedJob
from .lineage_events import (
    ColumnLineage,
    Indirect,
    Origin,
    Parents,
    RunFacts,
    RunName,
    chained,
    event_of,
    exact_name,
    input_names,
    input_of,
    lineage_of,
    name_of,
    output_of,
    outputs_of,
    parents_in,
)
from .lineage_transport import Outbox

# What a committed run says of its datasets: schemas, how much was read and written, which column comes from which.


def inputs_read(request: JobRequest, job: StagedJob) -> list[InputDataset]:
    """Return the inputs of a run that is committed, those of enrich tables last."""
    base, tables = _divided(job.plan.source)
    names = input_names(request)
    if len(names) == 1:
        rows = job.stage_runs[0].outcome.counts.rows_in
        found = [input_of(names[0], base.schema, rows, *_size(base.files))]
    else:
        found = []
        for name in names:
            above = f"{name.name.rstrip('/')}/"
            paths = ((file, exact_name(file.path)) for file in base.files)
            files = [
                file
                for file, own in paths
                if own.namespace == name.namespace and (own.name == name.name or own.name.startswith(above))
            ]
            found.append(input_of(name, base.schema, None, *_size(files)))
    for each, table in zip(request.enrichments, tables, strict=True):
        found.append(input_of(name_of(each.path), table.schema, None, *_size(table.files)))
    return found


def outputs_written(request: JobRequest, job: StagedJob) -> Iterator[OutputDataset]:
    """Yield the outputs of a run that is committed, with the lineage of their columns from the input of the job."""
    source, names = job.plan.source, input_names(request)
    base, _ = _divided(source)
    origins: dict[str, Origin] = {column: [(name, column) for name in names] for column in base.schema.names}
    joins: list[str] = []  # the columns by which enrich tables are looked up
    if isinstance(source, EnrichedSource):
        for each, one in zip(request.enrichments, source.enriched, strict=True):
            table, bound = name_of(each.path), one.bound
            pairs = zip(bound.fields, bound.taken, strict=True)
            origins |= {field.name: [(table, taken)] for field, taken in pairs}
            # No column of the input is called so: it is a column of the table that only is compared.
            compared = {f"\0{bound.enrichment.name}\0{pair.right}": pair.right for pair in bound.compared}
            origins |= {key: [(table, right)] for key, right in compared.items()}
            joins += [*bound.left, *compared]
    paths = iter(outputs_of(request))
    lineage: ColumnLineage | None = None
    for run in job.stage_runs:
        of_stage = lineage_of(run.stage)
        lineage = of_stage if lineage is None else chained(lineage, of_stage)
        path = next(paths, None) if run.stage_output.is_own else None
        if path is None:
            continue
        rows: dict[str, Set[Indirect]] = dict(lineage.rows)
        for column in joins:
            rows[column] = rows.get(column, frozenset()) | {"JOIN"}
        is_last = run is job.stage_runs[-1]
        told = [(one.expect, one.holds, one.on_fail == "fail") for one in job.expectations] if is_last else []
        yield output_of(name_of(path), run.stage.result, run.parts, replace(lineage, rows=rows), origins, told)


def _divided(source: AnySource) -> tuple[AnySource, Sequence[AnySource]]:
    return (source.base, source.tables) if isinstance(source, EnrichedSource) else (source, ())


def _size(files: Sequence[InputFile]) -> tuple[int, int]:
    return sum(file.size for file in files), len(files)


_NAMESPACE = "wincli"

Datasets = tuple[Sequence[InputDataset], Sequence[OutputDataset]]
NO_DATASETS: Datasets = ((), ())


class Lineage:
    """Sends the events of one command. What cannot be made or sent is a note at its end, and fails no run.

    ``request``: the job as the user requested it.
    ``messages``: the writer to stderr.
    ``outbox``: where events go.
    ``environ``: the environment, which names the runs above this one.
    """

    def __init__(
        self,
        request: JobRequest,
        messages: Messages,
        outbox: Outbox,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._request, self._messages, self._outbox = request, messages, outbox
        self._is_range = request.job.start is not None
        self._has_units = self._is_range or request.job.state is not None
        parents = parents_in(environ)
        for note in parents.notes:
            messages.note(note)
        namespace = environ.get("OPENLINEAGE_NAMESPACE") or _NAMESPACE
        name = RunName(namespace, shown(redacted_path(plain_path(request.job.output))), str(generate_new_uuid()))
        self._facts = RunFacts(name, "; then ".join(str(each.spec) for each in request.stages), parents)
        self._units: dict[int, RunFacts] = {}
        self._datasets: Callable[[], Datasets] = lambda: NO_DATASETS
        self._lock = threading.Lock()

    def open(self, at: dt.datetime) -> None:
        """Send that the command starts. ``at``: when it began."""
        self._emit(
            lambda: event_of(
                "START", self._facts, at, *(NO_DATASETS if self._has_units else self._planned(self._request))
            )
        )

    def begin(self, run: ObservedRun) -> None:
        if self._has_units:
            above = self._facts
            name = replace(above.run, name=f"{above.run.name}.unit", run_id=str(generate_new_uuid()))
            parents = Parents(above.run, above.parents.root or above.parents.parent or above.run)
            facts = RunFacts(name, above.about, parents, unit_of(run.unit, run.request.job.unit))
            self._units[id(run)] = facts
            self._emit(lambda: event_of("START", facts, run.started, *self._planned(run.request)))

    def commit(self, run: ObservedRun, job: StagedJob) -> None:
        request = self._naming(run.request)

        def datasets() -> Datasets:
            return inputs_read(request, job), tuple(outputs_written(request, job))

        if self._has_units:
            facts = self._units.pop(id(run))
            self._emit(lambda: event_of("COMPLETE", facts, _now(), *datasets()))
        else:
            self._datasets = datasets

    def fail(self, run: ObservedRun, error: BaseException) -> None:
        if self._has_units:
            facts = self._units.pop(id(run))
            self._emit(lambda: self._failure(facts, error))

    def pass_over(self, skipped: int, gaps: int) -> None:
        """Send nothing of units that did not run."""

    def close(self, error: BaseException | None) -> None:
        """Send that the command has ended, well or with an error; say how many events could not be sent."""
        if error is None:
            self._emit(lambda: event_of("COMPLETE", self._facts, _now(), *self._datasets()))
        else:
            self._emit(lambda: self._failure(self._facts, error))
        for note in self._outbox.close():
            self._messages.note(note)

    def _planned(self, own: JobRequest) -> Datasets:
        request = self._naming(own)
        names = dict.fromkeys([*input_names(request), *(name_of(each.path) for each in request.enrichments)])
        written = map(name_of, outputs_of(request))
        outputs = [OutputDataset(each.namespace, each.name, facets={}, outputFacets={}) for each in written]
        return [input_of(name) for name in names], outputs

    def _naming(self, own: JobRequest) -> JobRequest:
        """Return the job that names the datasets of a run: units of a range are parts of those of the whole job."""
        return self._request if self._is_range else own

    def _failure(self, facts: RunFacts, error: BaseException) -> Any:
        if isinstance(error, Stopped | KeyboardInterrupt):
            return event_of("ABORT", facts, _now(), error="stopped by a signal")
        text = self._messages.clean(shown(redacted(str(error)))) or type(error).__name__
        return event_of("FAIL", facts, _now(), error=text)

    def _emit(self, make: Callable[[], Any]) -> None:
        with self._lock:
            self._outbox.put(make)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
