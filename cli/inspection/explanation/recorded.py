"""The stage that wrote a result, planned again from the manifest: the same job over the same rows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from ....conf.job import Job, read_job, with_later_keys, with_table_outputs, without_units
from ....conf.ranges import before_date, has_date
from ....readers.files.listing import is_result
from ....readers.files.walk import MANIFEST
from ....readers.joined import left_files
from ....readers.open import open_source
from ....readers.options import ReadOptions
from ....readers.order_ranges import OrderRange, SourceRange, merge
from ....readers.source import FileSource
from ....windowing.columns.sort_keys import last_in_order
from ....windowing.engine.map_side import read_rows
from ....windowing.engine.task import FILES, Chunk, TaskContext, with_projection
from ....windowing.errors import ConfigError, InputError, WincliError
from ....windowing.local_executor import LocalExecutor
from ....windowing.ports import InputFile, Source
from ....windowing.rows.projection import RowExpressions
from ....windowing.scan.row_validation import split_by_reason
from ....windowing.support.address import Address
from ....windowing.support.modules import search
from ....writers.state.layout import is_state
from ....writers.state.state import StateView, read_state
from ....writers.state.unit_record import UNIT_DISTANCE, UnitRecord, input_files
from ...console.messages import Messages
from ...run.context import local_context, owner
from ...run.fingerprint import absolute, same_inputs
from ...run.incremental_run import known_by
from ...run.job_plan import open_outputs, plan_job
from ...run.open_input import NOTHING_KNOWN, KnownColumns, enriched_input, named_columns, row_expressions, with_right
from ...run.pipeline import PlainRun, loaded_tables, with_own_windows
from ...run.request import read_options
from ...run.run_modes import run_request
from ...run.stage_plans import StagePlan, plan_stages
from ..results.result import ResultFolder, open_result_folder

# The files that a manifest, or the record of a unit, names as input, opened again as the run opened them.


class Reopened(NamedTuple):
    """The input of a run, opened again, and the job with the paths and the folders of columns by which it was."""

    source: FileSource
    job: Job


def open_input(job: Job, manifest: Mapping[str, Any]) -> Reopened:
    """Open the files that a manifest names, as the job read them.

    Raises `InputError` where one of them is gone or has changed, `ConfigError` where they were stdin.
    """
    if "-" in job.input:
        raise ConfigError("this result was made of stdin, which is gone", "keep the log in a file, and run again")
    files = input_files(manifest["inputs"])
    right = {name: input_files(each) for name, each in (manifest.get("enrich") or {}).items()}
    if not any(has_date(path) for path in job.input) and job.start is None:
        found = _opened(job, job.input, (), right)
        if found is not None and same_inputs(left_files(found.source), files):
            return found
    return open_files(job, files, right)


Beside: TypeAlias = "Mapping[str, Sequence[InputFile]]"
"""The files that a run read beside its input, by the name of a table or a join."""


def open_files(job: Job, files: Sequence[InputFile], beside: Beside, known: KnownColumns = NOTHING_KNOWN) -> Reopened:
    """Open files that were read; ``known``: as they were then. Raises `InputError` where one is gone or has changed."""
    bases = tuple(absolute(before_date(path) if has_date(path) else path) for path in job.input)
    found = _opened(job, _folders_of_results(files), bases, beside, known)
    if found is None or not same_inputs(left_files(found.source), files):
        do = "run the job again, or ask from the folder where it was run"
        raise InputError(_difference(files, None if found is None else found.source), do)
    return found


def _opened(
    job: Job, paths: Sequence[str], bases: Sequence[str], beside: Beside, known: KnownColumns = NOTHING_KNOWN
) -> Reopened | None:
    """Open an input; None where it is gone. A column that the job names and no file has is null, as the run knew."""
    own, named = job.model_copy(update={"input": tuple(paths)}).at(bases=tuple(bases)), named_columns(job)
    earlier = [*known.input, ("", pa.schema([(name, pa.null()) for name in sorted(named) if "." not in name]))]
    right = {name: _folders_of_results(files) for name, files in beside.items()}
    try:
        source = open_source(paths, read_options(own), LocalExecutor(), earlier, named)
        return Reopened(with_right(own, source, LocalExecutor(), known, right), own)
    except InputError:
        return None


def _folders_of_results(files: Sequence[InputFile]) -> list[str]:
    """Return the paths to read: of parts of a result the folder, whose manifest says how they are ordered."""

    @cache
    def result_around(folder: str, query: str) -> str | None:
        if Address.of(folder).is_path:
            around = (Path(folder), *Path(folder).parents)
            return next((str(each) for each in around if (each / MANIFEST).exists()), None)
        while "/" in Address.of(folder).rest:
            if is_result(folder + query):
                return folder + query
            folder = folder.rpartition("/")[0]
        return None

    paths = []
    for path in (file.path for file in files):
        folder, query = str(Path(path).parent), ""
        if not Address.of(path).is_path:
            head, sign, rest = path.partition("?")
            folder, query = head.rpartition("/")[0], sign + rest
        paths.append(result_around(folder, query) or path)
    return list(dict.fromkeys(paths))


def _difference(files: Sequence[InputFile], found: FileSource | None) -> str:
    there = {absolute(file.path): file for file in found.files} if found is not None else {}
    for file in files:
        now = there.get(absolute(file.path))
        if now is None and Address.of(file.path).is_path and not Path(file.path).exists():
            return f"{file.path}, which this result was made of, is gone"
        if now is not None and (now.size, now.mtime) != (file.size, file.mtime):
            return f"{file.path} has changed since this result was made of it"
    return "the input of this result is no longer what it was"


# The input of all units of a state, opened again: the rows that units took, and those that they rejected as late.
#
# A unit rejects the rows that sort before the last row of the units before it, so these are in no window, of whatever
# unit. Where the state does not hold that last row any more, it is found among the rows again.


_POSITION = "position"


def open_units(job: Job, manifest: Mapping[str, Any]) -> tuple[FileSource, FileSource | None]:
    """Open the input of all units of a state.

    Returns the rows that the units took, whose windows are those of one run over them, and those that they rejected
    because they sort before the rows of earlier units; None: there are none. Raises `ConfigError` where the state is
    not there, `InputError` where a file of a unit is gone or has changed.
    """
    path = job.state
    if path is None or not is_state(path):
        what = f"this result is a unit on the state {path}, and that is not here"
        raise ConfigError(what, "run this where the job was run")
    state = read_state(path)
    records = sorted(state.records, key=lambda record: record.ordinal)
    if not any(record.run == manifest.get("run") for record in records):
        raise ConfigError(f"the state {path} has no unit that wrote this result", "run the unit again")
    taken: list[SourceRange] = []
    late: list[SourceRange] = []
    for record in records:
        if not record.inputs:
            continue
        shift = record.ordinal * UNIT_DISTANCE
        source = open_files(job, record.inputs, record.enrich, known_by(record, path, job)).source
        own = SourceRange(source, shift)
        has_late = record.stages[0].counts["rejected"].get("late")
        last = _last_before(job, state, record, taken) if has_late else None
        taken.append(replace(own, rows=OrderRange(after=last)))
        late += [] if last is None else [replace(own, rows=OrderRange(before=last))]
    expressions = row_expressions(job, taken[0].source) if taken else RowExpressions()
    return merge(taken, expressions), merge(late, expressions) if late else None


def _last_before(job: Job, state: StateView, record: UnitRecord, taken: Sequence[SourceRange]) -> pa.Table | None:
    """Return the last row of the units before one, its order columns alone; None: a watermark says what is late."""
    before = next((each for each in state.records if each.label == record.previous), None)
    if before is not None and state.storage.has_data(before):
        return state.storage.files(before, before.stages[0].name).read_table(_POSITION)
    # Find the last of the rows that units have taken. Late rows among them do not matter: they sort before others.
    found: list[pa.Table] = []
    for source in [each.source for each in taken]:
        stage = plan_stages(job, source)[0]
        order = list(stage.plan.order.columns)
        if not order:
            return None
        nowhere: Any = None  # nothing is written
        work = with_projection(TaskContext(stage.plan, source, nowhere, stage.marks))
        for part in (part for split in source.splits for part in source.parts_of(split)):
            read = read_rows(work, Chunk(0, part.base, [part]))
            rows = read.rows if read.reasons is None else read.rows.take(pa.array(split_by_reason(read.reasons)[0]))
            last = last_in_order(pa.Table.from_batches([rows]).select(order))
            found += [] if last is None else [last]
    # the types of a later unit may be wider
    return last_in_order(pa.concat_tables(found, promote_options="permissive")) if found else None


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
    job = read_job(without_units(with_later_keys(manifest["job"])))
    if job.runs_user_code:
        search(Path.cwd())
    with ExitStack() as stack:
        if manifest["stages"]:
            # Plan a stage over the result of the stage before: the one that was kept, or one that is computed again.
            at = len(manifest["stages"])
            own = job.with_stages(job.stages[at : at + 1])
            own = own.at(tables=tuple(each for each in job.tables if each not in job.enrichments))
            before = manifest["stages"][-1]
            if job.state is not None:
                what = f"this result is a unit on a state, and its rows are those of stage {before['name']!r}"
                raise ConfigError(what, "ask for the windows of that stage, if it has an output")
            folder, is_kept = before["output"], False
            if folder is not None:
                with suppress(WincliError):  # gone, replaced or damaged: it is computed again
                    kept = open_result_folder(folder).manifest
                    files = (input_files(each["inputs"]) for each in (kept, manifest))
                    is_kept = kept["job"] == manifest["job"] and same_inputs(*files)
            if not is_kept:
                alone = _alone(open_input(job, manifest).job.with_stages(job.stages[:at]), stack)
                run_request(alone, local_context(Messages(-1)))
                folder = alone.output
            source = open_source([folder], ReadOptions(), LocalExecutor())
            beside = {name: input_files(each) for name, each in (manifest.get("enrich") or {}).items()}
            right = {name: [file.path for file in files] for name, files in beside.items()}
            source = enriched_input(own, with_right(own, source, LocalExecutor(), paths=right), LocalExecutor())
            note = f"its rows are windows of stage {before['name']}"
            yield RecordedStage(source, with_own_windows(plan_stages(own, source)[0], source), note)
        else:
            yield _first_stage(job, manifest, stack)


def _first_stage(job: Job, manifest: Mapping[str, Any], stack: ExitStack) -> RecordedStage:
    own = job.with_stages(job.stages[:1])
    if job.state is not None:
        if own.enrichments or own.window_tables:
            what = f"this result is a unit on a state, of a job with {'--enrich' if own.enrichments else '--windows'}"
            raise ConfigError(what, "wincli why explains units of a state whose rows are those of the input")
        source, late = open_units(own, manifest)
        stage = plan_stages(own, source)[0]
        if late is not None and stage.plan.takes_marks and stage.marks == FILES:  # they may have taken marks with them
            what = "units of this state rejected rows that came late, and ends of files are marks, which may have been"
            raise ConfigError(f"{what} late", "wincli why explains such windows where the marks are a column")
        return RecordedStage(source, stage, late=late)
    source, there = open_input(job, manifest)
    if not (own.enrichments or own.window_tables):
        return RecordedStage(source, plan_stages(own, source)[0])
    alone = _alone(there.with_stages(own.stages), stack)
    outputs = stack.enter_context(open_outputs(alone, owner()))
    plan = plan_job(alone, enriched_input(alone, source, LocalExecutor()), outputs)
    loaded = stack.enter_context(loaded_tables(plan, PlainRun(time.perf_counter()), LocalExecutor()))
    return RecordedStage(loaded.source, loaded.stages[0])


_ALONE = {"mode": "error", "state": None, "start": None, "end": None, "expect": (), "max_rejects": None}
"""What a job has that is run for the rows of its stages alone."""


def _alone(job: Job, stack: ExitStack) -> Job:
    """Return a job over its input that writes to a temporary folder, which is there until the end."""
    stages = [each.model_copy(update={"output": None, "plain": False}) for each in job.stages]
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wincli-"))
    return with_table_outputs(job.model_copy(update={**_ALONE, "output": f"{folder}/out", "stages": tuple(stages)}))
