"""Pages that a reader can go through, command by command, print what they show; Spark is a loop in this process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from support.docs_pages import DOCS, README, ROOT, fences, rows_of
from support.in_process import wincli_here

DATA = DOCS["ten-minutes"].parent / "data"
WALKS = ("README", "plan", "show", "ten-minutes", "recipes", "phrasebook", "backfill")
"""The pages, of which each shows six commands or more."""


@pytest.mark.parametrize("page", [*WALKS, "windows/patterns", "windows/joins"])
def test_a_reader_sees_what_the_page_shows(page: str, tmp_path: Path) -> None:
    path, shown = README if page == "README" else DOCS[page], 0
    blocks = ((at, kind, lines) for kind in ("console", "yaml", "sh") for at, lines in fences(path, kind))
    for at, kind, lines in sorted(blocks):
        if kind == "console":
            for command, text in commands(lines):
                found = printed(tmp_path, command, text)
                assert comparable(command, found) == comparable(command, text), f"{page}:{at}: {command}"
                shown += 1
        elif kind == "sh" and "<<END" in "\n".join(lines):
            subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, check=True)
        elif kind == "yaml" and lines[0].startswith("# "):
            follow(tmp_path, lines)
    assert shown >= (6 if page in WALKS else 1)


def commands(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The commands of a block, and what they print."""
    for part in "\n".join(lines).replace("\\\n", " ").split("\n$ "):
        command, _, text = part.removeprefix("$ ").partition("\n")
        yield command, text


def follow(folder: Path, lines: list[str]) -> None:
    """Compare a job that the page shows with that of the reader, or write the file that it shows."""
    path = folder / lines[0].removeprefix("# ")
    if path.exists():
        job = path.read_text(encoding="utf-8")
        assert [line for line in job.splitlines() if line and line[0] != "#"] == lines[1:]
    else:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def printed(folder: Path, command: str, shown: str) -> str:
    """What a command prints on stdout and stderr; files that are not there are made as they are shown."""
    command, _, sieve = command.partition(" | ")
    words = shlex.split(command)
    if words[0] in ("cat", "head") and not [*folder.glob(words[-1])]:
        files = re.findall(r"^==> (.*) <==\n((?:(?!==> ).*\n?)*)", shown, re.MULTILINE) or [(words[-1], shown)]
        for name, text in files:
            (folder / name).parent.mkdir(exist_ok=True)
            kept = DATA / name
            (folder / name).write_text(kept.read_text() if kept.exists() else f"{text.rstrip()}\n")
    if words[0] == "wincli":
        with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
            ran = wincli_here(*words[1:], cwd=folder)
        assert ran.code in ((1, 4) if re.search("^FAIL|^damaged|^B |error:", shown, re.MULTILINE) else (0,)), ran.err
        text, run = ran.out + ran.err, sieve or "cat"
    else:
        text, run = "", f"{sys.executable} {ROOT}/{command}" if words[0].startswith("scripts/") else command
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return str(subprocess.run(run, shell=True, check=True, cwd=folder, input=text, text=True, **both).stdout)


def comparable(command: str, text: str) -> list[str]:
    """Lines without what differs between machines: seconds, sizes of pages, and where stdout and stderr meet."""
    if not command.startswith(("wincli", "scripts/")):
        return text.rstrip().splitlines()
    text = re.sub(r"[\d,.]+ m?s\b(, [\d,]+ rows?/s)?", "..", text)
    text = re.sub(r"[\d.]+ KiB, open", ".. KiB, open", text)
    return sorted(line.rstrip() for line in text.splitlines() if "note: scanning" not in line and line.strip())


def test_every_key_of_the_json_of_a_plan_is_in_the_table(tmp_path: Path) -> None:
    _, setting = next(fences(DOCS["plan"], "sh"))
    subprocess.run(["bash", "-ec", "\n".join(setting)], cwd=tmp_path, check=True)
    found = json.loads(wincli_here("plan", "-w", "gap(ts, 30m)", "--json", "log", "out", cwd=tmp_path).out)
    rows = {name: text for names, text in rows_of("plan", "For programs") for name in names.split(", ")}
    assert set(rows) == set(found)
    inner = {"units": found["units"][0], "input": found["input"], "stages": found["stages"][0]}
    assert [f"{key}: {name}" for key, value in inner.items() for name in value if name not in rows[key]] == []
