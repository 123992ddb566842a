"""Units of a range that need nothing of each other, run at the same time: by processes, or in threads over one Spark.

`units_together` decides which. Processes are forks of this one: each runs whole units, and commits them. A fork that
finds a unit to be more than one task leaves it to this process, which may start Spark for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ...conf.job import Job, is_table
from ...windowing.spark.boot import Progress
from ...windowing.spark.fork_server import ForkServer
from ...windowing.spark.session import Background
from ...writers.state.unit_record import UnitRecord
from ..console.messages import Messages
from ..console.progress import Show
from .adoption import scratch_folder
from .context import Boot, LocalBoot, LocalSession, RunContext, Session, local_context
from .speculation import leave, taken_up
from .steps import UnitStep

# Runs the units of a range: one after the other, or several at the same time where none needs another.
#
# Both keep what is done when a unit fails, and start none after it. Units that run beside one that fails come to
# their end, and are kept if that is a good one.


_POLL = 0.1

RunUnit = Callable[[UnitStep], UnitRecord]
"""Runs and commits a unit, and those before it that its late rows belong to; returns the record of the unit."""


class Shared(Protocol):
    """What units share that run at the same time."""

    def begin(self, step: UnitStep) -> None:
        """See a unit begin; units begin in order."""

    def end(self, step: UnitStep) -> None:
        """See a unit end, well or not."""

    def is_failing(self) -> bool:
        """Whether a unit has failed; then none shall begin."""

    def stop(self) -> None:
        """End it at once: the units that still run fail."""


@dataclass(slots=True)
class UnitRunner:
    """Runs units in the order in which it is given them. Used as a context, it waits at the end for all of them.

    ``run_unit``: runs a unit.
    ``jobs``: how many run at the same time, each in a thread of its own; None: one after the other, in this thread.
    ``first_alone``: whether the first runs alone, since it makes what the others write to.
    ``shared``: what they share, if it is to know of them.
    """

    run_unit: RunUnit
    jobs: int | None = None
    first_alone: bool = False
    shared: Shared | None = None
    _running: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _errors: dict[int, BaseException] = field(default_factory=dict)

    def run(self, step: UnitStep) -> UnitRecord | None:
        """Run a unit and return its record; or start it, once fewer than ``jobs`` run, and return None.

        Raises what the unit raised, or the oldest unit that failed before.
        """
        if self.jobs is None:
            return self.run_unit(step)
        self._wait(self.jobs - 1)
        self._raise()
        if self.shared is not None:
            self.shared.begin(step)
        self._running += 1
        Background(partial(self._run, step))
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
        if self.shared is not None:
            self.shared.stop()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[min(self._errors)]

    def _run(self, step: UnitStep) -> None:
        try:
            try:
                self.run_unit(step)
            finally:
                if self.shared is not None:
                    self.shared.end(step)
        except BaseException as error:
            self._errors[step.unit.ordinal] = error
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify()

    def _wait(self, most: int) -> None:
        """Wait until at most ``most`` units run; until none does, once one has failed."""
        with self._changed:
            while self._running > (0 if self._errors or (self.shared and self.shared.is_failing()) else most):
                self._changed.wait(_POLL)


# Units in threads: they share one Spark, and one display of progress.


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

    def begin(self, step: UnitStep) -> None:  # noqa: ARG002 - they are counted
        with self._changed:
            self._running += 1

    def end(self, step: UnitStep) -> None:  # noqa: ARG002
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def is_failing(self) -> bool:
        return self._failed > 0

    def close(self) -> None:
        with self._changed:
            self._failed += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_closed or self._failed == self._running)
            self._close()

    def stop(self) -> None:
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


# Units in processes.


RunAlone = Callable[[RunContext, UnitStep], Iterable[UnitRecord]]
"""Runs and commits a unit in a context; yields its record. It pickles."""

_Said = tuple[tuple[str, str, dict[str, Any]], ...]
"""Messages: kind, text and fields of each."""


@dataclass(frozen=True, slots=True)
class _HeldMessages(Messages):
    """Messages that are written later, by whoever reads ``held``."""

    held: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def note(self, text: str, **fields: Any) -> None:
        self.held.append(("note", text, fields))

    def detail(self, text: str, **fields: Any) -> None:
        self.held.append(("detail", text, fields))


class _MoreThanOneTaskError(Exception):
    """A unit is more than one task."""


class _OneTask(LocalSession):
    @contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        raise _MoreThanOneTaskError
        yield ()


class _OneTaskBoot(LocalBoot):
    def session(self) -> LocalSession:
        return _OneTask()


@dataclass(frozen=True, slots=True)
class _Done:
    """What has become of a unit: its records and what it said, or an error; ``is_left``: it was left to the other."""

    records: tuple[UnitRecord, ...] = ()
    said: _Said = ()
    error: Exception | None = None
    is_left: bool = False


def _run_held(run: RunAlone, context: RunContext, step: UnitStep, is_first: bool) -> _Done:
    """Run a unit, and hold what it says; ``is_first``: whether it says what is said once a command."""
    messages = _HeldMessages()
    context = replace(context, messages=messages, announced={} if is_first else {"choices": True})
    try:
        return _Done(tuple(run(context, step)), tuple(messages.held))
    except _MoreThanOneTaskError:
        return _Done(is_left=True)
    except Exception as error:
        return _Done(said=tuple(messages.held), error=error)


def run_apart(path: Path, run: RunAlone, step: UnitStep, is_first: bool) -> None:
    """Run a unit in this process, and leave at ``path`` what has become of it. ``is_first``: as in `_run_held`."""
    context = replace(local_context(Messages()), spark=_OneTaskBoot())
    done = _run_held(run, context, step, is_first)
    try:
        leave(path, done)
    except Exception:  # an error that does not pickle: the other runs into it, too
        leave(path, _Done(is_left=True))


@dataclass(slots=True)
class Forks:
    """Has each process of a command run one unit at a time. What units say is written in the order of the units.

    ``run_alone``: runs a unit.
    ``context``: the context of the command, with its processes.
    ``folder``: where these leave what has become of their units.
    """

    run_alone: RunAlone
    context: RunContext
    folder: str
    _free: deque[ForkServer] = field(default_factory=deque)
    _begun: deque[int] = field(default_factory=deque)  # ordinals of units that nothing was written of yet
    _said: dict[int, _Said] = field(default_factory=dict)
    _first: int | None = None
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _here: threading.Lock = field(default_factory=threading.Lock)
    _is_stopped: bool = False

    def __post_init__(self) -> None:
        self._free.extend(self.context.callers)

    def run(self, step: UnitStep) -> Iterator[UnitRecord]:
        """Yield the records of a unit that a process has run; run it here where it was left to this one."""
        is_first = step.unit.ordinal == self._first
        done = self._run_apart(step, is_first)
        if done.is_left:
            with self._here:
                done = _run_held(self.run_alone, self.context, step, is_first)
        self._said[step.unit.ordinal] = done.said
        if done.error is not None:
            raise done.error
        yield from done.records

    def _run_apart(self, step: UnitStep, is_first: bool) -> _Done:
        path, caller = Path(self.folder, f"{step.unit.ordinal}.done"), self._free.popleft()
        caller.do(run_apart, path, self.run_alone, step, is_first)
        found: _Done | None = None
        is_alive = True
        while found is None and is_alive:
            is_alive = caller.is_alive()  # before the look: what it leaves as its last is found
            found = taken_up(path)
            time.sleep(_POLL_OF_FORK if found is None and is_alive else 0)
        self._free.append(caller)
        if found is None and self._is_stopped:
            raise InterruptedError(f"{step.label} was ended")
        return found or _Done(is_left=True)

    def begin(self, step: UnitStep) -> None:
        self._first = step.unit.ordinal if self._first is None else self._first
        self._begun.append(step.unit.ordinal)

    def end(self, step: UnitStep) -> None:
        with self._writing:
            self._said.setdefault(step.unit.ordinal, ())
            while self._begun and self._begun[0] in self._said:
                for kind, text, fields in self._said.pop(self._begun.popleft()):
                    getattr(self.context.messages, kind)(text, **fields)

    def is_failing(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        self._is_stopped = True
        for caller in self.context.callers:
            caller.end()
        self.context.spark.close()


_POLL_OF_FORK = 0.003


# Which of these run the units of a range.


@contextmanager
def units_together(
    job: Job, context: RunContext, run: RunAlone
) -> Iterator[tuple[Callable[[UnitStep], Iterable[UnitRecord]], Callable[[RunUnit], UnitRunner]]]:
    """Yield what runs one unit of a range, and what makes a runner of as many at a time as the job says.

    ``run``: runs a unit by itself. In threads the first runs alone where all are parts of one table, which is made by
    one commit.
    """
    if context.callers:
        with scratch_folder() as folder:
            forks = Forks(run, context, folder)
            yield forks.run, partial(UnitRunner, jobs=len(context.callers), shared=forks)
    elif job.jobs == 1:
        yield partial(run, context), UnitRunner
    else:
        boot, progress = SharedBoot(context.spark), SharedProgress(context.show)
        threads = partial(run, replace(context, spark=boot, show=progress))

        def run_in_thread(step: UnitStep) -> Iterator[UnitRecord]:
            try:
                yield from threads(step)
            finally:
                progress.end(step.label)

        first_alone = any(map(is_table, job.outputs))
        yield run_in_thread, partial(UnitRunner, jobs=job.jobs, first_alone=first_alone, shared=boot)


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
