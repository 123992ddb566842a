"""Runs on emulators of the stores of Azure and Google, which `scripts/nightly` installs."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyarrow import fs

from support.emulators import AZURITE, GOOGLE, google_store, is_installed
from support.in_process import wincli_here
from support.lake_courses import COURSES, back
from support.lake_disturbances import kill_and_fail, pause, prepare
from support.lake_stage import container_stage
from support.processes import rows

pytestmark = pytest.mark.nightly
needs_azurite = pytest.mark.skipif(not is_installed(AZURITE), reason="scripts/nightly installs Azurite with npm")
needs_google = pytest.mark.skipif(not is_installed(GOOGLE), reason="scripts/nightly installs gcp-storage-emulator")


@needs_azurite
@pytest.mark.parametrize("name", ["plain", "range"])
def test_runs_on_azure_with_faults_that_are_killed_leave_whole_results(name: str, tmp_path: Path) -> None:
    with container_stage(tmp_path) as stages:
        stage = stages()
        course, requests = prepare(stage, COURSES[name])
        assert kill_and_fail(stage, course, requests, 0.03, random.Random(1)).faults == ()


@needs_azurite
def test_a_run_on_azure_that_wakes_up_without_its_lease_writes_nothing(tmp_path: Path) -> None:
    with container_stage(tmp_path) as stages:
        stage = stages()
        course, requests = prepare(stage, COURSES["plain"])
        trial = pause(stage, course, requests * 2 // 3, back(course, stage.lake))
        assert (trial.faults, trial.codes) == ((), (3, 0))


@needs_google
def test_a_log_in_the_store_of_google_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with google_store() as endpoint:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        files = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=urlsplit(endpoint).netloc)
        with files.open_output_stream("lake/log/a.csv") as file:
            file.write(b"ts,user\n1,a\n2,b\n100,a\n")
        ran = wincli_here("run", "-w", "delta(ts, 10)", "-a", "n=count()", "gs://lake/log", "out", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert rows(tmp_path / "out", "n") == [2, 1]
