"""Commands as a part of a pipeline."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.processes import MASTER, WINCLI, environment, write

CUT = ("--master", MASTER, "--split-size", "100KB", "--slice-size", "100KB")
WINDOW = ("-w", "count(5)", "-k", "k", "-a", "s=sum(x)")


def log(folder: Path, rows: int) -> Path:
    path = folder / "log.csv"
    path.write_text("k,x\n" + "".join(f"u{row * 7919 % 50:02d},{row}\n" for row in range(rows)))
    return path


def test_a_result_of_many_slices_comes_out_of_stdout_in_order_and_nothing_else(tmp_path: Path) -> None:
    command = [str(WINCLI), "run", "-q", *WINDOW, *CUT, "-", "-"]
    with log(tmp_path, 50_000).open("rb") as stdin:
        done = subprocess.run(command, cwd=tmp_path, env=environment(), stdin=stdin, capture_output=True, check=True)
    assert done.stderr == b""
    header, *rows = csv.reader(done.stdout.decode().splitlines())
    assert header == ["k", "window", "window_start", "window_end", "closed_by", "s"]
    found = [(row[0], int(row[1])) for row in rows]
    assert found == [(f"u{key:02d}", window) for key in range(50) for window in range(200)]
    assert sum(int(row[5]) for row in rows) == 50_000 * 49_999 // 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


JOB = """\
input: log.csv
output: out
window: count(2)
key: k
"""
CASES = """\
cases:
  - {name: a row, given: [{k: a, x: 1}], expect: [{k: a, count: 1}]}
"""


@pytest.mark.parametrize(
    "asked",
    ["run --help", "schema", "plan job.yaml", "test job.yaml", "report out -o -", "run -q -w 'count(1)' log.csv -"],
)
def test_a_reader_that_has_gone_ends_a_command_quietly(tmp_path: Path, asked: str) -> None:
    log(tmp_path, 500)
    write(tmp_path, job__yaml=JOB, job__test__yaml=CASES)
    if "report" in asked:
        assert wincli_here("run", "job.yaml", cwd=tmp_path).code == 0
    words = f"(sleep 0.2; exec {WINCLI} {asked}) | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("141\n", "")
