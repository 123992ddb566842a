"""One result replaces what a table with a log holds in its place: read, compare, commit, again if another came first.

A log takes each version once, after the one that was read, so what was read is what is replaced. Commits of others to
other places in between are no conflict: the table is read again, and the commit goes on if its place is as it was.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from ..errors import OutputError, WincliError

_TRIES = 40
_FIRST, _LONGEST = 0.05, 2.0  # seconds, of a random part of which a try waits; doubled by each

T = TypeVar("T")


class TableLog(Protocol, Generic[T]):
    """What one result does with the log of its table, of which a ``T`` is what was read; any process can make it anew.

    ``shown``: the table, or its partition, as messages call it.
    ``token``: names the result; it is published at most once.
    ``held``: what the table held in its place when the run began, as `holds` returns it.
    """

    @property
    def shown(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def held(self) -> str: ...

    def read(self) -> T:
        """Read the newest version, or that there is no table."""

    def published(self, found: T) -> str | None:
        """Return the id of the result that was published last in this place; None where there is none."""

    def holds(self, found: T) -> str:
        """Return a text that is another one whenever this place has other files, or a fence was put."""

    def replace(self, found: T) -> bool:
        """Commit the result after the version that was read; return False where another commit came first.

        Raises `OutputError` where the table refuses, or where nobody knows what has become of it.
        """

    def fence(self, found: T) -> bool:
        """Commit, as `replace` does, no more than that this place is fenced; make a table that is not there."""


def publish(log: TableLog[T]) -> None:
    """Publish a result; do nothing where it is published.

    Raises `OutputError` where the place is not as it was when the run began, or the table refuses; then nothing has
    changed.
    """
    for _ in _tries(log.shown):
        found = log.read()
        if log.published(found) == log.token:
            return
        if log.holds(found) != log.held:
            what = f"another program has written to {log.shown} since this run began; nothing was written"
            raise OutputError(what, "run again")
        try:
            is_done = log.replace(found)
        except OutputError:
            with suppress(WincliError):  # it may have taken effect although its answer was lost
                if log.published(log.read()) == log.token:
                    return
            raise
        if is_done:
            return


def put_fence(log: TableLog[T]) -> None:
    """Make sure that a result which another run has prepared is never published; the rows of the table stay.

    A table that is not there is made without rows, for that run would make it. Raises as `publish` does.
    """
    for _ in _tries(log.shown):
        if log.fence(log.read()):
            return


def _tries(shown: str) -> Iterator[None]:
    for number in range(_TRIES):
        yield
        time.sleep(random.uniform(0, min(_LONGEST, _FIRST * 2**number)))
    raise OutputError(f"others write to {shown} all the time; nothing was written", "run again later")
