"""The three ways to run a job: alone, as an incremental run with a state, or as a backfill over a range of units."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from ...conf.recorded_job import paths_of, recorded
from ...conf.units import Unit, check_kind, unit_at, unit_of_plain_run, units
from ...windowing.errors import InputError, WincliError
from ...windowing.ports import InputFile
from ...windowing.support.redaction import redacted_path
from ...writers.state.state import State, open_state
from ...writers.state.unit_record import UnitRecord
from ..backfill.finished_results import ResultRecord, is_done, may_replace, read_result, result_record
from ..backfill.late_rows import LateBackfill, has_current_late_rows, reprocess_for_late_rows, starts_from
from ..backfill.lost_outputs import RerunReason
from ..backfill.range_run import BackfillSteps, StateChain, run_backfill
from ..backfill.range_summary import report_backfill
from ..backfill.rerun import rerun_request, with_same_end
from ..backfill.rerun_choice import check_same_job, differences_of, replacing, rerun_of_finished, why_rerun
from ..backfill.unit_paths import InputPaths, UnitInput, find_input, find_input_paths, list_inputs, outputs_of, unit_job
from ..console.counts import count_of
from ..console.messages import OK
from ..console.row_accounts import sum_rejected
from ..job.context import RunContext, now, owner
from ..job.fingerprint import already_done
from ..job.pipeline import Finish, run_job
from ..job.request import JobRequest
from ..job.stage_runs import StageRun
from ..job.state_unit import IncrementalRun
from ..job.summary import report_outcome


def run_request(request: JobRequest, context: RunContext) -> Finish:
    """Run a job in the way that it requests; return what reports the outcome at the end."""
    if request.job.start is not None:
        return _run_backfill(request, context)
    return _run_alone(request, context) if request.job.state is None else _run_next(request, request.job.state, context)


def _run_alone(request: JobRequest, context: RunContext) -> Finish:
    outputs = request.outputs
    is_there = request.job.mode == "error" and not request.is_piped and all(read_result(path) for path in outputs)
    if is_there and is_done(outputs, recorded(request.job), _files(request)):
        return partial(_nothing_to_do, request, context, f"{request.job.output} holds the result of this job and input")
    stage_runs = run_job(request, context)
    return partial(_finish, lambda: _report_run(request, stage_runs, context))


def _run_next(request: JobRequest, path: str, context: RunContext) -> Finish:
    """Run a job as the next incremental run of a state.

    Input that the newest run has read already is not read again, unless `why_rerun` finds a reason for it.
    """
    with open_state(path, owner(), paths_of(request.job)) as state:
        _report_notes(state, context)
        check_kind([(record.label, record.ordinal) for record in state.records], None)
        outputs, job = request.outputs, recorded(request.job)

        def is_same(record: UnitRecord) -> bool:
            shown = [redacted_path(output.shown) for output in record.outputs]
            return not differences_of(record, job) and shown == list(map(redacted_path, outputs))

        done = already_done(state.records, _files(request), is_same)
        last = state.records[-1] if state.records else None
        if done is not None:
            if not _is_rerun(state, done, why_rerun(done, job, is_last=True, is_newest=True), context):
                return partial(_nothing_to_do, request, context, f"{done.label} of {path} has read this input")
            request, last = rerun_of_finished(request, done, job, is_end=True), state.newest_before(done.ordinal)
        unit = unit_of_plain_run(last.ordinal if last else None)
        late = LateBackfill(state, context, request.job.keep, partial(rerun_request, paths_of(request.job)))
        with _record_failure(state, unit, context):
            for record in reprocess_for_late_rows(late, request, unit):
                _report_unit(record, context)
            incremental = IncrementalRun(
                state, unit, last.label if last else None, request.job.keep, late.inputs.get(unit.label)
            )
            stage_runs = run_job(request, context, incremental)
    return partial(_finish, lambda: _report_run(request, stage_runs, context))


def _report_run(request: JobRequest, stage_runs: Sequence[StageRun], context: RunContext) -> None:
    report_outcome(request, stage_runs, time.perf_counter() - context.started, context.messages)


def _is_rerun(state: State, done: UnitRecord, reason: RerunReason | None, context: RunContext) -> bool:
    """Decide whether the newest plain run is reprocessed; write a note about it, or about why not."""
    if reason is None:
        return False
    before = state.newest_before(done.ordinal)
    is_kept = before is None or state.has_data(before.label)
    if reason.is_free and is_kept:
        context.messages.note(f"{done.label} is run again: {reason.text}")
        return True
    why = ", and the state before it is no longer kept" if reason.is_free else "; it stays as it is"
    context.messages.note(f"{done.label} is done, but {reason.text}{why}")
    return False


def _run_backfill(request: JobRequest, context: RunContext) -> Finish:
    """Run the units of a range on a state, and those after them that a correction reaches."""
    job = request.job
    assert job.start is not None
    assert job.end is not None
    requested_units = units(job.start, job.end, job.unit)
    input_paths = find_input_paths(request, requested_units[0], job.unit)
    if job.state is None:
        return _backfill_without_state(request, context, requested_units, input_paths)
    with open_state(job.state, owner(), paths_of(job)) as state:
        _report_notes(state, context)
        in_range, job_record = {unit.ordinal for unit in requested_units}, recorded(job)
        if not job.redo:
            check_same_job(job_record, [record for record in state.records if record.ordinal in in_range])

        late = LateBackfill(state, context, job.keep, lambda record: _unit_rerun_request(request, input_paths, record))

        def reprocess(unit: Unit, found: UnitInput) -> Iterator[UnitRecord]:
            with _record_failure(state, unit, context):
                for record in reprocess_for_late_rows(late, unit_job(request, input_paths, unit, found), unit):
                    _report_unit(record, context)
                    yield record

        def run_unit(unit: Unit, found: UnitInput, previous: str | None) -> UnitRecord:
            incremental = IncrementalRun(state, unit, previous, job.keep, late.inputs.pop(unit.label, None))
            own_request, former = unit_job(request, input_paths, unit, found), state.record(unit.label)
            if former is not None and job.redo and unit.ordinal in in_range:
                own_request = replacing(own_request)
            elif former is not None:
                own_request = rerun_of_finished(own_request, former, job_record, is_last(former) and is_newest(former))
            with _record_failure(state, unit, context):
                run_job(own_request, context, incremental)
            assert incremental.record is not None
            _report_unit(incremental.record, context)
            return incremental.record

        def starts_from_state_of(label: str | None, record: UnitRecord) -> bool:
            before = state.record(label) if label is not None else None
            return starts_from(record, before) and has_current_late_rows(state, record)

        def is_last(record: UnitRecord) -> bool:
            return record.ordinal == requested_units[-1].ordinal

        def is_newest(record: UnitRecord) -> bool:
            return record.label == state.records[-1].label

        def reason_to_rerun(record: UnitRecord) -> RerunReason | None:
            return why_rerun(record, job_record, is_last(record), is_newest(record))

        chain = StateChain(state.has_data, starts_from_state_of)
        steps = BackfillSteps(
            partial(find_input, input_paths), run_unit, context.messages.note, chain, reprocess, reason_to_rerun
        )
        outcome = run_backfill(requested_units, job.unit, state.records, steps, job.redo)
    return _finish_backfill(request, context, bool(outcome.done), partial(report_backfill, outcome, job.output, True))


def _backfill_without_state(
    request: JobRequest, context: RunContext, requested_units: Sequence[Unit], input_paths: InputPaths
) -> Finish:
    """Run the units of a range where no unit depends on another: the manifests of their results say which are done."""
    job = request.job
    job_record = recorded(job)
    records = [result_record(unit, outputs_of(request, input_paths, unit), job_record) for unit in requested_units]

    def run_unit(unit: Unit, found: UnitInput, _: str | None) -> ResultRecord:
        own_request = unit_job(request, input_paths, unit, found)
        outputs = outputs_of(request, input_paths, unit)
        run_job(replacing(own_request) if may_replace(outputs, job_record) else own_request, context)
        record = result_record(unit, outputs, job_record)
        assert record is not None
        _report_unit(record, context)
        return record

    steps = BackfillSteps(partial(find_input, input_paths), run_unit, context.messages.note)
    outcome = run_backfill(requested_units, job.unit, [record for record in records if record], steps, job.redo)
    return _finish_backfill(request, context, bool(outcome.done), partial(report_backfill, outcome, job.output, False))


def _finish_backfill(request: JobRequest, context: RunContext, is_done: bool, report: Callable[..., None]) -> Finish:
    def finish() -> int:
        report(time.perf_counter() - context.started, context.messages)
        return OK if is_done else request.job.exit_code_noop

    return finish


def _finish(report: Callable[[], None]) -> int:
    report()
    return OK


def _nothing_to_do(request: JobRequest, context: RunContext, why: str) -> int:
    context.messages.summary(f"nothing to do: {why}", output=request.job.output)
    return request.job.exit_code_noop


def _files(request: JobRequest) -> tuple[InputFile, ...]:
    return list_inputs(request.job.input, request.reading)


def _unit_rerun_request(
    request: JobRequest, input_paths: InputPaths, record: UnitRecord
) -> tuple[JobRequest, Sequence[str]]:
    """Return the job that reprocesses a unit for late rows, and the paths that it reads.

    The unit is one of the range, or before it.
    """
    unit = unit_at(record.ordinal, request.job.unit)
    found = find_input(input_paths, unit)
    if found is None:
        what = f"{unit.label} has to be run again for late rows, and its input is gone"
        raise InputError(what, "put its files back where they were")
    return replacing(with_same_end(unit_job(request, input_paths, unit, found), record)), found.paths


def _report_notes(state: State, context: RunContext) -> None:
    for note in state.notes:
        context.messages.note(note)


def _report_unit(record: UnitRecord | ResultRecord, context: RunContext) -> None:
    """Write the note that one unit is done: its rows, windows, rejects and held rows."""
    rows, windows = record.stages[0].counts["rows_in"], record.stages[-1].windows
    rejected = sum_rejected([stage.counts["rejected"] for stage in record.stages])
    held = sum(stage.counts["held"] for stage in record.stages)
    words = [
        f"{count_of(rows, 'row')} in",
        f"{count_of(windows, 'window')} out",
        f"{sum(rejected.values()):,} rejected",
    ]
    words += [f"{held:,} carried over"] if held else []
    context.messages.note(
        f"{record.label}: {', '.join(words)}",
        unit=record.label,
        rows_in=rows,
        windows_out=windows,
        rejected=rejected,
        held=held,
    )


@contextmanager
def _record_failure(state: State, unit: Unit, context: RunContext) -> Iterator[None]:
    """Record in the state why a unit failed, for ``wincli status``, and raise the error again."""
    try:
        yield
    except WincliError as error:
        state.fail(unit.label, context.messages.clean(error.what), now())
        raise
