"""Outputs that users name by mistake, outputs through links, and jobs of very many stages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.in_process import done, wincli_here
from support.processes import Ran, manifest

RUN = ("run", "-w", "count(1)")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ts,user\n1,a\n2,b\n")
    return tmp_path


def refused(ran: Ran, words: str, code: int = 2) -> None:
    assert (ran.code, words in ran.err, "unexpected" in ran.err) == (code, True, False), ran.err


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/dev/null", "output /dev/null is not a folder"),
        (".", "output . contains the job file job.yaml"),
        ("..", "output .. contains the job file job.yaml"),
        ("/", "output / is a mount point"),
        ("''", "output is an empty path; name a file or folder"),
        ('"a\\0b"', "output has a path with a null byte"),
        ("in/a.csv", "output in/a.csv is inside the input in"),
        ("fifo", "output fifo is not a folder"),
    ],
)
def test_an_output_that_cannot_be_one_is_told_in_a_line_by_run_and_plan(output: str, words: str, here: Path) -> None:
    os.mkfifo(here / "fifo")
    (here / "job.yaml").write_text(f"window: count(1)\ninput: in\noutput: {output}\n")
    (here / "two.yaml").write_text(
        f"input: in\noutput: o\nstages:\n- {{window: count(1), output: {output}}}\n- window: count(1)\n"
    )
    for command in ("run", "plan"):
        refused(wincli_here(command, "job.yaml", cwd=here), words)
    ran = wincli_here("run", "two.yaml", cwd=here)
    refused(ran, "wincli: error: " if output in (".", "..") else words)


def test_an_output_over_its_own_job_file_or_enrich_table_is_refused(here: Path) -> None:
    (here / "job.yaml").write_text("window: count(1)\ninput: in\noutput: out\n")
    done(here, "run", "job.yaml")
    (here / "job.yaml").rename(here / "out" / "job.yaml")
    (here / "out" / "names.csv").write_text("user,name\na,Ann\n")
    ran = wincli_here("run", "out/job.yaml", "--mode", "overwrite", "--plain", cwd=here)
    refused(ran, "output out contains the job file out/job.yaml; choose an output folder apart from it")
    flags = ("--mode", "overwrite", "--enrich", "n=out/names.csv on user")
    for command in ("run", "plan"):
        ran = wincli_here(command, *RUN[1:], *flags, "in", "out", cwd=here)
        refused(ran, "output out contains the enrich table out/names.csv")
    assert (here / "out" / "job.yaml").exists()


def test_a_state_among_what_is_read_is_refused(here: Path) -> None:
    for state, words in (("in/st", "is inside the input in"), ("in", "is the input in itself"), (".", "contains the")):
        for command in ("run", "plan"):
            ran = wincli_here(command, *RUN[1:], "--state", state, "in", "/nowhere/out", cwd=here)
            refused(ran, f"state {state} {words}")
    assert [path.name for path in (here / "in").iterdir()] == ["a.csv"]
    done(here, *RUN, "--state", "in/st", "in/*.csv", "out")


# Links


def test_a_link_stays_and_its_target_is_written_or_replaced(here: Path) -> None:
    (here / "latest").symlink_to("deep/result")
    done(here, *RUN, "in", "latest")
    before = (here / "deep/result").stat().st_ino
    assert manifest(here / "deep/result")["rows_out"] == 2
    done(here, *RUN, "--mode", "overwrite", "--plain", "in", "latest")
    assert (here / "latest").readlink() == Path("deep/result")
    assert (here / "deep/result").stat().st_ino != before
    assert [path.name for path in (here / "deep").iterdir()] == ["result"]


@pytest.mark.parametrize(
    ("target", "words", "code"),
    [
        ("theirs", "output link is not empty and was not written by wincli; nothing was touched", 2),
        ("theirs/x", "output link is not a folder", 2),
        ("link", "cannot write link: Too many levels of symbolic links; nothing was written", 3),
    ],
)
def test_a_link_to_anything_else_is_refused(target: str, words: str, code: int, here: Path) -> None:
    (here / "theirs").mkdir()
    (here / "theirs" / "x").write_text("mine")
    (here / "link").symlink_to(target)
    refused(wincli_here(*RUN, "--mode", "overwrite", "in", "link", cwd=here), words, code)
    assert (here / "link").readlink() == Path(target)
    assert (here / "theirs" / "x").read_text() == "mine"


# Many stages


def stages(count: int, output: str = "") -> str:
    lines = [f"- {{name: s{index}, window: count(1){output.format(index)}}}" for index in range(count - 1)]
    return "\n".join(["input: in", "output: o", "stages:", *lines, "- {name: last, window: count(1)}", ""])


def test_a_hundred_stages_with_outputs_are_planned_and_more_than_a_thousand_are_a_mistake(here: Path) -> None:
    (here / "job.yaml").write_text(stages(1001))
    refused(wincli_here("plan", "job.yaml", cwd=here), "job.yaml:4: stages are 1,001, and each adds a column")
    (here / "job.yaml").write_text(stages(100, ", output: outs/{}"))
    done(here, "plan", "job.yaml", "--rows", "0")
