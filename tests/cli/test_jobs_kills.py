"""Units at the same time, killed at random moments: what is left, and what the next run makes of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.day_results import day, span
from support.kill_places import courses, kill_all
from support.processes import start, tree, wincli
from support.s3_server import S3Bucket

DAYS = 6
KILLS = 10
JOB = ("run", "-w", "gap(ts, 20)", "-k", "user", "--order-by", "ts", "-a", "m=median(x)", *span(1, DAYS))


def write_log(folder: Path) -> None:
    for n in range(1, DAYS + 1):
        there = folder / f"dt={day(n)}"
        there.mkdir(parents=True)
        ts = [100_000 * n + 3 * at for at in range(20_000)]
        columns = {"ts": ts, "user": ["abc"[at // 3 % 3] for at in ts], "x": [at / 7 for at in ts]}
        pq.write_table(pa.table(columns), there / "a.parquet")


def parts(out: Path) -> dict[str, bytes | None]:
    return {name: data for name, data in tree(out).items() if "_wincli" not in name}


@pytest.mark.nightly
def test_killed_runs_leave_whole_units_and_the_next_run_completes_them(tmp_path: Path) -> None:
    rng = random.Random(7)
    write_log(tmp_path / "log")
    began = time.monotonic()
    assert wincli(*JOB, "log", "whole", cwd=tmp_path).code == 0
    longest, whole = time.monotonic() - began, parts(tmp_path / "whole")
    out = tmp_path / "out"
    for _ in range(KILLS):
        process = start([*JOB, "--jobs", "3", "log", "out"], tmp_path)
        time.sleep(rng.uniform(0.3, 1.0) * longest)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        left = parts(out) if out.exists() else {}
        published = {name: data for name, data in left.items() if data and name.startswith("dt=")}
        assert published == {name: whole[name] for name in published}
        assert wincli(*JOB, "--jobs", "3", "log", "out", cwd=tmp_path).code == 0
        assert parts(out) == whole
        shutil.rmtree(out)


@pytest.mark.nightly
def test_ranges_that_are_killed_in_any_place_are_as_undisturbed_after_the_next_run(
    tmp_path: Path, s3: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    for course in courses(tmp_path, s3):
        for name, value in course.lake.env.items():
            monkeypatch.setenv(name, value)
        assert (course.name, kill_all(course, rng)) == (course.name, [])
