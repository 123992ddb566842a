"""The three ways to run a job: alone, as an incremental run with a state, or as a backfill over a range of units."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

from ...conf.job import Job, RightSide, paths_of, plain_path, recorded
from ...conf.ranges import Kind, Partitions, Unit, check_kind, partitions, unit_of_plain_run, units
from ...readers.files.listing import list_folders
from ...readers.options import ReadOptions
from ...windowing.errors import ConfigError, WincliError
from ...windowing.ports import InputFile
from ...windowing.support.redaction import redacted_path
from ...writers.commit.tables import remove_leftovers_beside
from ...writers.state.state import State, open_state, state_without_lock
from ...writers.state.unit_record import UnitRecord
from ..console.messages import OK, Stopped
from .backfills import (
    IncrementalBackfill,
    beforehand,
    is_done,
    plain_steps,
    read_result,
    remove_leftovers,
    run_plain_unit,
    run_unit,
)
from .context import RunContext, StageRun, owner
from .fingerprint import already_done
from .job_plan import refuse_state_overlap
from .late_rows import LateBackfill, unit_of
from .parallel_units import units_together
from .pipeline import PlainRun, run_job
from .range_run import BackfillOutcome, Kept, report_backfill, report_kept, report_rejected, run_backfill
from .reports import report_outcome
from .request import read_options
from .rerun import differences_of, rerun_job, rerun_of_finished, why_rerun
from .steps import UnitStep
from .unit_paths import InputPaths, UnitInput, find_input, find_input_paths, list_inputs
from .units import note_of_unit, report_unit

# What a run without a range has to do, by what was done before: everything, nothing, or its newest unit again.


_PARTITIONS: tuple[Kind, ...] = ("day", "hour")


def result_is_done(job: Job) -> bool:
    """Whether the outputs hold the result of this job for its input, so that a run without a state does nothing.

    What was cut at a limit is never that: its manifest names only the files that were read.
    """
    if job.mode != "error" or job.is_piped or job.limit is not None:
        return False
    if not all(read_result(path) for path in job.outputs):
        return False
    tables = (file for each in job.tables for file in list_inputs([each.path], _reading_beside(job)))
    return is_done(job.outputs, recorded(job), (*files_of(job), *tables))


def check_undated(job: Job, records: Sequence[UnitRecord]) -> None:
    """Raise `ConfigError` where a run on a state needs a range: units are dated, in its state or in the input.

    A first run over folders of days would be one unit without a date, and no range could go on from it. ``records``:
    those of the state.
    """
    check_kind([(record.label, record.ordinal) for record in records], None)
    dated: tuple[Kind, Partitions] | None = None
    for path in job.input if not records else ():
        with suppress(WincliError):  # a glob or a file has no folders, and what is missing is told where it is read
            folders = list_folders(path, skip_unreadable=True, version=job.table_version)
            kinds = dict.fromkeys((job.unit, *_PARTITIONS))
            dated = next(((kind, there) for kind in kinds if (there := partitions(folders, kind, path))), None)
        if dated is not None:
            first = min(name for names in dated[1].folders.values() for name in names)
            what = f"{path} holds folders of {dated[0]}s such as {first}, and on a state these are units of a range"
            raise ConfigError(f"{what}; nothing was written", f"say --start and --end, or for one run say {path}/*")


def find_next_run(job: Job, state: State) -> tuple[Job, UnitStep]:
    """Return the job that the next run on a state runs, and the step that it takes.

    Input that the newest run has read already is not read again, unless `why_rerun` finds a reason for it. Raises
    `ConfigError` where a file was read by an earlier unit.
    """
    last = state.records[-1] if state.records else None
    now, outputs = recorded(job), [redacted_path(plain_path(path)) for path in job.outputs]

    def is_same(record: UnitRecord) -> bool:
        return not differences_of(record, now) and [redacted_path(each.shown) for each in record.outputs] == outputs

    files = files_of(job)
    found = UnitInput(job.input, (), files)
    done = already_done(state.records, files, is_same, files_of_logs(job))
    if done is None:
        return job, UnitStep(unit_of_plain_run(last.ordinal if last else None), "run", found=found, before=last)
    unit, before = unit_of(done), state.newest_before(done.ordinal)
    reason = why_rerun(done, now, is_last=True, is_newest=True)
    if reason is None:
        return job, UnitStep(unit, "skip", "", found, before, is_again=True)
    if reason.is_free and (before is None or state.has_data(before.label)):
        again = rerun_of_finished(job, done, now, is_end=True)
        return again, UnitStep(unit, "run", reason.text, found, before, is_again=True)
    why = ", and the state before it is no longer kept" if reason.is_free else "; it stays as it is"
    return job, UnitStep(unit, "skip", f"{reason.text}{why}", found, before, is_again=True)


def files_of(job: Job) -> tuple[InputFile, ...]:
    """Return the files of a job's input by absolute paths. Raises `InputError` where there are none."""
    return list_inputs(job.input, read_options(job))


def files_of_logs(job: Job) -> dict[str, tuple[InputFile, ...]]:
    """Return the files of the right sides of a job's joins, by name. Raises `InputError` where there are none."""
    logs = [each for each in job.tables if isinstance(each, RightSide)]
    return {each.name: list_inputs([each.path], _reading_beside(job)) for each in logs}


def _reading_beside(job: Job) -> ReadOptions:
    return replace(read_options(job), bases=(), skip_unreadable=False, version=None)


Finish = Callable[[], int]
"""Reports the outcome of a command, after the progress bar is gone, and returns the exit code."""

Confirm = Callable[[Job, RunContext], None]
"""Raises an error where the effect of a run is not as its job allows (``confirm_effect``)."""


def run_request(job: Job, context: RunContext, confirm: Confirm | None = None) -> Finish:
    """Run a job in the way that it requests; return what reports the outcome at the end.

    ``confirm``: confirms the effect of a job with ``confirm_effect``; None: no effect is confirmed.
    """
    if job.start is not None and job.end is not None:
        # Run the units of a range: each by itself, or on a state.
        in_range = units(job.start, job.end, job.unit)
        input_paths = find_input_paths(job, in_range[0], job.unit)
        check = partial(confirm, job, context) if confirm and job.confirm_effect is not None else None
        if job.state is not None:
            return _run_on_state(job, job.state, input_paths, in_range, context, check)
        if check is not None:
            check()
        steps, run = plain_steps(job, input_paths, in_range), partial(run_plain_unit, job, input_paths)
        remove_leftovers(job, input_paths, steps.records)
        with units_together(job, context, run) as (run_one, runner):
            outcome = run_backfill(steps, run_one, partial(note_of_unit, context), runner)
        return _report_range(job, outcome, context)
    return _run_alone(job, context) if job.state is None else _run_next(job, job.state, context)


def _run_alone(job: Job, context: RunContext) -> Finish:
    if result_is_done(job):
        remove_leftovers_beside(job.outputs, owner())
        return partial(_nothing_to_do, job, context, f"{job.shown_output} holds the result of this job and input")
    staged, _ = run_job(job, nullcontext(PlainRun(context.started)), context)
    return partial(_report_run, job, staged.stage_runs, context, staged.plan.cut_at)


def _run_next(job: Job, path: str, context: RunContext) -> Finish:
    refuse_state_overlap(job)
    check_undated(job, state_without_lock(path).records)
    with open_state(path, owner(), paths_of(job)) as state:
        _report_notes(state, context)
        check_undated(job, state.records)
        own, step = find_next_run(job, state)
        if step.note is not None:
            context.messages.note(step.note)
        if step.action == "skip":
            return partial(_nothing_to_do, job, context, f"{step.label} of {path} has read this input")
        before = Kept.of(state)
        keep = job.kept(1, len(before.data))
        late = LateBackfill(state, context, keep, partial(rerun_job, paths_of(own)))
        again: list[str] = []
        try:
            for staged, record in run_unit(late, own, own, step.unit, step.previous):
                stage_runs = staged.stage_runs
                if record.label != step.label:  # the summary at the end is about the unit itself
                    again.append(record.label)
                    report_unit(record, context.messages)
        except Stopped as error:
            error.kept = ", ".join(again) or None
            raise
        report_kept(before, state, context.messages)
    return partial(_report_run, own, stage_runs, context)


def _run_on_state(
    job: Job,
    path: str,
    input_paths: InputPaths,
    in_range: Sequence[Unit],
    context: RunContext,
    check: Callable[[], None] | None,
) -> Finish:
    """Run the units of a range on a state, and those after them that a correction reaches.

    ``check``: confirms the effect, while no other run can change the state; None: no effect is confirmed.
    """
    with open_state(path, owner(), paths_of(job)) as state:
        _report_notes(state, context)
        before = Kept.of(state)
        keep = job.kept(len(in_range), len(before.data))
        backfill = IncrementalBackfill(job, state, in_range, context, input_paths, keep)
        steps = backfill.steps(partial(find_input, input_paths))
        if check is not None:
            check()
        with beforehand(backfill) as backfill:
            outcome = run_backfill(steps, backfill.run, partial(note_of_unit, context))
        report_kept(before, state, context.messages)
        if job.late == "redo":
            report_rejected(state.records, in_range, context.messages)
    return _report_range(job, outcome, context)


def _pass_over(context: RunContext, skipped: int, gaps: int) -> None:
    for each in context.observers:
        each.pass_over(skipped, gaps)


def _report_run(job: Job, stage_runs: Sequence[StageRun], context: RunContext, cut_at: int | None = None) -> int:
    report_outcome(job, stage_runs, time.perf_counter() - context.started, context.messages, cut_at)
    return OK


def _report_range(job: Job, outcome: BackfillOutcome, context: RunContext) -> Finish:
    _pass_over(context, len(outcome.skipped), len(outcome.gaps))

    def finish() -> int:
        seconds = time.perf_counter() - context.started
        report_backfill(outcome, job.shown_output, job.state is not None, seconds, context.messages)
        return OK if outcome.done else job.exit_code_noop

    return finish


def _nothing_to_do(job: Job, context: RunContext, why: str) -> int:
    context.messages.summary(f"nothing to do: {why}", output=job.shown_output)
    _pass_over(context, 1, 0)
    return job.exit_code_noop


def _report_notes(state: State, context: RunContext) -> None:
    for note in state.notes:
        context.messages.note(note)
