"""A run without a state: it reads its input, begins from nothing, and commits outputs only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ...readers.source import FileSource
from ...windowing.engine.tasks.task import TaskContext
from ...windowing.ports import Executor
from ...windowing.spark.boot import PendingExecutor
from ...writers.state.journal import commit_all
from ..planning.open_input import NOTHING_KNOWN, Earlier, KnownColumns, open_input, open_unit
from ..planning.stage_plans import StagePlan
from ..request.request import JobRequest
from .context import RunContext
from .staged_job import StagedJob


@dataclass(frozen=True, slots=True)
class PlainRun:
    """A `RunMode` without a state, and its own `OpenRun`: there is nothing to begin.

    ``began``: `time.perf_counter` when the command, or the unit of a range, began: the seconds in the manifest count
        from there.
    ``label``: the beginning of the labels of its progress: the unit of a range, or nothing.
    ``earlier``: gives the jobs of the units before a unit of a range; None: it is no unit of a range.
    """

    began: float
    label: str = ""
    earlier: Earlier | None = None

    def begin(self, request: JobRequest) -> AbstractContextManager[PlainRun]:  # noqa: ARG002 - as `RunMode` has it
        """Return this run; nothing is written."""
        return nullcontext(self)

    def known(self, request: JobRequest) -> KnownColumns:  # noqa: ARG002 - as `OpenRun` has it
        """Return nothing: no run came before this one."""
        return NOTHING_KNOWN

    @property
    def units_before(self) -> None:
        """None: there is no state."""

    def source(self, request: JobRequest, context: RunContext) -> FileSource:
        """Open the input of the job."""
        if self.earlier is None:
            return open_input(request, context.spark)
        return open_unit(request, PendingExecutor(context.spark.session), self.earlier)

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Accept all stages."""

    def tables(self, stage: StagePlan) -> None:
        """Return None: no run comes after this one."""

    def restore(self, stage: StagePlan, task: TaskContext) -> TaskContext:  # noqa: ARG002 - as `OpenRun` has it
        """Return the task context as it is: every window begins with the input."""
        return task

    def commit(self, job: StagedJob, executor: Executor) -> None:  # noqa: ARG002 - as `OpenRun` has it
        """Put the outputs in place. Raises `OutputError` as `commit_all` does."""
        commit_all(job.outputs)
