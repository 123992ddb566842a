"""From a log to a job that Spark runs: `wincli init`, `wincli test` and `wincli run` as processes."""

from __future__ import annotations

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


def test_a_proposed_job_passes_its_case_and_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(visits())
    made = wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert made.out.endswith("job.yaml and job.test.yaml are written; next: wincli test job.yaml\n")
    again = wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path)
    assert (again.code, again.out) == (2, "")
    tested = wincli("test", "job.yaml", "--junit", "report.xml", cwd=tmp_path)
    assert (tested.code, tested.err) == (0, "")
    assert tested.out.startswith("ok    rows of the log  (")
    assert run("-q", "job.yaml").code == 0
    found = rows(tmp_path / "log_sessions", "user", "window", "rows", "mean_bytes", "closed_by")
    assert found == sorted((user, n, 4, 17.25, "end" if n == 5 else "gap") for user in ("ann", "bob") for n in range(6))


def test_a_reader_that_has_gone_is_no_error_of_cases(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(visits())
    assert wincli("init", "log.csv", "-o", "job.yaml", cwd=tmp_path).code == 0
    words = f"{WINCLI} test job.yaml | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")
