"""The stage that wrote a result, planned again from the manifest: the same job over the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .....conf.job import Job, with_later_keys, without_units
from .....readers.open import open_source
from .....readers.options import ReadOptions
from .....windowing.errors import ConfigError, WincliError
from .....windowing.local_executor import LocalExecutor
from .....windowing.ports import InputFile, Source
from .....windowing.support.user_modules import search
from ....planning.fingerprint import same_inputs
from ....planning.request import JobRequest, request_of
from ....planning.stage_plans import StagePlan, plan_stages
from ...results.result import ResultFolder, open_result_folder
from .recorded_input import open_input
from .recorded_units import check_marks_of_late, open_units


@dataclass(frozen=True, slots=True)
class RecordedStage:
    """The stage that wrote a result.

    ``source``: what the stage has read.
    ``stage``: the stage, planned over ``source``.
    ``note``: what is to be said of its rows; None: nothing.
    ``late``: rows of its input that units of a state rejected, since they came late; None: there are none.
    """

    source: Source
    stage: StagePlan
    note: str | None = None
    late: Source | None = None


@contextmanager
def recorded_stage(result: ResultFolder) -> Iterator[RecordedStage]:
    """Plan the stage that wrote a result, over its rows.

    Enrich tables are read, and stages before it whose results were not kept are run, in this process and in a temporary
    folder, which is there until the end. Raises `InputError` where the input is gone or has changed, `ConfigError`
    where it cannot be read again.
    """
    manifest = result.manifest
    request = request_of(Job.model_validate(without_units(with_later_keys(manifest["job"]))))
    if request.runs_user_code:
        search(Path.cwd())
    with ExitStack() as stack:
        if manifest["stages"]:
            yield _later_stage(request, manifest, stack)
        else:
            yield _first_stage(request, manifest, stack)


def _first_stage(request: JobRequest, manifest: Mapping[str, Any], stack: ExitStack) -> RecordedStage:
    own = request.with_stages(request.stages[:1])
    if request.job.state is not None:
        if own.enrichments:
            what = "this result is a unit on a state, of a job with --enrich"
            raise ConfigError(what, "wincli why explains units of a state whose rows are those of the input")
        units = open_units(own, manifest)
        stage = plan_stages(own, units.source)[0]
        check_marks_of_late(units, stage)
        return RecordedStage(units.source, stage, late=units.late)
    found = open_input(request, manifest)
    if not own.enrichments:
        return RecordedStage(found.source, plan_stages(own, found.source)[0])
    from .stages_again import enriched  # noqa: PLC0415 - few jobs have tables, and this loads all that runs need

    return RecordedStage(*stack.enter_context(enriched(own, found)))


def _later_stage(request: JobRequest, manifest: Mapping[str, Any], stack: ExitStack) -> RecordedStage:
    """Plan a stage over the result of the stage before: the one that was kept, or one that is computed again."""
    at = len(manifest["stages"])
    own = replace(request.with_stages(request.stages[at : at + 1]), enrichments=())
    before = manifest["stages"][-1]
    if request.job.state is not None:
        what = f"this result is a unit on a state, and its rows are those of stage {before['name']!r}"
        raise ConfigError(what, "ask for the windows of that stage, if it has an output")
    folder = before["output"]
    if folder is None or not _is_of_same_run(folder, manifest):
        from .stages_again import computed  # noqa: PLC0415 - as above

        earlier = request.with_stages(request.stages[:at])
        folder = stack.enter_context(computed(earlier, open_input(request, manifest)))
    source = open_source([folder], ReadOptions(), LocalExecutor())
    note = f"its rows are windows of stage {before['name']}"
    return RecordedStage(source, plan_stages(own, source)[0], note)


def _is_of_same_run(folder: str, manifest: Mapping[str, Any]) -> bool:
    """Whether the result of the stage before is still there, and was made of the same files by the same job."""
    try:
        before = open_result_folder(folder).manifest
    except WincliError:  # gone, replaced or damaged: it is computed again
        return False
    files = ([InputFile(**file) for file in each["inputs"]] for each in (before, manifest))
    return bool(before["job"] == manifest["job"] and same_inputs(*files))
