"""Results of earlier runs without a state: their manifests say which units are done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...conf.ranges.units import Unit
from ...windowing.ports import InputFile
from ...writers.commit.tables import table_of
from ..request.fingerprint import same_inputs, same_job


@dataclass(frozen=True, slots=True)
class ResultStage:
    """The outcome of one stage of a result, as `cli.request.fingerprint.StageSummary` has it.

    ``name``: the name of the stage.
    ``counts``: its row counts.
    ``windows``: the rows of the result, for manifests do not count windows.
    """

    name: str
    counts: Mapping[str, Any]
    windows: int


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """A unit that was finished without a state, as `cli.request.fingerprint.UnitSummary` has it.

    ``label``, ``ordinal``: those of the unit.
    ``inputs``: the files that it read.
    ``stages``: the outcome of each stage, in order.
    ``previous``: None, for it began from no state.
    ``enrich``: the files of each enrich table, by the name of the enrichment.
    """

    label: str
    ordinal: int
    inputs: tuple[InputFile, ...]
    stages: tuple[ResultStage, ...]
    previous: None = None
    enrich: Mapping[str, tuple[InputFile, ...]] = field(default_factory=dict)


def read_result(output: str) -> dict[str, Any] | None:
    """Return the manifest of a result; None where there is none, or where a file that it names is missing."""
    table = table_of(output)
    manifest = table.manifest()
    return None if manifest is None or table.missing(manifest) else manifest


def is_done(outputs: Sequence[str], job: Mapping[str, Any], files: Iterable[InputFile]) -> bool:
    """Whether all outputs hold the results of this job for these files, so that there is nothing to do.

    ``files``: those of enrich tables are among them.
    """
    manifests = [read_result(output) for output in outputs]
    files = list(files)
    return all(
        each is not None and same_job(each["job"], job) and same_inputs(_all_inputs(each), files) for each in manifests
    )


def may_replace(outputs: Sequence[str], job: Mapping[str, Any]) -> bool:
    """Whether all results in the outputs, complete or not, are of this very job, which then may replace them."""
    manifests = [manifest for output in outputs if (manifest := table_of(output).manifest())]
    return bool(manifests) and all(same_job(manifest["job"], job) for manifest in manifests)


def result_record(unit: Unit, outputs: Sequence[str], job: Mapping[str, Any]) -> ResultRecord | None:
    """Return the record of a unit that this job has finished without a state; None where it has not.

    ``outputs``: those of the unit, the output of the job last.
    """
    manifests = [read_result(output) for output in outputs]
    last = manifests[-1]
    if last is None or not all(each is not None and same_job(each["job"], job) for each in manifests):
        return None
    names = [stage["name"] for stage in last["job"]["stages"]]
    counts = [*(stage["counts"] for stage in last["stages"]), last["counts"]]
    stages = tuple(ResultStage(*each, last["rows_out"]) for each in zip(names, counts, strict=True))
    return ResultRecord(unit.label, unit.ordinal, _inputs(last), stages, enrich=_tables(last))


def _inputs(manifest: Mapping[str, Any]) -> tuple[InputFile, ...]:
    return tuple(InputFile(**file) for file in manifest["inputs"])


def _tables(manifest: Mapping[str, Any]) -> dict[str, tuple[InputFile, ...]]:
    """Return the files of enrich tables by name; a result of an older version has none."""
    tables = manifest.get("enrich") or {}
    return {name: tuple(InputFile(**file) for file in files) for name, files in tables.items()}


def _all_inputs(manifest: Mapping[str, Any]) -> list[InputFile]:
    return [*_inputs(manifest), *(file for files in _tables(manifest).values() for file in files)]
