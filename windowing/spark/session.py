"""A running Spark: its actions are watched while they run, and a signal can cancel them."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import SparkError
from .java import Gateway
from .setup import AUTHENTICATE, Setup, remove
from .task_errors import SparkTraceError, guarded, to_wincli_error
from .temporary_folders import wait_for_children

if TYPE_CHECKING:
    from pyspark import SparkContext

    from ..ports import Broadcast, Executor


# The end of a Spark: shut down by us without leftovers, or dead by itself with a reason.


_PATIENCE = 2.0
_OUT_OF_MEMORY = (52, 3, -9)  # Spark's exit code for it, Java's, and the kernel's kill


def why_ended(gateway: Gateway, seconds: float) -> SparkError | None:
    """Return the error to raise if Java has ended or ends within ``seconds``, else None."""
    deadline = time.monotonic() + seconds
    while gateway.process.poll() is None:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    log = gateway.log
    if "OutOfMemoryError" in log or gateway.process.returncode in _OUT_OF_MEMORY:
        return SparkError(
            "Java was ended because memory ran out",
            "let fewer tasks run at once, each with more memory: --master 'local[1]'",
        )
    return SparkError(f"Java ended unexpectedly (exit code {gateway.process.returncode})", "see all with -vv")


def reset_pyspark() -> None:
    """Reset pyspark, so that it can start anew in this process."""
    from pyspark import SparkContext  # noqa: PLC0415

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


# Calls in threads of their own, so that the main thread stays free for signals.


T = TypeVar("T")


class Background(Generic[T]):
    """A call that runs in a thread of its own.

    ``error``: the exception that it raised, or None.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self.error: BaseException | None = None
        self._results: list[T] = []
        self._done = threading.Event()
        threading.Thread(target=self._work, args=(call,), daemon=True).start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._results.append(call())
        except BaseException as error:
            self.error = error
        finally:
            self._done.set()

    def finished(self, seconds: float | None) -> bool:
        """Wait at most ``seconds``, or forever if None; return whether the call is over."""
        # Not Thread.join: when a signal interrupts it, Python up to 3.12 takes the thread for ended.
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return the result of a call that is over and raised nothing."""
        return self._results[0]


R = TypeVar("R")
_POLL = 0.2
_PARTITIONS_PER_CORE = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an action.

    ``done``: number of tasks that are complete, over all stages.
    ``stage``: the stage that runs, from 1.
    ``rows``: number of rows that all tasks read together; 0 while it is not known.
    """

    label: str
    done: int
    total: int
    stage: int
    stages: int
    rows: int = 0


class SparkExecutor:
    """A running Spark.

    ``is_open``: whether it takes messages from everybody who reaches it.
    """

    def __init__(self, context: SparkContext, gateway: Gateway, setup: Setup) -> None:
        self.context = context
        self._cores: int = context.defaultParallelism
        self.is_open: bool = context.getConf().get(AUTHENTICATE, "false") != "true"
        self._watchers = threading.local()
        self._gateway = gateway
        self._setup = setup
        self._groups = itertools.count()
        self._closed = False

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """What is called from a thread that calls `run`, a few times a second while it waits; None: nothing.

        Each thread has its own: units of a range may run side by side.
        """
        return getattr(self._watchers, "show", None)

    @on_progress.setter
    def on_progress(self, show: Callable[[Progress], None] | None) -> None:
        self._watchers.show = show

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at a time: on a cluster, what the executors present now can run."""
        return self._cores if self._setup.local else self.run("cores", lambda: self.context.defaultParallelism)

    def __enter__(self) -> SparkExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, label: str, action: Callable[[], T]) -> T:
        """Run a Spark action; ``label`` names it in the progress.

        Raises the `WincliError` that a `guarded` task raised, else `SparkError`. An exception in this thread, such as
        a signal handler raises, cancels the tasks of the action and propagates.
        """
        group = f"wincli-{next(self._groups)}"

        def in_group() -> T:
            self.context.setJobGroup(group, label, interruptOnCancel=True)
            self.context.setLocalProperty("spark.rdd.scope.noOverride", "true")  # or Java writes its call sites as JSON
            return action()

        work = Background(in_group)
        try:
            query = None
            while not work.finished(_POLL):
                if self.on_progress is None:
                    continue
                if query is not None and query.finished(0):
                    if query.error is None and (seen := query.result()):
                        self.on_progress(seen)
                    query = None
                query = query or Background(lambda: self._progress(group, label))
        except BaseException:
            # Only other threads talk to Java: a signal in the middle of a call would make py4j print.
            Background(lambda: self.context.cancelJobGroup(group)).finished(_PATIENCE)
            work.finished(_PATIENCE)
            raise
        if (error := work.error) is not None:
            reason: BaseException = error
            if isinstance(error, Exception):
                reason = why_ended(self._gateway, 0.2) or to_wincli_error(error, self._setup.settings)
            raise reason from SparkTraceError(str(error))
        return work.result()

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        all_items = list(items)
        if not all_items:
            return []
        partitions = (
            min(len(all_items), _PARTITIONS_PER_CORE * self.parallelism) if self._setup.local else len(all_items)
        )
        work = guarded(partial(map, function))
        return self.run(label, lambda: self.context.parallelize(all_items, partitions).mapPartitions(work).collect())

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        def exchanged() -> list[R]:
            sent = self.context.parallelize(items, len(items)).mapPartitions(guarded(send))
            return sent.partitionBy(partitions, _identity).mapPartitionsWithIndex(guarded(receive)).collect()

        return self.run(label, exchanged)

    def broadcast(self, value: Any) -> Broadcast:
        return self.run("broadcast", lambda: self.context.broadcast(value))

    @contextlib.contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        with contextlib.ExitStack() as stack:
            made = (tempfile.TemporaryDirectory(dir=disk, ignore_cleanup_errors=True) for disk in self._setup.scratch)
            yield tuple(stack.enter_context(folder) for folder in made)

    def close(self) -> None:
        """End Spark and its workers, and remove its temporary files. Running tasks are stopped, not waited for.

        On local masters no worker runs any more when this returns, so the files that tasks were writing can be removed.
        """
        if self._closed:
            return
        if not self._setup.local:
            self.stop(_PATIENCE)
            return
        self._closed = True
        # An orderly stop takes a second more, and all results are on disk or in this process.
        server = self.context._accumulatorServer
        server.server_shutdown = True
        self._gateway.kill()
        threading.Thread(target=server.shutdown, daemon=True).start()
        wait_for_children(self._gateway.folder, _PATIENCE)
        reset_pyspark()
        remove(self._setup)

    def stop(self, patience: float) -> int:
        """Stop Spark in order, as `close` does only on a cluster, and wait for its Java; return Java's exit code.

        Java is killed where it does not end within ``patience`` seconds.
        """
        self._closed = True
        self.context.stop()
        process = self._gateway.process
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        self._gateway.kill()
        reset_pyspark()
        remove(self._setup)
        return process.returncode

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


class PendingExecutor:
    """An `Executor` over a Spark that may still be starting: each use waits until it is up, or raises why it is not."""

    def __init__(self, wait: Callable[[], Executor]) -> None:
        self._wait = wait

    @property
    def parallelism(self) -> int:
        return self._wait().parallelism

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return self._wait().map(label, function, items)

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        return self._wait().shuffle(label, send, receive, items, partitions)

    def broadcast(self, value: Any) -> Broadcast:
        return self._wait().broadcast(value)

    def shared_folders(self) -> AbstractContextManager[tuple[str, ...]]:
        return self._wait().shared_folders()


def _identity(index: int) -> int:
    return index
