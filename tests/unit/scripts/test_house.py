"""The size of the house, measured on a made-up tree, and the limits that end the check with an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT

FILES = {
    "__init__.py": '"""All."""\n',
    "cli/__init__.py": '"""The command."""\n',
    "cli/main.py": "from .words import said\nfrom ..conf import job\nfrom ..conf.job import make\n",
    "cli/words.py": "def said():\n    # one user\n    return _once() + _twice() + _twice()\n\n\n"
    "def _once():\n    return 1\n\n\ndef _twice():\n    return 2\n",
    "conf/__init__.py": "",
    "conf/job.py": "def make():\n    return 1\n",
    "scripts/some.py": "not = counted\n",
    "tests/test_words.py": "one\ntwo\n",
    "docs/windows/page.md": "three words here\n",
    "ARCHITECTURE.md": "These are 9 files and 2 ways back.\n",
    "CHANGELOG.md": "## [Unreleased]\n\n## [2.0.0] - 2026-01-02\n\n| lines | 1,024 |\n| modules | 4 |\n\n"
    "## [1.0.0]\n\n| lines | 9 |\n| folders | 9 |\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path / name, text)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def house(tree: Path, *options: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "house", tree, *options], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_each_measure_stands_beside_the_figure_of_the_last_release(tree: Path) -> None:
    code, lines = house(tree)
    assert code == 0
    assert [line.rsplit(maxsplit=2) for line in lines[1:]] == [
        ["lines", "18", "1,024"],
        ["modules", "6", "4"],
        ["folders", "3", "-"],
        ["private functions used once", "1", "-"],
        ["modules that one module of their folder imports", "1", "-"],
        ["comments in 100 lines", "5.6", "-"],
        ["lines of tests", "2", "-"],
        ["words of docs", "39", "-"],
        ["files on the road of a row", "9", "-"],
        ["ways back on it", "2", "-"],
    ]
    assert lines[0].split() == ["now", "2.0.0"]


def test_the_table_for_a_release_is_what_the_next_one_is_compared_with(tree: Path) -> None:
    code, rows = house(tree, "--table")
    assert code == 0
    assert rows[:2] == ["| lines | 18 |", "| modules | 6 |"]
    write(tree / "CHANGELOG.md", "## [3.0.0]\n\n" + "\n".join(rows) + "\n")
    _, lines = house(tree)
    pairs = {line[:50].strip(): line.split()[-2:] for line in lines[1:]}
    del pairs["words of docs"]  # the table has words
    assert all(now == before for now, before in pairs.values())


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (["cli/long.py"], "cli/long.py has 701 lines: a file has at most 700"),
        ([f"conf/m{i}.py" for i in range(30)], "conf has 31 modules: a folder has at most 30"),
        (["cli/a/b/c/deep.py"], "cli/a/b/c is 4 levels deep: the tree has at most 3"),
    ],
)
def test_what_is_too_large_is_an_error(tree: Path, files: list[str], fault: str) -> None:
    for name in files:
        write(tree / name, "#\n" * (701 if "long" in name else 1))
    code, lines = house(tree)
    assert code == 1
    assert lines[-1] == fault


def test_the_newest_release_of_this_house_has_all_measures(tree: Path) -> None:
    """`scripts/test` measures this house itself."""
    _, rows = house(tree, "--table")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("### Lines and modules")[2]
    assert [row for row in rows if row.split(" | ")[0] not in changelog] == []
