"""An incremental run: restore the window state, run one unit, and commit the new state together with the outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ...conf.job import Job, recorded
from ...conf.option_values import partition_column
from ...conf.ranges import Unit
from ...readers.joined import left_files
from ...readers.source import FileSource
from ...windowing.engine.enrich import TableState
from ...windowing.engine.snapshot import restore
from ...windowing.engine.strategy import LargestWindow
from ...windowing.engine.task import TaskContext
from ...windowing.errors import ConfigError
from ...windowing.planning.identity import (
    check_goes_on,
    check_types,
    differences,
    identity_of,
    known_columns,
    state_types,
)
from ...windowing.planning.plan import Plan
from ...windowing.planning.result_schema import numbered
from ...windowing.ports import Executor, InputFile
from ...windowing.spark.boot import PendingExecutor
from ...windowing.state.state_tables import DecidingNumbers
from ...windowing.support.column_types import type_of_text
from ...windowing.support.redaction import redacted_path
from ...writers.output.versions import versions
from ...writers.state.journal import StateStaging, commit_together
from ...writers.state.stage_files import ParquetStateFiles, Sameness, same_tables
from ...writers.state.state import State
from ...writers.state.unit_record import UNIT_DISTANCE, BorrowedRows, OpenWindows, StageRecord, UnitRecord
from .context import RunContext, StagedJob, StageRun, now
from .fingerprint import absolute
from .job_plan import JobPlan, table_files
from .mostly_late import EarlierUnits
from .open_input import NOTHING_KNOWN, KnownColumns, open_input
from .pipeline import PlainRun, SparkStageExecutor, run_stages
from .stage_plans import StagePlan

# Which numbers of a window state decide the results of a job: most jobs only write the numbers of windows down.
#
# Where they do, a correction goes on for as long as they differ; where they do not, it ends with the last unit whose
# windows it changes, and later units keep the numbers that they have (decision 074).


WINDOW = "window"
_MOST = 2**62  # rows of a key


def deciding_numbers(plan: JobPlan) -> tuple[DecidingNumbers, ...]:
    """Return for each stage of a job which numbers of its window state decide what comes of it."""
    asked = [_asks_itself(stage, plan) for stage in plan.stages]
    carried: list[dict[str, int]] = [{}]
    for at, stage in enumerate(plan.stages):
        for name in _read(stage).intersection(carried[at]):
            asked[carried[at][name]] = True
        asked[at] |= _sort_keys(stage.plan, [each.plan for each in plan.stages[at + 1 :]])
        ties = {numbered("_tie", i): carried[at][name] for i, name in enumerate(stage.plan.ties) if name in carried[at]}
        carried.append({WINDOW: at, **ties})
    found = []
    for at, each in enumerate(stage.plan for stage in plan.stages):
        every, held = (min(number, _MOST) for number in each.kind.needs.counted_rows)
        ranks = any(bound.call.function == "product" for bound in each.aggregates)  # others are exact, or know no ranks
        only_carried = frozenset(name for name, of in carried[at].items() if not asked[of])
        found.append(DecidingNumbers(asked[at], ranks, every, held, only_carried))
    return tuple(found)


def _asks_itself(stage: StagePlan, plan: JobPlan) -> bool:
    if stage.plan.options.operator is not None:
        return True
    named = set(stage.plan.having.value.columns) if stage.plan.having is not None else set()
    for name, expression in map(partition_column, stage.request.partition_by):
        named.update((name,) if expression is None else expression.columns)
    if stage is plan.stages[-1]:
        rows = [each for each in plan.expectations if each.expectation.scope != "numbers"]
        named.update(name for each in rows for name in each.condition.columns)
    return WINDOW in named


def _read(stage: StagePlan) -> frozenset[str]:
    """Return the columns of its input that a stage asks for; what only sorts rows as they were emitted is not asked."""
    plan, options = stage.plan, stage.plan.options
    names = [*plan.key, *plan.order.columns, *plan.kind.needs.attributes, *options.group_by, *plan.rows, *plan.carried]
    names += [name for name in (options.event_time, plan.weight, stage.marks.removeprefix("column:")) if name]
    names += [key.name for key in plan.sort_rows] + [name for bound in plan.aggregates for name in bound.columns]
    names += [bound.filter for bound in plan.aggregates if bound.filter is not None]
    names += [name for each in plan.of_panes for name in each.value.columns]
    return plan.projection.closure([*names, *plan.looked_at])


def _sort_keys(plan: Plan, later: Sequence[Plan]) -> bool:
    """Whether the numbers of windows put rows of several keys in order that a later stage looks at together.

    Panes are emitted in the order of their causes, then of their numbers. One row causes panes of its own key alone.
    """
    together = plan.causes != "rows" or _joins_keys(plan)
    is_alone = not together and plan.options.at_end == "hold"
    apart = all(set(plan.key) <= set(each.key) and not _joins_keys(each) for each in later)
    return bool(plan.key) and not is_alone and not apart


def _joins_keys(plan: Plan) -> bool:
    """Whether rows of one key decide about windows of others: by marks, by a watermark, or by keys that are evicted."""
    return plan.takes_marks or plan.kind.needs.watermark or plan.kind.needs.eviction is not None


# The identity of the stages of a job, which all runs on a state must share, and the types that a state knows.


def state_identity(stage: StagePlan) -> dict[str, Any]:
    """Return the identity of a stage as plain JSON values: window, key, order, options and needed columns.

    Of the first stage, columns of enrich tables are in ``tables``, and the column of marks counts as one of the input.
    """
    found = identity_of(stage.plan, stage.enrichments)
    mark = stage.marks.removeprefix("column:") if stage.marks.startswith("column:") else None
    if mark is not None and mark in stage.schema.names:
        found["input"].setdefault(mark, str(stage.schema.field(mark).type))
    if stage.tables:
        found["input"] = {name: kind for name, kind in found["input"].items() if name not in stage.enriched}
        found["tables"] = {name: {each.name: str(each.type) for each in of} for name, of in stage.tables.items()}
    return found


def identity_changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Describe how the stages of two jobs differ, by name; return an empty list where they do not."""
    if list(was) != list(now):
        return [f"its stages are {', '.join(was)}, not {', '.join(now)}"]
    which = {name: f"stage {name}: " if len(was) > 1 else "" for name in was}
    return [which[name] + text for name in was for text in differences(was[name], now[name])]


def known_by(record: UnitRecord | None, shown: str, job: Job) -> KnownColumns:
    """Return the columns that a unit on the state ``shown`` has read, and those of its enrich tables."""
    return NOTHING_KNOWN if record is None else known_of(record.stages[0].identity, place_of(record, shown), job)


def known_of(identity: Mapping[str, Any], place: str, job: Job) -> KnownColumns:
    """Return the columns that an ``identity`` knows, and those of its enrich tables; ``place``: its state in words."""
    computed = [name for name, _ in job.stages[0].options.let]
    for each in job.enrichments:
        taken = {one.name for one in each.take or ()}
        held = identity.get("columns") or {}
        computed += [name for name in held if name in taken or name.startswith(f"{each.name}_")]
    tables = {}
    for name, types in (identity.get("tables") or {}).items():
        found = {column: type_of_text(kind) for column, kind in types.items()}
        tables[name] = ((place, pa.schema([(column, kind) for column, kind in found.items() if kind is not None])),)
    return KnownColumns(((place, known_columns(identity, computed)),), tables)


def place_of(record: UnitRecord, shown: str) -> str:
    """Return what messages call the state that a unit has left."""
    return f"the state {shown} at {record.label}"


@dataclass(frozen=True, slots=True)
class UnitInputRows:
    """The rows that a unit reads where late rows move between units.

    ``source``: the rows, its own and late ones of later units.
    ``files``: the files of its own input, as unit records name them (`from_root`).
    ``lent``, ``borrowed``: as in `UnitRecord`.
    """

    source: FileSource
    files: tuple[InputFile, ...]
    lent: tuple[str, ...] = ()
    borrowed: tuple[BorrowedRows, ...] = ()


@dataclass(frozen=True, slots=True)
class IncrementalRun:
    """The run of one unit on a state.

    ``state``: the state, which is open and locked.
    ``unit``: the unit.
    ``previous``: the label of the unit whose window state is restored; None for the first.
    ``keep``: how many units keep their window state.
    ``input_rows``: the rows to read; None where these are the rows of its input and no others.
    """

    state: State
    unit: Unit
    previous: str | None
    keep: int
    input_rows: UnitInputRows | None = None

    @contextmanager
    def begin(self, job: Job) -> Iterator[UnitRun]:
        """Begin the unit in the state. If the context ends without a commit, the unit leaves no trace."""
        began, started = time.perf_counter(), now()
        with self.state.begin(self.unit.label, self.unit.ordinal, job.outputs) as staging:
            yield UnitRun(began, f"{self.unit.label}: ", mode=self, staging=staging, started=started)

    @property
    def before(self) -> UnitRecord | None:
        """The record of the unit whose window state is restored; None for the first."""
        return None if self.previous is None else self.state.record(self.previous)

    def restore(self, stage: StagePlan, task: TaskContext, files: ParquetStateFiles) -> TaskContext:
        """Return the task context with the window state of the unit before; ``files``: for that of this unit."""
        source = task.source.moved(self.unit.ordinal * UNIT_DISTANCE)
        before = self.before
        restore_point = None
        if before is not None:
            former = self.state.stage(before.label, stage.name)
            found = next(each for each in before.stages if each.name == stage.name)
            types = state_types(stage.plan, found.identity, place_of(before, self.state.shown), stage.places)
            restore_point = restore(former, found.registers, stage.plan, types)
        return replace(task, source=source, restore_point=restore_point, state_files=files)

    def stages(
        self, run: UnitRun, plan: JobPlan, executor: SparkStageExecutor, announce: Callable[[LargestWindow], None]
    ) -> list[StageRun]:
        """Run the stages of the unit. Raises as `run_stages` does."""
        return run_stages(plan, run, executor, announce)

    def known(self, job: Job) -> KnownColumns:
        """Return what the state says of the columns of the input and of its enrich tables."""
        return known_by(self.before, self.state.shown, job)

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise `ConfigError`, with the differences, where the state is of other windows than ``stages``.

        Another type of a column is no difference, but an error where it has nothing in common with that of the state.
        """
        for stage in stages:
            check_goes_on(stage.plan)
        before = self.before
        if before is None:
            return
        was = {stage.name: stage.identity for stage in before.stages}
        found = identity_changes(was, {stage.name: state_identity(stage) for stage in stages})
        if found:
            raise ConfigError(
                f"the state {self.state.shown} is of another job (at {before.label}): {'; '.join(found)}",
                "run the job that made it, or name another state",
            )
        shown = place_of(before, self.state.shown)
        for stage in stages:
            who = f"stage {stage.name}: " if len(stages) > 1 else ""
            check_types(was[stage.name], identity_of(stage.plan), shown, stage.places, who)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRun(PlainRun):
    """A unit that has begun in its state.

    ``mode``: the unit, and the state that it is run on.
    ``staging``: the staging folder of its window state.
    ``started``: when it began, ISO 8601.
    """

    mode: IncrementalRun
    staging: StateStaging
    started: str

    def known(self, job: Job) -> KnownColumns:
        return self.mode.known(job)

    def units_before(self) -> EarlierUnits:
        return EarlierUnits(self.mode.state, self.mode.before)

    def source(self, job: Job, context: RunContext) -> FileSource:
        """Return the rows of the unit, late rows of others among them; open its input where that is not open yet."""
        if self.mode.input_rows is not None:
            return self.mode.input_rows.source
        return open_input(job, PendingExecutor(context.spark.session), known=self.known(job))

    def check(self, stages: Sequence[StagePlan]) -> None:
        self.mode.check(stages)

    def tables(self, stage: StagePlan) -> TableState:
        """Return where the last rows of enrich tables are: in the unit before, and in this one."""
        before = self.mode.before
        files = self.mode.state.stage(before.label, stage.name) if before is not None else None
        return TableState(files, self.staging.stage(stage.name))

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:
        return self.mode.restore(stage, task, self.staging.stage(stage.name))

    def stages(
        self, plan: JobPlan, executor: SparkStageExecutor, announce: Callable[[LargestWindow], None]
    ) -> list[StageRun]:
        return self.mode.stages(self, plan, executor, announce)

    def commit(self, staged: StagedJob, executor: Executor) -> UnitRecord:
        records: list[StageRecord] = []
        for run in staged.stage_runs:
            outcome, snapshot = run.outcome, run.outcome.snapshot
            assert snapshot is not None
            parts = snapshot.parts if records else (*snapshot.parts, *staged.plan.table_parts)
            oldest = None if snapshot.oldest is None else str(snapshot.oldest)
            still_open = OpenWindows(snapshot.windows, snapshot.keys, oldest)
            identity, counts = state_identity(run.stage), outcome.counts.recorded()
            told = identity, snapshot.registers.plain, counts, outcome.windows, parts, still_open
            records.append(StageRecord(run.stage.name, *told))
        stages = tuple(records)
        former, record = self.mode.state.record(self.mode.unit.label), self._record(staged, stages)
        record = replace(record, digests=tuple(manifest["digest"] for _, manifest in staged.outputs))
        if former is not None:
            same = self._sameness(former, stages, deciding_numbers(staged.plan), executor)
            if same.decides:
                numbers = former.numbers if same.numbers else self.staging.token
                record = replace(record, state=former.state, numbers=numbers)
            record = replace(record, reruns=former.reruns + 1)
        return commit_together(self.staging, record, staged.outputs, self.mode.keep)

    def _record(self, staged: StagedJob, stages: tuple[StageRecord, ...]) -> UnitRecord:
        unit, before = self.mode.unit, self.mode.before
        rows = self.mode.input_rows
        return UnitRecord(
            unit.label,
            unit.ordinal,
            unit.start.isoformat() if unit.start else None,
            unit.end.isoformat() if unit.end else None,
            self.mode.previous,
            rows.files if rows is not None else from_root(left_files(staged.plan.source)),
            self.staging.outputs,
            stages,
            self.staging.token,
            self.started,
            now(),
            dict(staged.seconds),
            versions(),
            self.staging.token,
            before.state if before is not None else None,
            recorded(staged.plan.job),
            rows.lent if rows is not None else (),
            rows.borrowed if rows is not None else (),
            {name: from_root(files) for name, files in table_files(staged.plan).items()},
            tuple(each.as_json() for each in staged.expectations),
            began_numbers=before.numbers if before is not None else None,
            bases=tuple(map(redacted_path, staged.plan.job.places.bases)),
        )

    def _sameness(
        self,
        former: UnitRecord,
        stages: Sequence[StageRecord],
        deciding: Sequence[DecidingNumbers],
        executor: Executor,
    ) -> Sameness:
        """Return how far the unit leaves the window state that it left before: if it decides, later units stay valid.

        ``deciding``: of each stage, which numbers count.
        """
        now, then = ([(stage.name, stage.registers) for stage in each] for each in (stages, former.stages))
        state = self.mode.state
        if now != then or not state.has_data(former.label):
            return Sameness(decides=False, numbers=False)
        both = [
            (
                state.stage(former.label, stage.name),
                replace(self.staging.stage(stage.name), recorded=stage.parts),
                numbers,
            )
            for stage, numbers in zip(stages, deciding, strict=True)
        ]
        found = executor.map("compare states", _same_stage, both)
        return Sameness(all(each.decides for each in found), all(each.numbers for each in found))


def from_root(files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """Return files as unit records name them: local paths are absolute."""
    return tuple(InputFile(absolute(file.path), file.size, file.mtime) for file in files)


def _same_stage(both: tuple[ParquetStateFiles, ParquetStateFiles, DecidingNumbers]) -> Sameness:
    return same_tables(*both)
