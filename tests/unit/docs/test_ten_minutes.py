"""The page "Ten minutes with your own log" is gone through as a reader would, command by command."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from unittest import mock

from support.docs_pages import DOCS, fences
from support.in_process import wincli_here

PAGE = DOCS["ten-minutes"]


def test_a_reader_sees_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "commits.csv").write_bytes((PAGE.parent / "data" / "commits.csv").read_bytes())
    shown = []
    for at, language, lines in blocks():
        if language == "yaml":
            follow(tmp_path, lines)
            continue
        for part in "\n".join(lines).split("\n$ "):
            command, _, text = part.removeprefix("$ ").partition("\n")
            assert comparable(printed(tmp_path, command)) == comparable(text), f"{PAGE}:{at}: {command}"
            shown.append(command.split()[1])
    assert set(shown) >= {"init", "plan", "run", "show", "why", "diff", "report", "test"}
    assert (tmp_path / "work.html").stat().st_size < 2_000_000


def blocks() -> list[tuple[int, str, list[str]]]:
    """The blocks of the page in their order, with their lines in it."""
    return sorted((at, language, lines) for language in ("console", "yaml") for at, lines in fences(PAGE, language))


def follow(folder: Path, lines: list[str]) -> None:
    """Compare the job that the page shows with that of the reader, or write the cases."""
    if lines[0] == "# work.yaml":
        job = (folder / "work.yaml").read_text(encoding="utf-8")
        assert [line for line in job.splitlines() if line and line[0] != "#"] == lines[1:]
        return
    assert lines[0] == "# work.test.yaml"
    (folder / "work.test.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def printed(folder: Path, command: str) -> str:
    """What a command prints on stdout and stderr; ``| head -N`` keeps its first lines."""
    words = shlex.split(command)
    if words[0] != "wincli":
        return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    lines = None
    if "|" in words:
        words, head = words[: words.index("|")], words[words.index("|") :]
        lines = int(head[2].removeprefix("-"))
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        ran = wincli_here(*words[1:], cwd=folder)
    assert ran.code == (1 if words[1] == "diff" or "FAIL" in ran.out else 0), ran.err
    return "\n".join((ran.out + ran.err).splitlines()[:lines])


def comparable(text: str) -> list[str]:
    """Lines without what differs between machines: seconds, and where stdout and stderr meet."""
    text = re.sub(r"[\d,.]+ m?s\b(, [\d,]+ rows/s)?", "..", text)
    text = re.sub(r"[\d.]+ KiB, open", ".. KiB, open", text)
    return sorted(line.rstrip() for line in text.splitlines() if "note: scanning" not in line and line.strip())
