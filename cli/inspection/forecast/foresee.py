"""From a job to its forecast, in the way that a run would take it: alone, on a state, or over a range."""

from __future__ import annotations

import socket
from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, TypeAlias

from ....conf.job import PIPE, Job, recorded
from ....conf.ranges import Unit, unit_at, units
from ....windowing.errors import ConfigError, WincliError
from ....windowing.language.sentences import caution_of
from ....windowing.ports import InputFile
from ....writers.output.output import check_output
from ....writers.places.lock import is_dead
from ....writers.state.layout import is_state
from ....writers.state.state import State, read_state, state_without_lock
from ....writers.state.unit_record import UnitRecord
from ...console.progress import Show
from ...run.adoption import why_in_order
from ...run.backfills import RangeOnState, earlier_jobs, own_job, plain_steps, read_result
from ...run.incremental_run import IncrementalRun, from_root
from ...run.job_plan import refuse_overlaps, refuse_state_overlap
from ...run.run_modes import check_undated, find_next_run, result_is_done
from ...run.steps import ALONE, Action, UnitRange, UnitStep
from ...run.unit_paths import InputPaths, UnitInput, find_input, find_input_paths, unit_job
from .stages import OpenJob, Values, input_of, open_job, output_name, stage_of

Way: TypeAlias = Literal["run", "next run", "range"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do.

    ``way``: whether it is a run by itself, the next run on a state, or a range of units.
    ``output``: the output as the user wrote it.
    ``state``: the state, as the user wrote it; None without one.
    ``units``: the units in ascending order, those outside the range that run among them.
    ``reach``: how far corrections may reach, in words; None where nothing is corrected.
    ``shown``: the label of the unit that input and stages are those of; None without units.
    ``input``: the input, as `input_of` returns it; None where there is none to look at.
    ``stages``: the stages, in order, as `stage_of` returns them.
    ``jobs``: how many units run at the same time.
    ``why_one_by_one``: why units of a range cannot run at the same time, in words; None where they can, and without a
        range.
    ``notes``: what else the user should know.
    ``problem``: why the run would stop, at the first unit with the action ``stop`` or before it; None: it would not.
    """

    way: Way
    output: str
    state: str | None
    units: tuple[UnitStep, ...]
    reach: str | None = None
    shown: str | None = None
    input: Values | None = None
    stages: tuple[Values, ...] = ()
    jobs: int = 1
    why_one_by_one: str | None = None
    notes: tuple[str, ...] = ()
    problem: WincliError | None = None

    def having(self, *actions: Action) -> Sequence[UnitStep]:
        """Return the units with one of these actions."""
        return [unit for unit in self.units if unit.action in actions]


Find: TypeAlias = Callable[[Unit], UnitInput | None]
"""Returns the input of a unit, None where it has none; raises as `find_input` does."""

Foreseen = tuple[Forecast, OpenJob | None]
"""What a run would do, and the job of the unit that is shown, planned over its input; None: nothing can be shown."""


# A run by itself, and the next run on a state.


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
    source = opened.plan.source  # there may be so many files that to list them again takes seconds
    found = UnitInput(job.input, (), tuple(source.files))
    if result_is_done(job):
        why = f"{job.shown_output} holds the result of this job and input"
        return _of_one(job, UnitStep(ALONE, "skip", why, found, is_again=True), None, opened)
    is_there = not job.is_piped and any(read_result(path) for path in job.outputs)
    why = "the result that is there is replaced" if is_there else "there is no result yet"
    return _of_one(job, UnitStep(ALONE, "run", why, found, is_again=is_there), _problem_of(job), opened)


def _foresee_next(job: Job, path: str, show: Show) -> Foreseen:
    refuse_state_overlap(job)
    state = state_without_lock(path)
    check_undated(job, state.records)
    own, step = find_next_run(job, state)
    mode = IncrementalRun(state, step.unit, step.previous, job.kept(1, 0))
    if step.action == "skip":
        why = step.note or f"{step.label} of {path} has read this input"
        return _of_one(job, replace(step, why=why), None, open_job(_to_plan(job), mode, show))
    step = replace(step, why=step.note or "its input is new")
    kept = [record.label for record in state.records if state.has_data(record.label)]
    reach = f"late rows may make units run again, from {kept[0]} on" if job.late == "redo" and kept else None
    return _of_one(own, step, _problem_of(own), open_job(_to_plan(own), mode, show), reach)


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
    job: Job, step: UnitStep, problem: WincliError | None, opened: OpenJob, reach: str | None = None
) -> Foreseen:
    if problem is not None:
        step = replace(step, action="stop", why=problem.what)
    way: Way = "run" if opened.mode is None else "next run"
    return _forecast(job, way, (step,), opened, problem=problem, shown=step.label or None, reach=reach)


def _forecast(
    job: Job, way: Way, found: tuple[UnitStep, ...], opened: OpenJob | None, notes: Sequence[str] = (), **more: Any
) -> Foreseen:
    """Return a forecast with the input and the stages of ``opened``. ``notes``, ``more``: what else is known."""
    state, notes = job.state, [*notes, *filter(None, (caution_of(stage.spec) for stage in job.stages))]
    if state is not None and is_state(state):
        view = read_state(state)
        notes += view.damage
        if view.owner is not None and not is_dead(view.owner, socket.gethostname()):
            notes.append(f"process {view.owner.pid} on {view.owner.host} works on the state now, and may change it")
        if view.pending is not None:
            what = "a run put it in place when it was killed, and the next run completes that first"
            notes.append(f"{view.pending}: {what}; this plan does not know it")
    if opened is not None:
        plan = opened.plan
        more |= {"input": input_of(plan), "stages": tuple(stage_of(plan, stage) for stage in plan.stages)}
    return Forecast(way, output_name(job.shown_output), state, found, notes=tuple(notes), **more), opened


def _to_plan(job: Job) -> Job:
    """Return the job with a name in place of stdout: nothing is written there."""
    return job.at(stdout="stdout") if job.output == PIPE else job


# The steps of a range as a run would take them: nothing runs, and each unit is supposed to leave a record.
#
# On a state it is not known beforehand whether a unit that runs again leaves the state that it left before. So the
# steps are taken twice: once as if each did, which gives the units that run in any case, and once as if none did, which
# gives those that a correction may reach.


_LATE = "rows of later units may belong to it (--late redo)"
_AFTER_STOP = "the run has stopped before it"


def _suppose(units: UnitRange, leave: Callable[[UnitStep], UnitRecord]) -> list[UnitStep]:
    """Take the steps of a range without running them. ``leave``: returns the record that a unit would leave."""
    steps: list[UnitStep] = []

    def take(step: UnitStep) -> UnitRecord | None:
        steps.append(step)
        return leave(step) if step.action == "run" else None

    units.take_steps(take)
    return steps


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


def _record(step: UnitStep, files: tuple[InputFile, ...], job: Mapping[str, Any]) -> UnitRecord:
    """Return the record that a unit would leave: its own id stands for its state, which no other has."""
    unit = step.unit
    token = f"supposed {unit.label}"
    start, end = (None if each is None else each.isoformat() for each in (unit.start, unit.end))
    return UnitRecord(
        unit.label, unit.ordinal, start, end, step.previous, files, (), (), token, "", "", {}, {}, token, None, job,
        enrich=step.input.tables,
    )  # fmt: skip


def suppose_on_state(
    job: Job, input_paths: InputPaths, state: State, units: Sequence[Unit], find: Find, leaves_same: bool
) -> list[UnitStep]:
    """Take the steps of a range on a state.

    ``leaves_same``: whether a unit that runs again is supposed to leave the window state that it left before. Raises
    `ConfigError` where units of the range were done by another job.
    """
    records = _SupposedState(state)
    on_state = RangeOnState(job, records, units)

    def leave(step: UnitStep) -> UnitRecord:
        former, unit = state.record(step.unit.label), step.unit
        own = on_state.own_job(unit_job(job, input_paths, unit, step.input), unit)
        before = None if step.previous is None else records.record(step.previous)
        record = _record(step, from_root(step.files), recorded(own))
        record = replace(record, began=None if before is None else before.state)
        if former is not None:
            kept = {name: getattr(former, name) for name in ("outputs", "stages", "lent", "borrowed")}
            record = replace(record, **kept)
        if former is not None and leaves_same and state.has_data(former.label):
            record = replace(record, state=former.state)
        records.suppose(record)
        return record

    return _suppose(on_state.steps(find), leave)


def _foresee_range(job: Job, in_range: Sequence[Unit], show: Show) -> Foreseen:
    input_paths = find_input_paths(job, in_range[0], job.unit)
    find = cache(partial(find_input, input_paths))
    state = None if job.state is None else state_without_lock(job.state)
    if state is None:  # no unit depends on another
        units = replace(plain_steps(job, input_paths, in_range), find=find)
        sure = maybe = _suppose(units, lambda step: _record(step, step.files, recorded(job)))
        done = {record.ordinal for record in units.records}
    else:
        sure, maybe = (suppose_on_state(job, input_paths, state, in_range, find, same) for same in (True, False))
        done = {record.ordinal for record in state.records}

    def own_of(step: UnitStep) -> Job:
        if state is None:
            return own_job(job, input_paths, step.unit, step.input)
        own = unit_job(job, input_paths, step.unit, step.input)
        return RangeOnState(job, state, in_range).own_job(own, step.unit)

    runs = [step for step in sure if step.action == "run"]
    stopped = _with_problem(sure, own_of)
    steps = _with_reach(job, in_range, stopped, maybe, done, find)
    problem, may_stop = (each[-1].problem if each else None for each in (stopped, maybe))
    notes = []
    if may_stop is not None and sure[-1].problem is None:
        notes.append(f"if the correction reaches that far: {may_stop}")
    opened, first = None, runs[0] if runs else None
    if first is None and problem is None:
        with_input = (UnitStep(unit, "skip", found=its) for unit in in_range if (its := find(unit)) is not None)
        first = next(with_input, None)
    if first is not None:
        mode = None if state is None else IncrementalRun(state, first.unit, first.previous, job.kept(1, 0))
        jobs_before = partial(earlier_jobs, job, input_paths, first.unit) if state is None else None
        opened = open_job(own_of(first), mode, show, jobs_before)
    why = None if state is None or opened is None else why_in_order(opened.plan)
    return _forecast(
        job,
        "range",
        steps,
        opened,
        notes,
        reach=_reach(steps, state is not None),
        problem=problem,
        jobs=job.jobs if why is None else 1,
        why_one_by_one=why,
        shown=None if first is None else first.label,
    )


def _with_problem(steps: Sequence[UnitStep], own_of: Callable[[UnitStep], Job]) -> Sequence[UnitStep]:
    """Return the steps up to the first of which the run would refuse the outputs, which stops there."""
    for at, step in enumerate(steps):
        if step.action == "run" and (problem := _problem_of(own_of(step))):
            problem.what = f"{step.label}: {problem.what}"
            return *steps[:at], replace(step, action="stop", problem=problem)
    return steps


_WHY = {"run": "it is not done yet", "gap": "there is no input for it", "skip": "done with the same input"}


def _with_reach(
    job: Job, in_range: Sequence[Unit], sure: Sequence[UnitStep], maybe: Sequence[UnitStep], done: Set[int], find: Find
) -> tuple[UnitStep, ...]:
    """Return what a run does with units, ascending; those outside the range only if they run, or may.

    ``done``: the ordinals of the units that are done.
    """
    taken = {step.unit.ordinal: step for step in sure}
    stop = max(taken) if sure and sure[-1].problem is not None else None
    runs = {ordinal for ordinal, step in taken.items() if step.action == "run"}
    may_run = {step.unit.ordinal for step in maybe if step.action == "run"} - runs
    late = set[int]()
    if job.state is not None and job.late == "redo" and runs:
        late = {ordinal for ordinal in done if ordinal < max(runs)} - runs

    def seen(unit: Unit) -> UnitStep:
        ordinal, step = unit.ordinal, taken.get(unit.ordinal)
        if stop is not None and ordinal >= stop:
            if step is None or step.problem is None:
                return UnitStep(unit, "stop", _AFTER_STOP, is_again=ordinal in done)
            return replace(step, action="stop", why=step.problem.what)
        if ordinal not in runs and ordinal in may_run | late:
            found = step.found if step is not None else None
            with suppress(WincliError):  # the run may never look at its input, which need not be as it should be
                found = find(unit)
            why = "the unit before it may leave another state" if ordinal in may_run else _LATE
            return UnitStep(unit, "may run", why, found, is_again=True)
        assert step is not None, "a unit of the range has a step, and so has one that runs"
        return replace(step, why=step.why or _WHY[step.action])

    inside = {unit.ordinal for unit in in_range}
    return tuple(seen(unit_at(each, job.unit)) for each in sorted(inside | runs | may_run | late))


def _reach(units: Sequence[UnitStep], has_state: bool) -> str | None:
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
