"""Environment variables that pass settings from the driver to workers, and the lock that all workers share."""

from __future__ import annotations

import fcntl
import os

LOCK = "WINCLI_WORKER_LOCK"
"""Environment variable: the file on which the daemon and its workers hold a shared lock for as long as they live."""


WORKER_CALLS = "WINCLI_WORKER_ORDERS"
"""Environment variable: a file with pickled calls to make before workers fork, for executors on other machines."""


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
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)


FORK_SERVER = "WINCLI_WORKER_SEED"
"""Environment variable: the socket on which a fork server waits for the request to become the daemon."""
