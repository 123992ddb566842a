"""Runs of the command line that start at once and can be killed: forks of a process that has loaded all they need.

That process runs this file as a script: JSON in, a line each, and JSON out. A run is the whole command line, with a
loop over its tasks in place of Spark; so it starts within some milliseconds, and a signal ends it alone.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.in_process import stand_ins, wincli_here
from support.places import ROOT, TESTS
from support.processes import Ran, environment
from wincli.cli.main import _main as main
from wincli.writers.places import conditional


@dataclass(frozen=True, slots=True)
class ForkedRun:
    """A run that was started. ``said``: the folder with what it wrote."""

    pid: int
    said: Path

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; no effect once it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def has_ended(self) -> bool:
        """Whether it has ended, be it that nobody has asked how."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


@dataclass(frozen=True, slots=True)
class ForkedRuns:
    """Starts runs in a folder; `forked_runs` makes one.

    ``env``: of all runs. ``lease``: how many seconds their leases hold, if not as long as ever.
    """

    process: subprocess.Popen[str]
    folder: Path
    env: Mapping[str, str]
    lease: float | None = None

    def warm(self, *args: str) -> None:
        """Let the process load what runs need, by a command on local files."""
        told = self._ask(do="warm", args=args, cwd=str(self.folder))
        assert told["code"] == 0, told["err"]

    def start(self, args: Sequence[str], env: Mapping[str, str] | None = None) -> ForkedRun:
        said = Path(tempfile.mkdtemp(dir=self.folder, prefix=".said-"))
        more = {**self.env, **(env or {})}
        told = self._ask(do="start", args=args, cwd=str(self.folder), env=more, said=str(said), lease=self.lease)
        return ForkedRun(told["pid"], said)

    def ended(self, run: ForkedRun) -> Ran:
        """Wait for the end of a run."""
        code = self._ask(do="end", pid=run.pid)["code"]
        out, err = ((run.said / name).read_text() for name in ("out", "err"))
        return Ran(code, out, err)

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        return self.ended(self.start(args, env))

    def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return dict(json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def forked_runs(folder: Path, env: Mapping[str, str]) -> Iterator[ForkedRuns]:
    """Start the process that forks runs, and end it."""
    with subprocess.Popen(
        [sys.executable, __file__],
        cwd=ROOT,
        env=environment({"PYTHONPATH": str(TESTS)}),
        text=True,
        stdin=-1,
        stdout=-1,
    ) as process:
        yield ForkedRuns(process, folder, env)
        assert process.stdin is not None
        process.stdin.close()


# The process


def _start(asked: dict[str, Any]) -> dict[str, Any]:
    """Fork a run.

    ``said``: the folder for what it writes to stdout and stderr. ``lease``: how many seconds its leases hold, if not as
    long as ever.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _run(asked)
        finally:
            os._exit(code)
    return {"pid": pid}


def _run(asked: dict[str, Any]) -> int:
    os.setsid()
    _put(0, os.devnull, os.O_RDONLY)
    _put(1, f"{asked['said']}/out", os.O_WRONLY | os.O_CREAT)
    _put(2, f"{asked['said']}/err", os.O_WRONLY | os.O_CREAT)
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    if asked["lease"] is not None:
        conditional.SECONDS, conditional._BEAT = asked["lease"], asked["lease"] / 4
    with stand_ins():
        code = main(asked["args"])
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _put(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _end(asked: dict[str, Any]) -> dict[str, Any]:
    """Wait for a run to end."""
    return {"code": os.waitstatus_to_exitcode(os.waitpid(asked["pid"], 0)[1])}


def _warm(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command in this very process, so that what it loads is there for all runs; not one that opens a store."""
    ran = wincli_here(*asked["args"], cwd=Path(asked["cwd"]))
    gc.freeze()  # or each fork would copy what it never changes
    return {"code": ran.code, "err": ran.err}


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        told = {"start": _start, "end": _end, "warm": _warm}[asked["do"]](asked)
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
