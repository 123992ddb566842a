"""The units of a range, each with what a run does with it and why."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from ....conf.job import recorded
from ....conf.ranges import Kind, Unit, unit_at
from ....windowing.errors import WincliError
from ....windowing.ports import InputFile
from ....writers.state.state import State
from ....writers.state.unit_record import UnitRecord
from ...planning.fingerprint import R
from ...planning.request import JobRequest
from ...run.incremental_backfill import RangeOnState
from ...run.incremental_run import from_root
from ...run.plain_backfill import ResultRecord, finished_records
from ...run.range_run import run_backfill
from ...run.unit_paths import InputPaths, UnitInput, find_input, unit_job
from ...run.units import NoChain, RerunReason, UnitChain
from .forecast import UnitForecast

# The units of a range as the loop of a run would take them: nothing runs, and each unit is supposed to leave a
# record.
#
# On a state it is not known beforehand whether a unit that runs again leaves the state that it left before. So the
# loop is gone through twice: once as if each did, which gives the units that run in any case, and once as if none
# did, which gives those that a correction may reach.


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds the input of units, each once.

    ``input_paths``: where inputs are.
    """

    input_paths: InputPaths
    _found: dict[int, UnitInput | None] = field(default_factory=dict)

    def find(self, unit: Unit) -> UnitInput | None:
        """Return the input of a unit, None where it has none. Raises as `find_input` does."""
        if unit.ordinal not in self._found:
            self._found[unit.ordinal] = find_input(self.input_paths, unit)
        return self._found[unit.ordinal]


@dataclass(frozen=True, slots=True)
class SupposedRun:
    """A unit that is supposed to have run: its input, and the label of the unit whose state it began from, or None."""

    unit: Unit
    found: UnitInput
    previous: str | None


@dataclass(slots=True)
class SupposedRange(Generic[R]):
    """A `BackfillMode` that runs nothing, and what the loop of its range has come to.

    ``chain``, ``why_rerun``: those of a mode that runs.
    ``finder``: finds inputs.
    ``suppose``: makes the record that a unit would leave.
    ``runs``: ordinal to the unit that ran.
    ``whys``: label of each finished unit that was decided on to whether it runs again, and the reason in words.
    ``problem``: why the loop stopped; None: it did not.
    """

    chain: UnitChain[R]
    why_rerun: Callable[[R], RerunReason | None]
    finder: Finder
    suppose: Callable[[SupposedRun], R]
    runs: dict[int, SupposedRun] = field(default_factory=dict)
    whys: dict[str, tuple[bool, str]] = field(default_factory=dict)
    problem: WincliError | None = None

    def go_through(self, units: Sequence[Unit], kind: Kind, records: Sequence[R], redo: bool) -> SupposedRange[R]:
        """Go through a range, of which the units of ``records`` are done."""
        try:
            run_backfill(units, kind, records, self, redo)
        except WincliError as error:
            self.problem = error
        return self

    def find(self, unit: Unit) -> UnitInput | None:
        return self.finder.find(unit)

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterator[R]:
        """Suppose that a unit runs; yield the record that it would leave."""
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


def suppose_on_state(
    request: JobRequest, state: State, units: Sequence[Unit], finder: Finder, leaves_same: bool
) -> SupposedRange[UnitRecord]:
    """Go through a range on a state.

    ``leaves_same``: whether a unit that runs again is supposed to leave the window state that it left before. Raises
    `ConfigError` where units of the range were done by another job.
    """
    records = _SupposedState(state)
    on_state = RangeOnState(request, records, units)
    on_state.check_same_job()

    def suppose(run: SupposedRun) -> UnitRecord:
        former = state.record(run.unit.label)
        own = on_state.own_request(unit_job(request, finder.input_paths, run.unit, run.found), run.unit)
        record = _record(run, own, records, former)
        if former is not None and leaves_same and state.has_data(former.label):
            record = replace(record, state=former.state)
        records.suppose(record)
        return record

    mode = SupposedRange(on_state.chain, on_state.why_rerun, finder, suppose)
    return mode.go_through(units, request.job.unit, state.records, request.job.redo)


def _record(run: SupposedRun, own: JobRequest, records: _SupposedState, former: UnitRecord | None) -> UnitRecord:
    before = None if run.previous is None else records.record(run.previous)
    unit, token = run.unit, f"supposed {run.unit.label}"
    return UnitRecord(
        unit.label,
        unit.ordinal,
        unit.start.isoformat() if unit.start else None,
        unit.end.isoformat() if unit.end else None,
        run.previous,
        from_root(run.found.files),
        () if former is None else former.outputs,
        () if former is None else former.stages,
        token,
        "",
        "",
        {},
        {},
        token,
        None if before is None else before.state,
        recorded(own.job),
        () if former is None else former.lent,
        () if former is None else former.borrowed,
        run.found.tables,
    )


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
    sure: SupposedRange[Any]
    maybe: SupposedRange[Any]
    if state is None:  # no unit depends on another
        done = finished_records(request, input_paths, in_range)

        def suppose(run: SupposedRun) -> ResultRecord:
            return ResultRecord(run.unit.label, run.unit.ordinal, run.found.files, ())

        sure = maybe = SupposedRange(NoChain(), lambda _: None, finder, suppose)
        sure.go_through(in_range, kind, done, request.job.redo)
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
    first = runs[0] if runs else None
    if first is None and sure.problem is None:
        with_input = ((unit, found) for unit in in_range if (found := finder.find(unit)) is not None)
        first = next((SupposedRun(unit, found, None) for unit, found in with_input), None)
    return RangeForecast(units, first, reach, sure.problem, notes, runs)


def _late(request: JobRequest, sure: SupposedRange[Any], done: set[int]) -> set[int]:
    """Return the finished units that late rows may make run again: all before the last unit that runs."""
    if request.job.late != "redo" or not sure.runs:
        return set()
    return {ordinal for ordinal in done if ordinal < max(sure.runs)} - sure.runs.keys()


def _stopped_at(sure: SupposedRange[Any], ordinals: set[int], kind: Kind) -> int | None:
    """Return the unit at which the run stops, with whose label the error begins; None where it does not stop."""
    if sure.problem is None:
        return None
    after, what = max(sure.runs, default=-1), sure.problem.what
    named = (each for each in ordinals if each > after and what.startswith(unit_at(each, kind).label))
    return min(named, default=after + 1)


def _unit(
    unit: Unit, finder: Finder, sure: SupposedRange[Any], may_run: bool, is_late: bool, is_done: bool, stop: int | None
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
        found = None
        with suppress(WincliError):  # the run may never look at its input, which need not be as it should be
            found = finder.find(unit)
        return UnitForecast(label, "may run", reason, *_size(found), is_again=True)
    if not is_done:
        return UnitForecast(label, "gap", "there is no input for it")
    reason = why or "done with the same input"
    return UnitForecast(label, "skip", reason, *_size(finder.find(unit)), is_again=True)


def size_of(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return the number of files of an input, and their bytes."""
    return len(files), sum(file.size for file in files)


def _size(found: UnitInput | None) -> tuple[int, int]:
    return size_of(() if found is None else found.files)


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
