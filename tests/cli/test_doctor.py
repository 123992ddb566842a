"""`wincli doctor` as a process: Spark starts, runs a task in a worker, and ends."""

from __future__ import annotations

import json
from pathlib import Path

from support.processes import wincli


def test_doctor_starts_spark_and_runs_a_task(tmp_path: Path) -> None:
    ran = wincli("doctor", "--json", "--master", "local[1]", cwd=tmp_path)
    found = {check["name"]: check for check in json.loads(ran.out)["checks"]}
    assert (found["java"]["level"], found["spark"]["level"]) == ("ok", "ok"), found
    assert found["spark"]["what"].startswith("local[1], 1 task at a time: it started in ")
    assert list(tmp_path.iterdir()) == []
