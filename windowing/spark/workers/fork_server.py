"""What workers grow from: the driver, forked when it has imported all that is heavy and before it does anything else.

A daemon of its own would import once more what the driver has just imported, and each worker load for itself the
kernels that the driver has loaded. The seed has the one from its parent, loads the other while Java starts, and waits.
When Java starts a daemon for its first task, that one (`ask`) hands its environment, stdin, stdout and stderr to the
seed, which takes its place; it itself only waits for the seed to end.

There is none for functions of the user's own: Spark's workers hash text alike in every run (``PYTHONHASHSEED``), which
a fork of the driver cannot, and what such a function gives may hang on it. Nor is there one where the user's settings
say how workers are to be started. Workers are then what they were without.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_WORKERS = "spark.executorEnv."
_OTHERS = (_WORKERS, "spark.python.", "spark.pyspark.")  # settings with which a worker is not a fork of the driver
_MALLOC = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}  # glibc's malloc.h
_MOST = (1 << 31) - 1
_PR_SET_PDEATHSIG = 1
_C = ctypes.CDLL(None)
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_NAME = "python-wincli"  # what top and ps call it and its workers
_PATIENCE = 2.0


def may_fork(spark_conf: Mapping[str, str]) -> bool:
    """Whether workers may be forks of the driver, with these settings of the user's."""
    return sys.platform == "linux" and not any(name.startswith(_OTHERS) for name in spark_conf)


def prepare(settings: Mapping[str, str]) -> None:
    """Set, before anything heavy is imported, what a worker would be started with and cannot change later."""
    pool = settings.get(_WORKERS + "ARROW_DEFAULT_MEMORY_POOL")
    os.environ.update({"OPENBLAS_NUM_THREADS": "1"} | ({"ARROW_DEFAULT_MEMORY_POOL": pool} if pool else {}))


@dataclass(frozen=True, slots=True)
class ForkServer:
    """A fork of this process that waits: ``pid``, and the ``orders`` it takes until it is a daemon."""

    pid: int
    orders: socket.socket

    def do(self, call: Callable[..., object], *arguments: Any) -> bool:
        """Let the seed call something, at once or when it is done with what came before; do not wait.

        False where it takes no orders any more: it is a daemon, or gone.
        """
        message = pickle.dumps((call, arguments))
        with contextlib.suppress(OSError):
            self.orders.sendall(struct.pack("!q", len(message)) + message)
            return True
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


def start_fork_server(place: Path) -> ForkServer | None:
    """Fork this process, which must have one thread and no file open that matters; ``place``: of the seed's socket.

    None where the name of the place is too long for one.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(place))
    except OSError:
        listener.close()
        return None
    listener.listen()
    orders, theirs = socket.socketpair()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the driver's handlers must not run in the fork
    pid = os.fork()
    if pid == 0:
        _serve(listener, theirs)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    listener.close()
    theirs.close()
    return ForkServer(pid, orders)


def take_over_daemon(place: str) -> bool:
    """Let a seed be the daemon in this process's stead, and wait until it has ended. False where none answers."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(place)
            socket.send_fds(line, [b"f"], [0, 1, 2])
            line.sendall(json.dumps({"environ": dict(os.environ), "argv": sys.argv}).encode())
            line.shutdown(socket.SHUT_WR)
            if line.recv(1) != b"y":
                return False
        except OSError:
            return False
        line.recv(1)
        return True


def _serve(listener: socket.socket, orders: socket.socket) -> NoReturn:
    """Be a seed, in the forked process."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C is for the driver alone
        _end_with_parent(signal.SIGTERM)  # until it is a daemon, which ends with Java
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # by nohup
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _let_go({listener.fileno(), orders.fileno()})
        Path("/proc/self/comm").write_text(_NAME)
        gc.freeze()
        gc.enable()
        line = _wait_for_request(listener, orders)
        if line is not None:
            _be_daemon(line)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        os._exit(code)


def _end_with_parent(number: int) -> None:
    """Let this process get a signal when its parent ends, 0 for none: in the middle of a compilation, too."""
    _C.prctl(_PR_SET_PDEATHSIG, number)


def _let_go(kept: set[int]) -> None:
    """Let go of the driver's files, but keep their numbers: objects of the driver's would close what took them."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number not in kept and number != null:
            with contextlib.suppress(OSError):
                os.dup2(null, number, inheritable=number < 3)


def _wait_for_request(listener: socket.socket, orders: socket.socket) -> socket.socket | None:
    """Do what the driver says until somebody asks; None where the driver has ended before."""
    while True:
        ready, _, _ = select.select([orders, listener], [], [])
        if orders in ready:
            head = orders.recv(8, socket.MSG_WAITALL)
            if len(head) < 8:
                return None
            call, arguments = pickle.loads(orders.recv(struct.unpack("!q", head)[0], socket.MSG_WAITALL))
            call(*arguments)
        else:
            line = listener.accept()[0]
            listener.close()  # whoever asks, or gives an order, after this is to be refused, not to wait
            orders.close()
            return line


def _be_daemon(line: socket.socket) -> None:
    """Be Spark's daemon, with the environment and the files of the one that asks."""
    from .environment import hold  # noqa: PLC0415 - it imports this module

    _, files, _, _ = socket.recv_fds(line, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    with line.makefile("rb") as told:
        asked = json.load(told)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.argv = asked["argv"]
    _settle(os.environ)
    hold()
    gc.freeze()  # the kernels, too: Spark's daemon collects garbage after every task
    _end_with_parent(0)
    line.sendall(b"y")
    importlib.import_module("pyspark.daemon").manager()


def _settle(environ: Mapping[str, str]) -> None:
    """Take up from the environment what is only read when a process starts."""
    importlib.import_module("pyarrow").set_cpu_count(int(environ.get("OMP_NUM_THREADS", "1")))
    for name, number in _MALLOC.items():
        if name in environ and hasattr(_C, "mallopt"):
            _C.mallopt(number, min(int(environ[name]), _MOST))
