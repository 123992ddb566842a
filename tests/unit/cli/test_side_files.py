"""Files that a command writes beside its result: they take the place of nothing that is not their own."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.in_process import wincli_here
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
    ran = wincli_here("run", "job.yaml", cwd=folder)
    assert ran.code == 0, ran.err
    ran = wincli_here("run", "-w", "count(1)", "--state", "st", "log/a.csv", "units", cwd=folder)
    assert ran.code == 0, ran.err
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


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("log/a.csv", "exists and is not"),
        ("log/none.csv", "is inside the input log"),
        ("log/new.prom", "is inside the input log"),
        ("names.csv", "exists and is not"),
        ("job.yaml", "exists and is not"),
        ("stranger.txt", "exists and is not"),
        ("out/part-00000.parquet", "is inside {here}/out, which is a result"),
        ("out/_SUCCESS", "is inside {here}/out, which is a result"),
        ("out/_wincli/manifest.json", "is inside {here}/out, which is a result"),
        ("own/new.prom", "is inside {here}/own, which is a result"),
        ("st/.wincli-state", "is inside {here}/st, which is a result, a table or a state"),
        ("st/.wincli-lock", "is inside {here}/st"),
        (".out.wincli-lock", "is a name that wincli keeps for itself"),
        ("log", "is a folder"),
        ("no/such", "there is no folder no"),
        ("fifo", "is no regular file"),
        ("socket", "is no regular file"),
        ("/dev/null", "is no regular file"),
        ("loop", "is no regular file"),
        ("to-log", "exists and is not"),
        ("to-none", "is inside the input log"),
        ("to-new", "is inside the input log"),
        ("none-again", "is another name (a hard link) of a file of the input log"),
        ("", "is an empty path; name a file"),
        ("n" * 300, "the name is too long"),
        ("a\0b", "null byte"),
    ],
)
def test_a_run_writes_over_nothing(option: str, name: str, words: str, here: Path) -> None:
    os.mkfifo(here / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(here / "socket"))
    for link, target in (("loop", "loop"), ("to-log", "log/a.csv"), ("to-none", "log/none.csv"), ("to-new", "log/new")):
        (here / link).symlink_to(target)
    (here / "none-again").hardlink_to(here / "log" / "none.csv")
    with untouched(here):
        refused(run(here, option, name), words.format(here=here))


@pytest.mark.parametrize("option", OPTIONS)
def test_an_empty_file_and_its_own_are_written_and_a_link_stays(option: str, here: Path) -> None:
    (here / "link").symlink_to("elsewhere")
    for name in ("empty", "empty", "new", "link", "link"):
        ran = run(here, option, name)
        assert ran.code == 0, ran.err
    assert (here / "link").readlink() == Path("elsewhere")
    assert all((here / name).stat().st_size for name in ("empty", "new", "elsewhere"))
    other = OPTIONS[option == OPTIONS[0]]
    with untouched(here):
        refused(run(here, other, "new"), "exists and is not")


@pytest.mark.parametrize(
    ("inputs", "name", "words"),
    [
        (["log/*.csv"], "log/none.csv", "is inside the input log/*.csv"),
        (["log/**"], "log/m.prom", "is inside the input log/**"),
        (["."], "m.prom", "is inside the input ."),
        (["/"], "m.prom", "is inside the input /"),
        (["file://{here}/log"], "log/m.prom", "is inside the input file://"),
        (["x/{{date:%Y/%m}}/a.csv"], "x/2026/11/a.csv", "is inside the input x/"),
        (["m/in.csv"], "m", "is a folder of the input m/in.csv"),
    ],
)
def test_inputs_of_every_form_are_known(inputs: list[str], name: str, words: str, here: Path) -> None:
    (here / "x/2026/11").mkdir(parents=True)
    flags = ("-w", "count(1)", "--start", "2026-11-01", "--end", "2026-11-02", "--metrics-file", name)
    with untouched(here):
        refused(wincli_here("run", *flags, *(each.format(here=here) for each in inputs), "o2", cwd=here), words)


def test_a_file_beside_what_a_glob_or_a_template_matches_is_apart(here: Path) -> None:
    ran = wincli_here("run", "-w", "count(1)", "--metrics-file", "log/m.prom", "log/[ab].csv", "o2", cwd=here)
    assert ran.code == 0, ran.err
    (here / "log" / "m.prom").unlink()
    span = ("--start", "2026-11-01", "--end", "2026-11-02")
    (here / "2026-11-01.csv").write_text("ts\n1\n")
    ran = wincli_here("run", "-w", "count(1)", *span, "--metrics-file", "m.prom", "{date}.csv", "o3/{date}", cwd=here)
    assert ran.code == 0, ran.err


def test_two_side_files_are_two_files(here: Path) -> None:
    (here / "link").symlink_to("same")
    with untouched(here):
        ran = wincli_here("run", "job.yaml", "--metrics-file", "same", "--lineage", "link", cwd=here)
        refused(ran, "--lineage link is that of --metrics-file itself")


def test_a_file_that_is_an_output_is_refused(here: Path) -> None:
    with untouched(here):
        flags = ("-w", "count(1)", "--metrics-file")
        refused(wincli_here("run", *flags, "o2", "log/a.csv", "o2", cwd=here), "is the output o2 itself")
        refused(wincli_here("run", *flags, "o2", "log/a.csv", "o2/day", cwd=here), "is a folder of the output o2/day")
        flags = (*flags, "s2", "--state", "s2")
        refused(wincli_here("run", *flags, "log/a.csv", "o2", cwd=here), "is the state s2 itself")


def test_a_plan_refuses_what_the_run_would_refuse(here: Path) -> None:
    with untouched(here):
        refused(wincli_here("plan", "job.yaml", "--metrics-file", "log/a.csv", cwd=here), "exists and is not")


def test_what_comes_there_during_a_run_stays(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job file, a FIFO and a folder take the place of a side file after the check."""

    def swapped(files: list[SideFile], named: list[tuple[str, str]]) -> None:
        check_side_files(files, named)
        made()

    monkeypatch.setattr("wincli.cli.monitoring.monitors.check_side_files", swapped)
    for option in OPTIONS:
        for make in (lambda path: path.write_text("mine\n"), os.mkfifo, Path.mkdir):
            target = here / "late"

            def made(make=make, target=target) -> None:
                make(target)

            ran = run(here, option, "late")
            assert ran.code == 0, ran.err
            assert (
                "late exists and is not" in ran.err or "late is no regular file" in ran.err or "is a folder" in ran.err
            )
            assert not target.is_file() or target.read_text() == "mine\n"
            assert not [path for path in here.iterdir() if path.name.startswith(".wincli-")]
            target.rmdir() if target.is_dir() else target.unlink()


def test_a_report_keeps_to_its_own(here: Path) -> None:
    (here / "link").symlink_to("log/a.csv")
    for name, words in {
        "log/a.csv": "exists and is not a report",
        "job.yaml": "exists and is not a report",
        "link": "exists and is not a report",
        "out/_SUCCESS": "is inside",
        "log/r.html": "is inside an input of the result",
        "out/report.html": "is inside",
        "st/report.html": "is inside",
        "log": "is a folder",
        "/dev/null": "is no regular file",
        "s3://bucket/report.html": "is no path: a report is written to a local file",
        "n" * 300: "too long",
    }.items():
        with untouched(here):
            refused(wincli_here("report", "out", "-o", name, cwd=here), words)
    for name in ("empty", "empty", "r.html"):
        assert wincli_here("report", "out", "-o", name, cwd=here).code == 0
    (here / "range" / "dt=2026-11-01").mkdir(parents=True)
    with untouched(here):
        refused(wincli_here("report", "range", "-o", "range/r.html", cwd=here), "is inside the result range")


def test_a_report_of_cases_keeps_to_its_own(here: Path) -> None:
    (here / "one.yaml").write_text("window: count(1)\ninput: log\noutput: out\n")
    (here / "one.test.yaml").write_text(
        "cases:\n- name: x\n  given: |\n    ts\n    1\n  expect: |\n    window_id\n    0\n"
    )
    for name, words in {
        "one.yaml": "exists and is not a report in JUnit's XML",
        "one.test.yaml": "exists and is not a report in JUnit's XML",
        "stranger.txt": "exists and is not",
        "out/_SUCCESS": "is inside",
        "log": "is a folder",
        "/dev/null": "is no regular file",
        "s3://bucket/r.xml": "is no path",
    }.items():
        with untouched(here):
            refused(wincli_here("test", "one.yaml", "--junit", name, cwd=here), words)
    for name in ("empty", "empty", "r.xml"):
        wincli_here("test", "one.yaml", "--junit", name, cwd=here)
        assert (here / name).read_text().startswith("<?xml")


def test_a_proposal_replaces_jobs_alone_and_only_where_it_is_told_to(here: Path) -> None:
    (here / "link.yaml").symlink_to("log/a.csv")
    for flags, words in {
        ("-o", "log/a.csv", "--force"): "a job file is known by its ending",
        ("-o", "log/job.yaml"): "is inside the input log",
        ("-o", "link.yaml", "--force"): "is inside the input log",
        ("-o", "out/job.yaml"): "is inside",
        ("-o", "job.yaml"): "job.yaml is there already",
        ("-o", "s3://b/job.yaml"): "is no path",
    }.items():
        with untouched(here):
            refused(wincli_here("init", "log", *flags, cwd=here), words)


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
