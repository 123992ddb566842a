"""From a job to its forecast, in the way that a run would take it: alone, on a state, or over a range."""

from __future__ import annotations

import socket
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import median
from typing import Any, Literal

from ....conf.job import PIPE, Job, recorded
from ....conf.ranges import Kind, Unit, unit_at, unit_of_plain_run, units
from ....windowing.errors import ConfigError, WincliError
from ....windowing.ports import InputFile
from ....writers.output.output import check_output
from ....writers.places.lock import is_dead
from ....writers.state.layout import is_state
from ....writers.state.state import State, read_state, state_without_lock
from ....writers.state.unit_record import UnitRecord
from ...console.progress import Show
from ...run.fingerprint import same_job
from ...run.incremental_backfill import RangeOnState
from ...run.incremental_run import IncrementalRun, from_root
from ...run.job_plan import refuse_overlaps, refuse_state_overlap
from ...run.parallel_units import why_one_by_one
from ...run.plain_backfill import earlier_jobs, finished_records, own_request, read_result
from ...run.range_run import run_backfill
from ...run.rerun import differences_of
from ...run.run_modes import check_undated, files_of, find_next_run, result_is_done
from ...run.unit_paths import InputPaths, UnitInput, find_input, find_input_paths, outputs_of, unit_job
from ...run.units import RerunReason, StateChain
from .forecast import Forecast, UnitForecast
from .stages import OpenJob, input_of, open_job, output_name, stage_of

# How long a run may take, from what earlier runs of the same job took for inputs of other sizes.


_MOST_RUNS = 50  # the newest: machines and versions change
_FAR = 4
_APART = 1.5  # sizes within this ratio say nothing of how time grows with size

EarlierRun = tuple[int, float]
"""A run that is done: the bytes of its input, and the seconds that it took."""


def runs_on_state(job: Job, records: Sequence[UnitRecord]) -> list[EarlierRun]:
    """Return the runs of this job that a state has records of."""
    now = recorded(job)
    found = [record for record in records[-_MOST_RUNS:] if not differences_of(record, now)]
    return _runs((sum(file.size for file in record.inputs), record.seconds) for record in found)


def runs_of_outputs(job: Job, outputs: Iterable[str]) -> list[EarlierRun]:
    """Return the runs of this job that left their results in outputs."""
    now, found = recorded(job), []
    for output in outputs:
        manifest = read_result(output)
        if manifest is not None and same_job(manifest["job"], now):
            found.append((sum(file["size"] for file in manifest["inputs"]), manifest["seconds"]))
    return _runs(found)


def _runs(found: Iterable[tuple[int, Mapping[str, Any]]]) -> list[EarlierRun]:
    return [(nbytes, float(seconds["total"])) for nbytes, seconds in found if "total" in seconds]


def expect_seconds(runs: Sequence[EarlierRun], units: Sequence[UnitForecast]) -> dict[str, Any] | None:
    """Return the seconds that the units may take, as `Forecast.expected`; None where that is unknown.

    It is without an earlier run, where nothing runs, and where runs of one size do not say how long units take that
    are far larger.
    """
    sure = [unit.nbytes for unit in units if unit.action == "run"]
    maybe = [unit.nbytes for unit in units if unit.action == "may run"]
    if not runs or not (sure or maybe):
        return None
    is_far = max([*sure, *maybe]) > _FAR * max(nbytes for nbytes, _ in runs)
    if is_far and _are_alike(runs):
        return None
    fixed, rate = line_of(runs)
    seconds, more = (sum(fixed + rate * nbytes for nbytes in lot) for lot in (sure, maybe))
    return {"seconds": seconds, "at_most": seconds + more, "runs": len(runs), "is_far": is_far}


def line_of(runs: Sequence[EarlierRun]) -> tuple[float, float]:
    """Return the seconds that every run takes, and those for each byte: both at least 0.

    The line of least squares, or where that falls, or starts below 0, the next best that does not. Where all runs had
    inputs of about one size, time is taken to grow with size.
    """
    sizes, seconds = [nbytes for nbytes, _ in runs], [took for _, took in runs]
    if _are_alike(runs):
        return 0.0, median(seconds) / max(median(sizes), 1)
    mean_size, mean_seconds = sum(sizes) / len(runs), sum(seconds) / len(runs)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    slope = sum((size - mean_size) * (took - mean_seconds) for size, took in runs) / spread
    if slope <= 0:
        return mean_seconds, 0.0
    fixed = mean_seconds - slope * mean_size
    if fixed >= 0:
        return fixed, slope
    return 0.0, sum(size * took for size, took in runs) / sum(size**2 for size in sizes)


def _are_alike(runs: Sequence[EarlierRun]) -> bool:
    sizes = [nbytes for nbytes, _ in runs]
    return max(sizes) < _APART * max(min(sizes), 1)


# A run by itself, and the next run on a state.


Foreseen = tuple[Forecast, OpenJob | None]
"""What a run would do, and the job of the unit that is shown, planned over its input; None: nothing can be shown."""


def foresee(job: Job, show: Show) -> Foreseen:
    """Find what a run of a job would do; write nothing, and start no Spark.

    ``show``: shows the progress of reading text files. Raises what a run raises before it computes anything, except
    where its outputs or a unit of a range stop it: the forecast holds these problems.
    """
    if PIPE in job.input:
        raise ConfigError("stdin can be read only once, and the run has to read it", "plan with a file in its place")
    if job.start is not None and job.end is not None:
        return _foresee_range(job, units(job.start, job.end, job.unit), show)
    return _foresee_alone(job, show) if job.state is None else _foresee_next(job, job.state, show)


def _foresee_alone(job: Job, show: Show) -> Foreseen:
    opened = open_job(_to_plan(job), None, show)
    files = opened.plan.source.files  # there may be so many files that to list them again takes seconds
    runs = [] if job.is_piped else runs_of_outputs(job, [job.output])
    if result_is_done(job):
        why = f"{job.shown_output} holds the result of this job and input"
        return _of_one(job, UnitForecast(None, "skip", why, *size_of(files), True), runs, None, opened)
    problem = _problem_of(job)
    is_there = not job.is_piped and any(read_result(path) for path in job.outputs)
    why = "the result that is there is replaced" if is_there else "there is no result yet"
    return _of_one(job, UnitForecast(None, "run", why, *size_of(files), is_there), runs, problem, opened)


def _foresee_next(job: Job, path: str, show: Show) -> Foreseen:
    refuse_state_overlap(job)
    state = state_without_lock(path)
    check_undated(job, state.records)
    size, runs = size_of(files_of(job)), runs_on_state(job, state.records)
    found = find_next_run(job, state)
    before = found.before
    unit_now, keep = unit_of_plain_run(before.ordinal if before else None), job.kept(1, 0)
    mode = IncrementalRun(state, unit_now, before.label if before else None, keep)
    if found.done is not None and not found.is_again:
        why = found.why or f"{found.done.label} of {path} has read this input"
        unit = UnitForecast(found.done.label, "skip", why, *size, True)
        return _of_one(job, unit, runs, None, open_job(_to_plan(job), mode, show))
    problem, is_again = _problem_of(found.job), found.done is not None
    unit = UnitForecast(unit_now.label, "run", found.why or "its input is new", *size, is_again)
    forecast, opened = _of_one(found.job, unit, runs, problem, open_job(_to_plan(found.job), mode, show))
    kept = [record.label for record in state.records if state.has_data(record.label)]
    reach = f"late rows may make units run again, from {kept[0]} on" if job.late == "redo" and kept else None
    return replace(forecast, reach=reach), opened


def _problem_of(job: Job) -> WincliError | None:
    """Return why a run would refuse its outputs before it reads anything; None where it would not."""
    paths = [path for path in job.stage_outputs if path and path != PIPE]
    try:
        refuse_overlaps(job, paths)
        for path in paths:
            check_output(path, job.mode, job.inputs)
    except WincliError as error:
        return error
    return None


def _of_one(
    job: Job, unit: UnitForecast, runs: Sequence[EarlierRun], problem: WincliError | None, opened: OpenJob
) -> Foreseen:
    if problem is not None:
        unit = replace(unit, action="stop", why=problem.what)
    found = _make_forecast(job, "run" if opened.mode is None else "next run", (unit,), runs)
    return _with_job(replace(found, problem=problem, shown=unit.label), opened)


def _make_forecast(
    job: Job,
    way: Literal["run", "next run", "range"],
    found: tuple[UnitForecast, ...],
    runs: Sequence[EarlierRun],
) -> Forecast:
    state, notes = job.state, list[str]()
    if state is not None and is_state(state):
        view = read_state(state)
        notes += view.damage
        if view.owner is not None and not is_dead(view.owner, socket.gethostname()):
            notes.append(f"process {view.owner.pid} on {view.owner.host} works on the state now, and may change it")
        if view.pending is not None:
            what = "a run put it in place when it was killed, and the next run completes that first"
            notes.append(f"{view.pending}: {what}; this plan does not know it")
    expected = expect_seconds(runs, found)
    return Forecast(way, output_name(job.shown_output), state, found, expected=expected, notes=tuple(notes))


def _to_plan(job: Job) -> Job:
    """Return the job with a name in place of stdout: nothing is written there."""
    return job.at(stdout="stdout") if job.output == PIPE else job


def _with_job(forecast: Forecast, opened: OpenJob) -> Foreseen:
    stages = tuple(stage_of(opened.plan, stage) for stage in opened.plan.stages)
    return replace(forecast, input=input_of(opened.plan), stages=stages), opened


def size_of(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return the number of files of an input, and their bytes."""
    return len(files), sum(file.size for file in files)


# The units of a range as the loop of a run would take them: nothing runs, and each unit is supposed to leave a
# record.
#
# On a state it is not known beforehand whether a unit that runs again leaves the state that it left before. So the
# loop is gone through twice: once as if each did, which gives the units that run in any case, and once as if none
# did, which gives those that a correction may reach.


_LATE = "rows of later units may belong to it (--late redo)"
_AFTER_STOP = "the run has stopped before it"
Find = Callable[[Unit], UnitInput | None]
"""Returns the input of a unit, None where it has none; raises as `find_input` does."""


@dataclass(frozen=True, slots=True)
class SupposedRun:
    """A unit that is supposed to have run: its input, and the label of the unit whose state it began from, or None."""

    unit: Unit
    found: UnitInput
    previous: str | None


@dataclass(slots=True)
class SupposedRange:
    """A `BackfillMode` that runs nothing, and what the loop of its range has come to.

    ``chain``, ``why_rerun``, ``find``: those of a mode that runs.
    ``suppose``: makes the record that a unit would leave.
    ``runs``: ordinal to the unit that ran.
    ``whys``: label of each finished unit that was decided on to whether it runs again, and the reason in words.
    ``problem``: why the loop stopped; None: it did not.
    """

    chain: StateChain | None
    why_rerun: Callable[[UnitRecord], RerunReason | None]
    find: Find
    suppose: Callable[[SupposedRun], UnitRecord]
    runs: dict[int, SupposedRun] = field(default_factory=dict)
    whys: dict[str, tuple[bool, str]] = field(default_factory=dict)
    problem: WincliError | None = None

    def go_through(self, units: Sequence[Unit], kind: Kind, records: Sequence[UnitRecord], redo: bool) -> SupposedRange:
        """Go through a range, of which the units of ``records`` are done."""
        try:
            run_backfill(units, kind, records, self, redo)
        except WincliError as error:
            self.problem = error
        return self

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterator[UnitRecord]:
        self.runs[unit.ordinal] = SupposedRun(unit, found, previous)
        yield self.suppose(self.runs[unit.ordinal])

    def note(self, text: str, **fields: Any) -> None:  # noqa: ARG002 - see `BackfillMode`
        if "unit" in fields:
            self.whys[fields["unit"]] = fields["runs"], fields["why"]


class _SupposedState:
    """The finished units of a state, as `UnitRecords` has them, with those that are supposed to be."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._sorted = list(state.records)
        self._by_label = {record.label: record for record in self._sorted}
        self._supposed: set[str] = set()

    @property
    def records(self) -> Sequence[UnitRecord]:
        return self._sorted

    def record(self, label: str) -> UnitRecord | None:
        return self._by_label.get(label)

    def has_data(self, label: str) -> bool:
        """Whether a unit is done and its window state is still there; one that has just run has it."""
        return label in self._supposed or self._state.has_data(label)

    def forgotten(self) -> Container[str]:
        return self._state.forgotten()

    def suppose(self, record: UnitRecord) -> None:
        """Take a record as that of a unit from now on."""
        at = bisect_left(self._sorted, record.ordinal, key=lambda each: each.ordinal)
        self._sorted[at : at + (record.label in self._by_label)] = [record]
        self._by_label[record.label] = record
        self._supposed.add(record.label)


def _supposed(run: SupposedRun, files: tuple[InputFile, ...], job: Mapping[str, Any]) -> UnitRecord:
    """Return the record that a unit would leave: its own id stands for its state, which no other has."""
    unit, token = run.unit, f"supposed {run.unit.label}"
    start, end = (None if each is None else each.isoformat() for each in (unit.start, unit.end))
    return UnitRecord(
        unit.label, unit.ordinal, start, end, run.previous, files, (), (), token, "", "", {}, {}, token, None, job,
        enrich=run.found.tables,
    )  # fmt: skip


def suppose_on_state(
    job: Job, input_paths: InputPaths, state: State, units: Sequence[Unit], find: Find, leaves_same: bool
) -> SupposedRange:
    """Go through a range on a state.

    ``leaves_same``: whether a unit that runs again is supposed to leave the window state that it left before. Raises
    `ConfigError` where units of the range were done by another job.
    """
    records = _SupposedState(state)
    on_state = RangeOnState(job, records, units)
    on_state.check_same_job()

    def suppose(run: SupposedRun) -> UnitRecord:
        former, unit = state.record(run.unit.label), run.unit
        own = on_state.own_request(unit_job(job, input_paths, unit, run.found), unit)
        before = None if run.previous is None else records.record(run.previous)
        record = _supposed(run, from_root(run.found.files), recorded(own))
        record = replace(record, began=None if before is None else before.state)
        if former is not None:
            kept = {name: getattr(former, name) for name in ("outputs", "stages", "lent", "borrowed")}
            record = replace(record, **kept)
        if former is not None and leaves_same and state.has_data(former.label):
            record = replace(record, state=former.state)
        records.suppose(record)
        return record

    mode = SupposedRange(on_state.chain, on_state.why_rerun, find, suppose)
    return mode.go_through(units, job.unit, state.records, job.redo)


def _foresee_range(job: Job, in_range: Sequence[Unit], show: Show) -> Foreseen:
    input_paths = find_input_paths(job, in_range[0], job.unit)
    find = cache(partial(find_input, input_paths))
    state = None if job.state is None else state_without_lock(job.state)
    sure: SupposedRange
    maybe: SupposedRange
    if state is None:  # no unit depends on another
        done = finished_records(job, input_paths, in_range)
        sure = maybe = SupposedRange(
            None,
            lambda _: None,
            find,
            lambda run: _supposed(run, run.found.files, recorded(job)),
        ).go_through(in_range, job.unit, done, job.redo)
        ordinals = {record.ordinal for record in done}
    else:
        sure, maybe = (suppose_on_state(job, input_paths, state, in_range, find, same) for same in (True, False))
        ordinals = {record.ordinal for record in state.records}
    found = _units(job, in_range, sure, maybe, ordinals)
    runs = [sure.runs[each] for each in sorted(sure.runs)]
    first = runs[0] if runs else None
    if first is None and sure.problem is None:
        with_input = ((unit, its) for unit in in_range if (its := find(unit)) is not None)
        first = next((SupposedRun(unit, its, None) for unit, its in with_input), None)
    last_outputs = (outputs_of(job, input_paths, unit)[-1] for unit in list(in_range)[-_MOST_RUNS:])
    earlier = runs_of_outputs(job, last_outputs) if state is None else runs_on_state(job, state.records)
    forecast = _make_forecast(job, "range", found, earlier)
    if maybe.problem and not sure.problem:
        forecast = replace(forecast, notes=(f"if the correction reaches that far: {maybe.problem}", *forecast.notes))
    why, reach = why_one_by_one(job), _reach(found, state is not None)
    jobs = job.jobs if why is None else 1
    forecast = replace(forecast, reach=reach, problem=sure.problem, jobs=jobs, why_one_by_one=why)

    def own_of(run: SupposedRun) -> Job:
        if state is None:
            return own_request(job, input_paths, run.unit, run.found)
        return RangeOnState(job, state, in_range).own_request(unit_job(job, input_paths, run.unit, run.found), run.unit)

    for run in runs:
        if problem := _problem_of(own_of(run)):
            problem.what = f"{run.unit.label}: {problem.what}"
            at = [unit.label for unit in found].index(run.unit.label)
            after = (replace(each, action="stop", why=_AFTER_STOP) for each in found[at + 1 :])
            stopped = (*found[:at], replace(found[at], action="stop", why=problem.what), *after)
            forecast = replace(forecast, units=stopped, problem=problem, expected=None)
            break
    if first is None:
        return forecast, None
    mode = None if state is None else IncrementalRun(state, first.unit, first.previous, job.kept(1, 0))
    jobs_before = partial(earlier_jobs, job, input_paths, first.unit) if state is None else None
    return _with_job(replace(forecast, shown=first.unit.label), open_job(own_of(first), mode, show, jobs_before))


def _units(
    job: Job,
    in_range: Sequence[Unit],
    sure: SupposedRange,
    maybe: SupposedRange,
    done: set[int],
) -> tuple[UnitForecast, ...]:
    """Return what a run does with units, ascending; those outside the range only if they run, or may.

    ``done``: the ordinals of the units that are done.
    """
    kind, inside = job.unit, {unit.ordinal for unit in in_range}
    may_run, late, stop = maybe.runs.keys() - sure.runs.keys(), set[int](), None
    if job.state is not None and job.late == "redo" and sure.runs:
        late = {ordinal for ordinal in done if ordinal < max(sure.runs)} - sure.runs.keys()
    if sure.problem is not None:  # the unit at which the run stops: its error begins with the label
        after, what = max(sure.runs, default=-1), sure.problem.what
        named = (each for each in done | inside if each > after and what.startswith(unit_at(each, kind).label))
        stop = min(named, default=after + 1)

    def forecast(unit: Unit) -> UnitForecast:
        label, ordinal, is_done = unit.label, unit.ordinal, unit.ordinal in done
        if stop is not None and ordinal >= stop:
            why = sure.problem.what if sure.problem and ordinal == stop else _AFTER_STOP
            return UnitForecast(label, "stop", why, is_again=is_done)
        run, (runs_again, why) = sure.runs.get(ordinal), sure.whys.get(label, (False, ""))
        if run is not None:
            why = why if runs_again else "it is not done yet"
            return UnitForecast(label, "run", why, *size_of(run.found.files), is_done)
        if ordinal in may_run or ordinal in late:
            reason = "the unit before it may leave another state" if ordinal in may_run else _LATE
            found = None
            with suppress(WincliError):  # the run may never look at its input, which need not be as it should be
                found = sure.find(unit)
            return UnitForecast(label, "may run", reason, *size_of(found.files if found else ()), True)
        if not is_done:
            return UnitForecast(label, "gap", "there is no input for it")
        found = sure.find(unit)
        return UnitForecast(
            label, "skip", why or "done with the same input", *size_of(found.files if found else ()), True
        )

    return tuple(forecast(unit_at(each, kind)) for each in sorted(inside | sure.runs.keys() | may_run | late))


def _reach(units: Sequence[UnitForecast], has_state: bool) -> str | None:
    again = [unit for unit in units if unit.action == "run" and unit.is_again]
    reached = [unit for unit in units if unit.action in ("run", "may run") and unit.is_again]
    if not reached:
        return None
    if not has_state:
        return "each unit is by itself: a correction reaches no other unit"
    last = reached[-1].label
    if not again and all(unit.why == _LATE for unit in reached):
        return f"late rows may make units run again, from {reached[0].label} on"
    return f"a correction may reach {last} at most; it ends where a unit leaves the state that it left before"
