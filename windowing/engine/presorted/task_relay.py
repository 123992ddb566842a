"""A relay of tasks on one machine: each takes the next leg, and is handed what the one before it hands on.

Legs are taken in order by tasks that run, in whatever order Spark starts them. So who waits never waits for a task
that waits for a core; and he waits at the lock of a file, which the system opens where a process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class RelayTurn:
    """A leg that was taken. ``index``: which one, from 0."""

    index: int
    _folder: Path
    _handoff: IO[bytes]

    def receive(self) -> bytes | None:
        """Wait for what the leg before hands on; None where it does not. Empty for the first."""
        if self.index == 0:
            return b""
        with _file(self._folder, self.index - 1).open("rb") as before:
            fcntl.flock(before, fcntl.LOCK_SH)
            return before.read() or None

    def pass_on(self, what: bytes) -> None:
        """Hand something that is not empty on to the leg that follows."""
        self._handoff.write(what)
        self._handoff.close()

    def end(self) -> bool:
        """Let who waits for this leg go on; return whether anything was handed on."""
        handed_on = self._handoff.closed
        self._handoff.close()
        return handed_on


@contextlib.contextmanager
def take_turn(folder: str) -> Iterator[RelayTurn | None]:
    """Take the next leg of the relay of a folder; None where it was given up.

    Leaving this context by an exception, or without having handed anything on, gives up the relay.
    """
    given_up = Path(folder, "given-up")
    leg = None if given_up.exists() else _next_turn(Path(folder))
    has_failed = True
    try:
        yield leg
        has_failed = False
    finally:
        if leg is not None and (not leg.end() or has_failed):
            given_up.touch()


def batch_sizes(legs: int, runners: int) -> list[int]:
    """Return how many legs each of some tasks takes, of which so many run at a time: at least 1, in order.

    Each takes its part of a quarter of what is left: many legs first, since to begin a task takes time, then fewer, so
    that all end at about the same time.
    """
    found: list[int] = []
    while legs:
        found.append(-(-legs // (4 * runners)))
        legs -= found[-1]
    return found


def _next_turn(folder: Path) -> RelayTurn:
    """Its file is there and locked before the next leg can be taken."""
    with (folder / "legs").open("ab") as legs:
        fcntl.flock(legs, fcntl.LOCK_EX)
        index = legs.seek(0, 2)
        own = _file(folder, index).open("wb")
        fcntl.flock(own, fcntl.LOCK_EX)
        legs.write(b".")
    return RelayTurn(index, folder, own)


def _file(folder: Path, index: int) -> Path:
    return folder / str(index)
