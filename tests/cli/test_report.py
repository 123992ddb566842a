"""``wincli report`` as a command: the file that it writes, what it refuses to replace, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.processes import wincli
from support.report_logs import run, write_log
from wincli.cli.inspection.report.page import MARK


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    write_log(path / "log.csv")
    run(path, "-w", "gap(ts, 1h)", "-k", "user", "log.csv", "out")
    return path


def test_a_report_is_written_and_replaced(folder: Path) -> None:
    (folder / "report.html").touch()
    for _ in range(2):
        ran = wincli_here("report", "out", cwd=folder)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("wincli: report.html: ")
        assert (folder / "report.html").read_text().startswith(MARK)
    assert [path.name for path in folder.glob(".report*")] == []


def test_a_report_goes_to_stdout(folder: Path) -> None:
    ran = wincli("report", "out", "-o", "-", "--only", "user=zoe", cwd=folder)
    assert ran.out.startswith(MARK)
    assert ran.err == "wincli: note: no window has the chosen key, user zoe\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("out", "-o", "log.csv"), 2, "-o log.csv exists and is not a report of wincli; name another file"),
        (("out", "-o", "out"), 2, "-o out is a folder; name a file in it, such as out/report.html"),
        (("out", "-o", "no/r.html"), 2, "-o no/r.html: there is no folder no; make it, or name another"),
        (("out", "--only", "user"), 2, "--only user: this names no value; say it as NAME=VALUE, such as user=u7"),
        (("out", "--only", "n=1"), 2, "--only n=1: n is no column of the key; the key is user"),
        (("out", "--only", "usr=a"), 2, "--only usr=a: usr is no column of the key; did you mean user?"),
        (("gone",), 3, "there is no file or folder gone; check the path"),
        (("log.csv",), 3, "log.csv is no state and no result of wincli; name the folder of --state, or of an output"),
    ],
)
def test_mistakes_are_told_in_one_line(folder: Path, words: tuple[str, ...], code: int, text: str) -> None:
    before = (folder / "log.csv").read_bytes()
    ran = wincli_here("report", *words, cwd=folder)
    assert (ran.code, ran.out, ran.err) == (code, "", f"wincli: error: {text}\n")
    assert (folder / "log.csv").read_bytes() == before
