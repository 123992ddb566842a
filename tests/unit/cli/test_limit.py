"""``--limit``: a first look at an input, through stages, in the summary, the manifest and the plan; what refuses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.in_process import wincli_here
from support.processes import Ran, manifest, rows, tree, write

STAGES = """\
input: log
output: out
limit: 7
stages:
  - name: pairs
    window: count(2)
    agg: ["n=count()", "last=max(n)"]
    output: pairs
  - name: all
    window: count(3)
    agg: ["pairs=count()", "rows=sum(n)"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three files with five rows each."""
    for number in range(3):
        lines = [f"{number}{at},{number * 5 + at}" for at in range(5)]
        write(tmp_path / "log", **{f"f{number}__csv": "ts,n\n" + "\n".join([*lines, ""])})
    return tmp_path


def run(folder: Path, *words: str) -> Ran:
    return wincli_here("run", "-w", "count(2)", "-a", "last=max(n)", *words, cwd=folder)


def last_of(folder: Path, out: str) -> list[Any]:
    return rows(folder / out, "last")


def test_the_first_rows_are_read_and_the_summary_and_the_manifest_say_so(folder: Path) -> None:
    ran = run(folder, "log", "out", "--limit", "7")
    assert ran.code == 0, ran.err
    assert "7 rows in, 4 windows out, 0 rejected, the input was cut at 7 rows (--limit), " in ran.err
    assert last_of(folder, "out") == [1, 3, 5, 6]
    told = manifest(folder / "out")
    assert (told["inputs_cut_at"], told["job"]["limit"], told["counts"]["rows_in"]) == (7, 7, 7)
    assert [Path(file["path"]).name for file in told["inputs"]] == ["f0.csv", "f1.csv"]
    assert wincli_here("verify", "out", cwd=folder).code == 0


@pytest.mark.parametrize("limit", ["15", "99"])
def test_an_input_that_has_no_more_rows_is_not_cut(folder: Path, limit: str) -> None:
    ran = run(folder, "log", "out", "--limit", limit)
    assert "15 rows in" in ran.err
    assert "cut" not in ran.err
    assert manifest(folder / "out")["inputs_cut_at"] is None
    run(folder, "log", "whole")
    assert last_of(folder, "out") == last_of(folder, "whole")


def test_a_first_look_goes_through_stages_and_comes_from_a_job_file(folder: Path) -> None:
    (folder / "job.yaml").write_text(STAGES)
    ran = wincli_here("run", "job.yaml", cwd=folder)
    assert ran.code == 0, ran.err
    assert "the input was cut at 7 rows (--limit)" in ran.err.splitlines()[-1]
    assert last_of(folder, "pairs") == [1, 3, 5, 6]
    assert rows(folder / "out", "pairs", "rows") == [(3, 6), (1, 1)]
    assert manifest(folder / "pairs")["inputs_cut_at"] == manifest(folder / "out")["inputs_cut_at"] == 7


def test_the_rows_of_one_limit_are_never_taken_for_the_result_of_another(folder: Path) -> None:
    run(folder, "log", "out", "--limit", "7")
    for more in (["--limit", "7"], ["--limit", "9"], []):
        ran = run(folder, "log", "out", *more)
        assert (ran.code, "output out already holds a result" in ran.err) == (2, True)
    assert run(folder, "log", "out", "--mode", "overwrite").code == 0
    assert len(last_of(folder, "out")) == 8


def test_tables_of_an_enrichment_are_read_whole(folder: Path) -> None:
    write(folder, prices__csv="n,price\n" + "".join(f"{n},{n * 10}\n" for n in range(14, -1, -1)))
    words = ("--enrich", "price=prices.csv on n", "--limit", "2")
    ran = wincli_here("run", "-w", "count(2)", "-a", "last=max(price_price)", "log", "out", *words, cwd=folder)
    assert ran.code == 0, ran.err
    assert "the input was cut at 2 rows" in ran.err
    assert last_of(folder, "out") == [10]


def test_a_plan_says_that_the_input_is_cut(folder: Path) -> None:
    words = ("-w", "count(2)", "log", "out", "--limit", "7")
    assert "           cut at 7 rows by --limit: the input has more\n" in wincli_here("plan", *words, cwd=folder).out
    told = json.loads(wincli_here("plan", *words, "--json", cwd=folder).out)["input"]
    assert (told["rows"], told["files"], told["cut_at"]) == (7, 2, 7)


def test_a_window_of_a_first_look_can_be_explained(folder: Path) -> None:
    run(folder, "log", "out", "--limit", "7")
    ran = wincli_here("why", "out", "--window", "3", cwd=folder)
    assert ran.code == 0, ran.err
    assert "1 row" in ran.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("log", "out", "--state", "st"),
            "--limit is for a first look, and a state goes on from all rows of each run; "
            "leave out the limit, or the state",
        ),
        (
            ("log/{date}.csv", "out", "--start", "2026-11-01", "--end", "2026-11-02"),
            "--limit is for a first look at one input, and a range has an input for each unit; "
            "leave it out, or name the files of one unit without a range",
        ),
        (("log", "out", "--limit", "0"), "--limit cannot be 0: use a whole number of 1 or more"),
    ],
)
def test_what_would_go_on_from_cut_rows_is_refused(folder: Path, words: tuple[str, ...], text: str) -> None:
    before = tree(folder)
    ran = run(folder, "--limit", "7", *words)
    assert ran.code == 2
    assert ran.err.startswith("wincli: error: --limit ")
    if "--state" in words or "--start" in words:
        assert ran.err == f"wincli: error: {text}\n"
    assert tree(folder) == before
