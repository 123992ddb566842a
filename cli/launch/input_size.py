"""A quick look at how much a job may read, before anything heavy is imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...conf.job import PIPE
from ...conf.options import DEFAULT_MASTER
from ...conf.ranges.units import units
from ..request.request import JobRequest

MOST_BYTES = 16 << 20
"""Bytes of the files that a run may read, and a unit of a range on average: a task reads more than that at a time."""
_MOST_FILES = 20_000
"""Listing more takes longer than Spark takes to start."""
_SIGNS = "*?[{"


def is_small(request: JobRequest, is_stdin_small: Callable[[], bool] = lambda: False) -> bool:
    """Whether a job reads a few MiB of local files or stdin, calls no code of the user, and says nothing about Spark.

    ``is_stdin_small``: waits for as much of stdin, and is called last, and only where the job reads it.
    """
    job = request.job
    asks_spark = job.master != DEFAULT_MASTER or job.spark_conf or job.ship_environment or job.jobs != 1
    if asks_spark or request.runs_user_code or job.enrich:
        return False
    if PIPE in job.input:
        return is_stdin_small()
    if any("://" in path for path in request.inputs):
        return False
    if job.limit is not None:  # if so many rows turn out to be large, Spark starts then
        return True
    runs = 1 if job.start is None or job.end is None else len(units(job.start, job.end, job.unit))
    return _are_below(request.inputs, MOST_BYTES * runs)


def _are_below(paths: Sequence[str], most: int) -> bool:
    """Whether the files at and below paths take at most ``most`` bytes together."""
    files = 0
    for path in paths:
        for size in _sizes(_fixed(path)):
            files, most = files + 1, most - size
            if most < 0 or files > _MOST_FILES:
                return False
    return True


def _sizes(path: Path) -> Iterator[int]:
    """Yield the bytes of all files at and below a path; none of what cannot be read, of which the reader will tell."""
    try:
        if not path.is_dir():
            yield path.stat().st_size
            return
        with os.scandir(path) as entries:
            for entry in entries:
                yield from _sizes(Path(entry.path)) if entry.is_dir() else (entry.stat().st_size,)
    except OSError:
        return


def _fixed(path: str) -> Path:
    """Return the folder of a path before its first wildcard or placeholder; a path without them unchanged."""
    parts = Path(path).parts
    first = next((at for at, part in enumerate(parts) if any(sign in part for sign in _SIGNS)), len(parts))
    return Path(*parts[:first])
