"""``wincli state`` as a command: what it asks on a terminal, and what it leaves."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.processes import WINCLI, Ran, environment, tree, wincli, write

Run = Callable[..., Ran]


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """A state after two days."""
    write(tmp_path / "log", d20261101__csv="id,ts\n1,10\n2,20\n", d20261102__csv="id,ts\n4,30\n")
    days = ("--start", "2026-11-01", "--end", "2026-11-03")
    assert run("-w", "delta(ts, 5)", "log/d{date:%Y%m%d}.csv", "out/{date}", "--state", "st", *days).code == 0
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


def test_a_state_at_which_a_run_is_at_work_is_left_alone(folder: Path) -> None:
    holder = folder / "hold.py"
    holder.write_text(
        "import sys\n"
        "from wincli.cli.run.context import owner\n"
        "from wincli.writers.state.state import open_state\n"
        "with open_state('st', owner()):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    python = WINCLI.with_name("python")
    process = subprocess.Popen([python, holder], cwd=folder, text=True, stdin=-1, stdout=-1, env=environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    for words in (["rollback", "st", "2026-11-01", "--yes"], ["forget", "st", "2026-11-02", "--yes"], ["gc", "st"]):
        ran = wincli("state", *words, cwd=folder)
        assert ran.code == 3
        assert "another run" in ran.err
    process.communicate("\n", timeout=60)
    assert wincli("state", "gc", "st", cwd=folder).out == (
        "nothing to do: st keeps what its ranges need to be corrected; --keep N keeps less\n"
    )
