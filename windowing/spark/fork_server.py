"""The fork server: the driver, forked once it has imported everything heavy and before it does anything else.

A daemon of its own would import once more what the driver has just imported, and each worker would load for itself the
kernels that the driver has loaded. The fork server has inherited the modules, loads the kernels while Java starts, and
waits. When Java starts a daemon for its first task, that process (`take_over_daemon`) sends its environment, stdin,
stdout and stderr to the fork server, which takes its place; the process itself only waits for the fork server to end.

There is no fork server for functions of the user: Spark's workers hash text alike in every run (``PYTHONHASHSEED``),
which a fork of the driver cannot, and the result of such a function may depend on it. Nor is there one where the user's
settings say how workers are started. Workers then start as they would without this module.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from .temporary_folders import share_lock

# Environment variables that pass settings from the driver to workers, and the lock that all workers share.


LOCK = "WINCLI_WORKER_LOCK"
"""Environment variable: the file on which the daemon and its workers hold a shared lock for as long as they live."""


WORKER_CALLS = "WINCLI_WORKER_ORDERS"
"""Environment variable: a file with pickled calls to make before workers fork, for executors on other machines."""


STORE_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ALLOW_HTTP",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "STORAGE_EMULATOR_HOST",
)
"""Environment variables by which the libraries of stores find a store and may use it; executors elsewhere get them."""


PACKED = "wincli-environment"
"""The folder that executors unpack a packed environment into, relative to where they and their workers run."""

PACKED_PYTHON = f"./{PACKED}/bin/python"
"""The Python in it."""


# One task is one thread, for Spark runs a task per core. A background thread of jemalloc would not survive a fork.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def take_shared_lock() -> None:
    """Take the shared lock of `LOCK`. Forked workers inherit it; it is free again when the last of them is gone."""
    if path := os.environ.get(LOCK):
        share_lock(path)


# What every worker imports for itself, unless what it is forked from has imported it.


_MODULES = (
    "pyspark.worker",
    "numpy",
    "pyarrow.compute",
    "pyarrow.parquet",
    "wincli.windowing.support.compiler",
    "wincli.windowing.engine.run",
)


def preload() -> None:
    """Import what tasks use. No thread may start here: forked workers would lack it."""
    for name in _MODULES:
        importlib.import_module(name)


FORK_SERVER = "WINCLI_WORKER_SEED"
"""Environment variable: the socket on which a fork server waits for the request to become the daemon."""


_WORKERS = "spark.executorEnv."
_WORKER_SETTINGS = (
    _WORKERS,
    "spark.python.",
    "spark.pyspark.",
)  # with one of these settings workers are not forks of the driver
_MALLOC = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}  # glibc's malloc.h
_MAX_INT = (1 << 31) - 1
_PR_SET_PDEATHSIG = 1
_C = ctypes.CDLL(None)
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_NAME = "python-wincli"  # the name of it and its workers in top and ps
_PATIENCE = 2.0


def may_fork(spark_conf: Mapping[str, str]) -> bool:
    """Whether workers may be forks of the driver, with these settings of the user."""
    return sys.platform == "linux" and not any(name.startswith(_WORKER_SETTINGS) for name in spark_conf)


def prepare(settings: Mapping[str, str]) -> None:
    """Set what a worker reads when it starts and cannot change later. Call it before anything heavy is imported."""
    pool = settings.get(_WORKERS + "ARROW_DEFAULT_MEMORY_POOL")
    os.environ.update({"OPENBLAS_NUM_THREADS": "1"} | ({"ARROW_DEFAULT_MEMORY_POOL": pool} if pool else {}))


@dataclass(frozen=True, slots=True)
class ForkServer:
    """A fork of this process that waits for orders.

    ``orders``: the socket on which it takes orders until it becomes the daemon.
    """

    pid: int
    orders: socket.socket

    def do(self, call: Callable[..., object], *arguments: Any) -> bool:
        """Send a call to the fork server, which makes calls in order; do not wait for it.

        Returns False where it takes no more orders, because it has become the daemon or is gone.
        """
        message = pickle.dumps((call, arguments))
        with contextlib.suppress(OSError):
            self.orders.sendall(struct.pack("!q", len(message)) + message)
            return True
        return False

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    def end(self) -> None:
        """End it and its workers, and wait until it is gone."""
        self.orders.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.002)


def start_fork_server(path: Path) -> ForkServer | None:
    """Fork this process, which must have one thread and no file open that matters.

    ``path``: the path of the fork server's socket. Returns None where it is too long for one.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        return None
    listener.listen()
    server = start_caller(listener)
    listener.close()
    return server


def start_caller(listener: socket.socket | None = None) -> ForkServer:
    """Fork this process as `start_fork_server` does, to a process that makes calls until this one ends.

    ``listener``: where a daemon asks it to take its place; None: it never becomes one.
    """
    orders, server_end = socket.socketpair()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the driver's handlers must not run in the fork
    pid = os.fork()
    if pid == 0:
        _serve(listener, server_end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    server_end.close()
    return ForkServer(pid, orders)


def take_over_daemon(path: str) -> bool:
    """Let a fork server become the daemon in place of this process, and wait until it ends. False if none answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            socket.send_fds(connection, [b"f"], [0, 1, 2])
            connection.sendall(json.dumps({"environ": dict(os.environ), "argv": sys.argv}).encode())
            connection.shutdown(socket.SHUT_WR)
            if connection.recv(1) != b"y":
                return False
        except OSError:
            return False
        connection.recv(1)
        return True


def _serve(listener: socket.socket | None, orders: socket.socket) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C reaches the driver only
        _end_with_parent(signal.SIGTERM)  # only until it becomes the daemon, which ends with Java
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP: keep that
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _release_files({each.fileno() for each in (listener, orders) if each is not None})
        Path("/proc/self/comm").write_text(_NAME)
        gc.freeze()
        gc.enable()
        connection = _wait_for_request(listener, orders)
        if connection is not None:
            _be_daemon(connection)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        os._exit(code)


def _end_with_parent(number: int) -> None:
    """Have the system send this process a signal when its parent ends, 0 for none; in the middle of compiling, too."""
    _C.prctl(_PR_SET_PDEATHSIG, number)


def _release_files(kept_descriptors: set[int]) -> None:
    """Release the files of the driver but keep their descriptors: objects inherited from the driver may close these."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number not in kept_descriptors and number != null:
            with contextlib.suppress(OSError):
                os.dup2(null, number, inheritable=number < 3)


def _wait_for_request(listener: socket.socket | None, orders: socket.socket) -> socket.socket | None:
    """Make the calls that the driver sends until a daemon connects; None where the driver ends first."""
    while True:
        ready, _, _ = select.select([orders] if listener is None else [orders, listener], [], [])
        if listener is None or orders in ready:
            head = orders.recv(8, socket.MSG_WAITALL)
            if len(head) < 8:
                return None
            call, arguments = pickle.loads(orders.recv(struct.unpack("!q", head)[0], socket.MSG_WAITALL))
            call(*arguments)
        else:
            connection = listener.accept()[0]
            listener.close()  # later connections and orders must be refused, not left waiting
            orders.close()
            return connection


def _be_daemon(connection: socket.socket) -> None:
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    with connection.makefile("rb") as request_file:
        request = json.load(request_file)
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = request["argv"]
    # what these settings say was read when the driver started
    importlib.import_module("pyarrow").set_cpu_count(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for name, option in _MALLOC.items():
        if name in os.environ and hasattr(_C, "mallopt"):
            _C.mallopt(option, min(int(os.environ[name]), _MAX_INT))
    take_shared_lock()
    gc.freeze()  # the kernels, too: Spark's daemon collects garbage after every task
    _end_with_parent(0)
    connection.sendall(b"y")
    importlib.import_module("pyspark.daemon").manager()


# Arrow without pandas: saves 0.4 s in the driver, and as much in workers, where pandas is installed.
#
# Arrow imports pandas when it first gets a list, to recognise its objects. Where no code of the user runs, there are
# no such objects.


NO_PANDAS = "WINCLI_WORKER_BARE"
"""Environment variable: where it is set, workers go without pandas."""


class _NoPandas:
    """A module finder that reports that there is no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
        return None


def block_pandas() -> None:
    """Have Arrow look for pandas now and find none. All other imports of pandas work, before and after."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, so not before Java has been started

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
