"""Units of a range that need nothing of each other, run by several processes: this one, and forks of it.

Each process runs whole units, and commits them. A fork that finds a unit to be more than one task leaves it to this
process, which may start Spark for it. What a fork writes to stderr is written when its unit is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ...writers.state.unit_record import UnitRecord
from ..console.messages import Messages
from .adoption import scratch_folder
from .context import LocalBoot, LocalSession, RunContext, local_context
from .parallel_units import RunUnit
from .speculation import leave, taken_up
from .steps import UnitStep

RunAlone = Callable[[RunContext, UnitStep], Iterable[UnitRecord]]
"""Runs and commits a unit in a context; yields its record. It pickles."""


@dataclass(frozen=True, slots=True)
class _HeldMessages(Messages):
    """Messages that are written later, by whoever reads ``held``: kind, text and fields of each."""

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
    said: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    error: Exception | None = None
    is_left: bool = False


def run_apart(folder: str, run: RunAlone, step: UnitStep, announced: Sequence[str]) -> None:
    """Run a unit in this process, and leave what has become of it in ``folder``.

    ``announced``: the messages of a command that have been written.
    """
    messages = _HeldMessages()
    context = replace(local_context(messages), spark=_OneTaskBoot(), announced=dict.fromkeys(announced))
    try:
        done = _Done(tuple(run(context, step)), tuple(messages.held))
    except _MoreThanOneTaskError:
        done = _Done(is_left=True)
    except Exception as error:
        done = _Done(said=tuple(messages.held), error=error)
    try:
        leave(_path(folder, step), done)
    except Exception:  # an error that does not pickle: the other runs into it, too
        leave(_path(folder, step), _Done(is_left=True))


def _path(folder: str, step: UnitStep) -> Path:
    return Path(folder, f"{step.unit.ordinal}.done")


@dataclass(slots=True)
class ApartUnits:
    """Runs units in several processes, as `UnitRunner` does in threads. Used as a context, it waits for all of them.

    ``run_alone``: runs a unit.
    ``context``: the context of the command, with its processes.
    ``folder``: where they leave what has become of their units.
    ``run_unit``: tells of a unit by `tell`, or runs it; returns its record.
    """

    run_alone: RunAlone
    context: RunContext
    folder: str
    run_unit: RunUnit | None = None
    _at: dict[int, UnitStep] = field(default_factory=dict)  # by the number of the process
    _given: list[UnitStep] = field(default_factory=list)  # ascending; not told of yet
    _done: dict[int, _Done] = field(default_factory=dict)
    _errors: dict[int, BaseException] = field(default_factory=dict)
    _begun: int = 0

    def together(self, run_unit: RunUnit) -> ApartUnits:
        """Return what runs the units of a range. ``run_unit``: as in `UnitRunner`."""
        self.run_unit = run_unit
        return self

    def tell(self, step: UnitStep) -> Iterator[UnitRecord]:
        """Yield the records of a unit that a process has run; run it here where it was left to this one."""
        done = self._done.pop(step.unit.ordinal)
        if done.is_left:
            yield from self.run_alone(self.context, step)
            return
        for kind, text, fields in done.said:
            getattr(self.context.messages, kind)(text, **fields)
        if done.error is not None:
            raise done.error
        yield from done.records

    def run(self, step: UnitStep) -> None:
        """Start a unit once a process has nothing to do. Raises what the oldest unit that failed has raised."""
        while not self._errors and len(self._at) == len(self.context.callers):
            self._collect()
        if self._errors:
            self._wait()
            self._raise()
        number = next(each for each in range(len(self.context.callers)) if each not in self._at)
        self._at[number] = step
        self._given.append(step)
        announced = ("choices",) if self._begun else ()
        self._begun += 1
        self.context.callers[number].do(run_apart, self.folder, self.run_alone, step, announced)

    def __enter__(self) -> ApartUnits:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all units that run; end them first where a signal has come. Raises what the oldest raised."""
        try:
            if error is not None and not isinstance(error, Exception):
                self._stop()
            self._wait()
        except BaseException:  # a signal while they end well
            self._stop()
            self._wait()
            raise
        if error is None:
            self._raise()

    def _stop(self) -> None:
        for caller in self.context.callers:
            caller.end()

    def _wait(self) -> None:
        while self._given:
            self._collect()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[min(self._errors)]

    def _collect(self) -> None:
        """Take up what has become of units, and tell of those that no older one is waited for."""
        for number, step in [*self._at.items()]:
            is_gone = not self.context.callers[number].is_alive()
            done = taken_up(_path(self.folder, step))
            if done is None and is_gone:
                done = _Done(is_left=not self._errors)
            if done is not None:
                self._done[step.unit.ordinal] = done
                del self._at[number]
        if not (self._given and self._given[0].unit.ordinal in self._done):
            time.sleep(_POLL)
        while self._given and self._given[0].unit.ordinal in self._done:
            step = self._given.pop(0)
            try:
                assert self.run_unit is not None
                self.run_unit(step)
            except Exception as failure:
                self._errors[step.unit.ordinal] = failure


_POLL = 0.003


@contextmanager
def apart(run_alone: RunAlone, context: RunContext) -> Iterator[ApartUnits]:
    """Yield what runs units in the processes of a command."""
    with scratch_folder() as folder:
        yield ApartUnits(run_alone, context, folder)
