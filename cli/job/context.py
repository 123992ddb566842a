"""The context that all runs of one command share, and the identity of this process."""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from ...windowing.spark.boot import Progress, SparkBoot
from ...writers.folders.lock import Owner
from ..console.messages import Messages


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of all runs of one command.

    ``spark``: Spark, which may still be starting.
    ``show``: shows the progress of tasks.
    ``messages``: the writer to stderr.
    ``started``: `time.perf_counter` when the command began.
    ``announced``: names of the messages that are written once a command, for the first unit, and have been.
    """

    spark: SparkBoot
    show: Callable[[Progress], None]
    messages: Messages
    started: float
    announced: set[str] = field(default_factory=set)

    def is_first(self, message: str) -> bool:
        """Whether a message is to be written now; after that it counts as written."""
        is_new = message not in self.announced
        self.announced.add(message)
        return is_new


def owner() -> Owner:
    """Return the owner that this process writes into its locks."""
    return Owner(os.getpid(), socket.gethostname(), now())


def now() -> str:
    """Return the current time in UTC as ISO 8601, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
