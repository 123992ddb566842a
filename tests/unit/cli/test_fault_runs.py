"""Runs on S3 that are killed, paused and raced while requests go wrong: nothing is mixed, lost or left over.

`scripts/fault_runs` does the same many times over.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from support.lake_courses import COURSES, Course, back, runs_done
from support.lake_disturbances import Stage, kill_and_fail, pause, prepare, race
from support.lake_stage import Stages, bucket_stage

RACERS = 8
RATE = 0.03  # of requests that go wrong


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with bucket_stage(tmp_path_factory.mktemp("faults")) as stages:
        yield stages


@pytest.fixture(scope="module")
def plain(stages: Stages) -> tuple[Stage, Course, int]:
    return prepared(stages, "plain")


@pytest.fixture(scope="module")
def of_days(stages: Stages) -> tuple[Stage, Course, int]:
    return prepared(stages, "range")


def prepared(stages: Stages, name: str) -> tuple[Stage, Course, int]:
    """A course on a bucket of its own, and how many requests it makes."""
    stage = stages()
    return stage, *prepare(stage, COURSES[name])


def test_a_plain_run_with_faults_that_is_killed_leaves_the_old_result_or_the_new(
    plain: tuple[Stage, Course, int],
) -> None:
    stage, course, requests = plain
    assert kill_and_fail(stage, course, requests, RATE, random.Random(2)).faults == ()


def test_a_run_on_a_state_with_faults_that_is_killed_loses_no_unit(of_days: tuple[Stage, Course, int]) -> None:
    stage, course, requests = of_days
    assert kill_and_fail(stage, course, requests, RATE, random.Random(2)).faults == ()


def test_a_run_that_wakes_up_when_another_one_has_its_lease_writes_nothing(plain: tuple[Stage, Course, int]) -> None:
    stage, course, requests = plain
    trial = pause(stage, course, requests * 2 // 3, back(course, stage.lake))
    assert trial.faults == ()
    assert trial.codes == (3, 0)


def test_of_runs_that_race_one_writes_and_the_others_say_who_does(plain: tuple[Stage, Course, int]) -> None:
    stage, course, _ = plain
    trial = race(stage, course, RACERS)
    assert trial.faults == ()
    assert sorted(trial.codes) == [0] + [3] * (RACERS - 1)


def test_a_unit_is_done_once_the_head_names_its_run_or_has_its_journal() -> None:
    record = {"state/b/.2/unit.json": b'{"label": "b", "run": "2"}'}
    head = {"units": {"a": "1"}, "journal": None}
    assert runs_done({}) == {}
    assert runs_done({**record, "state/.journal.json": json.dumps(head).encode()}) == {"a": "1"}
    journaled = {**head, "journal": json.dumps({"label": "b", "run": "2"})}
    assert runs_done({**record, "state/.journal.json": json.dumps(journaled).encode()}) == {"a": "1", "b": "2"}
