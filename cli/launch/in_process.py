"""Stands where a run has its Spark: tasks run in this process, one after the other, and nothing has to start.

For runs over a few rows, as those of test cases: all that a run does is done, but for the start of Java.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...windowing.local_executor import LocalExecutor
from ...windowing.spark.boot import Progress
from ..console.messages import Messages
from ..job.context import RunContext


class LocalSession(LocalExecutor):
    """A `Session` in this process."""

    is_open = False
    on_progress: Callable[[Progress], None] | None = None
    __setattr__ = object.__setattr__  # whoever runs a stage sets `on_progress`, and a local executor is frozen


class LocalBoot:
    """A `Boot` with nothing to start, to load beforehand or to end."""

    def session(self) -> LocalSession:
        """Return the session, which is there at once."""
        return LocalSession()

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load nothing: the first task loads what it needs."""

    def close(self) -> None:
        """End nothing."""


def local_context(messages: Messages) -> RunContext:
    """Return the context of a run in this process, which shows no progress."""
    return RunContext(LocalBoot(), lambda _: None, messages, time.perf_counter())
