"""A run that is stopped in the middle of its job leaves the old result, and neither files nor processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from support.blocking import block
from support.processes import Ran, ended, rows, run_args, start, tree, wincli, write

Run = Callable[..., Ran]
CALLBACK = """
import ctypes, os, signal, time

def shout():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)

ctypes.CFUNCTYPE(None)(shout)()
time.sleep(30)
"""


def names(processes: list[psutil.Process]) -> set[str]:
    return {process.name().removesuffix("3").split("3.")[0] for process in processes}


@pytest.fixture
def old(run: Run, tmp_path: Path) -> dict[str, bytes | None]:
    """An old result in ``out``, and all that is in it."""
    write(tmp_path / "older", a__csv="ts\n1\n")
    assert run("-w", "count(1)", "-a", "x=max(ts)", "older", "out").code == 0
    return tree(tmp_path / "out")


def left_beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize(
    ("stop", "code", "text"),
    [
        (signal.SIGINT, 130, "interrupted; nothing was written"),
        pytest.param(signal.SIGTERM, 143, "terminated; nothing was written", marks=pytest.mark.nightly),
    ],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_a_stopped_run_leaves_nothing(
    tmp_path: Path, old: dict[str, bytes | None], stop: signal.Signals, code: int, text: str
) -> None:
    blocked = block(tmp_path, "--mode", "overwrite")
    assert {"java", "python"} <= names(blocked.children)
    assert len(left_beside(tmp_path)) == 2  # the lock and the staging folder
    os.killpg(blocked.process.pid, stop)  # as a terminal does: to all of its group
    ran = ended(blocked.process)
    assert (ran.code, ran.out, ran.err) == (code, "", f"wincli: error: {text}\n")
    assert blocked.alive() == []
    assert left_beside(tmp_path) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert tree(tmp_path / "out") == old


WAITING = """
import pathlib, time

def wait(ts):
    if max(ts) >= 100:
        pathlib.Path("started").touch()
        time.sleep(60)
    return len(ts)
"""


@pytest.mark.parametrize(
    ("stop", "code", "what", "state"),
    [
        pytest.param(signal.SIGHUP, 129, "hung up", [], marks=pytest.mark.nightly),
        (signal.SIGQUIT, 131, "quit", ["--state", "st"]),
    ],
    ids=["SIGHUP", "SIGQUIT, with a state"],
)
def test_a_range_that_is_stopped_says_which_units_are_kept(
    tmp_path: Path, stop: signal.Signals, code: int, what: str, state: list[str]
) -> None:
    write(tmp_path, waiting__py=WAITING)
    write(tmp_path / "log", **{"2026-11-01__csv": "ts\n1\n99\n", "2026-11-02__csv": "ts\n100\n200\n"})
    days = ("--start", "2026-11-01", "--end", "2026-11-03")
    words = ["-q", "-w", "count(1)", "-a", "x=waiting:wait(ts)", *days, *state, "log/{date}.csv", "out/{date}"]
    process = start(run_args(words), tmp_path)
    while not (tmp_path / "started").exists():
        assert process.poll() is None, ended(process)
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, stop)
    text = f"{what}; done before that, and kept: 2026-11-01; the same command runs the rest"
    assert ended(process) == Ran(code, "", f"wincli: error: {text}\n")
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")) == ["2026-11-01"]


def test_a_run_under_nohup_is_not_stopped_by_a_hang_up(tmp_path: Path) -> None:
    blocked = block(tmp_path, before=["nohup"])
    os.killpg(blocked.process.pid, signal.SIGHUP)
    assert blocked.go_on().code == 0
    assert rows(tmp_path / "out", "x") == [1, 100]


def test_a_run_that_is_stopped_while_java_starts_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts\n1\n")
    (tmp_path / "tmp").mkdir()
    before = tree(tmp_path)
    process = start(run_args(["-q", "-w", "count(1)", "log", "out"]), tmp_path, {"TMPDIR": str(tmp_path / "tmp")})
    running = psutil.Process(process.pid)
    while not (children := running.children()):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == Ran(130, "", "wincli: error: interrupted; nothing was written\n")
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert tree(tmp_path) == before


def test_a_signal_that_comes_while_c_calls_back_is_not_lost(tmp_path: Path) -> None:
    """No exception leaves such a call, numba's compiler makes many; here a module makes one while it is imported."""
    write(tmp_path / "log", a__csv="ts\n1\n")
    write(tmp_path, callback__py=CALLBACK)
    ran = wincli(*run_args(["-q", "-w", "count(1)", "-a", "x=callback:f(ts)", "log", "out"]), cwd=tmp_path)
    assert ran == Ran(143, "", "wincli: error: terminated; nothing was written\n")
    assert not (tmp_path / "out").exists()


def test_a_killed_run_leaves_the_old_result_and_the_next_run_cleans_up(
    tmp_path: Path, old: dict[str, bytes | None]
) -> None:
    """Beside the result, and in the temporary folders of wincli and of Spark."""
    (tmp_path / "disk").mkdir()
    asked = ("--mode", "overwrite", "--spark-conf", f"spark.local.dir={tmp_path / 'disk'}")
    blocked = block(tmp_path, *asked)
    blocked.process.kill()
    assert ended(blocked.process).code == -signal.SIGKILL
    assert blocked.alive() == []
    assert len(left_beside(tmp_path)) == 2
    assert len([*(tmp_path / "tmp").iterdir(), *(tmp_path / "disk").iterdir()]) == 2
    assert tree(tmp_path / "out") == old
    args = run_args(["-w", "count(9)", "-a", "x=max(ts)", *asked, "log", "out"])
    ran = wincli(*args, cwd=tmp_path, env={"TMPDIR": str(tmp_path / "tmp")})
    assert (ran.code, ran.summary) == (0, "2 rows in, 1 window out, 0 rejected")
    assert rows(tmp_path / "out", "x") == [100]
    assert left_beside(tmp_path) == []
    assert [*(tmp_path / "tmp").iterdir(), *(tmp_path / "disk").iterdir()] == []
