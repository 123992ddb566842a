"""The three ways to run a job: alone, onto a state, or over a range of units."""

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
from ..job.state_unit import IncrementalRun
from ..job.summary import report_outcome


def run_request(asked: JobRequest, desk: RunContext) -> Finish:
    """Run what was asked for; return what there is to tell at the end."""
    if asked.job.start is not None:
        return _run_backfill(asked, desk)
    return _run_alone(asked, desk) if asked.job.state is None else _run_next(asked, asked.job.state, desk)


def _run_alone(asked: JobRequest, desk: RunContext) -> Finish:
    outputs = _outputs(asked)
    is_there = asked.job.mode == "error" and not asked.is_piped and all(read_result(path) for path in outputs)
    if is_there and is_done(outputs, recorded(asked.job), _files(asked)):
        return partial(_nothing_to_do, asked, desk, f"{asked.job.output} holds the result of this job and input")
    ran = run_job(asked, desk)
    return partial(_finish, lambda: report_outcome(asked, ran, time.perf_counter() - desk.started, desk.messages))


def _run_next(asked: JobRequest, path: str, desk: RunContext) -> Finish:
    """Run a job as the next unit of a state."""
    with open_state(path, owner(), paths_of(asked.job)) as state:
        _report_notes(state, desk)
        check_kind([(record.label, record.ordinal) for record in state.records], None)
        outputs, job = _outputs(asked), recorded(asked.job)

        def is_same(record: UnitRecord) -> bool:
            shown = [redacted_path(output.shown) for output in record.outputs]
            return not differences_of(record, job) and shown == list(map(redacted_path, outputs))

        done = already_done(state.records, _files(asked), is_same)
        last = state.records[-1] if state.records else None
        if done is not None:
            if not _is_rerun(state, done, why_rerun(done, job, is_last=True, is_newest=True), desk):
                return partial(_nothing_to_do, asked, desk, f"{done.label} of {path} has read this input")
            asked, last = rerun_of_finished(asked, done, job, is_end=True), state.newest_before(done.ordinal)
        unit = unit_of_plain_run(last.ordinal if last else None)
        late = LateBackfill(state, desk, asked.job.keep, partial(rerun_request, paths_of(asked.job)))
        with _failing(state, unit, desk):
            for record in reprocess_for_late_rows(late, asked, unit):
                _report_unit(record, desk)
            onto = IncrementalRun(
                state, unit, last.label if last else None, asked.job.keep, late.inputs.get(unit.label)
            )
            ran = run_job(asked, desk, onto)
    return partial(_finish, lambda: report_outcome(asked, ran, time.perf_counter() - desk.started, desk.messages))


def _is_rerun(state: State, done: UnitRecord, again: RerunReason | None, desk: RunContext) -> bool:
    """Whether the newest plain run is run again; tell of it, or why not."""
    if again is None:
        return False
    before = state.newest_before(done.ordinal)
    is_kept = before is None or state.has_data(before.label)
    if again.is_free and is_kept:
        desk.messages.note(f"{done.label} is run again: {again.text}")
        return True
    why = ", and the state before it is no longer kept" if again.is_free else "; it stays as it is"
    desk.messages.note(f"{done.label} is done, but {again.text}{why}")
    return False


def _run_backfill(asked: JobRequest, desk: RunContext) -> Finish:
    job = asked.job
    assert job.start is not None
    assert job.end is not None
    asked_units = units(job.start, job.end, job.unit)
    places = find_input_paths(asked, asked_units[0], job.unit)
    if job.state is None:
        return _backfill_without_state(asked, desk, asked_units, places)
    with open_state(job.state, owner(), paths_of(job)) as state:
        _report_notes(state, desk)
        in_range, dump = {unit.ordinal for unit in asked_units}, recorded(job)
        if not job.redo:
            check_same_job(dump, [record for record in state.records if record.ordinal in in_range])

        late = LateBackfill(state, desk, job.keep, lambda record: _unit_rerun_request(asked, places, record))

        def reprocess(unit: Unit, found: UnitInput, _: str | None) -> Iterator[UnitRecord]:
            with _failing(state, unit, desk):
                for record in reprocess_for_late_rows(late, unit_job(asked, places, unit, found), unit):
                    _report_unit(record, desk)
                    yield record

        def run_unit(unit: Unit, found: UnitInput, previous: str | None) -> UnitRecord:
            onto = IncrementalRun(state, unit, previous, job.keep, late.inputs.pop(unit.label, None))
            one, former = unit_job(asked, places, unit, found), state.record(unit.label)
            if former is not None and job.redo and unit.ordinal in in_range:
                one = replacing(one)
            elif former is not None:
                one = rerun_of_finished(one, former, dump, is_last(former) and is_newest(former))
            with _failing(state, unit, desk):
                run_job(one, desk, onto)
            assert onto.record is not None
            _report_unit(onto.record, desk)
            return onto.record

        def same(label: str | None, record: UnitRecord) -> bool:
            before = state.record(label) if label is not None else None
            return starts_from(record, before) and has_current_late_rows(state, record)

        def is_last(record: UnitRecord) -> bool:
            return record.ordinal == asked_units[-1].ordinal

        def is_newest(record: UnitRecord) -> bool:
            return record.label == state.records[-1].label

        def reason_to_rerun(record: UnitRecord) -> RerunReason | None:
            return why_rerun(record, dump, is_last(record), is_newest(record))

        chain = StateChain(state.has_data, same)
        steps = BackfillSteps(
            partial(find_input, places), run_unit, desk.messages.note, chain, reprocess, reason_to_rerun
        )
        outcome = run_backfill(asked_units, job.unit, state.records, steps, job.redo)
    return _finish_backfill(asked, desk, bool(outcome.done), partial(report_backfill, outcome, job.output, True))


def _backfill_without_state(
    asked: JobRequest, desk: RunContext, asked_units: Sequence[Unit], places: InputPaths
) -> Finish:
    job = asked.job
    dump = recorded(job)
    records = [result_record(unit, outputs_of(asked, places, unit), dump) for unit in asked_units]

    def run_unit(unit: Unit, found: UnitInput, _: str | None) -> ResultRecord:
        one = unit_job(asked, places, unit, found)
        outputs = outputs_of(asked, places, unit)
        run_job(replacing(one) if may_replace(outputs, dump) else one, desk)
        record = result_record(unit, outputs, dump)
        assert record is not None
        _report_unit(record, desk)
        return record

    steps = BackfillSteps(partial(find_input, places), run_unit, desk.messages.note)
    outcome = run_backfill(asked_units, job.unit, [record for record in records if record], steps, job.redo)
    return _finish_backfill(asked, desk, bool(outcome.done), partial(report_backfill, outcome, job.output, False))


def _finish_backfill(asked: JobRequest, desk: RunContext, is_done: bool, tell: Callable[..., None]) -> Finish:
    def finish() -> int:
        tell(time.perf_counter() - desk.started, desk.messages)
        return OK if is_done else asked.job.exit_code_noop

    return finish


def _finish(tell: Callable[[], None]) -> int:
    tell()
    return OK


def _nothing_to_do(asked: JobRequest, desk: RunContext, why: str) -> int:
    desk.messages.summary(f"nothing to do: {why}", output=asked.job.output)
    return asked.job.exit_code_noop


def _files(asked: JobRequest) -> tuple[InputFile, ...]:
    return list_inputs(asked.job.input, asked.reading)


def _outputs(asked: JobRequest) -> list[str]:
    """The outputs of a job, its own last."""
    own = [stage.stage.output for stage in asked.stages[:-1] if stage.stage.output is not None]
    return [*own, asked.job.output]


def _unit_rerun_request(asked: JobRequest, places: InputPaths, record: UnitRecord) -> tuple[JobRequest, Sequence[str]]:
    """The job of a unit of the range, or one before it, to be run again because of late rows, and what it reads."""
    unit = unit_at(record.ordinal, asked.job.unit)
    found = find_input(places, unit)
    if found is None:
        what = f"{unit.label} has to be run again for late rows, and its input is gone"
        raise InputError(what, "put its files back where they were")
    return replacing(with_same_end(unit_job(asked, places, unit, found), record)), found.paths


def _report_notes(state: State, desk: RunContext) -> None:
    for note in state.notes:
        desk.messages.note(note)


def _report_unit(record: UnitRecord | ResultRecord, desk: RunContext) -> None:
    """One line for each unit of a range."""
    rows, windows = record.stages[0].counts["rows_in"], record.stages[-1].windows
    rejected = sum_rejected([stage.counts["rejected"] for stage in record.stages])
    held = sum(stage.counts["held"] for stage in record.stages)
    words = [
        f"{count_of(rows, 'row')} in",
        f"{count_of(windows, 'window')} out",
        f"{sum(rejected.values()):,} rejected",
    ]
    words += [f"{held:,} held"] if held else []
    desk.messages.note(
        f"{record.label}: {', '.join(words)}",
        unit=record.label,
        rows_in=rows,
        windows_out=windows,
        rejected=rejected,
        held=held,
    )


@contextmanager
def _failing(state: State, unit: Unit, desk: RunContext) -> Iterator[None]:
    """Write down in the state why a unit failed."""
    try:
        yield
    except WincliError as error:
        state.fail(unit.label, desk.messages.clean(error.what), now())
        raise
