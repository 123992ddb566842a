"""Runs of the command line that start at once and can be killed: forks of the process in `support.fork_server`."""

from __future__ import annotations

import contextlib
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

from support.places import ROOT, TESTS
from support.processes import Ran, environment


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
    script = str(Path(__file__).with_name("fork_server.py"))
    with subprocess.Popen(
        [sys.executable, script], cwd=ROOT, env=environment({"PYTHONPATH": str(TESTS)}), text=True, stdin=-1, stdout=-1
    ) as process:
        yield ForkedRuns(process, folder, env)
        assert process.stdin is not None
        process.stdin.close()
