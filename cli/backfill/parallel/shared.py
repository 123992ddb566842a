"""What units that run at the same time share: one Spark, and one display of progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ....conf.ranges.units import Unit
from ....conf.table_outputs import is_table
from ....windowing.spark.boot import Progress
from ...console.progress import Show
from ...job.context import Boot, RunContext, Session
from ...request.fingerprint import R
from ...request.request import JobRequest
from ..unit_paths import UnitInput
from .runner import OneByOne, RunUnit, Together, UnitRunner

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
        """Wait until tasks can run."""
        with self._starting:
            return self.boot.session()

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load or compile what tasks need by a call."""
        with self._starting:
            self.boot.warm(warm, *arguments)

    def begin(self) -> None:
        """Count a unit that runs from now on."""
        with self._changed:
            self._running += 1

    def end(self) -> None:
        """Count a unit that has ended well."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def is_failing(self) -> bool:
        """Whether a unit has failed; then none shall begin."""
        return self._failed > 0

    def close(self) -> None:
        """End it for a unit that has failed, once all others have ended or failed."""
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
        """Show the progress of a unit, which its label begins with, together with that of the others."""
        with self._lock:
            self._seen[seen.label.partition(": ")[0]] = seen
            self.show(_together(self._seen))

    def end(self, unit: Unit) -> None:
        """Forget a unit that has ended."""
        with self._lock:
            self._seen.pop(unit.label, None)


@dataclass(frozen=True, slots=True)
class SharedContext:
    """The context of units of which up to ``jobs`` run at the same time.

    ``context``: that of each unit.
    ``jobs``: how many run at the same time.
    ``first_alone``: whether the first unit runs alone: a table of which all are parts is made by one commit.
    ``boot``: the Spark of all of them.
    ``progress``: shows the progress of all of them.
    """

    context: RunContext
    jobs: int
    first_alone: bool
    boot: SharedBoot
    progress: SharedProgress

    def runner(self, run_unit: RunUnit[R]) -> UnitRunner[R]:
        """Return what runs the units. ``run_unit``: runs one, in this context."""
        if self.jobs == 1:
            return OneByOne(run_unit)
        boot = self.boot
        return Together(
            partial(self._run, run_unit), self.jobs, self.first_alone, boot.begin, boot.is_failing, boot.stop
        )

    def _run(self, run_unit: RunUnit[R], unit: Unit, found: UnitInput, previous: str | None) -> R:
        try:
            return run_unit(unit, found, previous)
        finally:
            self.progress.end(unit)
            self.boot.end()


def shared_context(context: RunContext, request: JobRequest) -> SharedContext:
    """Return the context of the units of a range, of which as many run at the same time as its job says."""
    jobs, first_alone = request.job.jobs, any(map(is_table, request.outputs))
    boot, progress = SharedBoot(context.spark), SharedProgress(context.show)
    own = context if jobs == 1 else replace(context, spark=boot, show=progress)
    return SharedContext(own, jobs, first_alone, boot, progress)


def _together(seen: Mapping[str, Progress]) -> Progress:
    """Return the progress of several units as that of one, in the phase of the oldest."""
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
