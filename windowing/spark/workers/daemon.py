"""The process that Spark forks its Python workers from, with everything loaded that a task needs.

Spark starts it as ``python -m wincli.windowing.spark.workers.daemon`` (the setting ``spark.python.daemon.module``). It
lets the fork of the driver take its place that waits for this (`windowing.spark.workers.fork_server`). Where there is
none it imports once what every worker would import for itself, then hands over to Spark's own daemon. On other machines
it also calls what the driver has written down for it (`windowing.spark.workers.code_archive`): kernels are loaded, or
compiled, once for all workers.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import sys
from pathlib import Path

from ...support.module_path import extend_path_from_driver
from .environment import ENVIRONMENT, FORK_SERVER, LOCK, WORKER_CALLS, hold
from .fork_server import take_over_daemon
from .no_pandas import NO_PANDAS, block_pandas

_MODULES = (
    "pyspark.worker",
    "numpy",
    "pyarrow.compute",
    "pyarrow.parquet",
    "wincli.windowing.support.jit",
    "wincli.windowing.engine.run",
)


def main() -> None:
    """Load, then serve workers until Java closes this process's stdin."""
    # Elsewhere, who set one of these for executors has done so on purpose.
    os.environ.update(ENVIRONMENT if LOCK in os.environ else {**ENVIRONMENT, **os.environ})
    hold()
    if (place := os.environ.get(FORK_SERVER)) and take_over_daemon(place):
        return
    with contextlib.redirect_stdout(sys.stderr):  # on stdout Spark waits for a port
        if os.environ.get(NO_PANDAS):
            block_pandas()
        preload()
        extend_path_from_driver()  # not before: what is in the user's folders is for the user's own code
        if path := os.environ.get(WORKER_CALLS):
            obey(Path(path))
    gc.freeze()  # Spark's daemon collects garbage after every task: not through all these modules, please
    # Spark's daemon module must come after the environment is set: it imports numpy.
    importlib.import_module("pyspark.daemon").manager()


def preload() -> None:
    """Import what tasks use. No thread may start here: it would be missing in the forked workers."""
    for name in _MODULES:
        importlib.import_module(name)


def obey(path: Path) -> None:
    """Make the calls that a file orders. What fails here fails again, and is told, in a task."""
    with contextlib.suppress(Exception):
        for call, arguments in pickle.loads(path.read_bytes()):
            call(*arguments)


if __name__ == "__main__":
    main()
