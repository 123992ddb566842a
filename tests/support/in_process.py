"""The command line in this process: all of it is real but Spark, in whose place a loop runs the tasks."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from unittest import mock

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


@contextlib.contextmanager
def stand_ins() -> Iterator[None]:
    """Let commands of this process run without Spark."""
    with (
        mock.patch.object(wincli.cli.launch, "_boot", return_value=Here()),
        mock.patch.object(sys, "path", [*sys.path]),
        mock.patch.object(sys, "meta_path", [*sys.meta_path]),
    ):
        yield


def wincli_here(*args: str, cwd: Path) -> Ran:
    """Run ``wincli`` in a folder to its end."""
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with stand_ins(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _main([*args])
    finally:
        os.chdir(before)
    return Ran(code, out.getvalue(), err.getvalue())


def done(cwd: Path, *args: str, code: int = 0) -> Ran:
    """Run ``wincli`` in a folder to an end with this exit code."""
    ran = wincli_here(*args, cwd=cwd)
    assert ran.code == code, ran.err
    return ran
