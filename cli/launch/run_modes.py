"""The three ways to run a job: alone, as an incremental run with a state, or as a backfill over a range of units."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from ...conf.ranges.units import Unit, unit_of_plain_run, units
from ...conf.recorded_job import paths_of
from ...writers.commit.tables import remove_leftovers_beside
from ...writers.state.state import State, open_state, state_without_lock
from ...writers.state.unit_record import UnitRecord
from ..backfill.incremental_backfill import IncrementalBackfill, run_unit
from ..backfill.late_rows import LateBackfill
from ..backfill.parallel.independence import why_one_by_one
from ..backfill.parallel.shared import shared_context
from ..backfill.plain_backfill import PlainBackfill
from ..backfill.range_run import run_backfill
from ..backfill.range_summary import Kept, report_backfill, report_kept, report_rejected
from ..backfill.rerun import rerun_request
from ..backfill.unit_paths import InputPaths, find_input_paths
from ..backfill.unit_report import report_unit
from ..console.messages import OK, Stopped
from ..job.context import RunContext, owner
from ..job.pipeline import run_job
from ..job.plain_run import PlainRun
from ..job.reports.summary import report_outcome
from ..job.staged_job import StageRun
from ..planning.open_outputs import refuse_state_overlap
from ..request.request import JobRequest
from .next_run import check_undated, find_next_run, result_is_done

Finish = Callable[[], int]
"""Reports the outcome of a command, after the progress bar is gone, and returns the exit code."""

Confirm = Callable[[JobRequest, RunContext], None]
"""Raises an error where the effect of a run is not as its job allows (``confirm_effect``)."""


def run_request(request: JobRequest, context: RunContext, confirm: Confirm | None = None) -> Finish:
    """Run a job in the way that it requests; return what reports the outcome at the end.

    ``confirm``: confirms the effect of a job with ``confirm_effect``; None: no effect is confirmed.
    """
    job = request.job
    if job.start is not None and job.end is not None:
        return _run_backfill(request, units(job.start, job.end, job.unit), context, confirm)
    return _run_alone(request, context) if job.state is None else _run_next(request, job.state, context)


def _run_alone(request: JobRequest, context: RunContext) -> Finish:
    if result_is_done(request):
        remove_leftovers_beside(request.outputs, owner())
        return partial(
            _nothing_to_do, request, context, f"{request.shown_output} holds the result of this job and input"
        )
    done = run_job(request, PlainRun(context.started), context)
    return partial(_report_run, request, done.stage_runs, context, done.cut_at)


def _run_next(request: JobRequest, path: str, context: RunContext) -> Finish:
    """Run a job as the next incremental run of a state."""
    refuse_state_overlap(request)
    check_undated(request, state_without_lock(path).records)
    with open_state(path, owner(), paths_of(request.job)) as state:
        _report_notes(state, context)
        check_undated(request, state.records)
        found = find_next_run(request, state)
        if found.why is not None:
            context.messages.note(found.why)
        if found.done is not None and not found.is_again:
            return partial(_nothing_to_do, request, context, f"{found.done.label} of {path} has read this input")
        before = Kept.of(state)
        keep = request.job.kept(1, len(before.data))
        stage_runs = _run_unit(found.request, state, found.before, context, keep)
        report_kept(before, state, context.messages)
    return partial(_report_run, found.request, stage_runs, context)


def _run_unit(
    request: JobRequest, state: State, before: UnitRecord | None, context: RunContext, keep: int
) -> Sequence[StageRun]:
    """Run a job as the unit after ``before``, after the units that its late rows belong to; return its stages."""
    unit = unit_of_plain_run(before.ordinal if before else None)
    late = LateBackfill(state, context, keep, partial(rerun_request, paths_of(request.job)))
    again: list[str] = []
    try:
        for job in run_unit(late, request, request, unit, before.label if before else None):
            if job.record.label != unit.label:  # the summary at the end is about the unit itself
                again.append(job.record.label)
                report_unit(job.record, context.messages)
    except Stopped as error:
        error.kept = ", ".join(again) or None
        raise
    return job.stage_runs


def _run_backfill(
    request: JobRequest, in_range: Sequence[Unit], context: RunContext, confirm: Confirm | None
) -> Finish:
    """Run the units of a range: each by itself, or on a state."""
    input_paths = find_input_paths(request, in_range[0], request.job.unit)
    check = partial(confirm, request, context) if confirm and request.job.confirm_effect is not None else _nothing
    if request.job.state is None:
        check()
        return _run_apart(request, input_paths, in_range, context)
    return _run_on_state(request, request.job.state, input_paths, in_range, context, check)


def _nothing() -> None:
    """Confirm what needs no confirmation."""


def _run_apart(request: JobRequest, input_paths: InputPaths, in_range: Sequence[Unit], context: RunContext) -> Finish:
    """Run the units of a range where no unit depends on another."""
    shared = shared_context(context, request)
    mode = PlainBackfill(request, shared.context, input_paths)
    done = mode.records(in_range)
    outcome = run_backfill(in_range, request.job.unit, done, mode, request.job.redo, shared.runner)
    _pass_over(context, len(outcome.skipped), len(outcome.gaps))
    report = partial(report_backfill, outcome, request.shown_output, False)
    return partial(_report_backfill, request, context, bool(outcome.done), report)


def _run_on_state(
    request: JobRequest,
    path: str,
    input_paths: InputPaths,
    in_range: Sequence[Unit],
    context: RunContext,
    check: Callable[[], None],
) -> Finish:
    """Run the units of a range on a state, and those after them that a correction reaches.

    ``check``: confirms the effect, while no other run can change the state.
    """
    with open_state(path, owner(), paths_of(request.job)) as state:
        _report_notes(state, context)
        if request.job.jobs > 1:
            context.messages.note(f"units run one after the other: {why_one_by_one(request)}")
        before = Kept.of(state)
        keep = request.job.kept(len(in_range), len(before.data))
        mode = IncrementalBackfill(request, context, input_paths, state, in_range, keep)
        mode.range.check_same_job()
        check()
        outcome = run_backfill(in_range, request.job.unit, state.records, mode, request.job.redo)
        report_kept(before, state, context.messages)
        if request.job.late == "redo":
            report_rejected(state.records, in_range, context.messages)
    _pass_over(context, len(outcome.skipped), len(outcome.gaps))
    report = partial(report_backfill, outcome, request.shown_output, True)
    return partial(_report_backfill, request, context, bool(outcome.done), report)


def _pass_over(context: RunContext, skipped: int, gaps: int) -> None:
    """Let observers see how many units did not run."""
    for each in context.observers:
        each.pass_over(skipped, gaps)


def _report_run(
    request: JobRequest, stage_runs: Sequence[StageRun], context: RunContext, cut_at: int | None = None
) -> int:
    report_outcome(request, stage_runs, time.perf_counter() - context.started, context.messages, cut_at)
    return OK


def _report_backfill(request: JobRequest, context: RunContext, is_done: bool, report: Callable[..., None]) -> int:
    report(time.perf_counter() - context.started, context.messages)
    return OK if is_done else request.job.exit_code_noop


def _nothing_to_do(request: JobRequest, context: RunContext, why: str) -> int:
    context.messages.summary(f"nothing to do: {why}", output=request.shown_output)
    _pass_over(context, 1, 0)
    return request.job.exit_code_noop


def _report_notes(state: State, context: RunContext) -> None:
    for note in state.notes:
        context.messages.note(note)
