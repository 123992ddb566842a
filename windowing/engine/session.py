"""A Spark session: started beside the driver's own work, watched while it runs, ended without a trace.

``boot`` returns while Java is still starting; ``Boot.session`` waits for it. Actions run in a thread of their own, so
that the main thread is free for signals. On one machine nothing in Java or the workers outlives ``close``.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import logging
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from windowing.engine.daemon import LOCK
from windowing.engine.failures import Trace, explained, guarded
from windowing.engine.java import Gateway, find_java, launch, new_folder, spark_home
from windowing.engine.shipping import ship
from windowing.errors import SparkError

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["Boot", "Progress", "Session", "boot", "guarded", "start"]

T = TypeVar("T")
R = TypeVar("R")
_POLL = 0.2
_PATIENCE = 2.0
_PIECES_PER_CORE = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an action is: ``done`` of ``total`` tasks over all its stages; ``stage`` of ``stages``, from 1."""

    label: str
    done: int
    total: int
    stage: int
    stages: int


@dataclass(frozen=True, slots=True)
class Setup:
    """How Spark is to run: its ``master``, all ``settings``, and the folders that are removed in the end."""

    master: str
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path
    scratch: tuple[Path, ...]

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine under this driver's Java."""
        return _is_local(self.master)


class Session:
    """A running Spark.

    ``context``: pyspark's own. ``parallelism``: tasks at a time. ``on_progress``: called from the thread that calls
    `run`, a few times a second while it waits.
    """

    def __init__(self, context: SparkContext, gateway: Gateway, setup: Setup) -> None:
        self.context = context
        self.parallelism: int = context.defaultParallelism
        self.on_progress: Callable[[Progress], None] | None = None
        self._gateway = gateway
        self._setup = setup
        self._groups = itertools.count()
        self._closed = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, label: str, action: Callable[[], T]) -> T:
        """Run a Spark action; ``label`` names it in the progress.

        Raises the `WincliError` that a `guarded` task raised, else `SparkError`. An exception in this thread, such as
        a signal handler raises, cancels the action's tasks and goes on.
        """
        group = f"wincli-{next(self._groups)}"
        work = _Background(lambda: self._in_group(group, label, action))
        try:
            while not work.finished(_POLL):
                if self.on_progress is not None and (seen := self._progress(group, label)):
                    self.on_progress(seen)
        except BaseException:
            self._cancel(group)
            work.finished(_PATIENCE)
            raise
        if work.error is not None:
            raise self._reason(work.error) from Trace(str(work.error))
        return work.result()

    def each(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks; the results in order."""
        given = list(items)
        if not given:
            return []
        pieces = min(len(given), _PIECES_PER_CORE * self.parallelism)
        tasks = self.context.parallelize(given, pieces).mapPartitions(guarded(_Each(function)))
        return self.run(label, tasks.collect)

    def close(self) -> None:
        """End Spark, its workers, and remove its temporary files. Tasks still running are stopped, not waited for.

        On local masters no worker runs any more when this returns, so what tasks were writing can be removed.
        """
        if self._closed:
            return
        self._closed = True
        if self._setup.local:
            _end_now(self.context, self._gateway)
        else:
            _end_properly(self.context, self._gateway)
        _forget()
        _remove(self._setup)

    def _in_group(self, group: str, label: str, action: Callable[[], T]) -> T:
        self.context.setJobGroup(group, label, interruptOnCancel=True)
        return action()

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

    def _cancel(self, group: str) -> None:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - only where Spark runs

        # What ended the wait is what must be told, not that Java may be gone as well.
        with contextlib.suppress(Py4JError, OSError):
            self.context.cancelJobGroup(group)

    def _reason(self, error: BaseException) -> BaseException:
        if not isinstance(error, Exception):
            return error
        return _ended(self._gateway, 0.2) or explained(error, self._setup.settings)


class Boot:
    """A Spark that is starting. `session` waits for it; `close` ends it, started or not."""

    def __init__(self, setup: Setup, verbose: bool) -> None:
        self._setup = setup
        try:
            java = find_java(setup.environ)
            self._gateway = launch(java, setup.settings, _environment(setup), setup.folder, verbose)
        except BaseException:
            _remove(setup)
            raise
        self._work = _Background(lambda: _connect(self._gateway, setup))
        self._session: Session | None = None

    def __enter__(self) -> Boot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(self) -> Session:
        """Wait until Spark is up. Raises `SparkError` where it does not come up; then everything is cleaned away."""
        if self._session is None:
            self._work.finished(None)
            if self._work.error is not None:
                cause = Trace(str(self._work.error))
                reason = explained(self._work.error, self._setup.settings)
                self.close()
                raise reason from cause
            self._session = Session(self._work.result(), self._gateway, self._setup)
        return self._session

    def close(self) -> None:
        """End Spark at once, whether or not it is up."""
        if self._session is None and self._work.finished(0) and self._work.error is None:
            self.session()
        if self._session is not None:
            self._session.close()
            return
        self._gateway.kill()
        self._work.finished(_PATIENCE)
        _forget()
        _remove(self._setup)


def boot(
    master: str,
    spark_conf: Mapping[str, str],
    settings: Mapping[str, str],
    verbose: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Boot:
    """Start Spark on ``master`` and return at once. ``spark_conf``, the user's, goes over ``settings``.

    Raises `SparkError` where there is no Java. ``environ``: this process's environment unless given.
    """
    env = dict(os.environ if environ is None else environ)
    merged = {**settings, **spark_conf, "spark.master": master}
    folder = new_folder()
    try:
        scratch = _scratch(merged, env, folder) if _is_local(master) else ()
    except OSError as error:
        shutil.rmtree(folder)
        raise SparkError(
            f"no folder for Spark's temporary files: {error.strerror}: {error.filename}",
            "name one that is there and can be written: --spark-conf spark.local.dir=FOLDER",
        ) from None
    if scratch:
        merged["spark.local.dir"] = ",".join(map(str, scratch))
    return Boot(Setup(master, merged, env, folder, scratch), verbose)


def start(master: str, spark_conf: Mapping[str, str], settings: Mapping[str, str], verbose: bool = False) -> Session:
    """Start Spark and wait for it: `boot` and `Boot.session` in one."""
    return boot(master, spark_conf, settings, verbose).session()


class _Background(Generic[T]):
    """A call in a thread of its own. ``error`` is what it raised."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.error: BaseException | None = None
        self._results: list[T] = []
        self._thread = threading.Thread(target=self._work, args=(call,), daemon=True)
        self._thread.start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._results.append(call())
        except BaseException as error:
            self.error = error

    def finished(self, seconds: float | None) -> bool:
        """Wait at most ``seconds``, for ever if None; whether the call is over."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What a call that is over and raised nothing returned."""
        return self._results[0]


class _Each(Generic[T, R]):
    """A function over an item as a function over a partition. Its pickle is the function's."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self.function = function

    def __call__(self, items: Iterable[T]) -> Iterator[R]:
        return map(self.function, items)


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _scratch(settings: Mapping[str, str], environ: dict[str, str], folder: Path) -> tuple[Path, ...]:
    """Folders of our own for Spark's blocks: one in each that the user named, for Spark would leave its files there."""
    named = environ.pop("SPARK_LOCAL_DIRS", "") or settings.get("spark.local.dir", "")
    if named:
        return tuple(new_folder(parent.strip()) for parent in named.split(","))
    (folder / "spark").mkdir()
    return (folder / "spark",)


def _environment(setup: Setup) -> dict[str, str]:
    """The environment of Java. On one machine the workers get it too, and see the modules that the driver sees."""
    env = dict(setup.environ)
    if not setup.local:
        env.setdefault("SPARK_HOME", str(spark_home(env)))
        return env
    home = env.pop("SPARK_HOME", None)  # with it the workers would import pyspark from a zip: 0.6 s each
    if home is not None:
        env.setdefault("SPARK_CONF_DIR", str(Path(home) / "conf"))
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*filter(None, sys.path), str(Path.cwd())]))
    env["PYTHONSAFEPATH"] = "1"  # or a file in the working folder could take the place of a module of ours
    env[LOCK] = str(setup.folder / "workers.lock")
    return env


def _connect(gateway: Gateway, setup: Setup) -> SparkContext:
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it would tell of Java's end on stderr
    _check_master(setup.master)
    address = gateway.wait(setup.settings)
    try:
        context = _context(*address)
    except Exception as error:
        raise (_ended(gateway, 0.2) or error) from error
    context.pythonExec = sys.executable if setup.local else _remote_python(setup)
    if not setup.local:
        context.addPyFile(str(ship(setup.folder)))
    return context


def _context(port: int, secret: str) -> SparkContext:
    from py4j import protocol  # noqa: PLC0415 - imported while Java starts
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    # Pyspark's converters of numpy values import pyspark.testing, and with it pandas, plotly and what else is there:
    # up to a second, and warnings about their versions. No numpy value is ever sent to Java here.
    protocol.INPUT_CONVERTER[:] = [c for c in protocol.INPUT_CONVERTER if not type(c).__name__.startswith("Numpy")]
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        gateway = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    return SparkContext(gateway=gateway, conf=SparkConf(_jvm=gateway.jvm))


def _remote_python(setup: Setup) -> str:
    return setup.settings.get("spark.pyspark.python") or setup.environ.get("PYSPARK_PYTHON") or "python3"


def _check_master(master: str) -> None:
    """Ask at the door of a standalone master, for Spark itself would knock for a minute."""
    if not master.startswith("spark://"):
        return
    places = [place.rpartition(":") for place in master.removeprefix("spark://").split(",")]
    for host, _, port in places:
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), timeout=5):
            return
    raise SparkError(f"the Spark master {master} does not answer", "check its address (--master) and that it is up")


def _ended(gateway: Gateway, seconds: float) -> SparkError | None:
    """The error to tell if Java has ended, or ends within ``seconds``, else None."""
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


_OUT_OF_MEMORY = (52, 3, -9)  # Spark's exit code for it, Java's, and the kernel's kill


def _end_now(context: SparkContext, gateway: Gateway) -> None:
    """Kill Java: an orderly stop takes a second more, and all results are on disk or here."""
    server = context._accumulatorServer
    server.server_shutdown = True
    server.handle_error = lambda *_: None  # it would print that Java hung up
    gateway.kill()
    threading.Thread(target=server.shutdown, daemon=True).start()
    _wait_for_workers(gateway.folder / "workers.lock")


def _wait_for_workers(lock: Path) -> None:
    """Wait until the last worker is gone: they die when Java closes their daemon's stdin, some milliseconds after."""
    deadline = time.monotonic() + _PATIENCE
    with lock.open("a") as handle:
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.005)


def _end_properly(context: SparkContext, gateway: Gateway) -> None:
    context.stop()
    if gateway.process.stdin is not None:
        gateway.process.stdin.close()
    with contextlib.suppress(TimeoutError):
        gateway.process.wait(_PATIENCE)
    gateway.kill()


def _forget() -> None:
    """Let pyspark start anew in this process."""
    from pyspark import SparkContext  # noqa: PLC0415

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def _remove(setup: Setup) -> None:
    for folder in (*setup.scratch, setup.folder):
        shutil.rmtree(folder, ignore_errors=True)
