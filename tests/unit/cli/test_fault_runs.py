"""Runs on stores that are killed, paused and raced while requests go wrong: nothing is mixed, lost or left over.

On S3; the emulators of Azure and Google are what `scripts/nightly` installs. `scripts/fault_runs` does the same many
times over.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyarrow import fs

from support.emulators import AZURITE, GOOGLE, google_store, is_installed
from support.in_process import done
from support.lake_courses import COURSES, Course, back, runs_done
from support.lake_disturbances import Stage, kill_and_fail, pause, prepare, race
from support.lake_stage import Stages, bucket_stage, container_stage
from support.processes import rows

RACERS = 4
RATE = 0.03  # of requests that go wrong


def only_nightly(store: str) -> Any:
    needs = pytest.mark.skipif(not is_installed(AZURITE), reason="scripts/nightly installs Azurite with npm")
    return pytest.param(store, marks=[pytest.mark.nightly, needs])


@pytest.fixture(scope="module", params=["s3", only_nightly("azure")])
def stages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    stage_of = {"s3": bucket_stage, "azure": container_stage}[request.param]
    with stage_of(tmp_path_factory.mktemp("faults")) as stages:
        yield stages


Prepared = tuple[Stage, Course, int]


@pytest.fixture(scope="module")
def plain(stages: Stages) -> Prepared:
    """A plain run, for all tests: each begins by restoring what stood there before it."""
    stage = stages()
    return stage, *prepare(stage, COURSES["plain"])


@pytest.mark.parametrize("name", ["plain", "range"])
def test_a_run_with_faults_that_is_killed_leaves_the_old_result_or_the_new_and_loses_no_unit(
    name: str, stages: Stages, plain: Prepared
) -> None:
    stage, course, requests = plain
    if name != "plain":
        stage = stages()
        course, requests = prepare(stage, COURSES[name])
    assert kill_and_fail(stage, course, requests, RATE, random.Random(2)).faults == ()


def test_a_run_that_wakes_up_when_another_one_has_its_lease_writes_nothing(plain: Prepared) -> None:
    stage, course, requests = plain
    trial = pause(stage, course, requests * 2 // 3, back(course, stage.lake))
    assert (trial.faults, trial.codes) == ((), (3, 0))


@pytest.mark.parametrize("stages", ["s3"], indirect=True)
def test_of_runs_that_race_one_writes_and_the_others_say_who_does(plain: Prepared) -> None:
    stage, course, _ = plain
    trial = race(stage, course, RACERS)
    assert (trial.faults, sorted(trial.codes)) == ((), [0] + [3] * (RACERS - 1))


def test_a_unit_is_done_once_the_head_names_its_run_or_has_its_journal() -> None:
    record = {"state/b/.2/unit.json": b'{"label": "b", "run": "2"}'}
    head = {"units": {"a": "1"}, "journal": None}
    assert runs_done({}) == {}
    assert runs_done({**record, "state/.journal.json": json.dumps(head).encode()}) == {"a": "1"}
    journaled = {**head, "journal": json.dumps({"label": "b", "run": "2"})}
    assert runs_done({**record, "state/.journal.json": json.dumps(journaled).encode()}) == {"a": "1", "b": "2"}


@pytest.mark.nightly
@pytest.mark.skipif(not is_installed(GOOGLE), reason="scripts/nightly installs gcp-storage-emulator")
def test_a_log_in_the_store_of_google_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with google_store() as endpoint:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        files = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=urlsplit(endpoint).netloc)
        with files.open_output_stream("lake/log/a.csv") as file:
            file.write(b"ts,user\n1,a\n2,b\n100,a\n")
        done(tmp_path, "run", "-w", "delta(ts, 10)", "-a", "n=count()", "gs://lake/log", "out")
    assert rows(tmp_path / "out", "n") == [2, 1]
