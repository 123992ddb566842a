"""A backfill in pieces that is killed, or loses its processes: the next run completes it, and nothing is left."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from support.day_results import records, span
from support.histories import put_history, tree
from support.processes import start, wincli

DAYS = 14
JOB = (
    "run",
    "-w",
    "gap(ts, 20m)",
    "-k",
    "user",
    "--order-by",
    "ts",
    "-a",
    "n=count()",
    "-a",
    "s=sum(x)",
    *span(1, DAYS),
)


def differs(folder: Path, way: str) -> list[str]:
    """The files of outputs and states that differ between a run in order and another."""
    found = []
    for kind in ("out", "st"):
        one, two = (tree(folder / f"{kind}-{each}", f"-{each}") for each in ("one", way))
        found += [path for path in one.keys() | two.keys() if one.get(path) != two.get(path)]
    return found


def places(way: str) -> tuple[str, ...]:
    return ("log", f"out-{way}", "--state", f"st-{way}")


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_the_next_run_completes_one_that_was_killed(tmp_path: Path, number: int) -> None:
    rng = random.Random(number)
    put_history(tmp_path, DAYS, 5)
    began = time.monotonic()
    assert wincli(*JOB, *places("one"), cwd=tmp_path).code == 0
    longest = time.monotonic() - began
    for n in range(2):
        way, temporary = f"two{n}", tmp_path / f"tmp{n}"
        temporary.mkdir()
        env = {"TMPDIR": str(temporary)}
        process = start([*JOB, "--jobs", "2", *places(way)], tmp_path, env)
        time.sleep(rng.uniform(0.4, 1.0) * longest)
        os.kill(process.pid, number)
        process.communicate()
        done = records(tmp_path / f"st-{way}") if (tmp_path / f"st-{way}").exists() else {}
        assert list(done) == list(records(tmp_path / "st-one"))[: len(done)]
        assert wincli(*JOB, "--jobs", "2", *places(way), cwd=tmp_path, env=env).code == 0
        assert not differs(tmp_path, way)
        assert not [*temporary.glob("wincli-run-*")]
