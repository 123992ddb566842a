"""The context that all runs of one command share, and the identity of this process."""

from __future__ import annotations

import datetime as dt
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ...conf.job import Job
from ...windowing.local_executor import LocalExecutor
from ...windowing.ports import Executor, Part
from ...windowing.spark.boot import Progress
from ...windowing.spark.fork_server import ForkServer
from ...writers.places.lock import Owner
from ...writers.state.journal import Prepared
from ..console.messages import Messages

if TYPE_CHECKING:  # the engine, which commands do not load that only show what runs have left
    from ...windowing.engine.run import Outcome
    from .job_plan import JobPlan, StageOutput
    from .stage_plans import StagePlan

# What a run has computed before its commit: the stages that have run, and the job with all its manifests.


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage that has run.

    ``stage``: its plan.
    ``stage_output``: where its rows are.
    ``outcome``: row counts, windows and times of the run.
    ``parts``: the parts of its own output; none where the stage has no output.
    """

    stage: StagePlan
    stage_output: StageOutput
    outcome: Outcome
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """What has become of an expectation.

    ``expect``: its canonical text.
    ``on_fail``: ``fail`` or ``warn``.
    ``holds``: whether it is true.
    ``saw``: the numbers that decided it; plain JSON values.
    ``words``: the same in words.
    """

    expect: str
    on_fail: str
    holds: bool
    saw: Mapping[str, Any]
    words: str

    def as_json(self) -> dict[str, Any]:
        return {"expect": self.expect, "on_fail": self.on_fail, "holds": self.holds, "saw": dict(self.saw)}


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A job that has run: all its parts are in staging folders, and nothing is committed.

    ``plan``: its plan.
    ``stage_runs``: its stages, in the order of the job.
    ``outputs``: each output with its manifest, in the order in which they are put in place.
    ``seconds``: phase to the seconds of the whole job.
    ``expectations``: what has become of its expectations; none has failed.
    """

    plan: JobPlan
    stage_runs: Sequence[StageRun]
    outputs: Prepared
    seconds: Mapping[str, float]
    expectations: Sequence[ExpectationOutcome] = ()


# What looks on while a command runs its job: each run, or each unit, begins, and is committed or fails.
#
# Metrics and lineage are made of this. A run asks nothing of who looks on, and is the same without.


Committed = Callable[[StagedJob], None]
"""Says that a run is committed."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run that is looked at.

    ``job``: the job of the run, with the inputs and outputs of its unit.
    ``unit``: the label of the unit; empty for a run without a state or a range.
    ``started``: when it began, in UTC.
    """

    job: Job
    unit: str
    started: dt.datetime


class RunObserver(Protocol):
    """Looks on. With ``--jobs`` its methods are called from several threads, those about one run from one."""

    def begin(self, run: ObservedRun) -> None:
        """See a run begin, before its input is opened."""

    def commit(self, run: ObservedRun, staged: StagedJob) -> None:
        """See that a run is committed."""

    def fail(self, run: ObservedRun, error: BaseException) -> None:
        """See a run fail: it has left no trace."""

    def pass_over(self, skipped: int, gaps: int) -> None:
        """See how many units of a range were done before, and how many have no input."""


@contextmanager
def observed(observers: Sequence[RunObserver], job: Job, label: str) -> Iterator[Committed]:
    """Let observers see a run: that it begins, then what the function that is yielded says, or that it fails.

    ``label``: the unit, as it begins the labels of progress.
    """
    if not observers:
        yield lambda _: None
        return
    run = ObservedRun(job, label.removesuffix(": "), dt.datetime.now(dt.UTC))
    for each in observers:
        each.begin(run)
    committed: list[StagedJob] = []
    try:
        yield committed.append
    except BaseException as error:
        if not committed:
            for each in observers:
                each.fail(run, error)
        raise
    finally:  # also where a signal comes after the commit: the result is there
        for staged in committed:
            for each in observers:
                each.commit(run, staged)


class Session(Executor, Protocol):
    """An `Executor` of a whole command: a running Spark, or this process.

    ``is_open``: whether it takes messages from everybody who reaches it.
    ``on_progress``: called while tasks run; None: nobody.
    """

    is_open: bool
    on_progress: Callable[[Progress], None] | None


class Boot(Protocol):
    """A Spark that is starting (`SparkBoot`), or what stands in its place."""

    def session(self) -> Session:
        """Wait until tasks can run."""

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load or compile what tasks need by a call."""

    def close(self) -> None:
        """End it at once."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of all runs of one command.

    ``spark``: Spark, which may still be starting.
    ``show``: shows the progress of tasks.
    ``messages``: the writer to stderr.
    ``started``: `time.perf_counter` when the command began.
    ``observers``: look on at its runs.
    ``announced``: by their names, the messages that are written once a command, for the first unit, and have been.
    ``callers``: processes that compute units beforehand.
    """

    spark: Boot
    show: Callable[[Progress], None]
    messages: Messages
    started: float
    observers: tuple[RunObserver, ...] = ()
    announced: dict[str, object] = field(default_factory=dict)
    callers: Sequence[ForkServer] = ()

    def is_first(self, message: str) -> bool:
        """Whether a message is to be written now; after that it counts as written."""
        own = object()
        return self.announced.setdefault(message, own) is own  # one step: units may run side by side


def owner() -> Owner:
    """Return the owner that this process writes into its locks."""
    return Owner(os.getpid(), socket.gethostname(), now())


def now() -> str:
    """Return the current time in UTC as ISO 8601, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


# Stands where a run has its Spark: tasks run in this process, one after the other, and nothing has to start.
#
# For runs over a few rows, as those of test cases: all that a run does is done, but for the start of Java.


class LocalSession(LocalExecutor):
    """A `Session` in this process."""

    is_open = False
    on_progress: Callable[[Progress], None] | None = None
    __setattr__ = object.__setattr__  # whoever runs a stage sets `on_progress`, and a local executor is frozen


class LocalBoot:
    """A `Boot` with nothing to start, to load beforehand or to end."""

    def session(self) -> LocalSession:
        return LocalSession()

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load nothing: the first task loads what it needs."""

    def close(self) -> None:
        """End nothing."""


def local_context(messages: Messages) -> RunContext:
    """Return the context of a run in this process, which shows no progress."""
    return RunContext(LocalBoot(), lambda _: None, messages, time.perf_counter())
