"""The process that Spark forks its Python workers from, with everything loaded that a task needs.

Spark starts it as ``python -m wincli.windowing.spark.daemon`` (the setting ``spark.python.daemon.module``). If
a fork server waits (`windowing.spark.fork_server`), that takes its place. Otherwise it imports once what every
worker would import for itself, then runs Spark's own daemon. On other machines it also makes the calls that the driver
has written down (`windowing.spark.code_archive`): kernels are loaded, or compiled, once for all workers.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import sys
from pathlib import Path

from ..support.modules import extend_path_from_driver
from .fork_server import (
    ENVIRONMENT,
    FORK_SERVER,
    LOCK,
    NO_PANDAS,
    WORKER_CALLS,
    block_pandas,
    preload,
    take_over_daemon,
    take_shared_lock,
)


def main() -> None:
    """Load modules, then serve workers until Java closes this process's stdin."""
    # On other machines a value that is set already was set for executors on purpose.
    os.environ.update(ENVIRONMENT if LOCK in os.environ else {**ENVIRONMENT, **os.environ})
    take_shared_lock()
    if (place := os.environ.get(FORK_SERVER)) and take_over_daemon(place):
        return
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the port that Spark reads there
        if os.environ.get(NO_PANDAS):
            block_pandas()
        preload()
        extend_path_from_driver()  # not before: modules in the user's folders must not replace those imported above
        if path := os.environ.get(WORKER_CALLS):
            make_calls(Path(path))
    gc.freeze()  # Spark's daemon collects garbage after every task: it need not traverse all these modules
    # Spark's daemon module must come after the environment is set: it imports numpy.
    importlib.import_module("pyspark.daemon").manager()


def make_calls(path: Path) -> None:
    """Make the calls in a file. An error here is ignored: it occurs again, and is reported, in a task."""
    with contextlib.suppress(Exception):
        for call, arguments in pickle.loads(path.read_bytes()):
            call(*arguments)


if __name__ == "__main__":
    main()
