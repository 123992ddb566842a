"""Runs over a range that are killed, raced, stopped for a while, or told a wrong time: what stands is undisturbed, and
the next run puts things right.

`scripts/kill_runs` and `scripts/stress_runs` do the same many times over.
"""

from __future__ import annotations

import datetime as dt
import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from support.disturbances import (
    clock_that_jumps,
    jump_clock,
    race_on_output,
    race_on_state,
    read_crumbs,
    stop_and_continue,
)
from support.in_process import wincli_here
from support.kills import Victim, kill
from support.range_scenario import PHASES, Course, Moment, Phase, undisturbed
from wincli.windowing.spark.boot import SparkExecutor


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return undisturbed(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize(
    ("victim", "day", "phase"),
    [
        pytest.param("driver", 0, "stage 2", marks=pytest.mark.nightly),
        ("driver", 1, "commit"),
        ("worker", 0, "stage 1"),
        pytest.param("java", 1, "stage 2", marks=pytest.mark.nightly),
    ],
)
def test_a_killed_run_leaves_whole_units_and_the_next_one_gives_the_right_answer(
    course: Course, session: SparkExecutor, victim: Victim, day: int, phase: Phase
) -> None:
    run = partial(wincli_here, cwd=course.folder, spark=session)
    done = kill(course, run, victim, Moment(day, PHASES.index(phase)), random.Random(day))
    assert done is not None
    assert done.faults == ()


@pytest.mark.nightly  # half a minute; unit tests race for the locks of states and outputs
def test_runs_that_start_at_once_on_one_state_do_no_harm(course: Course) -> None:
    assert race_on_state(course, 3) == []


@pytest.mark.parametrize(
    ("victim", "phase"), [("java", "stage 1"), pytest.param(None, "commit", marks=pytest.mark.nightly)]
)
def test_suspended_run_continues(course: Course, victim: Victim | None, phase: Phase) -> None:
    assert stop_and_continue(course, victim, Moment(1, PHASES.index(phase)), 1.5, random.Random(1)) == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="a clock that jumps is compiled, and there is no cc")
def test_clock_that_jumps_ten_years_back_changes_nothing(course: Course, tmp_path: Path) -> None:
    back, rule, library = dt.timedelta(days=-3650), tmp_path / "ahead", clock_that_jumps(tmp_path)
    assert jump_clock(course, Moment(1, PHASES.index("commit")), back, rule, library) == []


def test_of_runs_that_start_at_once_on_one_output_one_writes_it(tmp_path: Path) -> None:
    assert race_on_output(tmp_path, 4) == []


def test_many_small_files_give_the_windows_of_one_file(tmp_path: Path) -> None:
    assert read_crumbs(tmp_path, 300, lambda args: wincli_here(*args, cwd=tmp_path)) == []
