"""The recipes of the README print what it says: the whole command, with Spark replaced by a loop in this process."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli import main
from cli.asked import read_job
from cli.messages import Messages
from cli.pipeline import run_job
from tests.docs_pages import README, ROOT, fences

RUN: Any = typer.main.get_command(main.app).commands["run"]  # type: ignore[attr-defined]


class Here:
    """What stands in for Spark that starts, and for its session."""

    on_progress: Any = None

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None: ...

    def session(self) -> Here:
        return self

    def each(self, _: str, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]


def steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the recipes and the lines that it prints."""
    text = README.read_text(encoding="utf-8")
    first = text[: text.index("## Recipes")].count("\n")
    for at, block in fences(README, "console"):
        if at > first:
            whole = "\n".join(block).replace("\\\n", " ")
            for step in re.split(r"^\$ ", whole, flags=re.MULTILINE)[1:]:
                command, *lines = step.splitlines()
                yield command, lines


def run_here(command: str, errors: pytest.CaptureFixture[str]) -> list[str]:
    """Run ``wincli run`` and return what it says, without how long it took."""
    params = RUN.make_context("run", shlex.split(command)[2:]).params
    asked = {name: value or None for name, value in params.items() if name not in ("quiet", "verbose")}
    errors.readouterr()
    messages = Messages(-1 if params["quiet"] else 0)
    run_job(read_job({**asked, "progress": "none"}), Here(), messages, time.perf_counter())  # type: ignore[arg-type]
    return untimed(errors.readouterr().err.splitlines())


def untimed(lines: list[str]) -> list[str]:
    return [re.sub(r", [\d.,]+ s, [\d,]+ rows?/s", "", line) for line in lines]


def show(command: str, lines: list[str]) -> bool:
    """Compare what ``cat`` or ``head`` prints, or make the inputs that the recipe shows. Return whether it compared."""
    words = shlex.split(command)
    if words[-1].endswith("/*"):
        for shown in re.split(r"^==> ", "\n".join(lines), flags=re.MULTILINE)[1:]:
            name, _, content = shown.partition(" <==\n")
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(content.rstrip("\n") + "\n")
        return False
    path = Path(words[-1])
    if len(path.parts) == 1:
        path.write_text("\n".join(lines) + "\n")
        return False
    if not path.exists():
        return False
    count = int(words[1].lstrip("-")) if words[0] == "head" else None
    assert path.read_text().splitlines()[:count] == lines
    return True


def test_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    compared = []
    for command, lines in steps():
        if command.startswith("scripts/"):
            subprocess.run([sys.executable, *shlex.split(f"{ROOT}/{command}")], check=True)
        elif command.startswith("wincli run") and Path(shlex.split(command)[-2]).exists():
            assert run_here(command, capsys) == untimed(lines)
        elif command.startswith(("cat", "head")) and show(command, lines):
            compared.append(command)
    assert len(compared) == 12
