"""The units of a range, each with what a run does with it and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from .....conf.ranges.units import Kind, Unit, unit_at
from .....windowing.errors import WincliError
from .....windowing.ports import InputFile
from .....writers.state.state import State
from ....planning.request import JobRequest
from ....run.plain_backfill import finished_records
from ....run.unit_paths import InputPaths, UnitInput
from ..forecast import UnitForecast
from .supposed_range import Finder, SupposedRange, SupposedRun, suppose_apart, suppose_on_state

_LATE = "rows of later units may belong to it (--late redo)"


@dataclass(frozen=True, slots=True)
class RangeForecast:
    """What a run does with the units of a range.

    ``units``: in ascending order; those outside the range only if they run, or may.
    ``first``: the first unit that runs, or else the first of the range that has input; None where none has.
    ``reach``: how far corrections may reach, in words; None where nothing is corrected.
    ``problem``: why the run stops; None: it does not.
    ``notes``: what may stop it.
    ``runs``: the units that run in any case, in ascending order.
    """

    units: tuple[UnitForecast, ...]
    first: SupposedRun | None
    reach: str | None
    problem: WincliError | None
    notes: tuple[str, ...] = ()
    runs: tuple[SupposedRun, ...] = ()


def forecast_range(
    request: JobRequest, input_paths: InputPaths, in_range: Sequence[Unit], state: State | None
) -> RangeForecast:
    """Find what a run does with the units of a range, on a state or each by itself; change nothing.

    Raises `ConfigError` where units of the range were done by another job.
    """
    kind, finder = request.job.unit, Finder(input_paths)
    if state is None:
        done = finished_records(request, input_paths, in_range)
        sure = maybe = suppose_apart(in_range, kind, done, finder, request.job.redo)
        ordinals = {record.ordinal for record in done}
    else:
        sure, maybe = (suppose_on_state(request, state, in_range, finder, same) for same in (True, False))
        ordinals = {record.ordinal for record in state.records}
    may_run = maybe.runs.keys() - sure.runs.keys()
    late = _late(request, sure, ordinals) if state is not None else set()
    stop = _stopped_at(sure, {*ordinals, *(unit.ordinal for unit in in_range)}, kind)
    shown = sorted({unit.ordinal for unit in in_range} | sure.runs.keys() | may_run | late)
    units = tuple(
        _unit(unit_at(each, kind), finder, sure, each in may_run, each in late, each in ordinals, stop)
        for each in shown
    )
    notes = () if sure.problem or not maybe.problem else (f"if the correction reaches that far: {maybe.problem}",)
    reach = _reach(units, state is not None)
    runs = tuple(sure.runs[each] for each in sorted(sure.runs))
    return RangeForecast(units, _first(sure, in_range, finder), reach, sure.problem, notes, runs)


def _late(request: JobRequest, sure: SupposedRange, done: set[int]) -> set[int]:
    """Return the finished units that late rows may make run again: all before the last unit that runs."""
    if request.job.late != "redo" or not sure.runs:
        return set()
    return {ordinal for ordinal in done if ordinal < max(sure.runs)} - sure.runs.keys()


def _stopped_at(sure: SupposedRange, ordinals: set[int], kind: Kind) -> int | None:
    """Return the unit at which the run stops, with whose label the error begins; None where it does not stop."""
    if sure.problem is None:
        return None
    after, what = max(sure.runs, default=-1), sure.problem.what
    named = (each for each in ordinals if each > after and what.startswith(unit_at(each, kind).label))
    return min(named, default=after + 1)


def _unit(
    unit: Unit, finder: Finder, sure: SupposedRange, may_run: bool, is_late: bool, is_done: bool, stop: int | None
) -> UnitForecast:
    label = unit.label
    if stop is not None and unit.ordinal >= stop:
        why = sure.problem.what if sure.problem and unit.ordinal == stop else "the run has stopped before it"
        return UnitForecast(label, "stop", why, is_again=is_done)
    run, (runs_again, why) = sure.runs.get(unit.ordinal), sure.whys.get(label, (False, ""))
    if run is not None:
        files, nbytes = _size(run.found)
        return UnitForecast(label, "run", why if runs_again else "it is not done yet", files, nbytes, is_done)
    if may_run or is_late:
        reason = "the unit before it may leave another state" if may_run else _LATE
        return UnitForecast(label, "may run", reason, *_size(_found_if_whole(unit, finder)), is_again=True)
    if not is_done:
        return UnitForecast(label, "gap", "there is no input for it")
    reason = why or "done with the same input"
    return UnitForecast(label, "skip", reason, *_size(finder.find(unit)), is_again=True)


def _found_if_whole(unit: Unit, finder: Finder) -> UnitInput | None:
    """Return the input of a unit that may never be looked at by the run; None where it is not as it should be."""
    with suppress(WincliError):
        return finder.find(unit)
    return None


def size_of(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return the number of files of an input, and their bytes."""
    return len(files), sum(file.size for file in files)


def _size(found: UnitInput | None) -> tuple[int, int]:
    return size_of(() if found is None else found.files)


def _first(sure: SupposedRange, in_range: Sequence[Unit], finder: Finder) -> SupposedRun | None:
    if sure.runs:
        return sure.runs[min(sure.runs)]
    if sure.problem is not None:
        return None
    with_input = ((unit, found) for unit in in_range if (found := finder.find(unit)) is not None)
    return next((SupposedRun(unit, found, None) for unit, found in with_input), None)


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
