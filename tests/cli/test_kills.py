"""Runs over a range that are killed, wherever they are: what stands is undisturbed, and the next run puts things right.

`scripts/kill_runs` does the same many times over.
"""

from __future__ import annotations

import random

import pytest

from support.kills import Victim, kill
from support.processes import Warm
from support.range_scenario import PHASES, Course, Moment, Phase, undisturbed


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return undisturbed(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize(
    ("victim", "day", "phase"),
    [
        pytest.param("driver", 0, "stage 2", marks=pytest.mark.nightly),
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
