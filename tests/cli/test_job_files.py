"""``wincli run JOB.yaml``: what the file says is what is run, and what is wrong with it is told before anything is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.processes import MASTER, Ran, manifest, rows, table, wincli, write

Run = Callable[..., Ran]
Fails = Callable[..., None]

JOB = """\
input: log
output: out
window: delta(ts, 60)
key: user
order_by: ts
agg:
  n: count()
  spent: sum(amount)
"""


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> None:
    write(tmp_path / "log", a__csv="ts,user,amount\n1,a,5\n2,b,6\n100,a,7\n101,a,8\n")
    write(tmp_path / "more", a__csv="ts,user,amount\n5,c,1\n")


def test_a_job_file_in_a_process_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "jobs", nightly__yaml=JOB + "progress: none\n")
    ran = wincli("run", "jobs/nightly.yaml", "--master", MASTER, cwd=tmp_path)
    assert (ran.code, ran.out, ran.notes) == (0, "", ["rows are ordered by ts: asked for"])
    assert ran.summary == "4 rows in, 3 windows out, 0 rejected"
    assert rows(tmp_path / "out", "user", "n", "spent") == [("a", 1, 5), ("a", 2, 15), ("b", 1, 6)]


def test_it_is_the_same_job_as_with_flags(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job__yml=JOB)
    flags = ("-w", "delta(ts, 60)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "spent=sum(amount)")
    assert run("-q", "job.yml") == run("-q", *flags, "log", "other") == Ran(0, "", "")
    assert table(tmp_path / "out").equals(table(tmp_path / "other"))
    one, other = (manifest(tmp_path / name)["job"] for name in ("out", "other"))
    assert one == {**other, "output": "out"}


def test_arguments_flags_and_variables_win_over_the_file(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job__yaml=JOB + "plain: true\n")
    flags = ("--agg", "last=max(ts)", "--no-plain")
    assert run("-q", "job.yaml", "more", "new", *flags, env={"WINCLI_KEY": "amount"}) == Ran(0, "", "")
    assert rows(tmp_path / "new", "amount", "last", "_mark") == [(1, 5, "window")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.yaml", "log", "more", "new"]


def test_messages_have_the_form_that_the_file_asks_for(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job__yaml=JOB + "log_format: json\n")
    assert [json.loads(line)["level"] for line in run("job.yaml").err.splitlines()] == ["note", "summary"]
    error = json.loads(run("job.yaml", "-w", "count(2)").err)
    assert (error["level"], error["exit_code"]) == ("error", 2)
    assert error["message"].startswith("output out already holds a result")
    wrong = run("-w", "dleta(ts, 60)", "log", "new", env={"WINCLI_LOG_FORMAT": "json"})
    assert json.loads(wrong.err)["message"].startswith("unknown window 'dleta'")


def test_all_mistakes_are_listed_and_nothing_is_written(fails: Fails, tmp_path: Path) -> None:
    write(tmp_path, job__yaml=JOB.replace("key:", "kye:").replace("ts, 60)", "ts, 60"))
    text = (
        "job.yaml has 2 mistakes; mend them\n"
        "  job.yaml:3: window: this parenthesis is never closed; write it as delta(attribute, amount)\n"
        "    delta(ts, 60\n"
        "         ^\n"
        "  job.yaml:4: unknown key 'kye'; did you mean 'key'?"
    )
    fails(2, text, "job.yaml")
