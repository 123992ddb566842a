"""What a run tells: stdout is for data, stderr for people or for machines, as much as they ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.processes import Ran, manifest, rows, table, write

Run = Callable[..., Ran]
SUMMARY = re.compile(r"wincli: 4 rows in, 3 windows out, 0 rejected, \d+\.\d s, [\d,]+ rows?/s -> out\n")
ORDER = "rows are ordered by arrival: no time to order by is named by the window"
DELTA = ("-w", "delta(ts,60)", "-k", "user")
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


def test_notes_and_the_closing_summary_go_to_stderr(run: Run) -> None:
    ran = run(*DELTA, "log", "out")
    note, summary = ran.err.splitlines(keepends=True)
    assert (ran.code, ran.out, note) == (0, "", f"wincli: note: {ORDER}\n")
    assert SUMMARY.fullmatch(summary), summary


def test_quiet_prints_errors_only(run: Run) -> None:
    assert run("-q", *DELTA, "log", "out") == Ran(0, "", "")
    assert run("-q", *DELTA, "log", "out") == Ran(0, "", "")
    other = run("--quiet", "-w", "count(2)", "log", "out")
    assert other.err.startswith("wincli: error: output out already holds a result")


def test_verbose_prints_more_but_no_stack_traces(run: Run) -> None:
    ran = run("-v", *DELTA, "log", "out")
    assert ran.code == 0
    assert ran.err.startswith(f"wincli: note: {ORDER}\n")
    assert SUMMARY.search(ran.err)
    assert all(re.match(r"wincli: (note: |detail: |4 rows)", line) for line in ran.err.splitlines())
    failed = run("-v", "-w", "delta(tss,60)", "log", "out2")
    assert "Traceback" not in failed.err
    traced = run("-vv", "-w", "delta(tss,60)", "log", "out2")
    assert "Traceback (most recent call last)" in traced.err
    assert (failed.code, traced.code) == (2, 2)


@pytest.mark.parametrize("given", [["--log-format", "json"], ["--log-format=json"]], ids=["two words", "one word"])
def test_every_line_of_json_parses(run: Run, given: list[str]) -> None:
    ran = run(*given, *DELTA, "log", "out")
    note, summary = map(json.loads, ran.err.splitlines())
    assert (ran.code, ran.out) == (0, "")
    assert note == {"level": "note", "message": ORDER, "order": []}
    seconds = summary.pop("seconds")
    text = summary.pop("message")
    assert seconds > 0
    assert text.startswith("4 rows in, 3 windows out")
    counts = {
        "rows_in": 4,
        "windows_out": 3,
        "rejected": {},
        "filtered": 0,
        "dropped_at_end": 0,
        "held": 0,
        "panes_hidden": 0,
    }
    assert summary == {"level": "summary", "output": "out", **counts}
    failed = run(*given, "-w", "dleta(ts,60)", "log", "out2")
    error = json.loads(failed.err)
    assert (failed.code, error["level"], error["exit_code"]) == (2, "error", 2)
    assert error["message"].startswith("unknown window 'dleta'; did you mean 'delta'?\n")
    usage = run(*given, "--kye", "a", "log", "out2")
    assert json.loads(usage.err)["exit_code"] == 2


def test_environment_variables_and_flags_over_them(run: Run, tmp_path: Path) -> None:
    env = {
        "WINCLI_WINDOW": "count(2)",
        "WINCLI_KEY": "user",
        "WINCLI_AGG": "ts=collect(ts)",
        "WINCLI_OUTPUT_FORMAT": "csv",
        "WINCLI_LOG_FORMAT": "json",
        "WINCLI_MAX_REJECTS": "0",
        "WINCLI_PLAIN": "1",
    }
    ran = run("log", "all", env=env)
    assert [json.loads(line)["level"] for line in ran.err.splitlines()] == ["note", "summary"]
    job = manifest(tmp_path / "all")["job"]
    said = {**job, **job["stages"][0]}
    assert {name: said[name] for name in ("window", "key", "agg", "output_format", "max_rejects", "plain")} == {
        "window": "count(2)",
        "key": ["user"],
        "agg": ["ts=collect(ts)"],
        "output_format": "csv",
        "max_rejects": 0,
        "plain": True,
    }
    flags = ("-w", "count(3)", "--output-format", "parquet", "--log-format", "text", "-a", "n=count()")
    ran = run(*flags, "log", "some", env=env)
    assert ran.err.startswith("wincli: note: ")
    assert rows(tmp_path / "some", "user", "n") == [("a", 3), ("b", 1)]


def test_an_environment_variable_that_does_not_fit_is_an_error(run: Run, tmp_path: Path) -> None:
    ran = run("-q", *DELTA, "log", "out", env={"WINCLI_MODE": "append"})
    assert (ran.code, ran.err) == (2, "wincli: error: --mode cannot be 'append'; known: error, overwrite\n")
    assert not (tmp_path / "out").exists()


def test_no_progress_where_nobody_wants_it(run: Run) -> None:
    ran = run("--progress", "none", *DELTA, "log", "out")
    assert (ran.code, ran.notes) == (0, [ORDER])


def test_it_is_the_same_job_as_with_flags(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job__yml=JOB)
    flags = ("-w", "delta(ts, 60)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "spent=sum(amount)")
    assert run("-q", "job.yml") == run("-q", *flags, "log", "other") == Ran(0, "", "")
    assert table(tmp_path / "out").equals(table(tmp_path / "other"))
    one, other = (manifest(tmp_path / name)["job"] for name in ("out", "other"))
    assert one == {**other, "output": "out"}


def test_messages_have_the_form_that_the_file_asks_for(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job__yaml=JOB + "log_format: json\n")
    assert [json.loads(line)["level"] for line in run("job.yaml").err.splitlines()] == ["note", "summary"]
    error = json.loads(run("job.yaml", "-w", "count(2)").err)
    assert (error["level"], error["exit_code"]) == ("error", 2)
    assert error["message"].startswith("output out already holds a result")
    wrong = run("-w", "dleta(ts, 60)", "log", "new", env={"WINCLI_LOG_FORMAT": "json"})
    assert json.loads(wrong.err)["message"].startswith("unknown window 'dleta'")
