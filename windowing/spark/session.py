"""A running Spark: actions, watched while they run, that a signal can stop."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..ports import Broadcast
from .background import Background
from .java import Gateway
from .masters import AUTHENTICATE
from .setup import Setup, remove
from .shutdown import kill, reset_pyspark, stop, why_ended
from .task_errors import SparkTraceError, guarded, to_wincli_error

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
R = TypeVar("R")
_POLL = 0.2
_PATIENCE = 2.0
_PIECES_PER_CORE = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an action is: ``done`` of ``total`` tasks over all its stages; ``stage`` of ``stages``, from 1.

    ``rows``: how many the tasks go through together; 0 where nobody has counted them yet.
    """

    label: str
    done: int
    total: int
    stage: int
    stages: int
    rows: int = 0


class SparkExecutor:
    """A running Spark.

    ``context``: pyspark's own. ``is_open``: whether it takes messages from whoever reaches it. ``on_progress``: called
    from the thread that calls `run`, a few times a second while it waits.
    """

    def __init__(self, context: SparkContext, gateway: Gateway, setup: Setup) -> None:
        self.context = context
        self._cores: int = context.defaultParallelism
        self.is_open: bool = context.getConf().get(AUTHENTICATE, "false") != "true"
        self.on_progress: Callable[[Progress], None] | None = None
        self._gateway = gateway
        self._setup = setup
        self._groups = itertools.count()
        self._closed = False

    @property
    def parallelism(self) -> int:
        """Tasks at a time: elsewhere, as many as executors that are there by now take."""
        return self._cores if self._setup.local else self.run("cores", lambda: self.context.defaultParallelism)

    def __enter__(self) -> SparkExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, label: str, action: Callable[[], T]) -> T:
        """Run a Spark action; ``label`` names it in the progress.

        Raises the `WincliError` that a `guarded` task raised, else `SparkError`. An exception in this thread, such as
        a signal handler raises, cancels the action's tasks and goes on.
        """
        group = f"wincli-{next(self._groups)}"
        work = Background(lambda: self._in_group(group, label, action))
        try:
            self._watch(group, label, work)
        except BaseException:
            # Java is only ever spoken to in other threads: a signal in the middle of that would make py4j print.
            Background(lambda: self.context.cancelJobGroup(group)).finished(_PATIENCE)
            work.finished(_PATIENCE)
            raise
        if work.error is not None:
            raise self._reason(work.error) from SparkTraceError(str(work.error))
        return work.result()

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks; the results in order."""
        given = list(items)
        if not given:
            return []
        pieces = min(len(given), _PIECES_PER_CORE * self.parallelism) if self._setup.local else len(given)
        work = guarded(_Each(function))
        return self.run(label, lambda: self.context.parallelize(given, pieces).mapPartitions(work).collect())

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Run ``send`` over each item; bring what it yields to its partition, and run ``receive`` over each of these.

        ``send`` yields pairs of a partition's number, ``[0, partitions)``, and what is for it; ``receive`` gets that
        number and its pairs, in no order. Returns what all of these yield, by partition.
        """

        def moved() -> list[R]:
            sent = self.context.parallelize(items, len(items)).mapPartitions(guarded(send))
            return sent.partitionBy(partitions, _identity).mapPartitionsWithIndex(guarded(receive)).collect()

        return self.run(label, moved)

    def broadcast(self, value: Any) -> Broadcast:
        """Give a value to all tasks. Raises as `run` does."""
        return self.run("broadcast", lambda: self.context.broadcast(value))

    @contextlib.contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        """Make folders that all tasks see, one on each disk that Spark may use; remove them. None on a cluster."""
        with contextlib.ExitStack() as stack:
            made = (tempfile.TemporaryDirectory(dir=disk, ignore_cleanup_errors=True) for disk in self._setup.scratch)
            yield tuple(stack.enter_context(folder) for folder in made)

    def close(self) -> None:
        """End Spark, its workers, and remove its temporary files. Tasks still running are stopped, not waited for.

        On local masters no worker runs any more when this returns, so what tasks were writing can be removed.
        """
        if self._closed:
            return
        self._closed = True
        if self._setup.local:
            kill(self.context, self._gateway)
        else:
            stop(self.context, self._gateway)
        reset_pyspark()
        remove(self._setup)

    def stop(self, patience: float) -> int:
        """End Spark in order, as `close` does only on a cluster, and wait for its Java; return Java's exit code.

        Java is killed where it does not end within ``patience`` seconds.
        """
        self._closed = True
        code = stop(self.context, self._gateway, patience)
        reset_pyspark()
        remove(self._setup)
        return code

    def _in_group(self, group: str, label: str, action: Callable[[], T]) -> T:
        self.context.setJobGroup(group, label, interruptOnCancel=True)
        self.context.setLocalProperty("spark.rdd.scope.noOverride", "true")  # or Java writes its call sites as JSON
        return action()

    def _watch(self, group: str, label: str, work: Background[T]) -> None:
        look = None
        while not work.finished(_POLL):
            if self.on_progress is None:
                continue
            if look is not None and look.finished(0):
                if look.error is None and (seen := look.result()):
                    self.on_progress(seen)
                look = None
            look = look or Background(lambda: self._progress(group, label))

    def _progress(self, group: str, label: str) -> Progress | None:
        tracker = self.context.statusTracker()
        jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if job is not None]
        stages = sorted({stage for job in jobs for stage in job.stageIds})
        seen = [info for info in map(tracker.getStageInfo, stages) if info is not None]
        if not seen:
            return None
        done, total = sum(info.numCompletedTasks for info in seen), sum(info.numTasks for info in seen)
        complete = sum(info.numCompletedTasks == info.numTasks for info in seen)
        return Progress(label, done, total, min(complete + 1, len(seen)), len(seen))

    def _reason(self, error: BaseException) -> BaseException:
        if not isinstance(error, Exception):
            return error
        return why_ended(self._gateway, 0.2) or to_wincli_error(error, self._setup.settings)


def _identity(index: int) -> int:
    return index


class _Each(Generic[T, R]):
    """A function over an item as a function over a partition. Its pickle is the function's."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self.function = function

    def __call__(self, items: Iterable[T]) -> Iterator[R]:
        return map(self.function, items)
