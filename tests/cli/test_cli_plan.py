"""``wincli plan`` as a process: it needs no Java, and it writes to stdout alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.processes import WINCLI, environment, tree, wincli, write

LOG = "ts,user\n2026-11-01T00:00:00,a\n2026-11-01T00:10:00,a\n2026-11-01T02:00:00,b\n"
ARGS = ("plan", "-w", "gap(ts, 30m)", "-k", "user", "log.csv", "out")


def test_a_plan_starts_no_java_and_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path, log__csv=LOG)
    (tmp_path / "tmp").mkdir()
    before = tree(tmp_path)
    env = {"JAVA_HOME": "/nowhere", "PATH": "/nowhere", "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "80"}
    ran = wincli(*ARGS, cwd=tmp_path, env=env)
    assert (ran.code, ran.err) == (0, "")
    assert tree(tmp_path) == before
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "rows a: " in ran.out


def test_a_reader_that_has_read_enough_ends_a_plan_quietly(tmp_path: Path) -> None:
    write(tmp_path, log__csv=LOG)
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run(
        [WINCLI, *ARGS], cwd=tmp_path, env=environment(), stdout=written, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(written)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_terminal_gets_colours_unless_it_wants_none(tmp_path: Path) -> None:
    write(tmp_path, log__csv=LOG)
    coloured, plain = (_on_terminal(tmp_path, env) for env in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}))
    assert "\x1b[36m[" in coloured
    assert "\x1b" not in plain


def _on_terminal(folder: Path, env: dict[str, str]) -> str:
    """Plan with a terminal as stdout; return what it shows."""
    master, slave = os.openpty()
    subprocess.run([WINCLI, *ARGS], cwd=folder, env=environment(env), stdout=slave, stderr=subprocess.PIPE, check=True)
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += (more := os.read(master, 1 << 16))
        except OSError:  # Linux ends a terminal without a writer so
            break
        if not more:
            break
    os.close(master)
    return shown.decode()
