"""Environment variables that pass settings from the driver to workers, and the lock that all workers share."""

from __future__ import annotations

import fcntl
import os

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
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)


FORK_SERVER = "WINCLI_WORKER_SEED"
"""Environment variable: the socket on which a fork server waits for the request to become the daemon."""
