"""The limit of open files of a process. Java alone has some 280 open, one for each of Spark's jars."""

from __future__ import annotations

import resource

from ..errors import SparkError

NEEDED = 512
"""The least limit. Measured: Java with a job of 1,000 rows on two cores fails with 320 and runs with 400."""


def allow_open_files() -> None:
    """Raise this process's own limit where it is too low, also for the processes that it starts.

    Raises `SparkError` where the system does not allow it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_enough(soft):
        return
    if not _is_enough(hard):
        raise too_few_files()
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))


def too_few_files() -> SparkError:
    """Return the error to raise where the limit is too low or a system call met it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SparkError(
        f"too few files may be open at once: {soft}, and Spark needs {NEEDED} or more",
        "raise the limit: ulimit -n 4096",
    )


def _is_enough(limit: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= NEEDED
