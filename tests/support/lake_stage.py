"""A server of a store, a proxy before it, and what starts runs there: all that courses need to be disturbed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from support import fault_proxy
from support.emulators import azure_environment, azure_lake, azurite
from support.forked_runs import ForkedRuns, forked_runs
from support.lake_courses import late_course
from support.lake_disturbances import Stage
from support.places_to_write import Folder, Lake
from support.processes import Ran
from support.s3_server import environment, serving

Stages = Callable[[], Stage]
"""Makes a stage with a fresh place to write to."""


@contextlib.contextmanager
def bucket_stage(folder: Path) -> Iterator[Stages]:
    """Start all over S3, in a folder for jobs and for what runs say, and end it."""
    with serving() as server, _stage(folder, server.endpoint, environment, server.bucket) as stages:
        yield stages


@contextlib.contextmanager
def container_stage(folder: Path) -> Iterator[Stages]:
    """The same over an emulator of Azure's store."""
    with azurite() as endpoint, _stage(folder, endpoint, azure_environment, lambda: azure_lake(endpoint)) as stages:
        yield stages


@contextlib.contextmanager
def _stage(
    folder: Path, endpoint: str, environment_of: Callable[[str], Mapping[str, str]], fresh: Callable[[], Lake]
) -> Iterator[Stages]:
    with (
        fault_proxy.serve(endpoint) as proxy,
        forked_runs(folder, environment_of(proxy.endpoint)) as runs,
    ):
        warm(runs)
        yield lambda: Stage(fresh(), proxy, runs)


def warm(runs: ForkedRuns) -> None:
    """Let runs load their code and kernels once for all: by a course over a folder."""

    def run(*args: str) -> Ran:
        runs.warm(*args)
        return Ran(0, "", "")

    lake = Folder(runs.folder / "warm")
    lake.path.mkdir()
    late_course(lake, run, runs.folder)
