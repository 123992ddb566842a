"""What a run without a range has to do, by what was done before: everything, nothing, or its newest unit again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ...conf.ranges.path_templates import partitions
from ...conf.ranges.units import Kind, check_kind
from ...conf.recorded_job import recorded
from ...conf.table_outputs import plain_path
from ...readers.files.listing import list_folders
from ...windowing.errors import ConfigError, WincliError
from ...windowing.ports import InputFile
from ...windowing.support.addresses.redaction import redacted_path
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord
from ..backfill.finished_results import is_done, read_result
from ..backfill.rerun_choice import differences_of, rerun_of_finished, why_rerun
from ..backfill.unit_paths import list_inputs
from ..request.fingerprint import already_done
from ..request.request import JobRequest

_PARTITIONS: tuple[Kind, ...] = ("day", "hour")


@dataclass(frozen=True, slots=True)
class NextRun:
    """The next run of a job on a state.

    ``request``: the job as it is run.
    ``before``: the unit that it goes on from; None for the first.
    ``done``: the newest unit, if that has read this very input; then the run is that unit again, or nothing.
    ``is_again``: whether ``done`` is run again.
    ``why``: the note on that, in words; None where there is none.
    """

    request: JobRequest
    before: UnitRecord | None
    done: UnitRecord | None = None
    is_again: bool = False
    why: str | None = None


def result_is_done(request: JobRequest) -> bool:
    """Whether the outputs hold the result of this job for its input, so that a run without a state does nothing.

    What was cut at a limit is never that: its manifest names only the files that were read.
    """
    if request.job.mode != "error" or request.is_piped or request.job.limit is not None:
        return False
    outputs = request.outputs
    is_there = all(read_result(path) for path in outputs)
    return is_there and is_done(outputs, recorded(request.job), (*files_of(request), *_table_files(request)))


def check_undated(request: JobRequest, records: Sequence[UnitRecord]) -> None:
    """Raise `ConfigError` where a run on a state needs a range: units are dated, in its state or in the input.

    A first run over folders of days would be one unit without a date, and no range could go on from it. ``records``:
    those of the state.
    """
    check_kind([(record.label, record.ordinal) for record in records], None)
    for path in request.job.input if not records else ():
        found = _dated_folder(path, request)
        if found is not None:
            what = f"{path} holds folders of {found[0]}s such as {found[1]}, and on a state these are units of a range"
            raise ConfigError(f"{what}; nothing was written", f"say --start and --end, or for one run say {path}/*")


def _dated_folder(path: str, request: JobRequest) -> tuple[Kind, str] | None:
    """Return the kind of the partitions below a path and the first of them; None where there are none."""
    with suppress(WincliError):  # a glob or a file has no folders, and what is missing is told where it is read
        folders = list_folders(path, skip_unreadable=True, version=request.job.table_version)
        for kind in dict.fromkeys((request.job.unit, *_PARTITIONS)):
            found = partitions(folders, kind, path)
            if found is not None:
                return kind, min(name for names in found.folders.values() for name in names)
    return None


def find_next_run(request: JobRequest, state: State) -> NextRun:
    """Return what the next run on a state has to do.

    Input that the newest run has read already is not read again, unless `why_rerun` finds a reason for it. Raises
    `ConfigError` where a file was read by an earlier unit.
    """
    last = state.records[-1] if state.records else None
    done, job = _done_before(request, state), recorded(request.job)
    if done is None:
        return NextRun(request, last)
    before = state.newest_before(done.ordinal)
    reason = why_rerun(done, job, is_last=True, is_newest=True)
    if reason is None:
        return NextRun(request, before, done)
    is_kept = before is None or state.has_data(before.label)
    if reason.is_free and is_kept:
        again = rerun_of_finished(request, done, job, is_end=True)
        return NextRun(again, before, done, is_again=True, why=f"{done.label} is run again: {reason.text}")
    why = ", and the state before it is no longer kept" if reason.is_free else "; it stays as it is"
    return NextRun(request, before, done, why=f"{done.label} is done, but {reason.text}{why}")


def files_of(request: JobRequest) -> tuple[InputFile, ...]:
    """Return the files of a job's input by absolute paths. Raises `InputError` where there are none."""
    return list_inputs(request.job.input, request.reading)


def _done_before(request: JobRequest, state: State) -> UnitRecord | None:
    """Return the newest unit of a state if it is of this job, its input and its outputs."""
    outputs = [redacted_path(plain_path(path)) for path in request.outputs]
    job = recorded(request.job)

    def is_same(record: UnitRecord) -> bool:
        return not differences_of(record, job) and _shown(record) == outputs

    return already_done(state.records, files_of(request), is_same)


def _shown(record: UnitRecord) -> Sequence[str]:
    return [redacted_path(each.shown) for each in record.outputs]


def _table_files(request: JobRequest) -> tuple[InputFile, ...]:
    reading = replace(request.reading, bases=(), skip_unreadable=False, version=None)
    return tuple(file for each in request.enrichments for file in list_inputs([each.path], reading))
