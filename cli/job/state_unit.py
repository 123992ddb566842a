"""An incremental run: restore the window state, run one unit, and commit the new state together with the outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from ...conf.recorded_job import recorded
from ...conf.units import Unit
from ...readers.merged_source import MergedSource
from ...readers.source import FileSource
from ...windowing.engine.tasks.snapshot import restore
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.errors import ConfigError
from ...windowing.language.spec import Sliding
from ...windowing.ports import Executor, InputFile
from ...writers.output.manifest import versions
from ...writers.state.journal import Prepared, commit_together
from ...writers.state.stage_files import ParquetStateFiles, same_tables
from ...writers.state.staging import StateStaging
from ...writers.state.state import State
from ...writers.state.unit_record import BorrowedRows, OpenWindows, StageRecord, UnitRecord
from .context import now
from .fingerprint import absolute
from .request import JobRequest
from .stage_plans import StagePlan
from .stage_runs import StageRun
from .state_identity import identity_changes, state_identity

UNIT_DISTANCE = 10**12
"""The distance between the arrival positions of two units, so that those of one never depend on rows of another."""


@dataclass(frozen=True, slots=True)
class UnitInputRows:
    """The rows that a unit reads where late rows move between units.

    ``source``: the rows, its own and late ones of later units.
    ``files``: the files of its own input.
    ``lent``, ``borrowed``: as in `UnitRecord`.
    """

    source: FileSource | MergedSource
    files: tuple[InputFile, ...]
    lent: tuple[str, ...] = ()
    borrowed: tuple[BorrowedRows, ...] = ()


@dataclass(slots=True)
class IncrementalRun:
    """The run of one unit on a state.

    ``state``: the state, which is open and locked.
    ``unit``: the unit.
    ``previous``: the label of the unit whose window state is restored; None for the first.
    ``keep``: how many units keep their window state.
    ``input_rows``: the rows to read; None where these are the rows of its input and no others.
    ``started``: when the run began, ISO 8601.
    ``record``: the record of the unit, once it is committed.
    """

    state: State
    unit: Unit
    previous: str | None
    keep: int
    input_rows: UnitInputRows | None = None
    started: str = field(default_factory=now)
    record: UnitRecord | None = None
    _staging: StateStaging | None = None

    @contextmanager
    def begin(self, request: JobRequest) -> Iterator[None]:
        """Begin the unit in the state. If the context ends without `commit`, the unit leaves no trace."""
        own = [stage.stage.output for stage in request.stages[:-1] if stage.stage.output]
        with self.state.begin(self.unit.label, self.unit.ordinal, [*own, request.job.output]) as staging:
            self._staging = staging
            yield

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise `ConfigError`, with the differences, where the state is of other windows than ``stages``."""
        for stage in stages:
            _check_emit(stage)
        before = self._before
        if before is None:
            return
        was = {stage.name: stage.identity for stage in before.stages}
        found = identity_changes(was, {stage.name: state_identity(stage) for stage in stages})
        if found:
            raise ConfigError(
                f"the state {self.state.shown} is of another job (at {before.label}): {'; '.join(found)}",
                "run the job that made it, or name another state",
            )

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:
        """Return the task context with the window state of the unit before, and with files for the next snapshot."""
        base = self.unit.ordinal * UNIT_DISTANCE
        splits = tuple(replace(split, base=split.base + base) for split in task.source.splits)
        source = replace(task.source, splits=splits)  # type: ignore[type-var]  # all sources are dataclasses
        before = self._before
        restore_point = None
        if before is not None:
            files = self.state.stage(before.label, stage.name)
            restore_point = restore(files, _named(before, stage.name).registers)
        return replace(task, source=source, restore_point=restore_point, state_files=self._files(stage.name))

    def commit(
        self,
        request: JobRequest,
        inputs: Sequence[InputFile],
        stage_runs: Sequence[StageRun],
        outputs: Prepared,
        seconds: Mapping[str, float],
        executor: Executor,
    ) -> None:
        """Commit outputs and state atomically."""
        staging = self._staging
        assert staging is not None
        stages = tuple(map(_stage_record, stage_runs))
        former, before = self.state.record(self.unit.label), self._before
        state = staging.token
        if former is not None and self._is_as_before(former, stages, executor):
            state = former.state
        record = UnitRecord(
            self.unit.label,
            self.unit.ordinal,
            self.unit.start.isoformat() if self.unit.start else None,
            self.unit.end.isoformat() if self.unit.end else None,
            self.previous,
            from_root(self.input_rows.files if self.input_rows else inputs),
            staging.outputs,
            stages,
            staging.token,
            self.started,
            now(),
            dict(seconds),
            versions(),
            state,
            before.state if before is not None else None,
            recorded(request.job),
            self.input_rows.lent if self.input_rows else (),
            self.input_rows.borrowed if self.input_rows else (),
        )
        self.record = commit_together(staging, record, outputs, self.keep)

    @property
    def _before(self) -> UnitRecord | None:
        return None if self.previous is None else self.state.record(self.previous)

    def _files(self, name: str) -> ParquetStateFiles:
        assert self._staging is not None
        return self._staging.stage(name)

    def _is_as_before(self, former: UnitRecord, stages: Sequence[StageRecord], executor: Executor) -> bool:
        """Whether the unit leaves the same window state as when it was run before: then later units stay valid."""
        key_states = [(stage.name, stage.registers) for stage in stages]
        if key_states != [(stage.name, stage.registers) for stage in former.stages]:
            return False
        if not self.state.has_data(former.label):
            return False
        pairs = [
            (self.state.stage(former.label, stage.name), replace(self._files(stage.name), recorded=stage.parts))
            for stage in stages
        ]
        return all(executor.map("compare states", partial(_same_pair), pairs))


def _check_emit(stage: StagePlan) -> None:
    plan = stage.plan
    evicts = isinstance(plan.spec, Sliding) and plan.spec.eviction is not None
    if evicts and plan.options.emit in {"entered", "left"}:
        raise ConfigError(
            f"--emit {plan.options.emit} of a window that evicts partitions does not go with a state",
            "say --emit rows, or leave the state out",
        )


def from_root(files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """Return files as unit records name them: local paths are absolute."""
    return tuple(InputFile(absolute(file.path), file.size, file.mtime) for file in files)


def _same_pair(pair: tuple[ParquetStateFiles, ParquetStateFiles]) -> bool:
    return same_tables(*pair)


def _named(record: UnitRecord, name: str) -> StageRecord:
    return next(stage for stage in record.stages if stage.name == name)


def _stage_record(stage_run: StageRun) -> StageRecord:
    snapshot = stage_run.outcome.snapshot
    assert snapshot is not None
    return StageRecord(
        stage_run.stage.name,
        state_identity(stage_run.stage),
        snapshot.registers,
        asdict(stage_run.outcome.counts),
        stage_run.outcome.windows,
        snapshot.parts,
        OpenWindows(snapshot.windows, snapshot.keys, snapshot.oldest),
    )
