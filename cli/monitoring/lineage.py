"""OpenLineage events: made from what is known of a run, and sent by a `RunObserver`, of the run and of each unit."""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pyarrow as pa
from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
from openlineage.client.event_v2 import Job as EventJob
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    documentation_job,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    set_producer,
)
from openlineage.client.uuid import generate_new_uuid

from ...conf.job import PIPE, Job, RightSide, is_table, plain_path
from ...conf.ranges import Unit, before_date, has_date, unit_of
from ...readers.joined import left_files, sides_of
from ...readers.source import FileSource
from ...windowing.aggregates.table import TABLE
from ...windowing.enrichment.step import enrichments_of, without_enrichments
from ...windowing.errors import shown
from ...windowing.language.joins import SIDE
from ...windowing.language.sentences import window_text
from ...windowing.language.spec import Column
from ...windowing.planning.matched_calls import matched_calls, shown_calls
from ...windowing.planning.plan import Plan
from ...windowing.planning.result_schema import FIXED, MARK, POS, numbered
from ...windowing.ports import InputFile, Part
from ...windowing.support.address import Address
from ...windowing.support.redaction import redacted, redacted_path
from ...windowing.tables.address import split_path
from ...writers.output.versions import version_of
from ..console.messages import Messages, Stopped
from ..run.context import ObservedRun, StagedJob
from ..run.fingerprint import absolute
from ..run.stage_plans import StagePlan
from .lineage_transport import PRODUCER, Outbox

# Column lineage of a job: which columns of its input each column of a result comes from, and how.
#
# The words are those of OpenLineage. A column of a result comes directly from columns that it is the value of
# (``IDENTITY``), is computed from (``TRANSFORMATION``), or aggregates (``AGGREGATION``). Others only decide which rows
# its aggregate looks at (``CONDITIONAL``), which rows a result has, and which row of the input is in which.


_DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
"""The uses of a column of which a value has one, the weakest first."""
_CONDITIONAL = "CONDITIONAL"
_COLUMN = "column:"

Uses = Mapping[str, Set[str]]
"""Column of the input to its uses, of which at most one is direct."""


class ColumnLineage(NamedTuple):
    """Where the columns of a result come from.

    ``fields``: column of the result to the columns of the input that it comes from, or that its aggregate looks at.
    ``rows``: column of the input to how it decides which rows the result has.
    """

    fields: Mapping[str, Uses]
    rows: Uses


def lineage_of(stage: StagePlan) -> ColumnLineage:
    """Return the column lineage of one stage, from the columns of its input to those that it writes."""
    plan, projection = stage.plan, stage.plan.projection
    made_of = {each.name: each.value.columns for each in projection.computed}
    made_of |= {each.name: each.columns for each in projection.lags}
    sides, stored = stage.sides, {} if plan.pairs is None else dict(plan.pairs.right)

    if plan.pane_schema.names:  # how much of a row is in a window, or as what a match takes it
        needs = plan.kind.needs
        sources = needs.attributes if needs.ends is None else (plan.sort[0], needs.ends)
        beyond = [name for name in plan.pane_schema.names if name not in stored]
        made_of |= dict.fromkeys(beyond, sources if plan.pairs is None else ())
        made_of |= {each.name: each.value.columns for each in plan.of_panes}

    def resolve(name: str) -> Uses:
        name = stored.get(name, name)
        if name in projection.virtual or (plan.options.join is not None and name == SIDE and name not in made_of):
            return {}
        if name in made_of:
            return {source: {"TRANSFORMATION"} for column in made_of[name] for source in resolve(column)}
        if sides is None or name not in sides.of_right:
            return {name: {"IDENTITY"}}
        found = {_beside(sides.join.name, sides.of_right[name]): {"IDENTITY"}}
        return found | ({name: {"IDENTITY"}} if name in sides.left.names else {})  # a key, or an order

    known = {**_pane_columns(plan, resolve), **_values(stage, resolve), **_of_windows(plan)}
    known |= {name: resolve(name) for name in plan.of_left}
    marks = [stage.marks.removeprefix(_COLUMN)] if plan.takes_marks and stage.marks.startswith(_COLUMN) else []
    event_time = [plan.options.event_time] if plan.options.event_time else []
    clock = [plan.clock] if plan.clock and plan.kind.needs.causes != "rows" else []
    distinct = plan.options.distinct.columns if plan.options.distinct is not None else ()
    uses: dict[str, Iterable[str]] = {
        "FILTER": (*(projection.where.value.columns if projection.where is not None else ()), *distinct),
        "GROUP_BY": (*plan.key, *plan.options.group_by),
        "SORT": (*plan.sort, *(key.name for key in plan.sort_rows)),
        "WINDOW": (*plan.kind.needs.attributes, *event_time, *clock, *marks),
        "JOIN": () if plan.options.join is None else (*plan.key, *(plan.match.value.columns if plan.match else ())),
    }
    rows = _joined({column: {use} for name in names for column in resolve(name)} for use, names in uses.items())
    if plan.windows is not None:
        bound = plan.windows.bound
        rows = _joined([rows, *({_beside(bound.request.name, name): {"WINDOW"}} for name in bound.right)])
    having = plan.having.value.columns if plan.having is not None else ()
    decided = [{column: {"FILTER"} for column in known.get(name, {})} for name in having]
    fields = {name: known.get(name, {}) for name in stage.result.names if name != MARK}
    return ColumnLineage(fields, _joined([rows, *decided]))


_BESIDE = "\0"
"""What a column of a table beside the input begins with: no column of an input is called so."""


def _beside(table: str, column: str) -> str:
    return f"{_BESIDE}{table}{_BESIDE}{column}"


def _of_windows(plan: Plan) -> dict[str, Uses]:
    """Return where the bounds and the attributes of windows come from that a table has."""
    if plan.windows is None:
        return {}
    bound = plan.windows.bound
    names = {"window_start": bound.request.start, "window_end": bound.request.end, "_at": bound.request.end}
    names |= {field.name: taken for field, taken in zip(bound.fields, bound.taken, strict=True)}
    return {name: {_beside(bound.request.name, column): {"IDENTITY"}} for name, column in names.items()}


def chained(first: ColumnLineage, second: ColumnLineage) -> ColumnLineage:
    """Return the lineage of a stage from the input of the stage before it.

    ``second``: the lineage of the stage, from the result of the stage before; ``first``: the lineage of that.
    """

    def through(column: str, how: Set[str]) -> Uses:
        above = first.fields.get(column, {column: {"IDENTITY"}} if column.startswith(_BESIDE) else {})
        direct = [word for word in _DIRECT if word in how]
        found = _at_least(direct[0], above) if direct else {}
        return found if _CONDITIONAL not in how else _joined([found, {each: {_CONDITIONAL} for each in above}])

    fields = {
        name: _joined(through(column, how) for column, how in found.items()) for name, found in second.fields.items()
    }
    rows = [
        dict.fromkeys({column} if column.startswith(_BESIDE) else first.fields.get(column, {}), how)
        for column, how in second.rows.items()
    ]
    return ColumnLineage(fields, _joined([first.rows, *rows]))


def _joined(parts: Iterable[Uses]) -> dict[str, Set[str]]:
    """Join uses: of the direct ones of a column the strongest is kept."""
    found: dict[str, Set[str]] = {}
    for part in parts:
        for column, how in part.items():
            every = {*found.get(column, ()), *how}
            found[column] = every - {*[word for word in _DIRECT if word in every][:-1]}
    return found


def _at_least(least: str, found: Uses) -> Uses:
    weaker = {*_DIRECT[: _DIRECT.index(least)]}
    return {column: {least if word in weaker else word for word in how} for column, how in found.items()}


def _pane_columns(plan: Plan, resolve: Callable[[str], Uses]) -> dict[str, Uses]:
    """Return where the columns come from that every result has: its keys, its groups, its bounds, its order values."""
    found = {name: resolve(name) for name in (*plan.key, *plan.options.group_by)}
    clock = plan.clock or (plan.at[0] if plan.at else None)
    bounds = {} if clock is None else _at_least("TRANSFORMATION", resolve(clock))
    found |= dict.fromkeys(FIXED[1:3], bounds)
    by_clock = plan.causes == "ticks"
    at = {numbered("_at", index): resolve(name) for index, name in enumerate(plan.at)}
    found |= {name: _at_least("TRANSFORMATION", how) if by_clock else how for name, how in at.items()}
    found |= {numbered("_tie", index): resolve(name) for index, name in enumerate(plan.ties)}
    return found | ({POS: resolve(plan.pos)} if plan.pos is not None else {})


def _values(stage: StagePlan, resolve: Callable[[str], Uses]) -> dict[str, Uses]:
    plan = stage.plan
    if plan.options.operator is not None:
        read = _at_least("TRANSFORMATION", _joined(resolve(name) for name in (*plan.key, *plan.rows)))
        own = {*plan.key, *FIXED, *plan.stream_names, *plan.place_names, MARK}
        return {name: read for name in stage.result.names if name not in own}
    if plan.rows:
        return {name: resolve(name) for name in plan.rows}
    values: dict[str, Uses] = {}
    calls = shown_calls(stage.request.calls, plan.spec, plan.options, plan.sort[0] if plan.sort else "")
    for item in matched_calls(calls or (), plan.spec):
        arguments = [argument for call in item.calls for argument in call.arguments]
        named = [each.name for each in arguments if isinstance(each, Column)]
        named += [name for each in arguments for name in getattr(each, "columns", ())]
        named += [name for call in item.calls if call.function in TABLE for name in TABLE[call.function].reads]
        asked = [name for call in item.calls if call.where is not None for name in call.where.columns]
        conditions = ({column: {_CONDITIONAL} for column in resolve(name)} for name in asked)
        values[item.name] = _joined([_at_least("AGGREGATION", _joined(map(resolve, named))), *conditions])
    return values


# Names of datasets: a path or URI becomes a namespace and a name, as OpenLineage names tables and folders.


_WILD = re.compile(r"[*?\[]")


class DatasetName(NamedTuple):
    """The store that holds a dataset (``file``, ``s3://bucket``, ``iceberg://catalog``), and its name in there."""

    namespace: str
    name: str


def name_of(path: str) -> DatasetName:
    """Return the name of the dataset at a path; of a template or a glob, the folder that is the same for all of it.

    A partition of a table is a part of the dataset that the table is.
    """
    if has_date(path):
        path = before_date(path)
    if wild := _WILD.search(path):
        path = path[: path.rfind("/", 0, wild.start()) + 1] or "."
    return exact_name(split_path(plain_path(path)).root if is_table(path) else path)


def exact_name(path: str) -> DatasetName:
    """Return the name of the file or folder at a path that is taken as it is."""
    address = Address.of(redacted_path(absolute(path)))
    if address.is_path:
        return DatasetName("file", shown(address.text))
    store, _, key = address.rest.partition("/")
    scheme = "abfss" if address.scheme == "abfs" else address.scheme  # as OpenLineage has it
    return DatasetName(f"{scheme}://{store}", shown(key.strip("/")) or "/")


def input_names(job: Job) -> tuple[DatasetName, ...]:
    """Return the names of the inputs of a job, each once. Stdin is none."""
    return tuple(dict.fromkeys(name_of(path) for path in job.input if path != PIPE))


def outputs_of(job: Job) -> tuple[str, ...]:
    """Return the outputs of a job, those of stages first. Stdout is none."""
    return tuple(path for path in job.outputs if path != PIPE)


# The run that has started this one, from the environment, where Airflow and others put it.


PARENT, ROOT = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"


class RunName(NamedTuple):
    """The identity of a run: the ``namespace`` and the ``name`` of its job, and its ``run_id``."""

    namespace: str
    name: str
    run_id: str


def run_above(variable: str, environ: Mapping[str, str]) -> tuple[RunName | None, str | None]:
    """Return the run that a variable names as ``namespace/name/run_id``, and what is to be said where it names none."""
    text = environ.get(variable, "").strip()
    before, _, run_id = text.rpartition("/")
    namespace, _, name = before.rpartition("/")  # a namespace may hold slashes
    try:
        UUID(run_id)
    except ValueError:
        name = ""
    if namespace and name:
        return RunName(namespace, name, run_id), None
    note = f"{variable} is not of the form namespace/name/run_id, with a UUID as run_id, and is not used"
    return None, note if text else None


_VERSION = version_of("wincli") or "unknown"
_PRODUCER = f"{PRODUCER}{_VERSION}"
set_producer(_PRODUCER)  # of all facets that are made from now on
Origin = Sequence[tuple[DatasetName, str]]
"""The datasets and fields that a column of an input is in."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What all events of a run have.

    ``about``: the job in words.
    ``parent``: the run that has started it; None: nobody says.
    ``root``: the run that has started all of them, as a DAG.
    ``unit``: the unit that it is of; None: of none.
    """

    run: RunName
    about: str
    parent: RunName | None = None
    root: RunName | None = None
    unit: Unit | None = None


State = Literal["START", "COMPLETE", "FAIL", "ABORT"]


def event_of(
    state: State,
    facts: RunFacts,
    inputs: Sequence[InputDataset] = (),
    outputs: Sequence[OutputDataset] = (),
    error: str | None = None,
    at: dt.datetime | None = None,
) -> RunEvent:
    """Return an event of a run: it starts, is complete (committed, or had nothing to do), has failed, or was stopped.

    ``error``: why it has failed, or by what it was stopped; then it has left no trace. ``at``: None: now.
    """
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=_VERSION, name="wincli", openlineageAdapterVersion=_VERSION
    )
    found: dict[str, RunFacet] = {"processing_engine": engine}
    if facts.parent is not None:
        above = None
        if facts.root is not None:
            job = parent_run.RootJob(namespace=facts.root.namespace, name=facts.root.name)
            above = parent_run.Root(run=parent_run.RootRun(runId=facts.root.run_id), job=job)
        job_above = parent_run.Job(namespace=facts.parent.namespace, name=facts.parent.name)
        found["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(runId=facts.parent.run_id), job=job_above, root=above
        )
    if facts.unit is not None and facts.unit.start is not None and facts.unit.end is not None:
        found["nominalTime"] = nominal_time_run.NominalTimeRunFacet(
            nominalStartTime=f"{facts.unit.start.isoformat()}Z", nominalEndTime=f"{facts.unit.end.isoformat()}Z"
        )
    if error is not None:
        found["errorMessage"] = error_message_run.ErrorMessageRunFacet(message=error, programmingLanguage="PYTHON")
    about: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet(processingType="BATCH", integration="WINCLI", jobType="JOB"),
        "documentation": documentation_job.DocumentationJobFacet(description=facts.about),
    }
    return RunEvent(
        eventType=RunState[state],
        eventTime=(at or dt.datetime.now(dt.UTC)).isoformat(),
        run=Run(facts.run.run_id, found),
        job=EventJob(facts.run.namespace, facts.run.name, about),
        producer=_PRODUCER,
        inputs=list(inputs),
        outputs=list(outputs),
    )


def input_of(
    name: DatasetName,
    schema: pa.Schema | None = None,
    rows: int | None = None,
    files: Sequence[InputFile] | None = None,
) -> InputDataset:
    """Return an input: its columns, and how much of it was read; None before it is opened."""
    statistics: dict[str, Any] = {}
    if files is not None:
        size = sum(file.size for file in files)
        statistics["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=rows, size=size, fileCount=len(files)
        )
    return InputDataset(*name, facets=_schema(schema), inputFacets=statistics)


def output_of(
    name: DatasetName,
    schema: pa.Schema,
    parts: Sequence[Part],
    lineage: ColumnLineage,
    origins: Mapping[str, Origin],
    expectations: Sequence[tuple[str, bool, bool]],
) -> OutputDataset:
    """Return an output that was written.

    ``lineage``: where its columns come from. ``origins``: column of the input to the datasets and fields that it is,
    several where inputs share it. ``expectations``: what has become of the expectations: text, whether it holds, and
    whether it can fail a run.
    """
    facets = _schema(schema) | {"columnLineage": _column_lineage(lineage, origins)}
    if expectations:
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions=[
                data_quality_assertions_dataset.Assertion(
                    assertion=shown(redacted(text)), success=holds, severity="error" if can_fail else "warn"
                )
                for text, holds, can_fail in expectations
            ]
        )
    written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=sum(part.rows for part in parts), size=sum(part.nbytes for part in parts), fileCount=len(parts)
    )
    return OutputDataset(*name, facets=facets, outputFacets={"outputStatistics": written})


def _schema(schema: pa.Schema | None) -> dict[str, Any]:
    if schema is None:
        return {}
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=shown(each.name), type=str(each.type), ordinal_position=at)
        for at, each in enumerate(schema, 1)
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}


def _column_lineage(
    lineage: ColumnLineage, origins: Mapping[str, Origin]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    def transformation(use: str) -> column_lineage_dataset.Transformation:
        kind = "DIRECT" if use in _DIRECT else "INDIRECT"
        return column_lineage_dataset.Transformation(type=kind, subtype=use)

    def fields_of(columns: Uses) -> list[column_lineage_dataset.InputField]:
        return [
            column_lineage_dataset.InputField(name.namespace, name.name, shown(source), list(map(transformation, how)))
            for column, uses in columns.items()
            # those that are direct come first
            for how in [sorted(uses, key=lambda use: (use not in _DIRECT, use))]
            for name, source in origins.get(column, ())
        ]

    fields = {}
    for result, uses in lineage.fields.items():
        only = sorted(column for column, how in uses.items() if how == {_CONDITIONAL})
        in_turn = [*(column for column in uses if column not in only), *only]
        own = fields_of({each: uses[each] for each in in_turn})
        fields[shown(result)] = column_lineage_dataset.Fields(inputFields=own)
    rows = dict(sorted(lineage.rows.items()))
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields, dataset=fields_of(rows))


# What a committed run says of its datasets: schemas, how much was read and written, which column comes from which.


def inputs_read(job: Job, staged: StagedJob) -> list[InputDataset]:
    """Return the inputs of a run that is committed, tables and logs beside it last."""
    base, sides = without_enrichments(staged.plan.source), sides_of(staged.plan.source)
    names, every = input_names(job), left_files(base)
    schema, rows = (base.schema, staged.stage_runs[0].outcome.counts.rows_in) if sides is None else (sides.left, None)
    if len(names) == 1:
        found = [input_of(names[0], schema, rows, every)]
    else:
        found = []
        for name in names:
            above = f"{name.name.rstrip('/')}/"
            paths = ((file, exact_name(file.path)) for file in every)
            files = [
                file
                for file, own in paths
                if own.namespace == name.namespace and (own.name == name.name or own.name.startswith(above))
            ]
            found.append(input_of(name, schema, None, files))
    for each, one in zip(job.enrichments, enrichments_of(staged.plan.source), strict=True):
        found.append(input_of(name_of(each.path), one.table.schema, None, one.table.files))
    for asked, read in zip(job.window_tables, staged.plan.source.windows, strict=True):
        found.append(input_of(name_of(asked.path), read.table.schema, None, read.table.files))
    for log, right in _rights(job, staged):
        found.append(input_of(name_of(log.path), right.schema, None, right.files))
    return found


def _rights(job: Job, staged: StagedJob) -> Iterator[tuple[RightSide, FileSource]]:
    """Return the logs that stages join, each with its files."""
    asked = (each for each in job.tables if isinstance(each, RightSide))
    return ((each, staged.plan.source.rights[each.name]) for each in asked)


def outputs_written(job: Job, staged: StagedJob) -> Iterator[OutputDataset]:
    """Yield the outputs of a run that is committed, with the lineage of their columns from the input of the job."""
    source, names = staged.plan.source, input_names(job)
    base = without_enrichments(source)
    origins: dict[str, Origin] = {column: [(name, column) for name in names] for column in base.schema.names}
    joins: list[str] = []  # the columns by which enrich tables are looked up
    for each, one in zip(job.enrichments, enrichments_of(source), strict=True):
        table, bound = name_of(each.path), one.bound
        pairs = zip(bound.fields, bound.taken, strict=True)
        origins |= {field.name: [(table, taken)] for field, taken in pairs}
        # No column of the input is called so: it is a column of the table that only is compared.
        compared = {f"\0{bound.enrichment.name}\0{pair.right}": pair.right for pair in bound.compared}
        origins |= {key: [(table, right)] for key, right in compared.items()}
        joins += [*bound.left, *compared]
    for read, asked in zip(source.windows, job.window_tables, strict=True):
        columns = read.table.schema.names
        origins |= {_beside(read.request.name, column): [(name_of(asked.path), column)] for column in columns}
    for log, right in _rights(job, staged):
        origins |= {_beside(log.name, column): [(name_of(log.path), column)] for column in right.schema.names}
    paths = iter(outputs_of(job))
    lineage: ColumnLineage | None = None
    for run in staged.stage_runs:
        of_stage = lineage_of(run.stage)
        lineage = of_stage if lineage is None else chained(lineage, of_stage)
        path = next(paths, None) if run.stage_output.is_own else None
        if path is None:
            continue
        rows = _joined([lineage.rows, *({column: {"JOIN"}} for column in joins)])
        is_last = run is staged.stage_runs[-1]
        told = [(one.expect, one.holds, one.on_fail == "fail") for one in staged.expectations] if is_last else []
        yield output_of(name_of(path), run.stage.result, run.parts, lineage._replace(rows=rows), origins, told)


_NAMESPACE = "wincli"

Datasets = tuple[Sequence[InputDataset], Sequence[OutputDataset]]
NO_DATASETS: Datasets = ((), ())


class Lineage:
    """Sends the events of one command. What cannot be made or sent is a note at its end, and fails no run.

    ``job``: the job as the user requested it.
    ``outbox``: where events go.
    ``environ``: the environment, which names the runs above this one.
    """

    def __init__(
        self,
        job: Job,
        messages: Messages,
        outbox: Outbox,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._job, self._messages, self._outbox = job, messages, outbox
        self._is_range = job.start is not None
        self._has_units = self._is_range or job.state is not None
        (parent, wrong_parent), (root, wrong_root) = (run_above(each, environ) for each in (PARENT, ROOT))
        for note in filter(None, (wrong_parent, wrong_root)):
            messages.note(note)
        namespace = environ.get("OPENLINEAGE_NAMESPACE") or _NAMESPACE
        name = RunName(namespace, shown(redacted_path(plain_path(job.output))), str(generate_new_uuid()))
        self._facts = RunFacts(
            name, "; then ".join(window_text(each.spec, each.options) for each in job.stages), parent, root
        )
        self._units: dict[int, RunFacts] = {}
        self._datasets: Callable[[], Datasets] = lambda: NO_DATASETS
        self._lock = threading.Lock()

    def open(self, at: dt.datetime) -> None:
        """Send that the command starts. ``at``: when it began."""
        self._emit(lambda: event_of("START", self._facts, *self._planned(self._job, not self._has_units), at=at))

    def begin(self, run: ObservedRun) -> None:
        if self._has_units:
            above = self._facts
            name = above.run._replace(name=f"{above.run.name}.unit", run_id=str(generate_new_uuid()))
            root = above.root or above.parent or above.run
            facts = RunFacts(name, above.about, above.run, root, unit_of(run.unit, run.job.unit))
            self._units[id(run)] = facts
            self._emit(lambda: event_of("START", facts, *self._planned(run.job), at=run.started))

    def commit(self, run: ObservedRun, staged: StagedJob) -> None:
        job = self._naming(run.job)

        def datasets() -> Datasets:
            return inputs_read(job, staged), tuple(outputs_written(job, staged))

        if self._has_units:
            facts = self._units.pop(id(run))
            self._emit(lambda: event_of("COMPLETE", facts, *datasets()))
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
            self._emit(lambda: event_of("COMPLETE", self._facts, *self._datasets()))
        else:
            self._emit(lambda: self._failure(self._facts, error))
        for note in self._outbox.close():
            self._messages.note(note)

    def _planned(self, own: Job, is_told: bool = True) -> Datasets:
        if not is_told:
            return NO_DATASETS
        job = self._naming(own)
        names = dict.fromkeys([*input_names(job), *(name_of(each.path) for each in job.tables)])
        written = map(name_of, outputs_of(job))
        outputs = [OutputDataset(*each, facets={}, outputFacets={}) for each in written]
        return [input_of(name) for name in names], outputs

    def _naming(self, own: Job) -> Job:
        """Return the job that names the datasets of a run: units of a range are parts of those of the whole job."""
        return self._job if self._is_range else own

    def _failure(self, facts: RunFacts, error: BaseException) -> Any:
        if isinstance(error, Stopped | KeyboardInterrupt):
            return event_of("ABORT", facts, error="stopped by a signal")
        text = self._messages.clean(shown(redacted(str(error)))) or type(error).__name__
        return event_of("FAIL", facts, error=text)

    def _emit(self, make: Callable[[], Any]) -> None:
        with self._lock:
            self._outbox.put(make)
