"""The context that all runs of one command share, and the identity of this process."""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...windowing.ports import Executor
from ...windowing.spark.boot import Progress
from ...writers.folders.lock import Owner
from ..console.messages import Messages
from .observer import RunObserver


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
        ...

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load or compile what tasks need by a call."""
        ...

    def close(self) -> None:
        """End it at once."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of all runs of one command.

    ``spark``: Spark, which may still be starting.
    ``show``: shows the progress of tasks.
    ``messages``: the writer to stderr.
    ``started``: `time.perf_counter` when the command began.
    ``observers``: look on at its runs.
    ``announced``: by their names, the messages that are written once a command, for the first unit, and have been.
    """

    spark: Boot
    show: Callable[[Progress], None]
    messages: Messages
    started: float
    observers: tuple[RunObserver, ...] = ()
    announced: dict[str, object] = field(default_factory=dict)

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
