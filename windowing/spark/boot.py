"""A Spark session: it starts beside the driver's own work, is watched while it runs, and ends without leftovers.

`boot` returns while Java is still starting; `SparkBoot.session` waits for it. Actions run in a thread of their own, so
that the main thread is free for signals. On one machine no process of Java or of workers outlives ``close``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import SparkError
from ..support.modules import working_folder
from .class_archive import archive_of, make_later
from .code_archive import FOLDER, ship
from .fork_server import NO_PANDAS, PACKED, PACKED_PYTHON, ForkServer, preload, start_fork_server
from .java import CLASS_PATH, Gateway, find_java, launch
from .session import Background, PendingExecutor, Progress, SparkExecutor, reset_pyspark, why_ended
from .setup import Setup, allow_open_files, fork_server_socket, java_environment, make_setup, remove, worker_environment
from .task_errors import SparkTraceError, guarded, to_wincli_error

if TYPE_CHECKING:
    from pyspark import SparkContext


__all__ = ["PendingExecutor", "Progress", "SparkBoot", "SparkExecutor", "boot", "guarded", "start"]

_PATIENCE = 2.0

OnJavaLine: TypeAlias = Callable[[str], None]
Pack: TypeAlias = Callable[[Path], Path]
"""Packs the environment for executors: takes a temporary folder, returns the archive."""


class SparkBoot:
    """A Spark that is starting. `session` waits for it; `close` ends it, started or not.

    Used as a context, it has the archive of Java's classes made after it has ended well on this machine; ``plain``, the
    settings that are not the user's, are for that. The driver of a cluster uses an archive that exists.
    """

    def __init__(
        self, setup: Setup, on_java_line: OnJavaLine | None, plain: Mapping[str, str], pack: Pack | None = None
    ) -> None:
        self._setup = setup
        self._pack = None if pack is None or setup.on_this_machine else partial(pack, setup.folder)
        self._packed: Background[Path] | None = None
        self._on_java_line = on_java_line
        self._java_output: Background[deque[None]] | None = None
        self._plain = plain
        try:
            java, env = find_java(setup.environ), java_environment(setup)
            self._archive = archive_of(java, setup.settings, env)
            options = self._archive.use_options() if self._archive is not None else ()
            self._gateway = launch(java, setup.settings, env, setup.folder, on_java_line is not None, options)
        except BaseException:
            remove(setup)
            raise
        self._fork_server: ForkServer | None = None
        self._calls: list[tuple[Callable[..., object], Any]] = []
        self._work: Background[SparkExecutor] | None = None
        self._session: SparkExecutor | None = None

    def __enter__(self) -> SparkBoot:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        ended_well = kind is None and self._session is not None and self._setup.local
        if ended_well and self._archive is not None and self._archive.is_due():
            make_later(self._archive, self._plain, java_environment(self._setup))

    @property
    def notes(self) -> list[str]:
        """Notes for the user on folders that are not used because others can write there."""
        why = self._archive.refusal() if self._archive is not None else None
        note = f"Java's classes are not kept between runs, for {why}; make it yours alone (chown, chmod go-w)"
        return [*self._setup.notes, *([note] if why else [])]

    def start_fork_server(self) -> None:
        """Fork this process to a fork server for workers. It must have one thread and nothing open that matters."""
        preload()
        self._fork_server = start_fork_server(fork_server_socket(self._setup))

    def connect(self) -> None:
        """Begin to wait for Java, and to pass its output on, in the background."""
        if self._work is None:
            setup = self._setup
            self._packed = None if self._pack is None else Background(self._pack)
            if self._on_java_line is not None:
                lines = map(self._on_java_line, self._gateway.output_lines())
                self._java_output = Background(lambda: deque(lines, maxlen=0))
            self._work = Background(lambda: SparkExecutor(_connect(self._gateway, setup), self._gateway, setup))

    def warm(self, warm: Callable[..., object], *arguments: Any) -> None:
        """Load or compile what tasks need by a call: in the fork server if there is one, without waiting for it.

        On a cluster, executors make the same call before their workers start, if this is called before `session`.
        Executors do not where the user's own code runs: it may be in a module that they do not have yet.
        """
        if self._fork_server is None or not self._fork_server.do(warm, *arguments):
            warm(*arguments)
        if self._session is None and not self._setup.local and NO_PANDAS in self._setup.environ:
            self._calls.append((warm, arguments))

    def session(self) -> SparkExecutor:
        """Wait until Spark is up. Raises `SparkError` where it does not come up, after everything is cleaned up."""
        if self._session is None:
            self.connect()
            assert self._work is not None
            self._work.finished(None)
            if self._work.error is not None:
                cause = SparkTraceError(str(self._work.error))
                reason = to_wincli_error(self._work.error, self._setup.settings)
                self.close()
                raise reason from cause
            self._session = self._work.result()
            try:
                if not self._setup.local:
                    self._session.run("send code", partial(self._send, self._session.context))
            except BaseException:
                self.close()
                raise
        return self._session

    def _send(self, context: SparkContext) -> None:
        users = None
        if self._packed is not None:
            self._packed.finished(None)
            if self._packed.error is not None:
                raise self._packed.error
            context.addArchive(f"{self._packed.result().as_uri()}#{PACKED}")
            context.pythonExec = PACKED_PYTHON
            users = working_folder(self._setup.environ)
        archive = ship(self._setup.folder, self._calls, working_folder=users)
        context.addArchive(f"{archive.as_uri()}#{FOLDER}")
        context.environment.update(worker_environment(self._setup, context.environment, users is not None))

    def close(self) -> None:
        work, fork_server, self._fork_server = self._work, self._fork_server, None
        if self._session is None and work is not None and work.finished(0) and work.error is None:
            self._session = work.result()
        if self._session is not None:
            self._session.close()
        else:
            self._gateway.kill()
            if work is not None:
                work.finished(_PATIENCE)
            reset_pyspark()
            remove(self._setup)
        if fork_server is not None:
            fork_server.end()
        if self._java_output is not None:
            self._java_output.finished(_PATIENCE)  # the last lines that Java printed


def boot(
    master: str,
    spark_conf: Mapping[str, str],
    settings: Mapping[str, str],
    on_java_line: OnJavaLine | None = None,
    environ: Mapping[str, str] | None = None,
    pack: Pack | None = None,
) -> SparkBoot:
    """Start Spark on ``master`` and return at once. ``spark_conf``, the user's, overrides ``settings``.

    Raises `SparkError` where there is no Java or the limit of open files is too low, and `ConfigError` where others
    could send messages to Spark. ``on_java_line``: called with every line that Java prints, from a thread of its own;
    None: the lines go to a log. ``environ``: this process's environment unless given. ``pack``: packs the environment
    for executors, while Java starts; None: they have one.
    """
    allow_open_files()
    env = os.environ if environ is None else environ
    plain = {name: value for name, value in settings.items() if name not in spark_conf or name == CLASS_PATH}
    return SparkBoot(make_setup(master, {**settings, **spark_conf}, env), on_java_line, plain, pack)


def start(master: str, spark_conf: Mapping[str, str], settings: Mapping[str, str]) -> SparkExecutor:
    """Start Spark and wait for it: `boot` and `SparkBoot.session` in one call."""
    return boot(master, spark_conf, settings).session()


def _connect(gateway: Gateway, setup: Setup) -> SparkContext:
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    _check_master(setup.master)
    address = gateway.wait(setup.settings)
    try:
        context = _context(*address)
    except Exception as error:
        raise (why_ended(gateway, 0.2) or error) from error
    context._accumulatorServer.handle_error = lambda *_: None  # it would print an error whenever Java ends
    context.pythonExec = sys.executable
    if not setup.local:
        own = sys.executable if setup.on_this_machine else "python3"
        named = setup.settings.get("spark.pyspark.python") or setup.environ.get("PYSPARK_PYTHON")
        context.pythonExec = named or own
    return context


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Filter out what py4j logs, by its own logger or the root logger: that Java is gone after we have ended it."""
    return "py4j" not in record.pathname


def _context(port: int, secret: str) -> SparkContext:
    from py4j import protocol  # noqa: PLC0415 - imported while Java starts
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    from .block_serializer import BlockSerializer  # noqa: PLC0415

    # Pyspark's converters of numpy values import pyspark.testing, and with it pandas, plotly and others if installed.
    # That takes up to a second and prints warnings about versions. No numpy value is ever sent to Java here.
    protocol.INPUT_CONVERTER[:] = [c for c in protocol.INPUT_CONVERTER if not type(c).__name__.startswith("Numpy")]
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        gateway = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    return SparkContext(gateway=gateway, conf=SparkConf(_jvm=gateway.jvm), serializer=BlockSerializer())


def _check_master(master: str) -> None:
    """Connect to a standalone master first: Spark itself would try for a minute."""
    if not master.startswith("spark://"):
        return
    places = [place.rpartition(":") for place in master.removeprefix("spark://").split(",")]
    for host, _, port in places:
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), timeout=5):
            return
    raise SparkError(f"the Spark master {master} does not answer", "check its address (--master) and that it is up")
