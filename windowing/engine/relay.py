"""Tasks of one machine that take turns: each takes the next one, and is handed what the one before it hands on.

Turns are taken in order by tasks that run, in whatever order Spark starts them. So who waits never waits for a task
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
class Turn:
    """A turn that was taken. ``index``: which one, from 0."""

    index: int
    _folder: Path
    _own: IO[bytes]

    def received(self) -> bytes | None:
        """Wait for what the turn before hands on; None where it does not. Empty for the first."""
        if self.index == 0:
            return b""
        with _file(self._folder, self.index - 1).open("rb") as before:
            fcntl.flock(before, fcntl.LOCK_SH)
            return before.read() or None

    def hand_on(self, what: bytes) -> None:
        """Hand something that is not empty on to the turn that follows."""
        self._own.write(what)
        self._own.close()


@contextlib.contextmanager
def next_turn(folder: str) -> Iterator[Turn | None]:
    """Take the next turn of those that go by a folder; None where one of them was given up.

    Leaving this context by an exception, or without having handed anything on, gives up all turns that follow.
    """
    given_up = Path(folder, "given-up")
    if given_up.exists():
        yield None
        return
    turn = _taken(Path(folder))
    try:
        yield turn
    except BaseException:
        given_up.touch()
        raise
    finally:
        if not turn._own.closed:
            given_up.touch()
            turn._own.close()


def _taken(folder: Path) -> Turn:
    """Its file is there and locked before the next turn can be taken."""
    with (folder / "turns").open("ab") as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        index = turns.seek(0, 2)
        own = _file(folder, index).open("wb")
        fcntl.flock(own, fcntl.LOCK_EX)
        turns.write(b".")
    return Turn(index, folder, own)


def _file(folder: Path, index: int) -> Path:
    return folder / str(index)
