"""Job requests that reprocess finished units: the jobs in their records, over the files that they have read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...conf.job import Job, with_later_keys, without_units
from ...readers.files.listing import NoFilesError, list_files
from ...readers.files.walk import MANIFEST
from ...windowing.errors import ConfigError, InputError
from ...windowing.language.options import AtEnd
from ...writers.commit.tables import table_of
from ...writers.folders.place import restored
from ...writers.state.unit_record import UnitRecord, WrittenOutput
from ..request.fingerprint import absolute
from ..request.request import JobRequest, StageRequest, request_of


def rerun_request(named: Sequence[str], record: UnitRecord) -> tuple[JobRequest, list[str]]:
    """Return the request that reprocesses a plain run and replaces its outputs, and the files that the run has read.

    ``named``: the paths of the current command, from which secrets are restored that records do not hold. Raises
    `InputError` where a file is gone, `ConfigError` where an output holds something else by now, or a secret is
    missing.
    """
    if not record.outputs:
        what = f"{record.label} has to be run again, and it was made from a table, without an input"
        raise ConfigError(what, "reject late rows with --late reject")
    outputs = [replace(output, path=restored(output.path, named)) for output in record.outputs]
    for output in outputs:
        _check_output(record, output)
    files = [restored(file.path, named) for file in record.inputs]
    inputs = [restored(path, named) for path in record.job["input"]]
    bases = tuple(absolute(_fixed(path)) for path in inputs)
    _check_files(record, files, bases)
    *own, last = outputs
    changed = {"input": inputs, "output": _named(last), "mode": "overwrite"}
    request = request_of(Job.model_validate({**without_units(with_later_keys(record.job)), **changed}))
    request = request.with_stage_outputs(map(_named, own))
    return replace(request, reading=replace(request.reading, bases=bases)), files


def with_same_end(request: JobRequest, record: UnitRecord) -> JobRequest:
    """Return a job whose stages have the ``at_end`` of those in a record, for the next unit began from that end."""
    ends = [stage["at_end"] for stage in record.job["stages"]]
    changed = [_ending(one, end) for one, end in zip(request.stages, ends, strict=False)]
    return request.with_stages([*changed, *request.stages[len(ends) :]])


def _ending(one: StageRequest, end: AtEnd) -> StageRequest:
    stage = one.stage.model_copy(update={"at_end": end})
    return replace(one, stage=stage, options=replace(one.options, at_end=end))


def _check_output(record: UnitRecord, output: WrittenOutput) -> None:
    manifest = table_of(output.path).manifest()
    if manifest is None or manifest.get("run") != record.run:
        what = f"{record.label} has to be run again, and {output.shown} no longer holds its result"
        raise ConfigError(what, "put that back, or reject late rows with --late reject")


def _check_files(record: UnitRecord, files: Sequence[str], bases: Sequence[str]) -> None:
    try:
        list_files(files)
    except NoFilesError as error:
        what = f"{record.label} has to be run again, and its input is gone: {error.what}"
        raise InputError(what, "put its files back where they were") from error
    if not all(any(_is_below(path, base) for base in bases) for path in files):
        what = f"{record.label} has to be run again, and {', '.join(record.job['input'])} is elsewhere from here"
        raise ConfigError(what, "run this where that was run, or name inputs by paths from the root on")
    for folder in {path.rpartition("/")[0] for path in files if "://" not in path}:
        if Path(folder, MANIFEST).exists():
            what = f"{record.label} has to be run again, and {folder} is a result that was read as a stream"
            raise ConfigError(what, "reject late rows with --late reject")


def _is_below(path: str, base: str) -> bool:
    return path == base or path.startswith(f"{base.rstrip('/')}/")


def _named(output: WrittenOutput) -> str:
    """Return the path of an output as the user wrote it if that leads to the same place from here, else absolute."""
    return output.shown if absolute(output.shown) == output.path else output.path


def _fixed(path: str) -> str:
    """Return the folder of a path before its first wildcard; a path without wildcards unchanged."""
    magic = re.search(r"[*?\[]", path)
    return path if magic is None else path[: path.rfind("/", 0, magic.start()) + 1] or "."
