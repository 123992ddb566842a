"""What all runs of one command work with."""

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
    """Spark, which is starting; the progress; where to tell things; when the command began (`time.perf_counter`).

    ``told``: what is told of the first unit only, and has been.
    """

    spark: SparkBoot
    show: Callable[[Progress], None]
    messages: Messages
    started: float
    announced: set[str] = field(default_factory=set)


def owner() -> Owner:
    """Return how this process signs what it locks."""
    return Owner(os.getpid(), socket.gethostname(), now())


def now() -> str:
    """Return the time as ISO 8601."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
