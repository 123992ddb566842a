"""All places, kinds of table and ways to run a job: all rows are those of one local run.

The log has rows that come a day late and rows that nobody knows; its windows pass from day to day. Results are read
with the libraries of the formats, never with what wrote them. A sample runs at once; `scripts/nightly` runs all.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from support.day_results import day
from support.in_process import done
from support.places_to_write import Folder, Lake
from support.processes import Ran
from support.s3_server import S3Bucket
from wincli.windowing.tables.iceberg_catalog import open_catalog

DAYS = 4
CATALOG = "lake"
ROWS = 60
JOB = ("-w", "delta(ts, 3h)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "ids=collect(id)",
       "-a", "spent=sum(amount)", "--emit", "aggregates")  # fmt: skip
SPLITS = ("--split-size", "1KiB", "--slice-size", "1KiB")
LAST = ("--at-end", "flush")

SAMPLE = {("s3", "delta", "range"), ("s3", "iceberg", "plain")}
CASES = [
    pytest.param(place, form, way, marks=() if (place, form, way) in SAMPLE else pytest.mark.nightly)
    for place in ("local", "s3")
    for form in ("parquet", "delta", "iceberg")
    for way in ("plain", "range", "redo", "late redo")
]


# The log


def write_log(lake: Lake, is_late: bool) -> None:
    """Four days of three users; ``is_late``: some rows of the second and the third are in a file of the fourth."""
    chance = random.Random(4)
    first = 0
    for n in range(1, DAYS + 1):
        lake.put(f"in/dt={day(n)}/a.parquet", file([n], chance, first))
        first += ROWS
    if is_late:
        lake.put(f"in/dt={day(DAYS)}/b.parquet", file([DAYS - 1, DAYS - 2], chance, first))


def file(days: Sequence[int], chance: random.Random, first: int) -> bytes:
    """A file with rows of some days, whose ids count from ``first``."""
    epoch = 1_793_491_200  # 2026-11-01
    at = sorted(epoch + (chance.choice(days) - 1) * 86_400 + chance.randrange(86_400) for _ in range(ROWS))
    table = pa.table(
        {
            "ts": pa.array([second * 10**6 for second in at], pa.timestamp("us")),
            "user": [None if chance.random() < 0.03 else f"u{chance.randrange(3)}" for _ in at],
            "id": range(first, first + ROWS),
            "amount": [chance.randrange(1000) / 8 for _ in at],
        }
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=17)
    return sink.getvalue()


# Runs


def run_all(lake: Lake, form: str, way: str, run: Callable[..., Ran]) -> None:
    """Run all commands of a case."""
    write_log(lake, way == "late redo")
    out, options = f"{lake.uri}/out", ("--output-format", "delta") if form == "delta" else ()
    if form == "iceberg":
        open_catalog(CATALOG).create_namespace("logs")
        out = f"iceberg://{CATALOG}/logs.out"
    if way == "plain":
        run("run", *JOB, f"{lake.uri}/in", out, *options, *SPLITS)
        run("run", *JOB, f"{lake.uri}/in", out, *options, "--mode", "overwrite")  # cut into other pieces
        return
    state = ("--state", f"{lake.uri}/state", "--late", "redo")

    def days(first: int, last: int, *more: str) -> Ran:
        span = ("--start", day(first), "--end", day(last + 1), *more)
        return run("run", *JOB, *state, f"{lake.uri}/in", f"{out}/dt={{date}}", *options, *SPLITS, *span)

    days(1, 2)
    days(3, 3)
    days(4, 4, *LAST)
    if way == "redo":
        days(2, 3, "--redo")
        days(4, 4, "--redo", *LAST)
    assert "nothing to do" in days(1, 4, *LAST).err


# Results


def rows_of(lake: Lake, form: str) -> list[str]:
    """The rows of the result of a case, as texts in order."""
    match form:
        case "delta":
            return texts([DeltaTable(f"{lake.uri}/out").to_pyarrow_table()])
        case "iceberg":
            return texts([open_catalog(CATALOG).load_table("logs.out").scan().to_arrow()])
        case _:
            return rows_of_folder(lake, "out")


def rows_of_folder(lake: Lake, folder: str) -> list[str]:
    """The rows of all results below a folder, as their manifests name them."""
    objects = lake.objects()
    tables = []
    for name in objects:
        if name.startswith(f"{folder}/") and name.endswith("/_wincli/manifest.json"):
            below = name.removesuffix("_wincli/manifest.json")
            parts = [objects[below + part["name"]] for part in json.loads(objects[name])["parts"]]
            tables += [parquet.read_table(io.BytesIO(part)) for part in parts]
    return texts(tables)


def texts(tables: Sequence[pa.Table]) -> list[str]:
    """Rows as texts in order, without where they stood in the log, and without the columns of folders."""
    rows: list[dict[str, Any]] = [row for table in tables for row in table.to_pylist()]
    return sorted(repr({k: v for k, v in sorted(row.items()) if k not in ("_pos", "dt")}) for row in rows)


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
    place: str, form: str, way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = partial(done, tmp_path)
    lake = lake_at(place, tmp_path / "lake", request)
    for name, value in catalog(lake, place, tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__{name}", value)
    (tmp_path / "whole").mkdir()
    here = Folder(tmp_path / "whole")
    write_log(here, way == "late redo")
    run("run", *JOB, f"{here.uri}/in", f"{here.uri}/whole")
    wanted = rows_of_folder(here, "whole")
    run_all(lake, form, way, run)
    assert rows_of(lake, form) == wanted
    assert wanted
