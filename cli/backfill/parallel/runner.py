"""Runs the units of a range: one after the other, or several at the same time where none needs another.

Both keep what is done when a unit fails, and start none after it. Units that run beside one that fails come to their
end, and are kept if that is a good one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Protocol

from ....conf.ranges.units import Unit
from ....windowing.spark.background import Background
from ...request.fingerprint import R
from ..unit_paths import UnitInput

_POLL = 0.1

RunUnit = Callable[[Unit, UnitInput, str | None], R]
"""Runs and commits a unit, and those before it that its late rows belong to; returns the record of the unit."""


class UnitRunner(Protocol[R]):
    """Runs units in the order in which it is given them. Used as a context, it waits at the end for all of them."""

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> R | None:
        """Run a unit; return its record, or None where it may still be running. Raises what a unit raised."""
        ...

    def __enter__(self) -> UnitRunner[R]: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class OneByOne(Generic[R]):
    """Runs one unit after the other, in this thread.

    ``run_unit``: runs a unit.
    """

    run_unit: RunUnit[R]

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> R | None:
        """Run a unit to its end."""
        return self.run_unit(unit, found, previous)

    def __enter__(self) -> OneByOne[R]:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for nothing."""


@dataclass(slots=True)
class Together(Generic[R]):
    """Runs up to ``jobs`` units at the same time, each in a thread of its own.

    ``run_unit``: runs a unit.
    ``jobs``: how many run at the same time.
    ``first_alone``: whether the first runs alone, since it makes what the others write to.
    ``begin``: is called before each unit starts.
    ``is_failing``: whether a unit has failed, though it may still wait for others.
    ``stop``: ends what the units run on, so that those which still run fail soon.
    """

    run_unit: RunUnit[R]
    jobs: int
    first_alone: bool
    begin: Callable[[], None]
    is_failing: Callable[[], bool]
    stop: Callable[[], None]
    _running: list[Background[R]] = field(default_factory=list)
    _errors: dict[int, BaseException] = field(default_factory=dict)

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> R | None:
        """Start a unit, once fewer than ``jobs`` run. Raises what the oldest unit that failed raised."""
        self._wait(self.jobs - 1)
        self._raise()
        self.begin()
        self._running.append(Background(lambda: self._run(unit, found, previous)))
        if self.first_alone:
            self.first_alone = False
            self._wait(0)
        return None

    def __enter__(self) -> Together[R]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all units that run; end them first where a signal has come. Raises what the oldest raised."""
        if error is not None and not isinstance(error, Exception):
            self.stop()
        try:
            self._wait(0)
        except BaseException:  # a signal while they end well
            self.stop()
            self._wait(0)
            raise
        if error is None:
            self._raise()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[min(self._errors)]

    def _run(self, unit: Unit, found: UnitInput, previous: str | None) -> R:
        try:
            return self.run_unit(unit, found, previous)
        except BaseException as error:
            self._errors[unit.ordinal] = error
            raise

    def _wait(self, most: int) -> None:
        """Wait until at most ``most`` units run; until none does, once one has failed."""
        while len(self._running) > (0 if self._errors or self.is_failing() else most):
            self._running[0].finished(_POLL)
            self._running = [each for each in self._running if not each.finished(0)]
