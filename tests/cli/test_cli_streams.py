"""Runs that nobody hears: they are done all the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.blocking import block
from support.processes import MASTER, WINCLI, environment, rows, write


@pytest.mark.parametrize(
    ("way", "progress", "master"),
    [("full", "plain", []), ("closed pipe", "auto", []), ("all closed", "plain", ["--master", MASTER])],
)
def test_a_run_whose_stderr_cannot_be_written_is_done(
    tmp_path: Path, way: str, progress: str, master: list[str]
) -> None:
    write(tmp_path / "log", a__csv="ts,user\n1,a\n2,b\n100,a\n")
    before = (lambda: os.closerange(0, 3)) if way == "all closed" else None
    read, stderr = os.pipe()
    os.close(read)
    if way == "full":
        stderr = os.open("/dev/full", os.O_WRONLY)
    verbose = ["-vv"] if progress == "plain" else []
    args = ["run", *master, *verbose, "--progress", progress, "-w", "count(2)", "-a", "n=count()", "log", "out"]
    done = subprocess.run(
        [WINCLI, *args], cwd=tmp_path, env=environment(), stderr=stderr, preexec_fn=before, check=False, timeout=180
    )
    assert done.returncode == 0
    assert rows(tmp_path / "out", "n") == [2, 1]


def test_run_finishes_when_its_terminal_closes_during_the_progress_bar(tmp_path: Path) -> None:
    """As under nohup: the bar has to be drawn where nobody looks any more."""
    terminal, theirs = os.openpty()
    blocked = block(tmp_path, before=["bash", "-c", f'exec "$@" 2>{os.ttyname(theirs)}', "run"], quiet=False)
    os.close(theirs)
    os.close(terminal)
    assert blocked.go_on().code == 0
    assert rows(tmp_path / "out", "x") == [1, 100]
