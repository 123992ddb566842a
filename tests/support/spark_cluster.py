"""A standalone Spark cluster on the loopback: a master and workers of the pyspark package, closed to other users.

Only this user can read the conf folder, which has the secret without which nobody can submit. A driver finds it there
by ``SPARK_CONF_DIR``.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from support.processes import environment
from wincli.windowing.spark.java import find_java, spark_home

_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTRATION = "Registering worker "
_PATIENCE = 180.0
_POLL = 0.05
_SHOWN = 600  # characters of a log
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a Java that lives for a minute, which gains nothing by optimised code."""


def _host(number: int) -> str:
    """The address of a worker: Spark speculates on other hosts alone, and on Linux all of 127.0.0.0/8 is this one."""
    return f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster.

    ``folder``: its files: ``conf``, logs, and the folders of its workers.
    ``url``: its master.
    ``master``: the process of the master.
    ``workers``: the processes of the workers.
    """

    folder: Path
    url: str
    master: subprocess.Popen[bytes]
    workers: tuple[subprocess.Popen[bytes], ...]

    @property
    def env(self) -> dict[str, str]:
        """What a driver needs in its environment to submit."""
        return {"SPARK_CONF_DIR": str(self.folder / "conf")}

    def executors(self) -> list[psutil.Process]:
        """The executors that run now, in the order of their workers."""
        return [each for worker in self.workers for each in _children(worker.pid) if _is_executor(each)]

    def python_workers(self) -> list[psutil.Process]:
        """The Python processes that run tasks now; the daemons that fork them are not among them."""
        daemons = [each for executor in self.executors() for each in _children(executor.pid)]
        return [worker for daemon in daemons for worker in _children(daemon.pid)]

    def executor_at(self, port: int) -> psutil.Process | None:
        """The executor of the Python worker whose connection has a port; None where it is gone or of another."""
        for executor in self.executors():
            for daemon in _children(executor.pid):
                if any(_has_port(each, port) for each in (daemon, *_children(daemon.pid))):
                    return executor
        return None

    def close(self) -> None:
        """End all processes, the executors first, and wait until they are gone."""
        executors = self.executors()
        for process in (*executors, self.master, *self.workers):
            process.kill()
        for process in (self.master, *self.workers):
            process.wait()
        psutil.wait_procs(executors, timeout=_PATIENCE)


@contextmanager
def cluster_in(
    folder: Path,
    workers: int = 2,
    cores: int = 1,
    memory: str = "1g",
    port: int = 0,
    env: Mapping[str, str] | None = None,
) -> Iterator[SparkCluster]:
    """Start a master and ``workers``, wait until all are registered, and end them in the end.

    ``folder``: a folder of its own, which is made. ``cores``, ``memory``: of each worker. ``port``: of the master; 0
    is any. ``env``: more variables for the workers, which their executors inherit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    conf, started = _write_conf(folder), []
    try:
        started.append(_start(folder, "master", env, ["Master", "--port", str(port)], conf))
        url = _wait(folder, started, _address_in)
        for number in range(workers):
            own = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"worker-{number}")]
            started.append(_start(folder, f"worker-{number}", env, ["Worker", *own, url], conf, _host(number)))
        _wait(folder, started, lambda text: "all" if text.count(_REGISTRATION) >= workers else None)
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    cluster = SparkCluster(folder, url, started[0], tuple(started[1:]))
    try:
        yield cluster
    finally:
        cluster.close()


def _write_conf(folder: Path) -> Path:
    """Write the settings that all processes share, in a folder that only this user can read."""
    conf = folder / "conf"
    conf.mkdir(mode=0o700, exist_ok=True)
    filters = "org.apache.spark.ui.JWSFilter"  # web pages cannot be switched off; nobody has the key of these
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.ui.filters": filters,
        f"spark.{filters}.param.secretKey": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.worker.timeout": "10",
    }
    path = conf / "spark-defaults.conf"
    path.touch(mode=0o600)
    path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return path


def _start(
    folder: Path,
    name: str,
    env: Mapping[str, str] | None,
    arguments: Sequence[str],
    conf: Path,
    host: str = _host(0),
) -> subprocess.Popen[bytes]:
    """Start a master or a worker as ``spark-class`` does; its log is ``NAME.log``."""
    kind, *rest = arguments
    home = spark_home({})
    variables = {
        "SPARK_LOCAL_IP": host,
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_CONF_DIR": str(conf.parent),
        "JAVA_HOME": str(Path(find_java(os.environ).path).resolve().parents[1]),
        "SPARK_NO_DAEMONIZE": "1",
    }
    command = [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{kind.lower()}.{kind}"]
    options = ["--host", host, "--webui-port", "0", "--properties-file", str(conf)]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [*command, *options, *rest],
            cwd=folder,
            env={**environment(variables), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C reaches only this process, which then ends them
        )


def _wait(folder: Path, started: Sequence[subprocess.Popen[bytes]], find: Callable[[str], str | None]) -> str:
    """Wait until something is in the log of the master, and return it; ``started``: the master, then the workers.

    Raises `RuntimeError` with the end of a log where a process ends before, or where it takes too long.
    """
    names = ["master", *(f"worker-{number}" for number in range(len(started) - 1))]
    deadline = time.monotonic() + _PATIENCE
    while (found := find(_log(folder, "master"))) is None:
        ended = [name for name, process in zip(names, started, strict=True) if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            name = (*ended, "master")[0]
            raise RuntimeError(f"the cluster does not start; the end of {name}.log:\n{_log(folder, name)[-_SHOWN:]}")
        time.sleep(_POLL)
    return found


def _log(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(errors="replace")


def _address_in(text: str) -> str | None:
    found = _ADDRESS.search(text)
    return found[1] if found else None


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _has_port(process: psutil.Process, port: int) -> bool:
    try:
        return any(each.laddr.port == port for each in process.net_connections("tcp"))
    except psutil.Error:
        return False


def _is_executor(process: psutil.Process) -> bool:
    try:
        return _EXECUTOR in process.cmdline()
    except psutil.Error:
        return False
