"""What units that run at the same time share: one Spark, and one display of progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from ...conf.job import Job, is_table
from ...windowing.spark.boot import Progress
from ...windowing.spark.session import Background
from ...writers.state.unit_record import UnitRecord
from ..console.progress import Show
from .context import Boot, RunContext, Session
from .steps import UnitStep

# Runs the units of a range: one after the other, or several at the same time where none needs another.
#
# Both keep what is done when a unit fails, and start none after it. Units that run beside one that fails come to
# their end, and are kept if that is a good one.


_POLL = 0.1

RunUnit = Callable[[UnitStep], UnitRecord]
"""Runs and commits a unit, and those before it that its late rows belong to; returns the record of the unit."""


@dataclass(slots=True)
class UnitRunner:
    """Runs units in the order in which it is given them. Used as a context, it waits at the end for all of them.

    ``run_unit``: runs a unit.
    ``jobs``: how many run at the same time, each in a thread of its own; None: one after the other, in this thread.
    ``first_alone``: whether the first runs alone, since it makes what the others write to.
    ``boot``: what they run on, if it is to know of them.
    """

    run_unit: RunUnit
    jobs: int | None = None
    first_alone: bool = False
    boot: SharedBoot | None = None
    _running: list[Background[UnitRecord]] = field(default_factory=list)
    _errors: dict[int, BaseException] = field(default_factory=dict)

    def run(self, step: UnitStep) -> UnitRecord | None:
        """Run a unit and return its record; or start it, once fewer than ``jobs`` run, and return None.

        Raises what the unit raised, or the oldest unit that failed before.
        """
        if self.jobs is None:
            return self.run_unit(step)
        self._wait(self.jobs - 1)
        self._raise()
        if self.boot is not None:
            self.boot.begin()
        self._running.append(Background(lambda: self._run(step)))
        if self.first_alone:
            self.first_alone = False
            self._wait(0)
        return None

    def __enter__(self) -> UnitRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all units that run; end them first where a signal has come. Raises what the oldest raised."""
        if error is not None and not isinstance(error, Exception):
            self._stop()
        try:
            self._wait(0)
        except BaseException:  # a signal while they end well
            self._stop()
            self._wait(0)
            raise
        if error is None:
            self._raise()

    def _stop(self) -> None:
        if self.boot is not None:
            self.boot.stop()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[min(self._errors)]

    def _run(self, step: UnitStep) -> UnitRecord:
        try:
            return self.run_unit(step)
        except BaseException as error:
            self._errors[step.unit.ordinal] = error
            raise

    def _wait(self, most: int) -> None:
        """Wait until at most ``most`` units run; until none does, once one has failed."""
        while len(self._running) > (0 if self._errors or (self.boot and self.boot.is_failing()) else most):
            self._running[0].finished(_POLL)
            self._running = [each for each in self._running if not each.finished(0)]


_MOST_NAMES = 2


@dataclass(slots=True)
class SharedBoot:
    """A `Boot` for several units. One that fails ends it for all, but not before the others have ended.

    Nothing may write into the outputs of a unit that has failed once they are released, so Spark has to end first.

    ``boot``: the Spark of the command.
    """

    boot: Boot
    _starting: threading.RLock = field(default_factory=threading.RLock)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _running: int = 0
    _failed: int = 0
    _is_closed: bool = False

    def session(self) -> Session:
        with self._starting:
            return self.boot.session()

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        with self._starting:
            self.boot.warm(warm, *arguments)

    def begin(self) -> None:
        with self._changed:
            self._running += 1

    def end(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def is_failing(self) -> bool:
        """Whether a unit has failed; then none shall begin."""
        return self._failed > 0

    def close(self) -> None:
        with self._changed:
            self._failed += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_closed or self._failed == self._running)
            self._close()

    def stop(self) -> None:
        """End it at once: the units that still run fail."""
        with self._changed:
            self._close()
            self._changed.notify_all()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.boot.close()


@dataclass(slots=True)
class SharedProgress:
    """The progress of all units that run, as one.

    ``show``: shows it.
    """

    show: Show
    _seen: dict[str, Progress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, seen: Progress) -> None:
        with self._lock:
            self._seen[seen.label.partition(": ")[0]] = seen
            self.show(_together(self._seen))

    def end(self, label: str) -> None:
        with self._lock:
            self._seen.pop(label, None)


def shared_context(context: RunContext, job: Job) -> tuple[RunContext, Callable[[RunUnit], UnitRunner]]:
    """Return the context of the units of a range, and what makes a runner of as many at a time as the job says.

    The first runs alone where all are parts of one table, which is made by one commit.
    """
    jobs = job.jobs
    if jobs == 1:
        return context, UnitRunner
    boot, progress = SharedBoot(context.spark), SharedProgress(context.show)

    def runner(run_unit: RunUnit) -> UnitRunner:
        def run(step: UnitStep) -> UnitRecord:
            try:
                return run_unit(step)
            finally:
                progress.end(step.label)
                boot.end()

        first_alone = any(map(is_table, job.outputs))
        return UnitRunner(run, jobs, first_alone, boot)

    return replace(context, spark=boot, show=progress), runner


def _together(seen: Mapping[str, Progress]) -> Progress:
    oldest = seen[min(seen)]
    if len(seen) == 1:
        return oldest
    units = ", ".join(sorted(seen)) if len(seen) <= _MOST_NAMES else f"{min(seen)} and {len(seen) - 1} more units"
    return Progress(
        f"{units}: {oldest.label.rpartition(': ')[2]}",
        sum(each.done for each in seen.values()),
        sum(each.total for each in seen.values()),
        oldest.stage,
        oldest.stages,
        sum(each.rows for each in seen.values()),
    )
