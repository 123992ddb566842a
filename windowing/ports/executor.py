"""The port of what runs tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """What runs tasks: Spark (`windowing.spark.session`) or this process (`windowing.local_executor`).

    Functions and items are pickled and sent to tasks. A `WincliError` that a task raises is raised on the driver with
    its type and message.
    """

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""
        ...

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks; return its results in the order of the items."""
        ...

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Run ``send`` over the items, exchange its pairs ``(partition, value)``, run ``receive`` over each partition.

        Partitions are ``[0, partitions)``; pairs come in no particular order. Returns all results, by partition.
        """
        ...

    def broadcast(self, value: Any) -> Broadcast:
        """Send a value to all tasks once."""
        ...

    def shared_folders(self) -> AbstractContextManager[tuple[str, ...]]:
        """Create folders that all tasks see and remove them at the end; none where tasks run on several machines."""
        ...


class Broadcast(Protocol):
    """A value that tasks share, such as a Spark broadcast variable."""

    @property
    def value(self) -> Any:
        """The value itself."""
        ...
