"""The recipes print what the docs say: the whole command, with Spark replaced by a loop in this process."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.docs_pages import DOCS, README, ROOT, fences
from support.in_process import wincli_here

PAGES_THAT_CAN_BE_REPEATED = [README, DOCS["recipes"], DOCS["backfill"]]


def steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the recipes and the lines that it prints."""
    for page in PAGES_THAT_CAN_BE_REPEATED:
        for _, block in fences(page, "console"):
            whole = "\n".join(block).replace("\\\n", " ")
            for step in re.split(r"^\$ ", whole, flags=re.MULTILINE)[1:]:
                command, *lines = step.splitlines()
                yield command, lines


def run_here(command: str) -> list[str]:
    """Run a command in this folder and return what it says, without how long it took."""
    words = shlex.split(command)[1:]
    ran = wincli_here(*words, *(["--progress", "none"] if words[0] == "run" else []), cwd=Path())
    return untimed((ran.out + ran.err).splitlines())


def can_run(command: str) -> bool:
    """Whether a command is one of wincli's, and what it reads is there."""
    words = shlex.split(command)
    job = any(Path(word).suffix == ".yaml" and Path(word).exists() for word in words)
    return words[:2] == ["wincli", "status"] or (words[:2] == ["wincli", "run"] and (job or Path(words[-2]).exists()))


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


def test_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _, job in fences(DOCS["backfill"], "yaml"):
        Path(job[0].removeprefix("# ")).write_text("\n".join(job))
    compared = []
    for command, lines in steps():
        if command.startswith("scripts/"):
            subprocess.run([sys.executable, *shlex.split(f"{ROOT}/{command}")], check=True)
        elif command.startswith("for "):
            subprocess.run(command, shell=True, check=True)
        elif can_run(command):
            assert run_here(command) == untimed(lines)
        elif command.startswith(("cat", "head")) and show(command, lines):
            compared.append(command)
    assert len(compared) == 21
