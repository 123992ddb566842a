"""An `Executor` in this process: tasks run one after the other, without Spark.

It runs the very engine wherever a Spark would cost more than the work: in small jobs, in tests, inside a task of Spark.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from .ports import Broadcast

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class LocalBroadcast:
    """A broadcast within one process: the value itself."""

    value: Any


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs tasks in this process, each item in a task of its own.

    ``parallelism``: the number of tasks that the engine shall reckon with; one runs at a time.
    ``is_one_machine``: whether tasks share folders, as on one machine, or not, as on a cluster.
    ``pickles``: whether functions, items, exchanged values and results go through pickle, as on Spark. Then what does
        not pickle fails, and what a task changes in its own copies is lost.
    ``lost``: numbers of the tasks of each call whose first attempt is lost when it is complete: they run again.
    ``seed``: of the random order in which exchanged values arrive; None: as they were sent.
    """

    parallelism: int = 1
    is_one_machine: bool = True
    pickles: bool = False
    lost: frozenset[int] = frozenset()
    seed: int | None = None

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:  # noqa: ARG002
        """Run a function over items; return the results in the order of the items."""
        sent = self._sent(function)
        return [self._attempt(i, sent, item) for i, item in enumerate(items)]

    def shuffle(
        self,
        label: str,  # noqa: ARG002
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Run ``send`` over each item, and ``receive`` over the pairs of each partition; return all results."""
        arrived: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        sender, receiver = self._sent(_Sender(send)), self._sent(receive)
        for i, item in enumerate(items):
            for partition, value in self._attempt(i, sender, item):
                arrived[partition].append((partition, value))
        results: list[R] = []
        for partition in range(partitions):
            pairs = arrived[partition]
            if self.seed is not None:
                random.Random(self.seed + partition).shuffle(pairs)
            results += self._attempt(partition, _receiving(receiver, partition), pairs)
        return results

    def broadcast(self, value: Any) -> Broadcast:
        return LocalBroadcast(self._copy(value))

    @contextlib.contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        """Create one folder and remove it at the end; none where tasks run as on several machines."""
        if not self.is_one_machine:
            yield ()
            return
        with tempfile.TemporaryDirectory() as folder:
            yield (folder,)

    def _attempt(self, number: int, sent: Callable[[], Callable[[T], R]], item: T) -> R:
        if number in self.lost:
            sent()(self._copy(item))
        return self._copy(sent()(self._copy(item)))

    def _sent(self, function: F) -> Callable[[], F]:
        """Return what gives the function as each task gets it; it is pickled once for all of them, as on Spark."""
        if not self.pickles:
            return lambda: function
        return partial(pickle.loads, pickle.dumps(function))

    def _copy(self, value: T) -> T:
        if not self.pickles:
            return value
        copy: T = pickle.loads(pickle.dumps(value))
        return copy


@dataclass(frozen=True, slots=True)
class _Sender:
    """The sending half of a shuffle as a function over one item.

    ``send``: a function over all items of a task.
    """

    send: Callable[[Iterator[Any]], Iterator[tuple[int, Any]]]

    def __call__(self, item: Any) -> list[tuple[int, Any]]:
        return list(self.send(iter([item])))


Receive: TypeAlias = Callable[[int, Iterator[tuple[int, Any]]], Iterator[Any]]


def _receiving(sent: Callable[[], Receive], partition: int) -> Callable[[], Callable[[list[Any]], list[Any]]]:
    return lambda: lambda pairs: list(sent()(partition, iter(pairs)))
