"""``--limit``: a first look at an input, through stages, in the summary, the manifest and the plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.in_process import done
from support.processes import manifest, rows, write

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


RUN = ("run", "-w", "count(2)", "-a", "last=max(n)", "log", "out")


def last_of(folder: Path, out: str) -> list[Any]:
    return rows(folder / out, "last")


def test_the_first_rows_are_read_and_all_that_is_told_of_them_says_so(folder: Path) -> None:
    ran = done(folder, *RUN, "--limit", "7")
    assert "7 rows in, 4 windows out, 0 rejected, the input was cut at 7 rows (--limit), " in ran.err
    assert last_of(folder, "out") == [1, 3, 5, 6]
    told = manifest(folder / "out")
    assert (told["inputs_cut_at"], told["job"]["limit"], told["counts"]["rows_in"]) == (7, 7, 7)
    assert [Path(file["path"]).name for file in told["inputs"]] == ["f0.csv", "f1.csv"]
    done(folder, "verify", "out")
    assert "1 row" in done(folder, "why", "out", "--window", "3").out
    planned = ("plan", *RUN[1:-1], "new", "--limit", "7")
    assert "           cut at 7 rows by --limit: the input has more\n" in done(folder, *planned).out
    told = json.loads(done(folder, *planned, "--json").out)["input"]
    assert (told["rows"], told["files"], told["cut_at"]) == (7, 2, 7)


def test_an_input_that_has_no_more_rows_is_not_cut(folder: Path) -> None:
    done(folder, *RUN)
    whole = last_of(folder, "out")
    for limit in ("15", "99"):
        ran = done(folder, *RUN, "--limit", limit, "--mode", "overwrite")
        assert ("15 rows in" in ran.err, "cut" in ran.err) == (True, False)
        assert manifest(folder / "out")["inputs_cut_at"] is None
        assert last_of(folder, "out") == whole


def test_a_first_look_goes_through_stages_and_comes_from_a_job_file(folder: Path) -> None:
    (folder / "job.yaml").write_text(STAGES)
    assert "the input was cut at 7 rows (--limit)" in done(folder, "run", "job.yaml").err.splitlines()[-1]
    assert last_of(folder, "pairs") == [1, 3, 5, 6]
    assert rows(folder / "out", "pairs", "rows") == [(3, 6), (1, 1)]
    assert manifest(folder / "pairs")["inputs_cut_at"] == manifest(folder / "out")["inputs_cut_at"] == 7


def test_the_rows_of_one_limit_are_never_taken_for_the_result_of_another(folder: Path) -> None:
    done(folder, *RUN, "--limit", "7")
    for more in (["--limit", "7"], ["--limit", "9"], []):
        assert "output out already holds a result" in done(folder, *RUN, *more, code=2).err
    done(folder, *RUN, "--mode", "overwrite")
    assert len(last_of(folder, "out")) == 8


def test_tables_of_an_enrichment_are_read_whole(folder: Path) -> None:
    write(folder, prices__csv="n,price\n" + "".join(f"{n},{n * 10}\n" for n in range(14, -1, -1)))
    words = ("--enrich", "price=prices.csv on n", "--limit", "2")
    ran = done(folder, "run", "-w", "count(2)", "-a", "last=max(price_price)", "log", "out", *words)
    assert "the input was cut at 2 rows" in ran.err
    assert last_of(folder, "out") == [10]
