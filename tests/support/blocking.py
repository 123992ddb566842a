"""A run that waits in the middle of its job until it is told to go on: a user function does the waiting."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from support.processes import MASTER, Ran, ended, start, write

_MODULE = """
import pathlib, time

def wait(values):
    pathlib.Path({started!r}).touch()
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.02)
    return float(values[-1])
"""
_PATIENCE = 60.0


@dataclass(slots=True)
class Blocked:
    """``wincli run`` over two rows in ``folder``, standing in its aggregate; ``children``: all it has started."""

    folder: Path
    process: subprocess.Popen[str]
    children: list[psutil.Process] = field(default_factory=list)

    def go_on(self) -> Ran:
        (self.folder / "go").touch()
        return ended(self.process)

    def alive(self) -> list[psutil.Process]:
        """The children that still run a minute later."""
        return psutil.wait_procs(self.children, timeout=_PATIENCE)[1]


def block(folder: Path, *more: str, before: Sequence[str] = (), quiet: bool = True) -> Blocked:
    """Start a run from ``log`` to ``out`` and return when it is in the middle of its job; ``before``: as `start`."""
    write(folder / "log", a__csv="ts,user\n1,a\n100,a\n")
    (folder / "tmp").mkdir()
    write(folder, waiting__py=_MODULE.format(started=str(folder / "started"), go=str(folder / "go")))
    window = ["--master", MASTER, "-w", "delta(ts,60)", "-a", "x=waiting:wait(ts)"]
    args = ["run", *(["-q"] if quiet else []), *window, *more, "log", "out"]
    blocked = Blocked(folder, start(args, folder, {"TMPDIR": str(folder / "tmp")}, before))
    deadline = time.monotonic() + _PATIENCE
    while not (folder / "started").exists():
        assert blocked.process.poll() is None, ended(blocked.process)
        assert time.monotonic() < deadline
        time.sleep(0.02)
    blocked.children = psutil.Process(blocked.process.pid).children(recursive=True)
    (folder / "started").unlink()
    return blocked
