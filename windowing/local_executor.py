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
from typing import Any, TypeVar

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
        return [self._attempt(i, sent, _called, item) for i, item in enumerate(items)]

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
        sender, receiver = self._sent(send), self._sent(receive)
        for i, item in enumerate(items):
            for partition, value in self._attempt(i, sender, _sent_by, item):
                arrived[partition].append((partition, value))
        results: list[R] = []
        for partition in range(partitions):
            pairs = arrived[partition]
            if self.seed is not None:
                random.Random(self.seed + partition).shuffle(pairs)
            results += self._attempt(partition, receiver, _received_by, (partition, pairs))
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

    def _attempt(self, number: int, sent: Callable[[], F], call: Callable[[F, T], R], item: T) -> R:
        if number in self.lost:
            call(sent(), self._copy(item))
        return self._copy(call(sent(), self._copy(item)))

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


def _called(function: Callable[[T], R], item: T) -> R:
    return function(item)


def _sent_by(send: Callable[..., Iterator[tuple[int, Any]]], item: Any) -> list[tuple[int, Any]]:
    return list(send(iter([item])))


def _received_by(receive: Callable[..., Iterator[R]], item: tuple[int, list[Any]]) -> list[R]:
    return list(receive(item[0], iter(item[1])))
