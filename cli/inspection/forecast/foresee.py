"""From a job request to its forecast, in the way that a run would take it: alone, on a state, or over a range."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Literal

from ....conf.job import PIPE, recorded
from ....conf.ranges import Unit, unit_of_plain_run, units
from ....windowing.errors import ConfigError, WincliError
from ....writers.output.output import check_output
from ....writers.places.lock import is_dead
from ....writers.state.layout import is_state
from ....writers.state.state import State, read_state, state_without_lock
from ....writers.state.unit_record import UnitRecord
from ...console.progress import Show
from ...planning.fingerprint import same_job
from ...planning.job_plan import refuse_overlaps, refuse_state_overlap
from ...planning.request import JobRequest
from ...run.incremental_backfill import RangeOnState
from ...run.incremental_run import IncrementalRun
from ...run.parallel_units import why_one_by_one
from ...run.plain_backfill import earlier_jobs, own_request, read_result
from ...run.rerun import differences_of
from ...run.run_modes import check_undated, files_of, find_next_run, result_is_done
from ...run.unit_paths import InputPaths, find_input_paths, outputs_of, unit_job
from .forecast import ExpectedTime, Forecast, UnitForecast
from .stages import OpenJob, open_job, output_name
from .units import SupposedRun, forecast_range, size_of

# How long a run may take, from what earlier runs of the same job took for inputs of other sizes.


_MOST_RUNS = 50  # the newest: machines and versions change
_FAR = 4
_APART = 1.5  # sizes within this ratio say nothing of how time grows with size


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that is done: ``nbytes`` of its input, and the ``seconds`` that it took."""

    nbytes: int
    seconds: float


def runs_on_state(request: JobRequest, records: Sequence[UnitRecord]) -> list[EarlierRun]:
    """Return the runs of this job that a state has records of."""
    job = recorded(request.job)
    found = [record for record in records[-_MOST_RUNS:] if not differences_of(record, job)]
    return _runs((sum(file.size for file in record.inputs), record.seconds) for record in found)


def runs_of_range(request: JobRequest, input_paths: InputPaths, units: Iterable[Unit]) -> list[EarlierRun]:
    """Return the runs of units of a range that left a result, without a state."""
    return _of_results(request, (outputs_of(request, input_paths, unit)[-1] for unit in list(units)[-_MOST_RUNS:]))


def run_of_output(request: JobRequest) -> list[EarlierRun]:
    """Return the run of this job that left the result in its output, if there is one."""
    return [] if request.is_piped else _of_results(request, [request.job.output])


def _of_results(request: JobRequest, outputs: Iterable[str]) -> list[EarlierRun]:
    job, found = recorded(request.job), []
    for output in outputs:
        manifest = read_result(output)
        if manifest is not None and same_job(manifest["job"], job):
            found.append((sum(file["size"] for file in manifest["inputs"]), manifest["seconds"]))
    return _runs(found)


def _runs(found: Iterable[tuple[int, Mapping[str, Any]]]) -> list[EarlierRun]:
    return [EarlierRun(nbytes, float(seconds["total"])) for nbytes, seconds in found if "total" in seconds]


def expect_seconds(runs: Sequence[EarlierRun], units: Sequence[UnitForecast]) -> ExpectedTime | None:
    """Return the seconds that the units may take; None without an earlier run, or where nothing runs.

    Runs of one size do not say how long units take that are far larger: that is None, too.
    """
    sure = [unit.nbytes for unit in units if unit.action == "run"]
    maybe = [unit.nbytes for unit in units if unit.action == "may run"]
    if not runs or not (sure or maybe):
        return None
    is_far = max([*sure, *maybe]) > _FAR * max(run.nbytes for run in runs)
    if is_far and _are_alike(runs):
        return None
    fixed, rate = line_of(runs)
    seconds, more = (sum(fixed + rate * nbytes for nbytes in lot) for lot in (sure, maybe))
    return ExpectedTime(seconds, seconds + more, len(runs), is_far)


def line_of(runs: Sequence[EarlierRun]) -> tuple[float, float]:
    """Return the seconds that every run takes, and those for each byte: both at least 0.

    The line of least squares, or where that falls, or starts below 0, the next best that does not. Where all runs had
    inputs of about one size, time is taken to grow with size.
    """
    sizes, seconds = [run.nbytes for run in runs], [run.seconds for run in runs]
    if _are_alike(runs):
        return 0.0, median(seconds) / max(median(sizes), 1)
    mean_size, mean_seconds = sum(sizes) / len(runs), sum(seconds) / len(runs)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    slope = sum((size - mean_size) * (each - mean_seconds) for size, each in zip(sizes, seconds, strict=True)) / spread
    if slope <= 0:
        return mean_seconds, 0.0
    fixed = mean_seconds - slope * mean_size
    if fixed >= 0:
        return fixed, slope
    return 0.0, sum(size * each for size, each in zip(sizes, seconds, strict=True)) / sum(size**2 for size in sizes)


def _are_alike(runs: Sequence[EarlierRun]) -> bool:
    sizes = [run.nbytes for run in runs]
    return max(sizes) < _APART * max(min(sizes), 1)


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
    unit_now, keep = unit_of_plain_run(before.ordinal if before else None), request.job.kept(1, 0)
    mode = IncrementalRun(state, unit_now, before.label if before else None, keep)
    if found.done is not None and not found.is_again:
        why = found.why or f"{found.done.label} of {path} has read this input"
        unit = UnitForecast(found.done.label, "skip", why, *size, is_again=True)
        return _of_one(request, unit, runs, None, open_job(_to_plan(request), mode, show))
    problem = _problem_of(found.request)
    unit = _one_unit(unit_now.label, found.why or "its input is new", size, problem, is_again=found.done is not None)
    foreseen = _of_one(found.request, unit, runs, problem, open_job(_to_plan(found.request), mode, show))
    kept = [record.label for record in state.records if state.has_data(record.label)]
    reach = f"late rows may make units run again, from {kept[0]} on" if request.job.late == "redo" and kept else None
    return replace(foreseen, forecast=replace(foreseen.forecast, reach=reach))


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
    mode = None
    if state is not None:
        mode = IncrementalRun(state, found.first.unit, found.first.previous, request.job.kept(1, 0))
    earlier = partial(earlier_jobs, request, input_paths, found.first.unit) if state is None else None
    job = open_job(own_of(found.first), mode, show, earlier)
    return _with_job(replace(forecast, shown=found.first.unit.label), job)


def _own_request(
    request: JobRequest, input_paths: InputPaths, in_range: Sequence[Unit], state: State | None, run: SupposedRun
) -> JobRequest:
    if state is None:
        return own_request(request, input_paths, run.unit, run.found)
    own = unit_job(request, input_paths, run.unit, run.found)
    return RangeOnState(request, state, in_range).own_request(own, run.unit)


def _stop_at(forecast: Forecast, label: str, problem: WincliError) -> Forecast:
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
