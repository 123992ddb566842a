"""Every place, kind of table and way to run a job: all rows are those of one local run.

A sample runs at once; `scripts/nightly` runs all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.lake_matrix import CATALOG, FORMS, WAYS, Case, Form, Way, rows_of, run_case, whole
from support.places_to_write import Folder, Lake
from support.processes import Ran
from support.s3_server import S3Bucket

SAMPLE = {("s3", "delta", "range"), ("s3", "iceberg", "range")}
CASES = [
    pytest.param(place, form, way, marks=() if (place, form, way) in SAMPLE else pytest.mark.nightly)
    for place in ("local", "s3")
    for form in FORMS
    for way in WAYS
]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    return lambda *args: wincli_here(*args, cwd=tmp_path)


def lake_at(place: str, folder: Path, request: pytest.FixtureRequest) -> Lake:
    if place == "local":
        folder.mkdir()
        return Folder(folder)
    bucket: S3Bucket = request.getfixturevalue("s3")
    return bucket


def catalog(lake: Lake, place: str, folder: Path) -> dict[str, str]:
    """The configuration of a catalog whose tables are there, too."""
    own = {"TYPE": "sql", "URI": f"sqlite:///{folder}/catalog.db"}
    if place == "local":
        return {**own, "WAREHOUSE": f"file://{lake.uri}/warehouse"}
    endpoint = {"S3__ENDPOINT": os.environ["AWS_ENDPOINT_URL"], "S3__REGION": os.environ["AWS_REGION"]}
    return {**own, **endpoint, "WAREHOUSE": f"{lake.uri}/warehouse"}


@pytest.mark.parametrize(("place", "form", "way"), CASES)
def test_all_rows_are_those_of_one_local_run(
    place: str,
    form: Form,
    way: Way,
    run: Callable[..., Ran],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = lake_at(place, tmp_path / "lake", request)
    for name, value in catalog(lake, place, tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__{name}", value)
    (tmp_path / "whole").mkdir()
    wanted = whole(Folder(tmp_path / "whole"), way == "late redo", run)
    case = Case(lake, form, way)
    run_case(case, run)
    assert rows_of(case) == wanted
