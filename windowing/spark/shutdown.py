"""The end of a Spark: shut down by us without leftovers, or dead by itself with a reason."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SparkError
from .java import Gateway
from .temporary_folders import CHILDREN

if TYPE_CHECKING:
    from pyspark import SparkContext

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


def kill(context: SparkContext, gateway: Gateway) -> None:
    """Kill Java. An orderly stop takes a second more, and all results are on disk or in this process."""
    server = context._accumulatorServer
    server.server_shutdown = True
    gateway.kill()
    threading.Thread(target=server.shutdown, daemon=True).start()
    _wait_for_workers(gateway.folder / CHILDREN)


def _wait_for_workers(lock: Path) -> None:
    """Wait until the last worker is gone. Workers die some milliseconds after Java closes their daemon's stdin."""
    deadline = time.monotonic() + _PATIENCE
    with lock.open("a") as handle:
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.005)


def stop(context: SparkContext, gateway: Gateway, patience: float = _PATIENCE) -> int:
    """Stop Spark on its cluster, then Java, killing it after ``patience`` seconds; return Java's exit code."""
    context.stop()
    if gateway.process.stdin is not None:
        gateway.process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        gateway.process.wait(patience)
    gateway.kill()
    return gateway.process.returncode


def reset_pyspark() -> None:
    """Reset pyspark, so that it can start anew in this process."""
    from pyspark import SparkContext  # noqa: PLC0415

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
