"""Pages that a reader can go through, command by command, print what they show."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from support.docs_pages import DOCS, fences, rows_of
from support.in_process import wincli_here

DATA = DOCS["ten-minutes"].parent / "data"
COMMANDS = {"plan": 6, "show": 14, "ten-minutes": 13}
"""The pages, and how many commands each shows."""


@pytest.mark.parametrize("page", COMMANDS)
def test_a_reader_sees_what_the_page_shows(page: str, tmp_path: Path) -> None:
    shown = 0
    for at, language, lines in blocks(page):
        if language == "console":
            for command, text in commands(lines):
                assert comparable(printed(tmp_path, command, text)) == comparable(text), f"{page}:{at}: {command}"
                shown += 1
        elif language == "sh" and "<<END" in "\n".join(lines):
            subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, check=True)
        elif language == "yaml":
            follow(tmp_path, lines)
    assert shown == COMMANDS[page]


def blocks(page: str) -> list[tuple[int, str, list[str]]]:
    """The blocks of a page in their order, with their lines in it."""
    found = [(at, kind, lines) for kind in ("console", "yaml", "sh") for at, lines in fences(DOCS[page], kind)]
    return sorted(found)


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
    """What a command prints on stdout and stderr; a file that is not there is made as ``cat`` shows it."""
    words = shlex.split(command)
    if words[0] in ("cat", "head") and not (folder / words[-1]).exists():
        kept = DATA / words[-1]
        (folder / words[-1]).write_text(kept.read_text() if kept.exists() else f"{shown}\n")
    if words[0] != "wincli":
        return subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout
    words, cut = (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        ran = wincli_here(*words[1:], cwd=folder)
    assert ran.code in ((1, 4) if re.search("^FAIL|^damaged|^B |error:", shown, re.MULTILINE) else (0,)), ran.err
    lines = (ran.out + ran.err).splitlines()
    count = int(cut[1].removeprefix("-")) if cut else len(lines)
    return "\n".join(lines[-count:] if "tail" in cut else lines[:count])


def comparable(text: str) -> list[str]:
    """Lines without what differs between machines: seconds, sizes of pages, and where stdout and stderr meet."""
    text = re.sub(r"[\d,.]+ m?s\b(, [\d,]+ rows/s)?", "..", text)
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
