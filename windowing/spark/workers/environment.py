"""The environment variables by which a driver speaks to its workers, and the lock that all of them share."""

from __future__ import annotations

import fcntl
import os

LOCK = "WINCLI_WORKER_LOCK"
"""Environment variable: a file that the daemon and its workers hold a shared lock on for as long as they live."""


WORKER_CALLS = "WINCLI_WORKER_ORDERS"
"""Environment variable: a file with calls, pickled, to be made before workers fork. For executors elsewhere."""


# One task is one thread: Spark runs a task per core. A thread of jemalloc's own would not live through a fork.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def hold() -> None:
    """Share the lock of `LOCK`; forked workers inherit it, and it is free again when the last of them is gone."""
    if path := os.environ.get(LOCK):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)


FORK_SERVER = "WINCLI_WORKER_SEED"
"""Environment variable: the socket where a seed waits to be asked to be the daemon."""
