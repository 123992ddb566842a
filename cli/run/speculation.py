"""Units of a range that another process computes before the state that they begin from is known.

A process begins a piece of consecutive units from nothing. What a unit gives is packed into a file: the rows of its
results, its rejects, and its window state, all as tables in memory that no format has touched. `adoption` finds out for
which units that is the result, and writes it. Nothing is raised here: a unit that fails has no file, and is run anew.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import fs

from ...conf.job import Job
from ...conf.ranges import Unit
from ...readers.source import FileSource
from ...windowing.engine.rejects import reject_columns, reject_schema
from ...windowing.engine.run import Outcome
from ...windowing.engine.snapshot import restore
from ...windowing.engine.task import TaskContext
from ...windowing.planning.identity import check_goes_on, state_types
from ...windowing.ports import InputFile, Part, ResultPart
from ...windowing.state.number_shift import NumberShift
from ...windowing.support.formats import INTERMEDIATE
from ...writers.output.output import output_to_plan
from ...writers.output.sink import FileSink
from ...writers.state.stage_files import EncodedTable
from ...writers.state.unit_record import UNIT_DISTANCE
from ..console.messages import Messages
from .context import local_context
from .incremental_run import known_of, state_identity
from .job_plan import JobPlan, StageOutput, bind_expectations, table_files
from .open_input import NOTHING_KNOWN, enriched_input, open_input
from .pipeline import PlainRun, SparkStageExecutor, run_stages, with_windows
from .stage_plans import StagePlan, plan_stages
from .steps import ALONE

# What a unit of a piece gives, as it travels between processes.


@dataclass(frozen=True, slots=True)
class FoundStage:
    """What a stage gives from the state that the piece had before the unit.

    ``name``: the stage.
    ``identity``, ``schema``, ``result``: of its plan, as in `StagePlan` and `state_identity`.
    ``key``: the columns of its key.
    ``outcome``: as of any run; the files that it names are nowhere.
    ``parts``: the rows of its result, by the number of the part.
    ``rejects``: rejected rows, by the number of their file.
    ``state``: the window state that it leaves, by the names of the tables.
    """

    name: str
    identity: Mapping[str, Any]
    schema: pa.Schema
    result: pa.Schema
    key: tuple[str, ...]
    outcome: Outcome
    parts: tuple[tuple[int, tuple[pa.Table, ...]], ...]
    rejects: tuple[tuple[int, pa.Table], ...]
    state: Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class FoundUnit:
    """What a unit gives.

    ``files``: those that it has read. ``tables``: those of the tables that it reads beside its input, by name.
    """

    files: tuple[InputFile, ...]
    tables: Mapping[str, tuple[InputFile, ...]]
    stages: tuple[FoundStage, ...]


# What it gives in the end: its numbers count from the beginning that the state counts from.


@dataclass(frozen=True, slots=True)
class Shifts:
    """By what the numbers of a piece differ from the true ones.

    ``behind``: the ordinal of the unit behind which this was found; it holds for all later units of the piece.
    ``of``: by stage, what is added.
    """

    behind: int
    of: Mapping[str, NumberShift]


def moved_state(stage: FoundStage, shift: NumberShift) -> dict[str, pa.Table]:
    """Return the tables of the true state, by name, in the order in which a run writes them."""
    tables = dict(stage.state)
    keys, rows = shift.of_keys(tables.pop("keys-00000", None)), tables.pop("rows-00000", None)
    moved = {} if keys is None else {"keys-00000": keys}
    moved |= {} if rows is None else {"rows-00000": shift.of_rows(rows)}
    return moved | tables


@dataclass(frozen=True, slots=True)
class ReadyUnit:
    """What is found of a unit, without the tables of its state, and the files of the state that it leaves.

    ``states``: by stage and name.
    ``behind``: as in the `Shifts` by which its numbers were moved.
    """

    found: FoundUnit
    states: Mapping[str, Mapping[str, EncodedTable]]
    behind: int

    @classmethod
    def of(cls, found: FoundUnit, shifts: Shifts) -> ReadyUnit:
        """Move the numbers of a unit."""
        tables = {stage.name: moved_state(stage, shifts.of[stage.name]) for stage in found.stages}
        states = {name: {n: EncodedTable.of(table) for n, table in each.items()} for name, each in tables.items()}
        return cls(
            replace(found, stages=tuple(replace(each, state={}) for each in found.stages)), states, shifts.behind
        )


# Where the stages of a unit write while nothing of it is kept: `StateFiles` and `Sink` in memory.


@dataclass(slots=True)
class _TablesOfState:
    held: dict[str, pa.Table] = field(default_factory=dict)

    def write_rows(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"rows-{index:05d}", table)

    def write_keys(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"keys-{index:05d}", table)

    def write_table(self, name: str, table: pa.Table) -> Part:
        self.held[name] = table
        return Part(name, table.num_rows, 0)

    def read_table(self, name: str) -> pa.Table | None:
        return self.held.get(name)

    def tables(self, beginning: str) -> tuple[Part, ...]:
        return tuple(Part(n, t.num_rows, 0) for n, t in sorted(self.held.items()) if n.startswith(beginning))

    def parts(self, kind: Literal["rows", "keys"]) -> tuple[Part, ...]:
        return self.tables(f"{kind}-")

    def read_part(self, part: Part) -> pa.Table:
        return self.held[part.name]


@dataclass(frozen=True, slots=True)
class _KeepingSink(FileSink):
    """A sink whose rows stay in memory."""

    kept: dict[int, list[pa.Table]] = field(default_factory=dict)
    rejected: dict[int, pa.Table] = field(default_factory=dict)
    scratch: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def write_parts(self, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
        self.kept[index] = [*tables]
        return (ResultPart(f"part-{index:05d}", sum(table.num_rows for table in self.kept[index]), 0),)

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        self.rejected[index] = rows
        return Part(f"{index:05d}", rows.num_rows, 0)

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        self.scratch[name] = rows

    def read_scratch(self, name: str) -> pa.RecordBatch:
        return self.scratch[name]

    def drop_scratch(self) -> None:
        self.scratch.clear()


# The run of a piece.


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit of a piece. ``job``: with the input and outputs of the unit."""

    unit: Unit
    job: Job


@dataclass(frozen=True, slots=True)
class _Left:
    """What a unit of a piece leaves, by stage: its identity, its registers, its tables."""

    stages: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], _TablesOfState]]


@dataclass(frozen=True, slots=True)
class _PieceRun(PlainRun):
    unit: Unit = ALONE
    before: _Left | None = None
    states: dict[str, _TablesOfState] = field(default_factory=dict)

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:
        source = task.source.moved(self.unit.ordinal * UNIT_DISTANCE)
        files, restore_point = self.states.setdefault(stage.name, _TablesOfState()), None
        if self.before is not None:
            identity, registers, former = self.before.stages[stage.name]
            types = state_types(stage.plan, identity, "", stage.places)
            restore_point = restore(former, registers, stage.plan, types)
        return replace(task, source=source, restore_point=restore_point, state_files=files)


def speculate(folder: str, works: Sequence[UnitWork]) -> None:
    """Compute consecutive units from nothing; leave what each gives in ``folder``, where `read_found` finds it.

    Ends at the first unit that fails, or that is more than one task.
    """
    for _ in speculate_each(folder, works):
        pass


def speculate_each(folder: str, works: Sequence[UnitWork]) -> Iterator[None]:
    """Compute consecutive units as `speculate` does; yield behind each.

    A unit is made ready here where it is known by what its numbers differ, and enough units wait to be taken over.
    """
    before: _Left | None = None
    for at, work in enumerate(works):
        try:
            found, before = compute(folder, work, before)
            shifts: Shifts | None = None if _waiting(folder) < _ENOUGH else taken_up(_shifts_path(folder))
            left: FoundUnit | ReadyUnit = found
            if shifts is not None and works[0].unit.ordinal <= shifts.behind < work.unit.ordinal:
                left = ReadyUnit.of(found, shifts)
            leave(found_path(folder, work.unit), left)
        except Exception:
            for each in works[at:]:
                found_path(folder, each.unit).with_suffix(_FAILED).touch()
            return
        yield


_ENOUGH = 2


def _waiting(folder: str) -> int:
    return sum(path.suffix == _FOUND for path in Path(folder).iterdir())


def tell_shifts(folder: str, shifts: Shifts | None) -> None:
    """Tell the processes by what the numbers of a piece differ; None: that is not known any more."""
    if shifts is None:
        _shifts_path(folder).unlink(missing_ok=True)
    else:
        leave(_shifts_path(folder), shifts)


def _shifts_path(folder: str) -> Path:
    return Path(folder, "numbers.shifts")


_FOUND = ".unit"
_FAILED = ".failed"


def leave(path: Path, value: object) -> None:
    """Leave a value for another process, in a new file that is seen whole. Raises what does not pickle."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        _Packer(file, pickle.HIGHEST_PROTOCOL).dump(value)
    new.rename(path)


def taken_up(path: Path) -> Any:
    """Return what `leave` has left; None where there is nothing, or not yet."""
    try:
        return pickle.loads(path.read_bytes())
    except FileNotFoundError:
        return None


class _Packer(pickle.Pickler):
    """Packs tables as Arrow does: only what is in them, whatever they are slices of."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, pa.Table):
            return NotImplemented
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return _table_of, (pickle.PickleBuffer(sink.getvalue()),)


def _table_of(content: Any) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


def found_path(folder: str, unit: Unit) -> Path:
    """Return the file of what is found of a unit."""
    return Path(folder, f"{unit.ordinal}{_FOUND}")


def is_over(folder: str, unit: Unit) -> bool:
    """Whether a unit was computed, or cannot be."""
    return found_path(folder, unit).exists() or has_failed(folder, unit)


def has_failed(folder: str, unit: Unit) -> bool:
    """Whether a unit cannot be computed."""
    return found_path(folder, unit).with_suffix(_FAILED).exists()


def read_found(folder: str, unit: Unit) -> FoundUnit | ReadyUnit | None:
    """Return what a piece has found of a unit; None where it has not, or not yet."""
    found: FoundUnit | ReadyUnit | None = taken_up(found_path(folder, unit))
    return found


def compute(folder: str, work: UnitWork, before: _Left | None) -> tuple[FoundUnit, _Left]:
    """Run the stages of a unit in this process, and keep what they write. Raises what they raise.

    Raises `ValueError` where it has several stages, which are never taken over (`adoption.why_in_order`), or its stage
    is more than one task: the parts would depend on the machine.
    """
    job, context = work.job, local_context(Messages(-1))
    if len(job.stages) > 1:
        raise ValueError("a unit of several stages is run")
    executor = context.spark.session()
    known = NOTHING_KNOWN if before is None else known_of(before.stages[job.stages[0].name][0], "", job)
    source = enriched_input(job, open_input(job, executor, known=known), executor, known)
    plan = _plan(job, source, f"{folder}/{work.unit.ordinal}")
    run = _PieceRun(0.0, unit=work.unit, before=before)
    stage_runs = run_stages(plan, run, SparkStageExecutor(context))
    source.check_unchanged()
    found, left = [], {}
    for each in stage_runs:
        outcome, stage, sink = each.outcome, each.stage, each.stage_output.sink
        if outcome.strategy.name != "one task" or outcome.snapshot is None or not isinstance(sink, _KeepingSink):
            raise ValueError(f"{stage.name} is more than one task")
        state = run.states[stage.name]
        told = state_identity(stage), stage.schema, stage.plan.schema, tuple(stage.plan.key), outcome
        parts = tuple((at, tuple(tables)) for at, tables in sorted(sink.kept.items()))
        rejects = tuple(sorted(sink.rejected.items()))
        found.append(FoundStage(stage.name, *told, parts, rejects, state.held))
        left[stage.name] = told[0], outcome.snapshot.registers.plain, state
    return FoundUnit(tuple(plan.source.files), table_files(plan), tuple(found)), _Left(left)


def _plan(job: Job, source: FileSource, folder: str) -> JobPlan:
    stages, output = plan_stages(job, source), output_to_plan(job.output, "overwrite")
    outputs = []
    for stage in stages:
        check_goes_on(stage.plan)
        rejects = reject_schema(reject_columns(stage.plan, stage.schema))
        sink = _KeepingSink(fs.LocalFileSystem(), folder, stage.name, INTERMEDIATE, stage.plan.schema, rejects)
        outputs.append(StageOutput(output, is_own=False, sink=sink, copy=None))
    expectations = bind_expectations(job.expect, stages)
    return with_windows(JobPlan(job, source, stages, tuple(outputs), expectations=expectations))
