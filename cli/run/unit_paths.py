"""Inputs and outputs of the units of a range: templates and partitions become paths, and paths become files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...conf.job import Job, beside_text, plain_path
from ...conf.ranges import Kind, Partitions, Unit, before_date, check_template, fill, has_date, output_of, partitions
from ...readers.files.listing import NoFilesError, list_files, list_folders
from ...readers.files.result_folders import order_files
from ...readers.files.walk import ListedFile
from ...readers.options import ReadOptions
from ...windowing.errors import ConfigError, InputError, printable
from ...windowing.language.enrichment import at_unit
from ...windowing.ports import InputFile
from .fingerprint import absolute


@dataclass(frozen=True, slots=True)
class UnitInput:
    """The input of one unit.

    ``paths``: the paths to read.
    ``bases``: the folders below which folder names give columns.
    ``files``: the files found there.
    ``tables``: the files of the tables beside the input that each unit has for itself, by the name of the table.
    """

    paths: tuple[str, ...]
    bases: tuple[str, ...]
    files: tuple[InputFile, ...]
    tables: Mapping[str, tuple[InputFile, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputPaths:
    """The input paths of a job with a range.

    ``job``: the job.
    ``inputs``: each path with its partitions; None for a template with ``{date}``.
    ``name``: the NAME in the folders ``NAME=LABEL`` of outputs without ``{date}``.
    """

    job: Job
    inputs: tuple[tuple[str, Partitions | None], ...]
    name: str

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """The name and the template of each table beside the input whose path has ``{date}``."""
        return tuple((each.name, each.path) for each in self.job.tables if has_date(each.path))


def find_input_paths(job: Job, first: Unit, kind: Kind) -> InputPaths:
    """Find the templates and partitions of a range, before any unit runs.

    Raises `ConfigError` where two units would have the same path, `InputError` where an input does not exist.
    """
    outputs = (job.output, *(stage.output for stage in job.stages if stage.output))
    for path in (*job.input, *outputs, *(each.path for each in job.tables)):
        if has_date(path):
            check_template(plain_path(path), first, kind)
    inputs = tuple((path, _partitions(path, kind, job.skip_unreadable, job.table_version)) for path in job.input)
    name = next((found.name for _, found in inputs if found), "dt")
    return InputPaths(job, inputs, name)


def _partitions(path: str, kind: Kind, skip_unreadable: bool, version: str | None) -> Partitions | None:
    if has_date(path):
        # Without this a typing error would give a range of gaps, not an error.
        list_folders(before_date(path), skip_unreadable=True, version=version)
        return None
    folders = list_folders(path, skip_unreadable=skip_unreadable, version=version)
    found = partitions(folders, kind, path)
    if found is None and kind == "hour" and (days := partitions(folders, "day", path)):
        example = f"{path}/{days.name}={{date:%Y-%m-%d}}/hour={{date:%H}}"
        raise ConfigError(f"{path} is partitioned by days, and the range is of hours", f"say {example}, or --unit day")
    if found is None:
        what = f"{path} has no {{date}}, and holds no folders of {kind}s such as dt=2026-11-02"
        raise ConfigError(what, f"write {{date}} in place of the {kind} in the path")
    return found


def find_input(input_paths: InputPaths, unit: Unit) -> UnitInput | None:
    """Return the input of a unit, or None where it has no file: a gap.

    Raises `InputError` where one of several inputs has files for the unit and another has none.
    """
    given = []
    for path, found in input_paths.inputs:
        if found is None:
            given.append((path, [(fill(path, unit), before_date(path))]))
        else:
            folders = found.folders.get(unit.label, ())
            given.append((path, [(f"{path.rstrip('/')}/{folder}", path) for folder in folders]))
    skip, version = input_paths.job.skip_unreadable, input_paths.job.table_version
    files = {
        path: [file for below, base in paths for file in _list_files(below, base, skip, version)]
        for path, paths in given
    }
    there = [path for path, listed in files.items() if listed]
    if not there:
        return None
    if missing := [path for path, listed in files.items() if not listed]:
        raise _lacking(there[0], unit, missing[0])
    tables = {name: _list_files(fill(path, unit), before_date(path), skip, None) for name, path in input_paths.tables}
    if bare := [path for name, path in input_paths.tables if not tables[name]]:
        which = next(beside_text(each) for each in input_paths.job.tables if each.path == bare[0])
        raise _lacking(there[0], unit, f"the {which} {fill(bare[0], unit)}")
    paths = [each for _, several in given for each in several]
    by_path = {file.place.path: file for listed in files.values() for file in listed}
    return UnitInput(
        tuple(path for path, _ in paths),
        tuple(dict.fromkeys(base for _, base in paths)),
        _as_inputs(by_path.values()),
        {name: _as_inputs(listed) for name, listed in tables.items()},
    )


def _lacking(there: str, unit: Unit, missing: str) -> InputError:
    what = f"{there} has files for {unit.label}, and {missing} has none"
    return InputError(what, "wait for them, or let the range end before it or begin behind it")


def _as_inputs(files: Iterable[ListedFile]) -> tuple[InputFile, ...]:
    named = (
        (printable(each.place.path) if each.place.is_local else absolute(each.place.shown), each) for each in files
    )
    return tuple(InputFile(name, file.size, file.mtime) for name, file in named)


def _list_files(path: str, base: str, skip_unreadable: bool, version: str | None) -> Sequence[ListedFile]:
    try:
        listing = list_files([path], [base], skip_unreadable=skip_unreadable, version=version)
    except NoFilesError:
        return ()
    if not listing.files:  # no gap: a result has a part, be it an empty one
        raise InputError(f"{printable(path)} is a result that lacks its parts", "write the result again")
    return order_files(listing, "name").files


def list_inputs(paths: Sequence[str], reading: ReadOptions) -> tuple[InputFile, ...]:
    """Return the files of inputs by absolute paths. Raises `InputError` where there are none."""
    listing = list_files(paths, reading.bases, skip_unreadable=reading.skip_unreadable, version=reading.version)
    return _as_inputs(order_files(listing, "name").files)


def outputs_of(job: Job, input_paths: InputPaths, unit: Unit) -> tuple[str, ...]:
    """Return the outputs of a unit: those of stages, then the output of the job itself."""
    return tuple(output_of(path, unit, input_paths.name) for path in job.outputs)


def unit_job(job: Job, input_paths: InputPaths, unit: Unit, found: UnitInput) -> Job:
    """Return the job of one unit: the requested job with the inputs and outputs of the unit."""
    *own, output = outputs_of(job, input_paths, unit)
    tables = tuple(at_unit(each, fill(each.path, unit)) if has_date(each.path) else each for each in job.tables)
    job = job.with_stage_outputs(own).model_copy(update={"input": found.paths, "output": output})
    return job.at(bases=found.bases, tables=tables)
