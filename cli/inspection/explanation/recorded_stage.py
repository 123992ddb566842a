"""The stage that wrote a result, planned again from the manifest: the same job over the same files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....conf.job import Job, with_later_keys
from ....conf.path_templates import before_date, has_date
from ....readers.files.walk import MANIFEST
from ....readers.open import open_source
from ....readers.source import FileSource
from ....windowing.errors import ConfigError, InputError
from ....windowing.local_executor import LocalExecutor
from ....windowing.ports import InputFile
from ....windowing.support.user_modules import search
from ...planning.enriched_input import AnySource
from ...planning.stage_plans import StagePlan, plan_stages
from ...request.fingerprint import absolute, same_inputs
from ...request.request import JobRequest, request_of
from ..results.result import ResultFolder


@dataclass(frozen=True, slots=True)
class RecordedStage:
    """The stage that wrote a result.

    ``request``: the job, without its secrets.
    ``source``: what the stage has read.
    ``stage``: the stage, planned over ``source``.
    """

    request: JobRequest
    source: AnySource
    stage: StagePlan


def stage_of(result: ResultFolder) -> RecordedStage:
    """Plan the stage that wrote a result.

    Raises `InputError` where its input is gone or has changed, `ConfigError` where it cannot be read again.
    """
    manifest = result.manifest
    request = request_of(Job.model_validate(with_later_keys(manifest["job"])))
    if request.runs_user_code:
        search(Path.cwd())
    before = manifest["stages"]
    own = request.with_stages(request.stages[len(before) :][:1])
    if before:
        source = _stage_before(before[-1])
        own = replace(own, enrichments=())
    else:
        source = _input(request, manifest)
    if own.enrichments:
        raise ConfigError("this result was made with --enrich", "look at the enriched rows with --emit rows")
    return RecordedStage(request, source, plan_stages(own, source)[0])


def _stage_before(entry: Mapping[str, Any]) -> FileSource:
    """Open the result of the stage before. Raises `ConfigError` where the job has not kept it."""
    if entry["output"] is None:
        what = f"the rows of this result came from stage {entry['name']!r}, whose result was not kept"
        raise ConfigError(what, "give that stage an output, and run the job again")
    return open_source([entry["output"]], _plain_reading(), LocalExecutor())


def _plain_reading() -> Any:
    from ....readers.options import ReadOptions  # noqa: PLC0415

    return ReadOptions()


def _input(request: JobRequest, manifest: Mapping[str, Any]) -> FileSource:
    """Open the files that the manifest names, as the job read them."""
    files = [InputFile(**file) for file in manifest["inputs"]]
    if "-" in request.job.input:
        raise ConfigError("this result was made of stdin, which is gone", "keep the log in a file, and run again")
    if not any(has_date(path) for path in request.job.input) and request.job.start is None:
        found = _opened(request, request.job.input, ())
        if found is not None and same_inputs(found.files, files):
            return found
    bases = tuple(absolute(before_date(path) if has_date(path) else path) for path in request.job.input)
    found = _opened(request, _folders_of_results(files), bases)
    if found is None or not same_inputs(found.files, files):
        raise InputError(_difference(files, found), "run the job again, or from the folder where it was run")
    return found


def _opened(request: JobRequest, paths: Sequence[str], bases: Sequence[str]) -> FileSource | None:
    """Open an input; None where it is gone."""
    try:
        return open_source(paths, replace(request.reading, bases=tuple(bases)), LocalExecutor())
    except InputError:
        return None


def _folders_of_results(files: Sequence[InputFile]) -> list[str]:
    """Return the paths to read: of parts of a result the folder, whose manifest says how they are ordered."""
    paths = [_folder_of_result(file.path) or file.path for file in files]
    return list(dict.fromkeys(paths))


def _folder_of_result(path: str) -> str | None:
    if "://" in path:
        return None
    return next((str(folder) for folder in Path(path).parents if (folder / MANIFEST).exists()), None)


def _difference(files: Sequence[InputFile], found: FileSource | None) -> str:
    """Say which file of a result is no longer what it was."""
    there = {absolute(file.path): file for file in found.files} if found is not None else {}
    for file in files:
        now = there.get(absolute(file.path))
        if now is None and not ("://" in file.path or Path(file.path).exists()):
            return f"{file.path}, which this result was made of, is gone"
        if now is not None and (now.size, now.mtime) != (file.size, file.mtime):
            return f"{file.path} has changed since this result was made of it"
    return "the input of this result is no longer what it was"
