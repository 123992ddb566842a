"""The job of a case: the request that `run` would make of the job file, with every path in the folder of the case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ....conf.job_builder import make_job
from ....conf.job_files.layers import ONLY
from ....conf.job_files.parser import JobFile
from ....conf.ranges.path_templates import before_date, fill, has_date
from ....conf.ranges.units import STEPS, Kind, Unit, unit_at, unit_of
from ....readers.options import parse_schema
from ....windowing.errors import ConfigError
from ....windowing.language.enrichment import parse_enrichment, with_path
from ....windowing.support.suggest import did_you_mean
from ...planning.request import JobRequest, request_of
from .case import Case, GivenRows, Part
from .given_files import write_rows

_LAST_DATE = re.compile(r".*\{date(?::[^{}]+)?\}[^/]*", re.DOTALL)
_SHAPE = {"output_format": "parquet"}
_BETWEEN = {"output_format": "parquet", "plain": False}
"""A stage before the last leaves what the next stage reads, whatever form it is published in."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a case, and where its results are.

    ``request``: the request.
    ``parts``: the parts of the case that it runs.
    ``outputs``: for each part, the folder of each stage by name, in their order; that of the job comes last.
    ``inputs``: for each part, the paths of its rows.
    """

    request: JobRequest
    parts: tuple[Part, ...]
    outputs: tuple[Mapping[str, str], ...]
    inputs: tuple[tuple[str, ...], ...]


def runs_of(file: JobFile, case: Case, folder: Path) -> list[Run]:
    """Write the rows of a case below ``folder``, and return its runs, to be done one after the other.

    Raises `ConfigError` or `SpecError` where the case does not fit the job, or the job is wrong.
    """
    if case.is_range:
        return [_run(file, case, folder, case.parts)]
    if len(case.parts) > 1 and "state" not in {**file.values, **case.options}:
        what = f"case {case.name!r} lists units, and each would be a job by itself: there is no state"
        raise ConfigError(what, "name them by their dates, or write a case for each")
    return [_run(file, case, folder / f"run-{at + 1}", (part,), folder) for at, part in enumerate(case.parts)]


def _run(file: JobFile, case: Case, folder: Path, parts: Sequence[Part], shared: Path | None = None) -> Run:
    """Return one run. ``shared``: the folder of the state that later runs go on from."""
    values = {**file.values, **case.options}
    units = _units(case, values.get("unit", "day"))
    delimiter = _delimiter(values)
    inputs = _texts(values.get("input", "input"))
    own = _inputs(folder, inputs, case.is_range)
    tables = _tables(case, folder, values)
    placed = [_write(case, part, unit, inputs, own, delimiter) for part, unit in zip(parts, units, strict=True)]
    for part, unit in zip(parts, units, strict=True):
        _write_tables({**case.tables, **part.tables}, tables, unit, delimiter)
    stages = _stage_names(values)
    places = [str(folder / f"output-{at}") + ("/{date}" if case.is_range else "") for at in range(len(stages))]
    flags = {**case.options, "input": own, "output": places[-1], **_SHAPE, **_enrichments(values, tables)}
    if "state" in values:
        flags["state"] = str((shared or folder) / "state")
    if case.is_range:
        found = [unit for unit in units if unit is not None]
        after = unit_at(found[-1].ordinal + 1, values.get("unit", "day"))
        flags |= {"start": found[0].label, "end": after.label}
    request = request_of(make_job(flags, _in_folder(file, case, places), parse_schema))
    filled = [[fill(place, unit) if unit else place for place in places] for unit in units]
    return Run(request, tuple(parts), tuple(dict(zip(stages, each, strict=True)) for each in filled), tuple(placed))


def _in_folder(file: JobFile, case: Case, places: Sequence[str]) -> JobFile:
    """Return a job file without what a case decides, whose stages write to the folders of the case."""
    left_out = {"start", "end", "mode", "partition_by", "redo", "input", "output"}
    left_out |= set() if case.checks_expectations else {"expect", "max_rejects"}
    values: dict[str, Any] = {key: value for key, value in file.values.items() if key not in left_out}
    if "stages" in values:
        *before, last = [{k: v for k, v in stage.items() if k != "partition_by"} for stage in values["stages"]]
        between = [{**stage, **_BETWEEN, "output": place} for stage, place in zip(before, places, strict=False)]
        values["stages"] = [*between, {**last, **(_SHAPE if "output_format" in last else {})}]
    return replace(file, values=values)


def _stage_names(values: Mapping[str, Any]) -> list[str]:
    if "stages" not in values:
        return [ONLY]
    return [str(stage.get("name", f"stage-{at + 1}")) for at, stage in enumerate(values["stages"])]


def _delimiter(values: Mapping[str, Any]) -> str:
    """Return the delimiter of the job; a comma for one that is wrong, which the job itself refuses."""
    found = str(values.get("delimiter", ","))
    return found if len(found) == 1 else ","


def _units(case: Case, kind: Kind) -> list[Unit | None]:
    if not case.is_range:
        return [None]
    if kind not in STEPS:
        raise ConfigError(f"unit cannot be {kind!r}", did_you_mean(kind, STEPS))
    found: list[Unit | None] = []
    for part in case.parts:
        unit = unit_of(str(part.label), kind)
        if unit is None:
            do = f"write it as {_LABELS[kind]}"
            raise ConfigError(f"case {case.name!r}: {part.label} is no {kind}", do)
        found.append(unit)
    return found


_LABELS: Mapping[Kind, str] = {"hour": "2026-11-01T05", "day": "2026-11-01", "week": "2026-11-02 (a Monday)"}


# Inputs


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _inputs(folder: Path, inputs: Sequence[str], is_range: bool) -> list[str]:
    """Return a path of the case for each input of the job; in a range with the part of it that names the unit."""
    return [f"{folder}/input-{at}" + (_below(path) if is_range else "") for at, path in enumerate(inputs)]


def _below(path: str) -> str:
    """Return the part of a template that differs from unit to unit, without wildcards; none where there is none."""
    if not has_date(path):
        return ""
    folder = before_date(path)
    rest = path if folder == "." else path[len(folder) :]
    found = _LAST_DATE.match(rest)
    assert found is not None
    return "/" + re.sub(r"[*?\[\]]", "x", found[0]).lstrip("/")


def _write(
    case: Case, part: Part, unit: Unit | None, inputs: Sequence[str], own: Sequence[str], delimiter: str
) -> tuple[str, ...]:
    """Write the rows that are given to a part; return the folders of its inputs."""
    folders = [_folder(path, unit) for path in own]
    for name, rows in part.given.items():
        at, file = _place(case, name, inputs)
        write_rows(rows, Path(folders[at]), file, delimiter)
    return tuple(folders)


def _folder(path: str, unit: Unit | None) -> str:
    if unit is None:
        return path
    return fill(path, unit) if has_date(path) else f"{path}/dt={unit.label}"


def _place(case: Case, name: str, inputs: Sequence[str]) -> tuple[int, str]:
    """Return which input a name of rows means, and the file in it."""
    if name in inputs:
        return inputs.index(name), "rows"
    for at, path in enumerate(inputs):
        if name.startswith(f"{path.rstrip('/')}/"):
            return at, str(PurePosixPath(name).relative_to(PurePosixPath(path)))
    if len(inputs) == 1:
        return 0, name or "rows"
    what = f"case {case.name!r}: {name or 'given'} names no input of the job"
    raise ConfigError(what, did_you_mean(name, inputs) if name else f"name one of {', '.join(inputs)}")


# Enrich tables


def _tables(case: Case, folder: Path, values: Mapping[str, Any]) -> dict[str, str]:
    """Return, by name, where the case has the rows of enrich tables; a table without rows is that of the job."""
    named = {each.name: each for each in map(parse_enrichment, _texts(values.get("enrich", [])))}
    given = {*case.tables, *(name for part in case.parts for name in part.tables)}
    for name in sorted(given):
        if name not in named:
            what = f"case {case.name!r}: the job has no enrich table {name!r}"
            raise ConfigError(what, did_you_mean(name, named) if named else "leave it out")
    below = {name: _below(named[name].path) if case.is_range else "" for name in given}
    return {name: f"{folder}/table-{at}{below[name]}" for at, name in enumerate(sorted(given))}


def _write_tables(rows: Mapping[str, GivenRows], places: Mapping[str, str], unit: Unit | None, delimiter: str) -> None:
    for name, each in rows.items():
        write_rows(each, Path(fill(places[name], unit) if unit else places[name]), "rows", delimiter)


def _enrichments(values: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """Return the enrichments of the job with the paths of the case."""
    if not places:
        return {}
    found = map(parse_enrichment, _texts(values["enrich"]))
    return {"enrich": [str(with_path(each, places.get(each.name, each.path))) for each in found]}
