"""From a job request to its forecast, in the way that a run would take it: alone, on a state, or over a range."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ....conf.job import PIPE
from ....conf.ranges.units import Unit, unit_of_plain_run, units
from ....windowing.errors import ConfigError, WincliError
from ....writers.folders.lock import is_dead
from ....writers.output.output import check_output
from ....writers.state.layout import is_state
from ....writers.state.state import State, read_state, state_without_lock
from ...console.progress import Show
from ...planning.job_plan import refuse_overlaps, refuse_state_overlap
from ...planning.request import JobRequest
from ...run.incremental_backfill import RangeOnState
from ...run.parallel_units import why_one_by_one
from ...run.plain_backfill import earlier_jobs, own_request, read_result
from ...run.run_modes import check_undated, files_of, find_next_run, result_is_done
from ...run.unit_paths import InputPaths, find_input_paths, unit_job
from .forecast import Forecast, UnitForecast
from .stages import OnState, OpenJob, open_job, output_name
from .units.earlier_runs import EarlierRun, expect_seconds, run_of_output, runs_of_range, runs_on_state
from .units.range_units import forecast_range, size_of
from .units.supposed_range import SupposedRun


@dataclass(frozen=True, slots=True)
class JobForecast:
    """What a run would do, and the job that it would do.

    ``forecast``: what it would do.
    ``job``: the job of the unit that is shown, planned over its input; None where nothing can be shown.
    """

    forecast: Forecast
    job: OpenJob | None = None


def foresee(request: JobRequest, show: Show) -> JobForecast:
    """Find what a run of a job would do; write nothing, and start no Spark.

    ``show``: shows the progress of reading text files. Raises what a run raises before it computes anything, except
    where its outputs or a unit of a range stop it: the forecast holds these problems.
    """
    job = request.job
    if PIPE in job.input:
        raise ConfigError("stdin can be read only once, and the run has to read it", "plan with a file in its place")
    if job.start is not None and job.end is not None:
        return _foresee_range(request, units(job.start, job.end, job.unit), show)
    return _foresee_alone(request, show) if job.state is None else _foresee_next(request, job.state, show)


def _foresee_alone(request: JobRequest, show: Show) -> JobForecast:
    job = open_job(_to_plan(request), None, show)
    size = job.input.files, job.input.nbytes  # there may be so many files that to list them again takes seconds
    if result_is_done(request):
        why = f"{request.shown_output} holds the result of this job and input"
        unit = UnitForecast(None, "skip", why, *size, is_again=True)
        return _of_one(request, unit, run_of_output(request), None, job)
    problem = _problem_of(request)
    is_there = not request.is_piped and any(read_result(path) for path in request.outputs)
    why = "the result that is there is replaced" if is_there else "there is no result yet"
    unit = _one_unit(None, why, size, problem, is_there)
    return _of_one(request, unit, run_of_output(request), problem, job)


def _foresee_next(request: JobRequest, path: str, show: Show) -> JobForecast:
    refuse_state_overlap(request)
    state = state_without_lock(path)
    check_undated(request, state.records)
    files = files_of(request)
    size, runs = size_of(files), runs_on_state(request, state.records)
    found = find_next_run(request, state)
    before = found.before
    place = OnState(state, unit_of_plain_run(before.ordinal if before else None), before.label if before else None)
    if found.done is not None and not found.is_again:
        why = found.why or f"{found.done.label} of {path} has read this input"
        unit = UnitForecast(found.done.label, "skip", why, *size, is_again=True)
        return _of_one(request, unit, runs, None, open_job(_to_plan(request), place, show))
    problem = _problem_of(found.request)
    unit = _one_unit(place.unit.label, found.why or "its input is new", size, problem, is_again=found.done is not None)
    foreseen = _of_one(found.request, unit, runs, problem, open_job(_to_plan(found.request), place, show))
    return replace(foreseen, forecast=replace(foreseen.forecast, reach=_reach_of_late_rows(request, state)))


def _reach_of_late_rows(request: JobRequest, state: State) -> str | None:
    """Return how far late rows may reach, in words; None where the job rejects them, or nothing was done before."""
    kept = [record.label for record in state.records if state.has_data(record.label)]
    if request.job.late != "redo" or not kept:
        return None
    return f"late rows may make units run again, from {kept[0]} on"


def _one_unit(
    label: str | None, why: str, size: tuple[int, int], problem: WincliError | None, is_again: bool = False
) -> UnitForecast:
    if problem is not None:
        return UnitForecast(label, "stop", problem.what, *size, is_again=is_again)
    return UnitForecast(label, "run", why, *size, is_again=is_again)


def _problem_of(request: JobRequest) -> WincliError | None:
    """Return why a run would refuse its outputs before it reads anything; None where it would not."""
    stage_outputs = (stage.stage.output for stage in request.stages[:-1])
    paths = [path for path in (*stage_outputs, request.job.output) if path and path != PIPE]
    try:
        refuse_overlaps(request, paths)
        for path in paths:
            check_output(path, request.job.mode, request.inputs)
    except WincliError as error:
        return error
    return None


def _of_one(
    request: JobRequest,
    unit: UnitForecast,
    runs: Sequence[EarlierRun],
    problem: WincliError | None,
    job: OpenJob,
) -> JobForecast:
    found = _make_forecast(request, "run" if job.mode is None else "next run", (unit,), runs)
    return _with_job(replace(found, problem=problem, shown=unit.label), job)


def _foresee_range(request: JobRequest, in_range: Sequence[Unit], show: Show) -> JobForecast:
    input_paths = find_input_paths(request, in_range[0], request.job.unit)
    state = None if request.job.state is None else state_without_lock(request.job.state)
    found = forecast_range(request, input_paths, in_range, state)
    records = None if state is None else state.records
    runs = runs_of_range(request, input_paths, in_range) if records is None else runs_on_state(request, records)
    forecast = _make_forecast(request, "range", found.units, runs, found.notes)
    why = why_one_by_one(request)
    jobs = request.job.jobs if why is None else 1
    forecast = replace(forecast, reach=found.reach, problem=found.problem, jobs=jobs, why_one_by_one=why)
    own_of = partial(_own_request, request, input_paths, in_range, state)
    for run in found.runs:
        if problem := _problem_of(own_of(run)):
            forecast = _stop_at(forecast, run.unit.label, problem)
            break
    if found.first is None:
        return JobForecast(forecast)
    place = None if state is None else OnState(state, found.first.unit, found.first.previous)
    earlier = partial(earlier_jobs, request, input_paths, found.first.unit) if state is None else None
    job = open_job(own_of(found.first), place, show, earlier)
    return _with_job(replace(forecast, shown=found.first.unit.label), job)


def _own_request(
    request: JobRequest, input_paths: InputPaths, in_range: Sequence[Unit], state: State | None, run: SupposedRun
) -> JobRequest:
    """Return the job of a unit as a run has it."""
    if state is None:
        return own_request(request, input_paths, run.unit, run.found)
    own = unit_job(request, input_paths, run.unit, run.found)
    return RangeOnState(request, state, in_range).own_request(own, run.unit)


def _stop_at(forecast: Forecast, label: str, problem: WincliError) -> Forecast:
    """Return the forecast of a range that stops at a unit, whose output the run would refuse."""
    problem.what = f"{label}: {problem.what}"
    at = [unit.label for unit in forecast.units].index(label)
    after = [replace(each, action="stop", why="the run has stopped before it") for each in forecast.units[at + 1 :]]
    first = replace(forecast.units[at], action="stop", why=problem.what)
    return replace(forecast, units=(*forecast.units[:at], first, *after), problem=problem, expected=None)


def _make_forecast(
    request: JobRequest,
    way: Literal["run", "next run", "range"],
    found: tuple[UnitForecast, ...],
    runs: Sequence[EarlierRun],
    notes: tuple[str, ...] = (),
) -> Forecast:
    state = request.job.state
    return Forecast(
        way,
        output_name(request.shown_output),
        state,
        found,
        expected=expect_seconds(runs, found),
        notes=(*notes, *(_state_notes(state) if state is not None else ())),
    )


def _state_notes(path: str) -> list[str]:
    """Return what a run would do first to a state that a killed run left, and who works on it now."""
    if not is_state(path):
        return []
    view = read_state(path)
    notes = list(view.damage)
    if view.owner is not None and not is_dead(view.owner, socket.gethostname()):
        notes.append(f"process {view.owner.pid} on {view.owner.host} works on the state now, and may change it")
    if view.pending is not None:
        what = "a run put it in place when it was killed, and the next run completes that first"
        notes.append(f"{view.pending}: {what}; this plan does not know it")
    return notes


def _to_plan(request: JobRequest) -> JobRequest:
    """Return the job with a name in place of stdout: nothing is written there."""
    return replace(request, stdout="stdout") if request.job.output == PIPE else request


def _with_job(forecast: Forecast, job: OpenJob) -> JobForecast:
    return JobForecast(replace(forecast, input=job.input, stages=job.stages), job)
