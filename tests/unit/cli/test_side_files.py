"""Files that a command writes beside its result: they take the place of nothing that is not their own."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.day_results import span
from support.in_process import done, wincli_here
from support.processes import Ran
from wincli.cli.console.side_file import SideFile, check_side_files
from wincli.windowing.errors import ConfigError

OPTIONS = ("--metrics-file", "--lineage")


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variables and no configuration of OpenLineage."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A log with an empty file in it, a table, a job, a result with a state, and a stranger's files."""
    folder = tmp_path / "here"
    (folder / "log").mkdir(parents=True)
    (folder / "log" / "a.csv").write_text("ts,user\n1,a\n2,b\n3,a\n")
    (folder / "log" / "none.csv").write_text("")
    (folder / "names.csv").write_text("user,name\na,Ann\nb,Ben\n")
    (folder / "job.yaml").write_text(
        "input: log\noutput: out\nmode: overwrite\nenrich: ['n=names.csv on user']\n"
        "stages:\n- {name: one, window: count(2), key: user, order_by: ts, output: own}\n"
        "- {name: two, window: count(1)}\n"
    )
    (folder / "stranger.txt").write_text("mine\n")
    (folder / "empty").write_text("")
    done(folder, "run", "job.yaml")
    done(folder, "run", "-w", "count(1)", "--state", "st", "log/a.csv", "units")
    return folder


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Fail where a file, a link or a name in a folder is another one at the end."""

    def content() -> dict[str, str]:
        return {
            str(path.relative_to(folder)): str(path.readlink())
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else oct(path.lstat().st_mode)
            for path in folder.rglob("*")
        }

    before = content()
    yield
    assert content() == before


def run(folder: Path, option: str, name: str) -> Ran:
    return wincli_here("run", "job.yaml", option, name, cwd=folder)


def refused(ran: Ran, words: str) -> None:
    assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran.err
    assert words in ran.err
    assert ran.out == ""


TAKEN = {
    "log/a.csv": "exists and is not",
    "log/none.csv": "is inside the input log",
    "log/new.prom": "is inside the input log",
    "names.csv": "exists and is not",
    "job.yaml": "exists and is not",
    "stranger.txt": "exists and is not",
    "out/part-00000.parquet": "is inside {here}/out, which is a result",
    "out/_SUCCESS": "is inside {here}/out, which is a result",
    "out/_wincli/manifest.json": "is inside {here}/out, which is a result",
    "own/new.prom": "is inside {here}/own, which is a result",
    "st/.wincli-state": "is inside {here}/st, which is a result, a table or a state",
    "st/.wincli-lock": "is inside {here}/st",
    ".out.wincli-lock": "is a name that wincli keeps for itself",
    "log": "is a folder",
    "no/such": "there is no folder no",
    "fifo": "is no regular file",
    "socket": "is no regular file",
    "/dev/null": "is no regular file",
    "loop": "is no regular file",
    "to-log": "exists and is not",
    "to-none": "is inside the input log",
    "to-new": "is inside the input log",
    "none-again": "is another name (a hard link) of a file of the input log",
    "": "is an empty path; name a file",
    "n" * 300: "the name is too long",
    "a\0b": "null byte",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_run_writes_over_nothing(option: str, here: Path) -> None:
    os.mkfifo(here / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(here / "socket"))
    for link, target in (("loop", "loop"), ("to-log", "log/a.csv"), ("to-none", "log/none.csv"), ("to-new", "log/new")):
        (here / link).symlink_to(target)
    (here / "none-again").hardlink_to(here / "log" / "none.csv")
    with untouched(here):
        for name, words in TAKEN.items():
            refused(run(here, option, name), words.format(here=here))


@pytest.mark.parametrize("option", OPTIONS)
def test_an_empty_file_and_its_own_are_written_and_a_link_stays(option: str, here: Path) -> None:
    (here / "link").symlink_to("elsewhere")
    for name in ("empty", "empty", "new", "link", "link"):
        done(here, "run", "job.yaml", option, name)
    assert (here / "link").readlink() == Path("elsewhere")
    assert all((here / name).stat().st_size for name in ("empty", "new", "elsewhere"))
    with untouched(here):
        refused(run(here, OPTIONS[option == OPTIONS[0]], "new"), "exists and is not")


FORMS = [
    ("log/*.csv", "log/none.csv", "is inside the input log/*.csv"),
    ("log/**", "log/m.prom", "is inside the input log/**"),
    (".", "m.prom", "is inside the input ."),
    ("/", "m.prom", "is inside the input /"),
    ("file://{here}/log", "log/m.prom", "is inside the input file://"),
    ("x/{{date:%Y/%m}}/a.csv", "x/2026/11/a.csv", "is inside the input x/"),
    ("m/in.csv", "m", "is a folder of the input m/in.csv"),
]


def test_inputs_of_every_form_are_known(here: Path) -> None:
    (here / "x/2026/11").mkdir(parents=True)
    flags = ("-w", "count(1)", *span(1, 1), "--metrics-file")
    with untouched(here):
        for given, name, words in FORMS:
            refused(wincli_here("run", *flags, name, given.format(here=here), "o2", cwd=here), words)


def test_a_file_beside_what_a_glob_or_a_template_matches_is_apart(here: Path) -> None:
    done(here, "run", "-w", "count(1)", "--metrics-file", "log/m.prom", "log/[ab].csv", "o2")
    (here / "log" / "m.prom").unlink()
    (here / "2026-11-01.csv").write_text("ts\n1\n")
    done(here, "run", "-w", "count(1)", *span(1, 1), "--metrics-file", "m.prom", "{date}.csv", "o3/{date}")


def test_a_file_that_is_an_output_or_another_side_file_is_refused_by_a_run_and_by_its_plan(here: Path) -> None:
    (here / "link").symlink_to("same")
    flags = ("run", "-w", "count(1)", "--metrics-file")
    both = ("run", "job.yaml", "--metrics-file", "same", "--lineage", "link")
    with untouched(here):
        for words, says in (
            (both, "link is that of --metrics-file itself"),
            (("plan", "job.yaml", "--metrics-file", "log/a.csv"), "exists and is not"),
            ((*flags, "o2", "log/a.csv", "o2"), "is the output o2 itself"),
            ((*flags, "o2", "log/a.csv", "o2/day"), "is a folder of the output o2/day"),
            ((*flags, "s2", "--state", "s2", "log/a.csv", "o2"), "is the state s2 itself"),
        ):
            refused(wincli_here(*words, cwd=here), says)


def test_what_comes_there_during_a_run_stays(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job file, a FIFO and a folder take the place of a side file after the check."""
    target, makes = here / "late", (lambda path: path.write_text("mine\n"), os.mkfifo, Path.mkdir)
    says = ("late exists and is not", "late is no regular file", "is a folder")
    for option, (make, said) in product(OPTIONS, zip(makes, says, strict=True)):

        def swapped(files: list[SideFile], named: list[tuple[str, str]], make: Any = make) -> None:
            check_side_files(files, named)
            make(target)

        monkeypatch.setattr("wincli.cli.monitoring.monitors.check_side_files", swapped)
        assert said in done(here, "run", "job.yaml", option, "late").err
        assert not target.is_file() or target.read_text() == "mine\n"
        assert not [path for path in here.iterdir() if path.name.startswith(".wincli-")]
        target.rmdir() if target.is_dir() else target.unlink()


OWN: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "a report": (
        ("report", "out", "-o"),
        {
            "log/a.csv": "exists and is not a report",
            "link.yaml": "exists and is not a report",
            "out/_SUCCESS": "is inside",
            "log/r.html": "is inside an input of the result",
            "out/report.html": "is inside",
            "st/report.html": "is inside",
            "log": "is a folder",
            "/dev/null": "is no regular file",
            "s3://bucket/report.html": "is no path: a report is written to a local file",
            "n" * 300: "too long",
        },
    ),
    "a report of cases": (
        ("test", "one.yaml", "--junit"),
        {
            "one.yaml": "exists and is not a report in JUnit's XML",
            "one.test.yaml": "exists and is not a report in JUnit's XML",
            "stranger.txt": "exists and is not",
            "out/_SUCCESS": "is inside",
            "log": "is a folder",
            "/dev/null": "is no regular file",
            "s3://bucket/r.xml": "is no path",
        },
    ),
    "a proposal, which replaces jobs alone": (
        ("init", "log", "--force", "-o"),
        {
            "log/a.csv": "a job file is known by its ending",
            "log/job.yaml": "is inside the input log",
            "link.yaml": "is inside the input log",
            "out/job.yaml": "is inside",
            "s3://b/job.yaml": "is no path",
        },
    ),
}


@pytest.mark.parametrize("what", OWN)
def test_a_file_that_a_command_is_for_keeps_to_its_own(what: str, here: Path) -> None:
    (here / "link.yaml").symlink_to("log/a.csv")
    (here / "one.yaml").write_text("window: count(1)\ninput: log\noutput: out\n")
    case = "cases:\n- name: x\n  given: |\n    ts\n    1\n  expect: |\n    window_id\n    0\n"
    (here / "one.test.yaml").write_text(case)
    (here / "range" / "dt=2026-11-01").mkdir(parents=True)
    command, names = OWN[what]
    with untouched(here):
        for name, words in names.items():
            refused(wincli_here(*command, name, cwd=here), words)
        refused(wincli_here("init", "log", "-o", "job.yaml", cwd=here), "job.yaml is there already")
        refused(wincli_here("report", "range", "-o", "range/r.html", cwd=here), "is inside the result range")
    for name in ("empty", "empty", "new") if command[0] != "init" else ():
        wincli_here(*command, name, cwd=here)
        assert (here / name).read_text().startswith(("<?xml", "<!doctype html>"))


def test_a_line_that_was_torn_stays_a_line_of_its_own(tmp_path: Path) -> None:
    file = SideFile("--x", str(tmp_path / "f"), "a log", "x", lambda line: line.startswith(b"{"), grows=True)
    (tmp_path / "f").write_text("{1}\n{2")
    file.append("{3}")
    file.append("{4}")
    assert (tmp_path / "f").read_text() == "{1}\n{2\n{3}\n{4}\n"


def test_a_link_that_changes_while_a_file_is_written_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("own", "theirs"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("own")

    def swapped(_: int) -> str:
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("theirs")
        return "x"

    monkeypatch.setattr("wincli.cli.console.side_file.token_hex", swapped)
    SideFile("--x", str(tmp_path / "link"), "a log", "x", lambda line: line == b"own").replace(b"new")
    assert [(tmp_path / name).read_text() for name in ("own", "theirs")] == ["new", "theirs"]


def test_a_hard_link_of_a_file_deep_in_an_input_is_found(tmp_path: Path) -> None:
    (tmp_path / "in/a/b").mkdir(parents=True)
    (tmp_path / "in/a/b/x").write_text("")
    (tmp_path / "x").hardlink_to(tmp_path / "in/a/b/x")
    file = SideFile("--x", str(tmp_path / "x"), "a log", "x", lambda _: True)
    for path in ("in", "in/*", "in/**", "in/a/b/x"):
        with pytest.raises(ConfigError, match="another name"):
            check_side_files([file], [("the input", str(tmp_path / path))])
    check_side_files([file], [("the input", str(tmp_path / "in/c"))])
