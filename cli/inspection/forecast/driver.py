"""What a plan needs in place of Spark: an executor and a place for tables that leave no trace."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from ....conf.spark import usable_cores
from ....windowing.local_executor import LocalExecutor
from ....windowing.spark.boot import Progress
from ....windowing.spark.masters import is_local
from ...console.progress import Show

_MANY = 8  # splits of text: reading so many takes seconds
_MOST_TASKS = 1 << 16
"""Tasks at a time of the largest cluster: a larger number is a mistake, and slices for it would fill the memory."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DriverExecutor:
    """An `Executor` that looks at samples in this process; it moves no rows, and makes no folder.

    ``parallelism``: how many tasks the run will have at a time.
    ``is_one_machine``: whether its tasks will share folders.
    ``is_known``: whether ``parallelism`` is known; only a cluster itself knows its own.
    ``show``: shows the progress of calls that take long; None: nobody looks.
    """

    parallelism: int
    is_one_machine: bool
    is_known: bool = True
    show: Show | None = None

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items here, one after the other."""
        found: list[R] = []
        lot = items if isinstance(items, Sequence) else list(items)
        for item in lot:
            if self.show is not None and len(lot) >= _MANY:
                self.show(Progress(label, len(found), len(lot), 1, 1))
            found.append(function(item))
        return found

    def shuffle(self, *_: Any) -> list[Any]:
        """Refuse: nothing that is planned moves rows."""
        raise AssertionError("a plan moves no rows")

    def broadcast(self, value: Any) -> Any:
        """Return what holds the value."""
        return LocalExecutor().broadcast(value)

    @contextlib.contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        """Give a name where tasks will share folders; there is no such folder."""
        yield ("not made",) if self.is_one_machine else ()


@dataclass(frozen=True, slots=True)
class MemoryTables:
    """The part of a `Sink` that enrich tables need, in memory."""

    kept: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        """Keep rows under a name."""
        self.kept[name] = rows

    def read_scratch(self, name: str) -> pa.RecordBatch:
        """Return the rows kept under a name."""
        return self.kept[name]


def driver_of(master: str, settings: Mapping[str, str]) -> DriverExecutor:
    """Return the executor that stands for a master with the user's settings."""
    tasks = _tasks_of(master, settings)
    if tasks is None or not 1 <= tasks <= _MOST_TASKS:
        return DriverExecutor(1, is_local(master), is_known=False)
    return DriverExecutor(tasks, is_local(master))


def _tasks_of(master: str, settings: Mapping[str, str]) -> int | None:
    """Return how many tasks a master has at a time; None where it does not say."""
    if found := re.fullmatch(r"0*([1-9]\d{0,8})", settings.get("spark.default.parallelism", "")):
        return int(found[1])
    found = re.fullmatch(r"local(?:\[\s*(\*|\d{1,9})\s*(?:,.*)?\])?", master)
    if found is None:
        return None
    return usable_cores() if found[1] == "*" else int(found[1] or 1)
