"""OpenLineage events from what is known of a run: the only module that makes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
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

from ....conf.ranges.units import Unit
from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted
from ....writers.output.versions import version_of
from .columns import ColumnLineage
from .datasets import DatasetName
from .parent import Parents, RunName
from .transport import PRODUCER

_VERSION = version_of("wincli") or "unknown"
_PRODUCER = f"{PRODUCER}{_VERSION}"
set_producer(_PRODUCER)  # of all facets that are made from now on
_DIRECT = "DIRECT"
_INDIRECT = "INDIRECT"


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What is known of an input.

    ``name``: its name.
    ``schema``: its columns; None before it is opened.
    ``rows``, ``nbytes``, ``files``: how much of it was read; None before.
    """

    name: DatasetName
    schema: pa.Schema | None = None
    rows: int | None = None
    nbytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What is known of an output.

    ``name``, ``schema``, ``rows``, ``nbytes``, ``files``: as of `InputFacts`, of what was written.
    ``lineage``: where its columns come from; None before it is planned.
    ``origins``: column of the input to the dataset and the field that it is, or several where inputs share it.
    ``expectations``: what has become of the expectations: text, whether it holds, and whether it can fail a run.
    """

    name: DatasetName
    schema: pa.Schema | None = None
    rows: int | None = None
    nbytes: int | None = None
    files: int | None = None
    lineage: ColumnLineage | None = None
    origins: Mapping[str, Sequence[tuple[DatasetName, str]]] = field(default_factory=dict)
    expectations: Sequence[tuple[str, bool, bool]] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What all events of a run have.

    ``run``: its identity.
    ``about``: the job in words.
    ``parents``: the runs above it.
    ``unit``: the unit that it is of; None: of none.
    """

    run: RunName
    about: str
    parents: Parents
    unit: Unit | None = None


def new_run_id() -> str:
    """Return an id for a run."""
    return str(generate_new_uuid())


def start_event(
    facts: RunFacts, at: dt.datetime, inputs: Sequence[InputFacts] = (), outputs: Sequence[OutputFacts] = ()
) -> RunEvent:
    """Return the event that a run starts."""
    return _event(RunState.START, facts, at, inputs, outputs)


def complete_event(
    facts: RunFacts, at: dt.datetime, inputs: Sequence[InputFacts] = (), outputs: Sequence[OutputFacts] = ()
) -> RunEvent:
    """Return the event that a run is committed, or had nothing to do."""
    return _event(RunState.COMPLETE, facts, at, inputs, outputs)


def fail_event(facts: RunFacts, at: dt.datetime, message: str, is_stopped: bool) -> RunEvent:
    """Return the event that a run has failed, or (``is_stopped``) was stopped by a signal. It has left no trace."""
    why = error_message_run.ErrorMessageRunFacet(message=message, programmingLanguage="PYTHON")
    return _event(RunState.ABORT if is_stopped else RunState.FAIL, facts, at, (), (), {"errorMessage": why})


def _event(
    state: RunState,
    facts: RunFacts,
    at: dt.datetime,
    inputs: Sequence[InputFacts],
    outputs: Sequence[OutputFacts],
    more: Mapping[str, RunFacet] | None = None,
) -> RunEvent:
    run = facts.run
    return RunEvent(
        eventType=state,
        eventTime=at.isoformat(),
        run=Run(run.run_id, {**_run_facets(facts), **(more or {})}),
        job=Job(run.namespace, run.name, _job_facets(facts)),
        producer=_PRODUCER,
        inputs=[_input(each) for each in inputs],
        outputs=[_output(each) for each in outputs],
    )


def _run_facets(facts: RunFacts) -> dict[str, RunFacet]:
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=_VERSION, name="wincli", openlineageAdapterVersion=_VERSION
    )
    found: dict[str, RunFacet] = {"processing_engine": engine}
    if facts.parents.parent is not None:
        found["parent"] = _parent(facts.parents.parent, facts.parents.root)
    if facts.unit is not None and facts.unit.start is not None and facts.unit.end is not None:
        found["nominalTime"] = nominal_time_run.NominalTimeRunFacet(
            nominalStartTime=f"{facts.unit.start.isoformat()}Z", nominalEndTime=f"{facts.unit.end.isoformat()}Z"
        )
    return found


def _parent(parent: RunName, root: RunName | None) -> parent_run.ParentRunFacet:
    above = None
    if root is not None:
        job = parent_run.RootJob(namespace=root.namespace, name=root.name)
        above = parent_run.Root(run=parent_run.RootRun(runId=root.run_id), job=job)
    job_above = parent_run.Job(namespace=parent.namespace, name=parent.name)
    return parent_run.ParentRunFacet(run=parent_run.Run(runId=parent.run_id), job=job_above, root=above)


def _job_facets(facts: RunFacts) -> dict[str, JobFacet]:
    return {
        "jobType": job_type_job.JobTypeJobFacet(processingType="BATCH", integration="WINCLI", jobType="JOB"),
        "documentation": documentation_job.DocumentationJobFacet(description=facts.about),
    }


def _input(facts: InputFacts) -> InputDataset:
    statistics: dict[str, Any] = {}
    if facts.rows is not None or facts.files is not None:
        statistics["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=facts.rows, size=facts.nbytes, fileCount=facts.files
        )
    return InputDataset(
        namespace=facts.name.namespace,
        name=facts.name.name,
        facets=_schema(facts.schema),
        inputFacets=statistics,
    )


def _output(facts: OutputFacts) -> OutputDataset:
    facets: dict[str, Any] = _schema(facts.schema)
    if facts.lineage is not None:
        facets["columnLineage"] = _column_lineage(facts.lineage, facts.origins)
    if facts.expectations:
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions=[
                data_quality_assertions_dataset.Assertion(
                    assertion=shown(redacted(text)), success=holds, severity="error" if can_fail else "warn"
                )
                for text, holds, can_fail in facts.expectations
            ]
        )
    statistics: dict[str, Any] = {}
    if facts.rows is not None:
        statistics["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=facts.rows, size=facts.nbytes, fileCount=facts.files
        )
    return OutputDataset(namespace=facts.name.namespace, name=facts.name.name, facets=facets, outputFacets=statistics)


def _schema(schema: pa.Schema | None) -> dict[str, Any]:
    if schema is None:
        return {}
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=shown(each.name), type=str(each.type), ordinal_position=at)
        for at, each in enumerate(schema, 1)
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}


def _column_lineage(
    lineage: ColumnLineage, origins: Mapping[str, Sequence[tuple[DatasetName, str]]]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    def fields_of(columns: Mapping[str, Sequence[tuple[str, str]]]) -> list[column_lineage_dataset.InputField]:
        """Return the fields of the input that columns are. ``columns``: column to type and subtype of each use."""
        found = []
        for column, uses in columns.items():
            how = [column_lineage_dataset.Transformation(type=kind, subtype=subtype) for kind, subtype in uses]
            found += [
                column_lineage_dataset.InputField(name.namespace, name.name, shown(source), how)
                for name, source in origins.get(column, ())
            ]
        return found

    fields = {}
    for result, direct in lineage.direct.items():
        uses: dict[str, list[tuple[str, str]]] = {column: [(_DIRECT, how)] for column, how in direct.items()}
        for column in sorted(lineage.conditions.get(result, ())):
            uses.setdefault(column, []).append((_INDIRECT, "CONDITIONAL"))
        fields[shown(result)] = column_lineage_dataset.Fields(inputFields=fields_of(uses))
    rows = {column: [(_INDIRECT, each) for each in sorted(how)] for column, how in sorted(lineage.rows.items())}
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields, dataset=fields_of(rows))
