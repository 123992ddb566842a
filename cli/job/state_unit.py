"""A job run as a unit onto a state: what it begins from, what it leaves, and the commit of both with its outputs."""

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
from ...windowing.ports import InputFile, RunTasks
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
"""How far the arrival positions of units are apart, so that those of one never depend on the rows of another."""


@dataclass(frozen=True, slots=True)
class UnitInputRows:
    """What a unit reads where it is not simply its input: ``source``, of which ``files`` are its own.

    ``lent`` and ``borrowed``: as in `UnitRecord`.
    """

    source: FileSource | MergedSource
    files: tuple[InputFile, ...]
    lent: tuple[str, ...] = ()
    borrowed: tuple[BorrowedRows, ...] = ()


@dataclass(slots=True)
class IncrementalRun:
    """One unit under way. ``previous``: the label of the unit it begins from. ``keep``: how many keep their data.

    ``reading``: None where it reads its input and nothing else. ``record``: what became of it, once it is committed.
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
    def begin(self, asked: JobRequest) -> Iterator[None]:
        """Begin the unit in the state; left without `commit`, it leaves no trace."""
        own = [stage.stage.output for stage in asked.stages[:-1] if stage.stage.output]
        with self.state.begin(self.unit.label, self.unit.ordinal, [*own, asked.job.output]) as staging:
            self._staging = staging
            yield

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise `ConfigError` where the state it begins from is of other windows, saying what differs."""
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

    def restore(self, stage: StagePlan, work: TaskContext) -> TaskContext:
        """Return the work of a stage that goes on from the unit before and leaves what the next one needs."""
        base = self.unit.ordinal * UNIT_DISTANCE
        splits = tuple(replace(split, base=split.base + base) for split in work.source.splits)
        source = replace(work.source, splits=splits)  # type: ignore[type-var]  # all sources are dataclasses
        before = self._before
        start = None
        if before is not None:
            files = self.state.stage(before.label, stage.name)
            start = restore(files, _named(before, stage.name).registers)
        return replace(work, source=source, restore_point=start, state_files=self._files(stage.name))

    def commit(
        self,
        asked: JobRequest,
        inputs: Sequence[InputFile],
        ran: Sequence[StageRun],
        outputs: Prepared,
        seconds: Mapping[str, float],
        each: RunTasks,
    ) -> None:
        """Commit outputs and state at once. ``each`` runs a function over items in tasks."""
        staging = self._staging
        assert staging is not None
        stages = tuple(map(_stage_record, ran))
        former, before = self.state.record(self.unit.label), self._before
        state = staging.token
        if former is not None and self._is_as_before(former, stages, each):
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
            recorded(asked.job),
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

    def _is_as_before(self, former: UnitRecord, stages: Sequence[StageRecord], each: RunTasks) -> bool:
        """Whether the unit leaves what it left when it was run before."""
        told = [(stage.name, stage.registers) for stage in stages]
        if told != [(stage.name, stage.registers) for stage in former.stages]:
            return False
        if not self.state.has_data(former.label):
            return False
        pairs = [
            (self.state.stage(former.label, stage.name), replace(self._files(stage.name), recorded=stage.parts))
            for stage in stages
        ]
        return all(each("compare states", partial(_same_pair), pairs))


def _check_emit(stage: StagePlan) -> None:
    plan = stage.plan
    evicts = isinstance(plan.spec, Sliding) and plan.spec.eviction is not None
    if evicts and plan.options.emit in {"entered", "left"}:
        raise ConfigError(
            f"--emit {plan.options.emit} of a window that evicts partitions does not go with a state",
            "say --emit rows, or leave the state out",
        )


def from_root(files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """Return files as records name them: local paths from the root on."""
    return tuple(InputFile(absolute(file.path), file.size, file.mtime) for file in files)


def _same_pair(pair: tuple[ParquetStateFiles, ParquetStateFiles]) -> bool:
    return same_tables(*pair)


def _named(record: UnitRecord, name: str) -> StageRecord:
    return next(stage for stage in record.stages if stage.name == name)


def _stage_record(ran: StageRun) -> StageRecord:
    standing = ran.outcome.snapshot
    assert standing is not None
    return StageRecord(
        ran.stage.name,
        state_identity(ran.stage),
        standing.registers,
        asdict(ran.outcome.counts),
        ran.outcome.windows,
        standing.parts,
        OpenWindows(standing.windows, standing.keys, standing.oldest),
    )
