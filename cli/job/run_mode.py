"""The contract of the two ways to run a job once: alone (`PlainRun`), or as a unit on a state (`IncrementalRun`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from ...readers.merged_source import MergedSource
from ...readers.source import FileSource
from ...windowing.engine.enrich import TableState
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.ports import Executor
from ..planning.open_input import KnownColumns
from ..planning.stage_plans import StagePlan
from ..request.request import JobRequest
from .context import RunContext
from .reports.mostly_late import EarlierUnits
from .staged_job import StagedJob

R_co = TypeVar("R_co", covariant=True)
"""What the commit of a run leaves: a `UnitRecord` where it is a unit on a state, else None."""


class OpenRun(Protocol[R_co]):
    """A run that has begun. Its methods are called once each, in this order; `restore` is called for each stage."""

    @property
    def label(self) -> str:
        """The beginning of the labels of its progress: ``2026-11-02: ``, or nothing."""
        ...

    @property
    def began(self) -> float:
        """`time.perf_counter` from which on the seconds of the run are counted."""
        ...

    def known(self, request: JobRequest) -> KnownColumns:
        """Return what earlier runs say of the columns of the input and of its enrich tables."""
        ...

    @property
    def units_before(self) -> EarlierUnits | None:
        """The units before it on its state; None without a state."""
        ...

    def source(self, request: JobRequest, context: RunContext) -> FileSource | MergedSource:
        """Open the rows of the first stage. Raises what `open_source` raises."""
        ...

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise `ConfigError` where the stages cannot be run in this mode."""
        ...

    def tables(self, stage: StagePlan) -> TableState | None:
        """Return where the last rows of enrich tables are kept, beside the state of the first ``stage``."""
        ...

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:
        """Return the task context of a stage with the window state that it begins from, where there is one."""
        ...

    def commit(self, job: StagedJob, executor: Executor) -> R_co:
        """Put all that the run has written in place. Raises `OutputError` as the journal does."""
        ...


class RunMode(Protocol[R_co]):
    """A way to run a job once. No step of a run looks for a state: each asks the run that `begin` gives."""

    def begin(self, request: JobRequest) -> AbstractContextManager[OpenRun[R_co]]:
        """Begin a run, before any output is opened. If the context ends without a commit, the run leaves no trace."""
        ...
