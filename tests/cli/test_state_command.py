"""``wincli state`` as a command: what it asks on a terminal, and what it leaves."""

from __future__ import annotations

import datetime as dt
import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.processes import WINCLI, Ran, environment, tree, write

Run = Callable[..., Ran]
DAYS = (
    *("-w", "delta(ts, 5)", "log/d{date:%Y%m%d}.csv", "out/{date}", "--state", "st"),
    *("--start", "2026-11-01", "--end", "2026-11-03"),
)


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """A state after two days."""
    write(tmp_path / "log", d20261101__csv="id,ts\n1,10\n2,20\n", d20261102__csv="id,ts\n4,30\n")
    assert run(*DAYS).code == 0
    return tmp_path


def asked(folder: Path, answer: str, *words: str) -> tuple[int, str]:
    """Give an answer on a terminal; return the exit code and what went to stdout."""
    controller, terminal = pty.openpty()
    args = [str(WINCLI), "state", *words]
    process = subprocess.Popen(args, cwd=folder, env=environment(), stdin=terminal, stderr=terminal, stdout=-1)
    os.close(terminal)
    os.write(controller, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=60)
    os.close(controller)
    return process.returncode, out.decode()


def test_a_terminal_is_asked_and_a_no_changes_nothing(folder: Path) -> None:
    before = tree(folder)
    for answer in ("", "n"):
        code, out = asked(folder, answer, "rollback", "st", "2026-11-01")
        assert (code, out.splitlines()[-1]) == (2, "nothing was changed")
    assert tree(folder) == before
    code, out = asked(folder, "y", "rollback", "st", "2026-11-01")
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (
        0,
        "the state st will be as it was after 2026-11-01: it forgets 1 unit, 2026-11-02",
        "done",
    )
    assert sorted(path.name for path in (folder / "st").iterdir()) == [
        ".forgotten.json",
        ".wincli-state",
        "2026-11-01",
    ]
    assert (folder / "out/2026-11-02").is_dir()


HOLD = """
import sys
from wincli.cli.run.context import owner
from wincli.writers.state.state import open_state

with open_state("st", owner()):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_state_at_which_a_run_is_at_work_is_left_alone_and_taken_over_when_that_is_dead(
    folder: Path, run: Run
) -> None:
    write(folder, hold__py=HOLD)
    command = [WINCLI.with_name("python"), "hold.py"]
    process = subprocess.Popen(command, cwd=folder, text=True, stdin=-1, stdout=-1, env=environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    lock = folder / "st" / ".wincli-lock"
    told = json.loads(lock.read_text())
    assert told["pid"] == process.pid
    began = (dt.datetime.now(dt.UTC) - dt.timedelta(days=3, hours=4, minutes=5)).isoformat(timespec="seconds")
    lock.write_text(json.dumps({**told, "started": began}))  # nobody waits that long
    who = f"process {told['pid']} on {told['host']}, started {began}, 3 d 4 h ago"
    text = f"another run is writing to the state st ({who}); nothing was written"
    before = tree(folder)
    for words in (["rollback", "st", "2026-11-01", "--yes"], ["forget", "st", "2026-11-02", "--yes"], ["gc", "st"]):
        ran = wincli_here("state", *words, cwd=folder)
        assert (ran.code, f"(process {process.pid} on " in ran.err) == (3, True), ran.err
    ran = run(*DAYS, "--redo")
    assert (ran.code, ran.err) == (3, f"wincli: error: {text}; wait for it to end, or choose another state\n")
    assert tree(folder) == before
    process.kill()
    process.communicate()
    ran = run(*DAYS, "--redo")
    assert (ran.code, ran.notes[0]) == (0, f"took the state st over from a run that died ({who})")
    assert [path.name for path in (folder / "st").iterdir() if path.name.startswith(".")] == [".wincli-state"]
    assert wincli_here("state", "gc", "st", cwd=folder).out == (
        "nothing to do: st keeps what its ranges need to be corrected; --keep N keeps less\n"
    )
