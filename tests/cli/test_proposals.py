"""From a log to a job that Spark runs: `wincli init`, `wincli test` and `wincli run` as processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.processes import WINCLI, Ran, environment, rows, wincli

Run = Callable[..., Ran]


def visits() -> str:
    """Two users, who come six times each: four rows within a minute, and an hour until the next visit."""
    lines = ["Date,Time,user,bytes"]
    for hour in range(9, 15):
        for second in (1, 8, 20, 40):
            lines += [f"26/11/05,{hour:02}:00:{second:02},{user},{second}" for user in ("ann", "bob")]
    return "\n".join(lines) + "\n"


def test_a_proposed_job_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(visits())
    made = wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert made.out.endswith("job.yaml is written; next: wincli plan job.yaml\n")
    again = wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path)
    assert (again.code, again.out) == (2, "")
    assert run("-q", "job.yaml").code == 0
    found = rows(tmp_path / "log_windows", "user", "rows", "mean_bytes")
    assert {user: sum(count for each, count, _ in found if each == user) for user, *_ in found} == {
        "ann": 24,
        "bob": 24,
    }


def test_a_reader_that_has_gone_is_no_error_of_cases(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(visits())
    assert wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path).code == 0
    case = {"name": "a row", "given": "Date,Time,user,bytes\n26/11/05,09:00:01,ann,1\n", "expect": "user\nann\n"}
    (tmp_path / "job.test.yaml").write_text(json.dumps({"cases": [case]}))
    words = f"{WINCLI} test job.yaml | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")
