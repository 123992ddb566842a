"""Units of a range on a state that other processes compute beforehand, taken over where that is what a run would give.

Units run one after the other, as without this. Meanwhile processes compute pieces of later units, each from nothing
(`speculation`). A piece is taken over from the first unit on behind which its state is the true one, but for how many
rows and windows keys have had before the piece, and where nothing asks for these numbers (decision 074). Its results
and states are the true ones then, once the numbers are moved. Nobody waits for a unit that is not computed yet: it is
run.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ...conf.job import Job, recorded
from ...conf.ranges import Unit
from ...windowing.columns.arrays import without_dictionaries
from ...windowing.engine.strategy import LargestWindow
from ...windowing.language.spec import Batched
from ...windowing.ports import Part
from ...windowing.spark.session import Background
from ...windowing.spark.setup import temporary_place
from ...windowing.spark.temporary_folders import new_folder
from ...windowing.state.number_shift import NumberShift
from ...windowing.state.state_tables import DecidingNumbers
from ...writers.state.stage_files import ParquetStateFiles, same_table
from ...writers.state.state import State
from ...writers.state.unit_record import StageRecord, UnitRecord
from .context import StagedJob, StageRun
from .incremental_run import IncrementalRun, UnitInputRows, UnitRun, deciding_numbers, state_identity
from .job_plan import JobPlan, StageOutput, table_files
from .pipeline import SparkStageExecutor, check_rejects, parts_of, sizes_of
from .rerun import replacing
from .speculation import (
    FoundStage,
    FoundUnit,
    ReadyUnit,
    Shifts,
    UnitWork,
    found_path,
    has_failed,
    is_over,
    moved_state,
    read_found,
    speculate,
    tell_shifts,
)

# Whether the state that a piece has behind a unit is the true one, but for numbers that decide nothing.


def shifts_between(
    state: State, record: UnitRecord, found: FoundUnit, deciding: Sequence[DecidingNumbers]
) -> Shifts | None:
    """Return by what the numbers of a piece differ from those of a state behind a unit; None where more differs.

    ``record``: of the unit, which has been run. ``deciding``: of each stage, which numbers count.
    """
    if [each.name for each in found.stages] != [each.name for each in record.stages]:
        return None
    shifts = {}
    for own, stage, numbers in zip(record.stages, found.stages, deciding, strict=True):
        shift = _shift_of(state.stage(record.label, own.name), own, stage, numbers)
        if shift is None:
            return None
        shifts[own.name] = shift
    return Shifts(record.ordinal, shifts)


def _shift_of(
    files: ParquetStateFiles, own: StageRecord, stage: FoundStage, numbers: DecidingNumbers
) -> NumberShift | None:
    snapshot = stage.outcome.snapshot
    rows = sum(part.rows for part in own.parts if part.name.startswith("rows-"))
    if snapshot is None or own.registers != snapshot.registers.plain or own.identity != stage.identity:
        return None
    if rows != sum(part.rows for part in snapshot.parts if part.name.startswith("rows-")):
        return None
    names = {part.name: part for part in own.parts}
    if any(name.startswith(("rows-", "keys-")) and name not in (_ROWS, _KEYS) for name in names):
        return None
    true = {name.removesuffix(".parquet"): files.read_part(part) for name, part in names.items()}
    keys = true.get("keys-00000")
    shift = NumberShift.between(stage.key, keys, stage.state.get("keys-00000"))
    moved = moved_state(stage, shift)
    if moved.keys() != true.keys() or not all(
        same_table(without_dictionaries(true[name]), without_dictionaries(moved[name])) for name in true
    ):
        return None
    if keys is not None:
        counted = stage.state.get("keys-00000", keys.schema.empty_table())
        if not same_table(without_dictionaries(numbers.of_keys(keys)), without_dictionaries(numbers.of_keys(counted))):
            return None
    return shift


_ROWS, _KEYS = "rows-00000.parquet", "keys-00000.parquet"


# Jobs of which no piece can be taken over, whatever their rows.


def why_in_order(plan: JobPlan) -> str | None:
    """Return why each unit of a job needs all that the one before it leaves, in words; None where that is not known.

    Where it is not known, it is tried.
    """
    whys: list[str] = []
    for stage, numbers in zip(plan.stages, deciding_numbers(plan), strict=True):
        own, spec = stage.plan, stage.plan.spec
        if own.options.operator is not None:
            whys.append(f"what {own.options.operator} keeps may depend on all rows before")
        elif numbers.windows:
            whys.append("the job asks for the numbers of windows, which go on from unit to unit")
        elif own.kind.needs.eviction is not None:
            whys.append(f"{spec} counts the rows of its partitions from unit to unit")
        elif numbers.ranks:
            whys.append("product(..) depends on the number of rows before")
        elif isinstance(spec, Batched) and spec.retain_all:
            whys.append(f"{spec} keeps the rows of all units")
    if len(plan.stages) > 1:
        whys.append("a stage carries the window numbers of the stage before it")
    return next(iter(whys), None)


# What was found of the next unit is made ready in a thread, while the files of the one before go to the disk.


class _NextUnit:
    """A unit that is made ready as soon as it is found; ``unit``, ``shifts``: which, and by what its numbers differ."""

    def __init__(self, folder: str, unit: Unit, shifts: Shifts) -> None:
        self.unit, self._folder, self._shifts = unit, folder, shifts
        self._stop = threading.Event()
        self._work = Background(self._make)

    def take(self, seconds: float = 0) -> ReadyUnit | None:
        """Return the unit, if it is found within so many seconds."""
        self._work.finished(seconds)
        self._stop.set()
        self._work.finished(None)
        return None if self._work.error is not None else self._work.result()

    def _make(self) -> ReadyUnit | None:
        while (found := read_found(self._folder, self.unit)) is None:
            if has_failed(self._folder, self.unit) or self._stop.wait(_POLL):
                return None
        if isinstance(found, FoundUnit):
            return ReadyUnit.of(found, self._shifts)
        return found if found.behind == self._shifts.behind else None


_POLL = 0.005


# The run of a unit whose stages are taken over.


@dataclass(frozen=True, slots=True)
class Adoption:
    """A unit that is taken over.

    ``ready``: what a process has found of it.
    ``shifts``: by what its numbers differ.
    ``job``: the job it was found by.
    ``taken``: its label, once it is taken over.
    """

    ready: ReadyUnit
    shifts: Shifts
    job: Job
    taken: list[str] = field(default_factory=list)

    def take(self, label: str) -> None:
        """Say that the unit is taken over."""
        self.taken.append(label)


@dataclass(frozen=True, slots=True)
class AdoptingRun(IncrementalRun):
    """The run of one unit on a state that is taken over, if it still can be.

    ``adoption``: the unit as it was found.
    """

    adoption: Adoption | None = None

    def stages(
        self, run: UnitRun, plan: JobPlan, executor: SparkStageExecutor, announce: Callable[[LargestWindow], None]
    ) -> list[StageRun]:
        adoption = self.adoption
        if adoption is None or not self._fits(plan, adoption):
            return super(AdoptingRun, self).stages(run, plan, executor, announce)
        adoption.take(self.unit.label)
        runs: list[StageRun] = []
        for stage, stage_output, found in zip(
            plan.stages, plan.stage_outputs, adoption.ready.found.stages, strict=True
        ):
            shift, files = adoption.shifts.of[stage.name], run.staging.stage(stage.name)
            sink, outcome, snapshot = stage_output.sink, found.outcome, found.outcome.snapshot
            assert snapshot is not None
            tables = adoption.ready.states[stage.name]
            state = tuple(files.write_encoded(name, table) for name, table in tables.items())
            parts = _write_parts(stage_output, found, shift)
            rejects = [sink.write_rejects(index, rows) for index, rows in found.rejects]
            outcome = replace(
                outcome,
                parts=parts,
                rejects=tuple(sorted(rejects, key=lambda part: part.name)),
                snapshot=replace(snapshot, parts=state),
            )
            runs.append(StageRun(stage, stage_output, outcome, parts_of(stage_output, outcome, executor)))
            if stage_output.is_own:
                sink.delete_intermediate()
        check_rejects(plan.job, runs)
        return runs

    def _fits(self, plan: JobPlan, adoption: Adoption) -> bool:
        """Whether a run would compute what was found: the same job over the same files, in one task."""
        found, before = adoption.ready.found, self.before
        if (tuple(plan.source.files), table_files(plan)) != (found.files, found.tables):
            return False
        if recorded(replacing(plan.job)) != recorded(replacing(adoption.job)):
            return False
        sizes = sizes_of(plan.job)
        for stage, own in zip(plan.stages, found.stages, strict=True):
            told = state_identity(stage), stage.schema, stage.plan.schema
            parts = () if before is None else before.parts_of(stage.name)
            held = sum(part.nbytes for part in parts if part.name.startswith(("rows-", "keys-")))
            nbytes = own.outcome.strategy.sample.nbytes + 4 * held
            if told != (own.identity, own.schema, own.result) or nbytes > sizes.small:
                return False
        return True


def _write_parts(stage_output: StageOutput, found: FoundStage, shift: NumberShift) -> tuple[Part, ...]:
    if not stage_output.is_own:
        return ()
    parts = [
        part
        for index, tables in found.parts
        for part in stage_output.sink.write_parts(index, map(shift.of_result, tables))
    ]
    return tuple(sorted(parts, key=lambda part: part.rank))


# Which pieces are computed, and by whom.


class Caller(Protocol):
    """A process that makes calls in order (`windowing.spark.fork_server.ForkServer`)."""

    def do(self, call: Callable[..., object], *arguments: Any) -> bool: ...


_LONGEST = 64
_SHORTEST = 8
_AHEAD = 0
_PATIENCE = 8


@dataclass(slots=True)
class Pieces:
    """The units of a range that processes compute beforehand, and how far a run has come with them.

    ``folder``: where they leave what they find.
    ``units``: those of the range, ascending.
    ``work``: returns the work of a unit; None where it will not run.
    ``callers``: the processes.
    ``give_up``: is told why no piece is taken over any more.
    ``longest``: units of a piece.
    ``ahead``: units between one that begins and the first of a piece that is given then.
    ``patience``: units of a piece behind which its state may differ from the true one before all is given up.
    """

    folder: str
    units: Sequence[Unit]
    work: Callable[[Unit], UnitWork | None]
    callers: Sequence[Caller]
    give_up: Callable[[str], None]
    longest: int
    ahead: int
    patience: int
    _given: int = 0
    _last: dict[int, Unit] = field(default_factory=dict)
    _works: dict[int, UnitWork] = field(default_factory=dict)
    _first: set[int] = field(default_factory=set)
    _shifts: Shifts | None = None
    _behind: tuple[str, str] | None = None  # the unit behind which the shifts hold, and its run
    _next: _NextUnit | None = None
    _tried: int = 0
    _longest_wait: float = 0  # seconds: what the last unit took that was run
    _is_over: bool = False

    def begin(self, unit: Unit) -> PieceStep:
        """Return how a unit is run that begins now."""
        self._give(unit.ordinal - self.units[0].ordinal)
        ready = None if self._next is None else self._next.take(self._longest_wait)
        if self._next is not None and self._next.unit != unit:
            ready = None
        self._next = None
        if ready is not None:
            self._make_ready(unit)
        return PieceStep(self, unit, ready)

    def adopted(self, step: PieceStep, before: UnitRecord | None) -> Adoption | None:
        """Return how a unit is taken over; None where it is run. ``before``: the unit that it begins from."""
        if step.ready is None or self._shifts is None or before is None or (before.label, before.run) != self._behind:
            return None
        return Adoption(step.ready, self._shifts, self._works[step.unit.ordinal].job)

    def end(self, step: PieceStep, state: State, record: UnitRecord, staged: StagedJob) -> None:
        """Learn from a unit that is committed whether the next one can be taken over."""
        is_taken = step.adoption is not None and step.adoption.taken
        found = None if is_taken else self._read(step.unit)
        self._drop(step.unit)
        self._behind = record.label, record.run
        if is_taken or self._is_over:
            return
        self._longest_wait = time.perf_counter() - step.began
        shifts = None
        if (why := why_in_order(staged.plan)) is not None:
            self._stop(why)
        elif isinstance(found, FoundUnit):
            shifts = shifts_between(state, record, found, deciding_numbers(staged.plan))
            self._tried = 0 if shifts is not None else self._tried + 1
            if self._tried >= self.patience:
                self._stop(f"after {self._tried} units {staged.plan.stages[0].plan.spec} still depends on those before")
        if shifts is not None or self._shifts is not None:
            tell_shifts(self.folder, shifts)
        self._shifts = shifts
        self._make_ready(step.unit)

    def close(self) -> None:
        """Wait until nothing is read any more."""
        if self._next is not None:
            self._next.take()

    def _make_ready(self, unit: Unit) -> None:
        """Have the unit behind one of a piece made ready."""
        later = min((ordinal for ordinal in self._works if ordinal > unit.ordinal), default=None)
        if later is not None and later not in self._first and self._shifts is not None:
            self._next = _NextUnit(self.folder, self._works[later].unit, self._shifts)

    def _stop(self, why: str) -> None:
        self._is_over = True
        self.give_up(why)

    def _read(self, unit: Unit) -> FoundUnit | ReadyUnit | None:
        return None if self._is_over or unit.ordinal not in self._works else read_found(self.folder, unit)

    def _give(self, at: int) -> None:
        for number, caller in enumerate(self.callers):
            is_busy = number in self._last and not is_over(self.folder, self._last[number])
            first = max(self._given, at + self.ahead)
            if self._is_over or is_busy or first > at + (len(self.callers) + 1) * self.longest:
                continue
            piece = [work for unit in self.units[first : first + self.longest] if (work := self.work(unit)) is not None]
            self._given = first + self.longest
            if piece and caller.do(speculate, self.folder, piece):
                self._first.add(piece[0].unit.ordinal)
                self._last[number] = piece[-1].unit
                self._works |= {work.unit.ordinal: work for work in piece}

    def _drop(self, unit: Unit) -> None:
        if self._works.pop(unit.ordinal, None) is not None:
            found_path(self.folder, unit).unlink(missing_ok=True)


@dataclass(slots=True)
class PieceStep:
    """A unit that is run while pieces are computed.

    ``ready``: what a piece has found of it, where that holds once its numbers are moved; None: nothing yet.
    ``adoption``: how it is taken over; None: it is run.
    ``began``: `time.perf_counter` when it began.
    """

    pieces: Pieces
    unit: Unit
    ready: ReadyUnit | None
    adoption: Adoption | None = None
    began: float = field(default_factory=time.perf_counter)

    def mode(
        self, state: State, unit: Unit, previous: str | None, keep: int, rows: UnitInputRows | None
    ) -> IncrementalRun:
        """Return the run of the unit: taken over, if its rows are its own."""
        if rows is None or not (rows.lent or rows.borrowed):
            self.adoption = self.pieces.adopted(self, None if previous is None else state.record(previous))
        if self.adoption is None:
            return IncrementalRun(state, unit, previous, keep, rows)
        return AdoptingRun(state, unit, previous, keep, rows, self.adoption)

    def end(self, state: State, record: UnitRecord, staged: StagedJob) -> None:
        """Say that the unit is committed, in whatever way."""
        self.pieces.end(self, state, record, staged)


@contextmanager
def pieces_of(
    units: Sequence[Unit],
    work: Callable[[Unit], UnitWork | None],
    callers: Sequence[Caller],
    give_up: Callable[[str], None],
) -> Iterator[Pieces]:
    """Let processes compute pieces of a range beforehand, in a temporary folder that is gone at the end."""
    with scratch_folder() as folder:
        longest = min(_LONGEST, max(_SHORTEST, math.ceil(len(units) / len(callers))))
        pieces = Pieces(folder, units, work, callers, give_up, longest, _AHEAD, _PATIENCE)
        try:
            yield pieces
        finally:
            pieces.close()


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a temporary folder for what processes leave each other; a later run removes it where this one is killed."""
    folder = new_folder(temporary_place()[0])
    try:
        yield str(folder.path)
    finally:
        folder.remove()
        folder.release()
