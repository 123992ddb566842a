"""Turns of tasks on one machine: each task takes the next turn, and receives a message from the turn before.

Running tasks take turns in order, in whatever order Spark starts them. So no task waits for one that is still waiting
for a core. A task waits at the lock of a file, which the system releases even where the process that holds it dies.
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
    """A turn that a task has taken.

    ``index``: number of the turn, from 0.
    """

    index: int
    _folder: Path
    _handoff: IO[bytes]

    def receive(self) -> bytes | None:
        """Wait for the message of the turn before; None where it sends none. Empty for the first turn."""
        if self.index == 0:
            return b""
        with _file(self._folder, self.index - 1).open("rb") as before:
            fcntl.flock(before, fcntl.LOCK_SH)
            return before.read() or None

    def pass_on(self, message: bytes) -> None:
        """Send a message, which must not be empty, to the next turn."""
        self._handoff.write(message)
        self._handoff.close()

    def end(self) -> bool:
        """End the turn, so that the next one stops waiting; return whether a message was sent."""
        has_passed_on = self._handoff.closed
        self._handoff.close()
        return has_passed_on


@contextlib.contextmanager
def take_turn(folder: str) -> Iterator[RelayTurn | None]:
    """Take the next turn in a folder; None where an earlier turn gave up.

    A turn gives up for all that follow where this context ends with an exception, or without a message sent.
    """
    given_up = Path(folder, "given-up")
    turn = None if given_up.exists() else _next_turn(Path(folder))
    has_failed = True
    try:
        yield turn
        has_failed = False
    finally:
        if turn is not None and (not turn.end() or has_failed):
            given_up.touch()


def batch_sizes(turns: int, cores: int) -> list[int]:
    """Return how many turns each task takes, where ``cores`` tasks run at a time: at least 1 each.

    Each task takes its share of a quarter of what is left: many turns first, since starting a task takes time, then
    fewer, so that all tasks end at about the same time.
    """
    sizes: list[int] = []
    while turns:
        sizes.append(-(-turns // (4 * cores)))
        turns -= sizes[-1]
    return sizes


def _next_turn(folder: Path) -> RelayTurn:
    """Take the next turn. Its file exists and is locked before the turn after it can be taken."""
    with (folder / "turns").open("ab") as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        index = turns.seek(0, 2)
        own = _file(folder, index).open("wb")
        fcntl.flock(own, fcntl.LOCK_EX)
        turns.write(b".")
    return RelayTurn(index, folder, own)


def _file(folder: Path, index: int) -> Path:
    return folder / str(index)
