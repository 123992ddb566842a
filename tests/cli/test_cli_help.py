"""``--help``: on stdout, complete, and light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from support.heavy_modules import HEAVY
from support.places import ROOT
from support.processes import environment, wincli
from wincli.cli.main import app, app_options

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

LOADED = """
import os, sys
from wincli.cli.main import main
for words in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv = ["wincli", *words.split()]
        try:
            main()
        except SystemExit as done:
            print(f"[{words}]", done.code, *sys.modules, file=sys.stderr)
            sys.stdout.flush()
            os._exit(0)
    assert os.wait()[1] == 0
"""


def test_help_loads_nothing_heavy() -> None:
    """Each command is a fork of a process that has loaded no more than the command line."""
    asked = ["--help", "-h", "", *(f"{name} --help" for name in COMMANDS)]
    command = [sys.executable, "-c", LOADED, *asked]
    env = environment({"PYTHONPATH": str(ROOT)})
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(asked)
    for words, line in zip(asked, done.stderr.splitlines(), strict=True):
        code, *modules = line.removeprefix(f"[{words}] ").split()
        assert (words, code) == (words, "0" if words else "2")
        assert (words, HEAVY & set(modules)) == (words, set())


def test_help_names_every_option_in_groups_and_shows_examples(tmp_path: Path) -> None:
    ran = wincli("run", "--help", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert [flag for flags in app_options() for flag in flags if flag.startswith("-") and flag not in ran.out] == []
    assert 'wincli run --window "delta(ts, 60)" in/ out/' in ran.out
    assert "Exit codes: 0 ok" in ran.out
    lines = ran.out.splitlines()
    groups = [line.removesuffix(":") for line in lines if line and not line.startswith((" ", "Usage"))]
    assert groups == ["Arguments", "Window", "Input", "Output", "Incremental runs", "Spark", "Messages"]
    assert lines[0] == "Usage: wincli run [OPTIONS] [JOB.yaml] [IN]... [OUT]"
    assert max(map(len, lines[: lines.index("  Examples:")])) <= 80


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version(asked: str, tmp_path: Path) -> None:
    ran = wincli(asked, cwd=tmp_path)
    lines = dict(line.split(" ", 1) for line in ran.out.splitlines())
    assert (ran.code, ran.err) == (0, "")
    assert list(lines) == ["wincli", "pyspark", "pyarrow", "numpy", "numba", "python"]
    assert lines["python"] == ".".join(map(str, sys.version_info[:3]))
