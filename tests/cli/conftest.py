"""Commands in this process, without Spark or on that of all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from support.in_process import wincli_here
from support.processes import Ran, run_args, tree
from wincli.windowing.spark.boot import SparkExecutor


@pytest.fixture(scope="session", autouse=True)
def default_signals() -> Iterator[None]:
    """Give child processes the default signals, also where the tests themselves were started under nohup."""
    ignored = [each for each in (signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(each) == signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """``wincli run`` in the test's folder and this process, a loop in place of Spark: its arguments, and ``env``."""

    def call(*args: str, env: dict[str, str] | None = None) -> Ran:
        with mock.patch.dict(os.environ, env or {}):
            return wincli_here("run", *args, cwd=tmp_path)

    return call


@pytest.fixture
def spark_run(session: SparkExecutor, tmp_path: Path) -> Callable[..., Ran]:
    """``wincli run`` in the test's folder, on Spark."""
    return lambda *args: wincli_here(*run_args(args), cwd=tmp_path, spark=session)


@pytest.fixture
def fails(run: Callable[..., Ran], tmp_path: Path) -> Callable[..., None]:
    """``wincli run`` that must end with an exit code and a whole text on stderr, and leave nothing at all."""

    def call(code: int, text: str, *args: str) -> None:
        before = tree(tmp_path)
        ran = run("-q", *args)
        assert (ran.code, ran.out, ran.err) == (code, "", f"wincli: error: {text}\n")
        assert tree(tmp_path) == before

    return call
