"""What a committed run says of its datasets: schemas, how much was read and written, which column comes from which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....windowing.enrichment.source import EnrichedSource
from ....windowing.ports import InputFile
from ...job.staged_job import StagedJob, StageRun
from ...planning.enriched_input import AnySource
from ...request.request import JobRequest
from .columns import ColumnLineage, Indirect, chained, lineage_of
from .datasets import DatasetName, exact_name, inputs_of, name_of, outputs_of, unique
from .events import InputFacts, OutputFacts

Origin = Sequence[tuple[DatasetName, str]]
"""The datasets and fields that a column of an input is in."""


def planned_inputs(request: JobRequest) -> list[InputFacts]:
    """Return the inputs of a run that begins, by name. ``request``: its job, for a unit of a range the whole job."""
    tables = [each.path for each in request.enrichments]
    return [InputFacts(name) for name in unique([name_of(path) for path in (*inputs_of(request), *tables)])]


def planned_outputs(request: JobRequest) -> list[OutputFacts]:
    """Return the outputs of a run that begins, by name."""
    return [OutputFacts(name_of(path)) for path in outputs_of(request)]


def inputs_read(request: JobRequest, job: StagedJob) -> list[InputFacts]:
    """Return the inputs of a run that is committed, those of enrich tables last."""
    source = job.plan.source
    base, tables = _divided(source)
    names = unique([name_of(path) for path in inputs_of(request)])
    rows = job.stage_runs[0].outcome.counts.rows_in
    found = [
        InputFacts(name, base.schema, rows if len(names) == 1 else None, *_size(_files_of(base.files, name, names)))
        for name in names
    ]
    for each, table in zip(request.enrichments, tables, strict=True):
        found.append(InputFacts(name_of(each.path), table.schema, None, *_size(table.files)))
    return found


def outputs_written(request: JobRequest, job: StagedJob) -> Iterator[OutputFacts]:
    """Yield the outputs of a run that is committed, with the lineage of their columns from the input of the job."""
    origins = _origins(request, job.plan.source)
    paths = iter(outputs_of(request))
    lineage: ColumnLineage | None = None
    for each in job.stage_runs:
        of_stage = lineage_of(each.stage)
        lineage = of_stage if lineage is None else chained(lineage, of_stage)
        path = next(paths, None) if each.stage_output.is_own else None
        if path is not None:
            is_last = each is job.stage_runs[-1]
            yield _output(name_of(path), each, _with_joins(lineage, job.plan.source), origins, job if is_last else None)


def _output(
    name: DatasetName, run: StageRun, lineage: ColumnLineage, origins: Mapping[str, Origin], last: StagedJob | None
) -> OutputFacts:
    expectations = (
        [] if last is None else [(each.expect, each.holds, each.on_fail == "fail") for each in last.expectations]
    )
    return OutputFacts(
        name,
        run.stage.result,
        sum(part.rows for part in run.parts),
        sum(part.nbytes for part in run.parts),
        len(run.parts),
        lineage,
        origins,
        expectations,
    )


def _divided(source: AnySource) -> tuple[AnySource, Sequence[AnySource]]:
    """Return the input itself, and its enrich tables."""
    return (source.base, source.tables) if isinstance(source, EnrichedSource) else (source, ())


def _files_of(files: Sequence[InputFile], name: DatasetName, names: Sequence[DatasetName]) -> Sequence[InputFile]:
    if len(names) == 1:
        return files
    return [file for file in files if _is_below(exact_name(file.path), name)]


def _is_below(file: DatasetName, name: DatasetName) -> bool:
    below = file.name == name.name or file.name.startswith(f"{name.name.rstrip('/')}/")
    return file.namespace == name.namespace and below


def _size(files: Sequence[InputFile]) -> tuple[int, int]:
    return sum(file.size for file in files), len(files)


def _origins(request: JobRequest, source: AnySource) -> dict[str, Origin]:
    """Return the datasets and fields that each column of the first stage's input is in."""
    base, _ = _divided(source)
    names = unique([name_of(path) for path in inputs_of(request)])
    found: dict[str, Origin] = {column: [(name, column) for name in names] for column in base.schema.names}
    if isinstance(source, EnrichedSource):
        for each, one in zip(request.enrichments, source.enriched, strict=True):
            table = name_of(each.path)
            pairs = zip(one.bound.fields, one.bound.taken, strict=True)
            found |= {field.name: [(table, taken)] for field, taken in pairs}
            found |= {_key_of(each.name, pair.right): [(table, pair.right)] for pair in one.bound.compared}
    return found


def _with_joins(lineage: ColumnLineage, source: AnySource) -> ColumnLineage:
    """Return a lineage with the columns by which rows find their rows in enrich tables, on both sides."""
    if not isinstance(source, EnrichedSource):
        return lineage
    rows: dict[str, frozenset[Indirect]] = dict(lineage.rows)
    for one in source.enriched:
        name = one.bound.enrichment.name
        for column in [*one.bound.left, *(_key_of(name, pair.right) for pair in one.bound.compared)]:
            rows[column] = rows.get(column, frozenset()) | {"JOIN"}
    return ColumnLineage(lineage.direct, lineage.conditions, rows)


def _key_of(enrichment: str, column: str) -> str:
    """Return a name for a key of an enrich table, which no column of an input has."""
    return f"\0{enrichment}\0{column}"
