"""The command line in this process: all of it is real but Spark, which was there before or is a loop over the tasks."""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from unittest import mock

import wincli.cli.console.progress
import wincli.cli.launch
from support.processes import Ran
from wincli.cli.main import _main
from wincli.windowing.local_executor import LocalExecutor


class Session(LocalExecutor):
    """A local executor with what the command line sees of a session of Spark besides."""

    on_progress: Any = None
    is_open = False
    __setattr__ = object.__setattr__


class BootStandIn:
    """Stands where a command has its `SparkBoot`, with nothing to start or close; subclasses give the session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start_fork_server(self) -> None: ...

    def connect(self) -> None: ...

    def warm(self, call: Callable[..., object], *arguments: Any) -> None:
        call(*arguments)

    def close(self) -> None: ...


class Here(BootStandIn):
    """Stands in for Spark that starts."""

    def session(self) -> Session:
        return Session()


class Shared(BootStandIn):
    """Stands in for Spark that starts, and is still there when the command has closed it. ``running``: its session."""

    def __init__(self, running: Any) -> None:
        self.running = running

    def __exit__(self, *_: object) -> None:
        self.running.on_progress = None

    def session(self) -> Any:
        return self.running


@contextlib.contextmanager
def stand_ins(spark: Any = None) -> Iterator[None]:
    """Let commands of this process run on a session of Spark, or without one; what they say hangs on no clock."""
    boot = Here() if spark is None else Shared(spark)
    with (
        mock.patch.object(wincli.cli.launch, "_boot", return_value=boot),
        mock.patch.object(wincli.cli.console.progress, "_SECONDS_BETWEEN_LINES", math.inf),
        mock.patch.object(sys, "path", [*sys.path]),
        mock.patch.object(sys, "meta_path", [*sys.meta_path]),
    ):
        yield


def wincli_here(*args: str, cwd: Path, spark: Any = None) -> Ran:
    """Run ``wincli`` in a folder to its end. ``spark``: as `stand_ins` has it."""
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with stand_ins(spark), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _main([*args])
    finally:
        os.chdir(before)
    return Ran(code, out.getvalue(), err.getvalue())


def done(cwd: Path, *args: str, code: int = 0) -> Ran:
    """Run ``wincli`` in a folder to an end with this exit code."""
    ran = wincli_here(*args, cwd=cwd)
    assert ran.code == code, ran.err
    return ran
