"""``wincli plan`` as a process: it needs no Java, and it writes to stdout alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("more", "has_colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_wants_none(tmp_path: Path, more: dict[str, str], has_colours: bool) -> None:
    write(tmp_path, log__csv=LOG)
    shown, terminal = os.openpty()
    env = environment({"TERM": "xterm", **more})
    subprocess.run([WINCLI, *ARGS], cwd=tmp_path, env=env, stdout=terminal, stderr=subprocess.PIPE, check=True)
    text = os.read(shown, 1 << 16)
    assert (b"rows a: " in text, b"\x1b[" in text) == (True, has_colours)
    for each in (shown, terminal):
        os.close(each)
