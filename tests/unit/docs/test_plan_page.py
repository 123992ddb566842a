"""The page on plans shows what its commands print, and names every key of their JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from unittest import mock

from support.docs_pages import DOCS, fences, rows_of
from support.in_process import wincli_here

PAGE = DOCS["plan"]


def lay_out(folder: Path) -> None:
    """Make the log of the page."""
    script = next("\n".join(block) for _, block in fences(PAGE, "sh"))
    subprocess.run(["bash", "-ec", script], cwd=folder, check=True)


def printed(folder: Path, command: str) -> str:
    """What a command of the page prints; seconds are left out, for they are those of a machine."""
    program, *args = shlex.split(command)
    if program != "wincli":
        subprocess.run([program, *args], cwd=folder, check=True)
        return ""
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        ran = wincli_here(*args, cwd=folder)
    assert ran.code == 0, ran.err
    return ran.out + ran.err


def without_seconds(text: str) -> str:
    return re.sub(r"about [\d.]+ s(, at most [\d.]+ s)?, by", "about .. s, by", text).strip()


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    lay_out(tmp_path)
    shown = 0
    for number, block in fences(PAGE, "console"):
        for part in "\n".join(block).split("\n$ "):
            command, _, text = part.removeprefix("$ ").partition("\n")
            assert without_seconds(printed(tmp_path, command)) == without_seconds(text), f"{PAGE}:{number}"
            shown += 1
    assert shown == 5


def test_every_key_of_the_json_is_in_the_table(tmp_path: Path) -> None:
    lay_out(tmp_path)
    out = wincli_here("plan", "-w", "gap(ts, 30m)", "--json", "log", "out", cwd=tmp_path).out
    found = json.loads(out)
    rows = {name: text for names, text in rows_of("plan", "For programs") for name in names.split(", ")}
    assert set(rows) == set(found)
    inner = {"units": found["units"][0], "input": found["input"], "stages": found["stages"][0]}
    assert [f"{key}: {name}" for key, value in inner.items() for name in value if name not in rows[key]] == []
