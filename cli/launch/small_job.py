"""Stands where a run has its Spark until that is needed: small jobs end before Java would have started.

Tasks run in this process while each stage is one task. Before a stage of more, the engine asks for folders that these
share: then Spark starts, and all that comes after runs there. A result does not depend on where its tasks run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ...conf.spark import usable_cores
from ...windowing.spark.boot import PendingExecutor, Progress, SparkBoot

if TYPE_CHECKING:
    from ...windowing.ports import Executor

T = TypeVar("T")
R = TypeVar("R")

Show = Callable[[Progress], None]


class SmallJobBoot:
    """A `Boot` of a job that may not need Spark.

    ``boot``: starts Spark and returns at once.
    """

    def __init__(self, boot: Callable[[], SparkBoot]) -> None:
        self._boot = boot
        self._spark: SparkBoot | None = None
        self._session: SmallJobSession | None = None

    def __enter__(self) -> SmallJobBoot:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._spark is not None:
            self._spark.__exit__(*error)

    def start_fork_server(self) -> None:
        """Fork nothing: workers of a Spark that starts late import what they need."""

    def connect(self) -> None:
        """Wait for nothing."""

    def session(self) -> SmallJobSession:
        """Return the session, which is there at once."""
        if self._session is None:
            from ...windowing.local_executor import LocalExecutor  # noqa: PLC0415 - loads pyarrow

            self._session = SmallJobSession(LocalExecutor(), self._start)
        return self._session

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load nothing: the first task loads what it needs."""

    def close(self) -> None:
        """End Spark at once, if it was started."""
        if self._spark is not None:
            self._spark.close()

    def _start(self) -> SparkBoot:
        self._spark = self._spark or self._boot()
        return self._spark


class SmallJobSession(PendingExecutor):
    """A `Session` in this process until tasks have to share something, and in Spark from then on.

    ``local``: runs tasks in this process.
    ``start``: starts Spark.
    """

    is_open = False

    def __init__(self, local: Executor, start: Callable[[], SparkBoot]) -> None:
        super().__init__(self._in_spark)
        self._local, self._start = local, start
        self._spark: Any = None
        self._show: Show | None = None

    @property
    def on_progress(self) -> Show | None:
        """What is called while tasks run in Spark."""
        return self._show

    @on_progress.setter
    def on_progress(self, show: Show | None) -> None:
        self._show = show
        if self._spark is not None:
            self._spark.on_progress = show

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at a time: the cores of this machine, as with the default master."""
        return usable_cores()

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items; return the results in the order of the items."""
        found: list[R] = (self._spark or self._local).map(label, function, items)
        return found

    def _in_spark(self) -> Any:
        if self._spark is None:
            self._spark = self._start().session()
            self._spark.on_progress = self._show
        return self._spark
