"""The executor of a stage: Spark, waited for when a task is first needed, with the stage in the labels of its progress.

The engine reads samples on the driver while Java starts, so nothing may wait for Spark before the engine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from ...windowing.ports import Broadcast, Executor
from ...windowing.spark.boot import Progress, SparkExecutor
from .context import RunContext

T = TypeVar("T")
R = TypeVar("R")


class StageExecutor(Executor, Protocol):
    """An `Executor` that may not be up yet, and that can be given the name of what it runs."""

    def wait(self) -> Executor:
        """Wait until tasks can run; return the executor that runs them."""
        ...

    def named(self, label: str, rows: int) -> StageExecutor:
        """Return the executor of a stage; ``label`` begins its progress, ``rows`` is how many rows its tasks read."""
        ...


@dataclass(frozen=True, slots=True)
class SparkStageExecutor:
    """A `StageExecutor` over the Spark of a command.

    ``context``: the context of the command.
    ``label``: the beginning of the labels of the progress.
    ``rows``: number of rows that all tasks read together; 0 while it is not known.
    """

    context: RunContext
    label: str = ""
    rows: int = 0

    def named(self, label: str, rows: int) -> SparkStageExecutor:
        """Return the executor of a stage of this run."""
        return replace(self, label=self.label + label, rows=rows)

    def wait(self) -> SparkExecutor:
        """Wait for Spark; its progress is shown under the label from now on. Raises `SparkError`."""
        session = self.context.spark.session()
        _warn_if_open(session, self.context)
        session.on_progress = self._show
        return session

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""
        return self.wait().parallelism

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks, as `Executor.map` does."""
        return self.wait().map(label, function, items)

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Exchange values between tasks, as `Executor.shuffle` does."""
        return self.wait().shuffle(label, send, receive, items, partitions)

    def broadcast(self, value: Any) -> Broadcast:
        """Send a value to all tasks once."""
        return self.wait().broadcast(value)

    def shared_folders(self) -> AbstractContextManager[tuple[str, ...]]:
        """Create folders that all tasks see, as `Executor.shared_folders` does."""
        return self.wait().shared_folders()

    def _show(self, seen: Progress) -> None:
        self.context.show(replace(seen, label=self.label + seen.label, rows=self.rows))


def _warn_if_open(session: SparkExecutor, context: RunContext) -> None:
    """Write a note, once, if anyone who reaches the ports of this driver could send it messages."""
    if session.is_open and context.is_first("open"):
        context.messages.note(
            "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
        )
