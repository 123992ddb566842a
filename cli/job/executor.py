"""The executor of a stage: Spark, waited for when a task is first needed, with the stage in the labels of its progress.

The engine reads samples on the driver while Java starts, so nothing may wait for Spark before the engine does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ...windowing.ports import Executor
from ...windowing.spark.boot import PendingExecutor, Progress
from .context import RunContext, Session


class StageExecutor(Executor, Protocol):
    """An `Executor` that can be given the name of what it runs."""

    def named(self, label: str, rows: int) -> StageExecutor:
        """Return the executor of a stage; ``label`` begins its progress, ``rows`` is how many rows its tasks read."""
        ...


class SparkStageExecutor(PendingExecutor):
    """A `StageExecutor` over the Spark of a command.

    ``context``: the context of the command.
    ``label``: the beginning of the labels of the progress.
    ``rows``: number of rows that all tasks read together; 0 while it is not known.
    """

    def __init__(self, context: RunContext, label: str = "", rows: int = 0) -> None:
        super().__init__(self._session)
        self._context, self._label, self._rows = context, label, rows

    def named(self, label: str, rows: int) -> SparkStageExecutor:
        """Return the executor of a stage of this run."""
        return SparkStageExecutor(self._context, self._label + label, rows)

    def _session(self) -> Session:
        """Wait for Spark; its progress is shown under the label from now on. Raises `SparkError`."""
        session = self._context.spark.session()
        _warn_if_open(session, self._context)
        session.on_progress = self._show
        return session

    def _show(self, seen: Progress) -> None:
        self._context.show(replace(seen, label=self._label + seen.label, rows=self._rows))


def _warn_if_open(session: Session, context: RunContext) -> None:
    """Write a note, once, if anyone who reaches the ports of this driver could send it messages."""
    if session.is_open and context.is_first("open"):
        context.messages.note(
            "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
        )
