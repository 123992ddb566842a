"""Runs over a range that are killed, wherever they are: what stands is undisturbed, and the next run puts things right.

`scripts/kill_runs` does the same many times over.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from support.blocking import block
from support.kills import Victim, kill
from support.processes import Ran, Warm, ended, rows, tree
from support.range_scenario import PHASES, Course, Moment, Phase, undisturbed

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return undisturbed(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize(
    ("victim", "day", "phase"),
    [
        ("driver", 0, "stage 2"),
        ("driver", 1, "commit"),
        ("worker", 0, "stage 1"),
        ("java", 1, "stage 2"),
    ],
)
def test_a_killed_run_leaves_whole_units_and_the_next_one_gives_the_right_answer(
    course: Course, warm: Warm, victim: Victim, day: int, phase: Phase
) -> None:
    done = kill(course, warm, victim, Moment(day, PHASES.index(phase)), random.Random(day))
    assert done is not None
    assert done.faults == ()


def test_two_runs_on_one_state_refuse_each_other_and_a_dead_one_is_taken_over_from(run: Run, tmp_path: Path) -> None:
    blocked = block(tmp_path, "--state", "st")
    lock = tmp_path / "st" / ".wincli-lock"
    told = json.loads(lock.read_text())
    assert told["pid"] == blocked.process.pid
    began = dt.datetime.now(dt.UTC) - dt.timedelta(days=3, hours=4, minutes=5)
    lock.write_text(json.dumps({**told, "started": began.isoformat(timespec="seconds")}))  # nobody waits that long
    before = tree(tmp_path)
    again = ("-w", "delta(ts,60)", "-a", "x=max(ts)", "--state", "st", "log", "other")
    who = f"process {told['pid']} on {told['host']}, started {began.isoformat(timespec='seconds')}, 3 d 4 h ago"
    text = f"another run is writing to the state st ({who}); nothing was written"
    ran = run(*again)
    assert (ran.code, ran.err) == (3, f"wincli: error: {text}; wait for it to end, or choose another state\n")
    assert tree(tmp_path) == before
    blocked.process.kill()
    assert ended(blocked.process).code == -signal.SIGKILL
    assert blocked.alive() == []
    ran = run(*again)
    assert (ran.code, ran.notes[0]) == (0, f"took the state st over from a run that died ({who})")
    assert rows(tmp_path / "other", "x") == [1]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    assert sorted(path.name for path in (tmp_path / "st").iterdir()) == [".wincli-state", "run-000001"]
