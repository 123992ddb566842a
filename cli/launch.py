"""``wincli run``: parse the options, start Java, and import the heavy modules while Java starts."""

from __future__ import annotations

import errno
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..conf.job import PIPE, Job, is_table, secrets_of
from ..conf.options import DEFAULT_MASTER
from ..conf.ranges import units
from ..conf.spark import spark_settings, usable_cores
from ..windowing.spark.boot import PendingExecutor, Progress, SparkBoot, boot
from ..windowing.spark.fork_server import NO_PANDAS, ForkServer, block_pandas, may_fork, prepare, start_caller
from ..windowing.spark.setup import is_local, sweeping, too_few_files
from ..windowing.support.address import Address
from ..windowing.support.jit import refusals
from ..windowing.support.modules import search, with_working_folder
from .arguments import strange_variables
from .console.messages import CLOSED, Messages, Stopped, exit_code
from .monitoring.monitors import Monitors
from .run.request import alias_notes, parse_job
from .run.standard_streams import Pipes, piped

if TYPE_CHECKING:
    from ..windowing.ports import Executor
    from .run.context import RunContext
    from .run.run_modes import Confirm


# A quick look at how much a job may read, before anything heavy is imported.


MOST_BYTES = 16 << 20
"""Bytes of the files that a run may read, and a unit of a range on average: a task reads more than that at a time."""
_MOST_FILES = 20_000  # and folders
"""Listing more takes longer than Spark takes to start."""
_SIGNS = "*?[{"


def is_small(job: Job, is_stdin_small: Callable[[], bool] = lambda: False) -> bool:
    """Whether a job reads a few MiB of local files or stdin, calls no code of the user, and says nothing about Spark.

    ``is_stdin_small``: waits for as much of stdin, and is called last, and only where the job reads it.
    """
    asks_spark = job.master != DEFAULT_MASTER or job.spark_conf or job.ship_environment or needs_threads(job)
    if asks_spark or job.runs_user_code or job.enrich:
        return False
    if PIPE in job.input:
        return is_stdin_small()
    if not all(Address.of(path).is_path for path in job.inputs):
        return False
    if job.limit is not None:  # if so many rows turn out to be large, Spark starts then
        return True
    runs = 1 if job.start is None or job.end is None else len(units(job.start, job.end, job.unit))
    files, most = 0, MOST_BYTES * runs
    for path in job.inputs:
        # The folder of a path before its first wildcard or placeholder; a path without them unchanged.
        parts = Path(path).parts
        first = next((at for at, part in enumerate(parts) if any(sign in part for sign in _SIGNS)), len(parts))
        for size in _sizes(Path(*parts[:first])):
            files, most = files + 1, most - size
            if most < 0 or files > _MOST_FILES:
                return False
    return True


def needs_threads(job: Job) -> bool:
    """Whether units at the same time share who looks on or a table, or the system does not fork processes."""
    is_shared = job.metrics_file is not None or job.lineage is not None or any(map(is_table, job.outputs))
    return job.jobs != 1 and job.state is None and (is_shared or not may_fork({}))


def _sizes(path: Path) -> Iterator[int]:
    """Yield the bytes of all files at and below a path, and 0 for each folder: links may lead round and round in them.

    Of what cannot be read it yields nothing: the reader will tell.
    """
    try:
        if not path.is_dir():
            yield path.stat().st_size
            return
        yield 0
        with os.scandir(path) as entries:
            for entry in entries:
                yield from _sizes(Path(entry.path)) if entry.is_dir() else (entry.stat().st_size,)
    except OSError:
        return


# Stands where a run has its Spark until that is needed: small jobs end before Java would have started.
#
# Tasks run in this process while each stage is one task. Before a stage of more, the engine asks for folders that
# these share: then Spark starts, and all that comes after runs there. A result does not depend on where its tasks
# run.


T = TypeVar("T")
R = TypeVar("R")

Show = Callable[[Progress], None]


class SmallJobBoot:
    """A `Boot` of a job that may not need Spark.

    ``boot``: starts Spark and returns at once.
    ``forks``: how many processes it forks for units of a range.
    ``callers``: these.
    """

    def __init__(self, boot: Callable[[], SparkBoot], forks: int = 0) -> None:
        self._boot, self._forks = boot, forks
        self.callers: list[ForkServer] = []
        self._spark: SparkBoot | None = None
        self._session: SmallJobSession | None = None

    def __enter__(self) -> SmallJobBoot:
        return self

    def __exit__(self, *error: Any) -> None:
        for caller in self.callers:
            caller.end()
        if self._spark is not None:
            self._spark.__exit__(*error)

    def start_fork_server(self) -> None:
        """Load what tasks need, and fork this process for units at the same time.

        Workers of a Spark that starts late load it, too.
        """
        from ..windowing.support import compiler  # noqa: F401, PLC0415 - numba, before modules are frozen

        self.callers = [start_caller() for _ in range(self._forks)]

    def connect(self) -> None:
        """Wait for nothing."""

    def session(self) -> SmallJobSession:
        if self._session is None:
            from ..windowing.local_executor import LocalExecutor  # noqa: PLC0415 - loads pyarrow

            self._session = SmallJobSession(LocalExecutor(), self._start)
        return self._session

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load nothing: the first task loads what it needs."""

    def close(self) -> None:
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
        found: list[R] = (self._spark or self._local).map(label, function, items)
        return found

    def _in_spark(self) -> Any:
        if self._spark is None:
            self._spark = self._start().session()
            self._spark.on_progress = self._show
        return self._spark


def run_command(options: Mapping[str, Any], level: int, confirm: Confirm) -> int:
    """Run the job that the options describe, and return the exit code.

    ``confirm``: confirms the effect of a job with ``confirm_effect``.
    Raises a `WincliError` for what is wrong with the options. Later errors are written here, in the form that the job
    sets (``--log-format``), and give the exit code.
    """
    started = time.perf_counter()
    job = parse_job(options)
    messages = Messages(level, job.log_format == "json", secrets=secrets_of(job, os.environ))
    for note in (*strange_variables(os.environ), *alias_notes(job)):
        messages.note(note)
    monitors = Monitors(job, messages, started)
    try:
        monitors.open()
        with piped(job) as pipes:
            finish = _run(job, messages, pipes, monitors, confirm)
            is_read = pipes.write()
        code = finish() if is_read else CLOSED
    except (Stopped, Exception) as error:  # caught here because these messages know the secrets of the job
        reported = too_few_files() if isinstance(error, OSError) and error.errno == errno.EMFILE else error
        messages.error(reported)
        monitors.end(exit_code(reported), reported)
        return exit_code(reported)
    monitors.end(code)
    return code


def _run(job: Job, messages: Messages, pipes: Pipes, monitors: Monitors, confirm: Confirm) -> Callable[[], int]:
    def load() -> Callable[[RunContext], Callable[[], int]]:
        from .run.run_modes import run_request  # noqa: PLC0415

        return lambda context: run_request(
            pipes.filled(job, messages.note), replace(context, observers=monitors.observers()), confirm
        )

    is_stdin_small = partial(pipes.is_all_within, MOST_BYTES, job, messages.note)
    return run_on_spark(job, messages, monitors.started, load, is_stdin_small)


def run_on_spark(
    job: Job,
    messages: Messages,
    started: float,
    load: Callable[[], Callable[[RunContext], T]],
    is_stdin_small: Callable[[], bool] = lambda: False,
) -> T:
    """Start Spark for a job that is not small, and call what ``load`` returns with the context of a run.

    Returns the value of that call. A small job gets a Spark only when it comes to need one (`SmallJobBoot`).

    ``started``: `time.perf_counter` when the command began. ``load``: imports what is needed, while Java starts.
    ``is_stdin_small``: as `is_small` asks it.
    """
    start = partial(_boot, job, messages)
    swept = sweeping(job.master, job.spark_conf, os.environ)
    with swept, SmallJobBoot(start, _forks_of(job)) if is_small(job, is_stdin_small) else start() as spark:
        # The imports below load pyarrow and numba, which takes as long as Java takes to start.
        gc.disable()  # imported modules stay, and to look for garbage among them takes 0.1 s
        if not job.runs_user_code:
            block_pandas()
        from .console.progress import show_progress  # noqa: PLC0415
        from .run.context import RunContext  # noqa: PLC0415

        run = load()
        if job.runs_user_code:
            search(Path.cwd())
        if _forks(job):
            spark.start_fork_server()
        gc.freeze()
        gc.enable()
        spark.connect()
        with show_progress(job.progress, messages) as show:
            callers = spark.callers if isinstance(spark, SmallJobBoot) else ()
            outcome = run(RunContext(spark, show, messages, started, callers=callers))
        for note in refusals():
            messages.note(note)
        return outcome


def _forks_of(job: Job) -> int:
    """Return how many processes units need beside this one, which on a state runs units itself."""
    return 0 if job.jobs == 1 else job.jobs - (job.state is not None)


def _forks(job: Job) -> bool:
    return is_local(job.master) and may_fork(job.spark_conf) and not job.runs_user_code


def _boot(job: Job, messages: Messages) -> SparkBoot:
    verbose = messages.level >= 2
    settings = spark_settings(job.master, job.spark_conf, verbose)
    environ = with_working_folder(os.environ) if job.runs_user_code else {**os.environ, NO_PANDAS: "1"}
    if _forks(job):
        prepare(settings)
    java = messages.java if verbose else None

    def pack(folder: Path) -> Path:
        from ..windowing.spark.environment_archive import pack_environment  # noqa: PLC0415 - 20 ms

        return pack_environment(folder, environ, job.runs_user_code, messages.note)

    spark = boot(job.master, job.spark_conf, settings, java, environ, pack if job.ship_environment else None)
    for note in spark.notes:
        messages.note(note)
    return spark
