"""Ranges in every kind of place, killed with all of their processes at a random moment, and run again.

`scripts/kill_runs --places N` does it N times.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from support.day_results import day, span
from support.iceberg_catalog import Lake
from support.processes import start, wincli
from support.s3_server import S3Bucket
from wincli.windowing.support.file_systems import file_system_of

DAYS = 6
_ROWS = 20_000
_WINDOW = ("-w", "gap(ts, 20)", "-k", "user", "--order-by", "ts", "-a", "m=median(x)", "-a", "n=count()")
_JOB = ("run", *_WINDOW, *span(1, DAYS))
_TOKEN = re.compile(r"(?<=-)[0-9a-f]{12}(?=[-.])|(?<=/\.)[0-9a-f]{12}(?=/)")
_JAVA = ("--master", "local[2]", "--split-size", "64KiB", "--slice-size", "64KiB")


@dataclass(slots=True)
class Course:
    """A range in one place. ``base``: of all. ``bucket``: of a store that is up. ``whole``: its rows undisturbed."""

    name: str
    base: Path
    bucket: S3Bucket
    whole: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    seconds: float = 0.0
    turn: int = 0

    @property
    def folder(self) -> Path:
        return self.base / self.name

    @property
    def lake(self) -> Lake:
        return Lake(self.folder / f"lake-{self.turn}")  # connections to the catalog of the turn before are kept

    @property
    def env(self) -> Mapping[str, str]:
        return {"TMPDIR": str(self.folder / "tmp"), **self.bucket.env, **self.lake.env}

    @property
    def command(self) -> list[str]:
        store = f"{self.bucket.uri}/{self.name}"
        return [*_JOB, *_PLACES[self.name](store, self.lake), str(self.base / "log"), _out(self.name, store)]

    def lay_out(self) -> None:
        """Empty the place, and everything beside it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        for name in self.bucket.names(f"{self.name}/"):
            self.bucket.client.delete_object(Bucket=self.bucket.name, Key=name)
        self.turn += 1
        if self.name.startswith("iceberg"):
            os.environ.update(self.lake.env)
            self.lake.make()

    def content(self) -> dict[str, Any]:
        """The rows of each day, in their order."""
        if self.name.startswith("delta"):
            rows = DeltaTable(str(self.folder / "out")).to_pyarrow_table()
            return {"rows": rows.sort_by([(name, "ascending") for name in rows.column_names]).to_pylist()}
        if self.name.startswith("iceberg"):
            os.environ.update(self.lake.env)
            rows = self.lake.rows("out")
            return {"rows": rows.sort_by([(name, "ascending") for name in rows.column_names]).to_pylist()}
        if self.name.startswith("store"):
            system, root = file_system_of(self.bucket.uri)
            parts = [name for name in self.bucket.names(f"{self.name}/out/") if "/part-" in name]
            found: dict[str, Any] = {}
            for name in parts:
                found.setdefault(name.split("/")[2], []).append(system.open_input_file(f"{root}/{name}").read())
            return {key: sorted(value) for key, value in found.items()}
        parts = [path for path in (self.folder / "out").rglob("part-*") if not path.name.startswith(".")]
        return {str(path): path.read_bytes() for path in parts}

    def all_names(self) -> set[str]:
        """What stands in the place, without the ids of runs, and without what a table keeps of its former versions."""
        local = [
            path
            for path in self.folder.rglob("*")
            if path.is_file() or ".wincli-" in path.name or path.parent.name == "tmp"
        ]
        names = [f"{path.relative_to(self.folder)}" for path in local] + self.bucket.names(f"{self.name}/")
        if self.name.startswith(("delta", "iceberg")):
            names = [name for name in names if ".wincli-" in name or name.startswith("tmp/")]
        return {_TOKEN.sub("ID", name) for name in names if not name.endswith(".last-error.json")}


def _out(name: str, store: str) -> str:
    if name.startswith("iceberg"):
        return "iceberg://lake/logs.out"
    return "delta+out" if name.startswith("delta") else f"{store}/out" if name.startswith("store") else "out"


_PLACES: Mapping[str, Callable[[str, Lake], tuple[str, ...]]] = {
    "folder": lambda _store, _lake: ("--state", "st"),
    "folder-jobs": lambda _store, _lake: ("--jobs", "2"),
    "folder-java": lambda _store, _lake: ("--jobs", "2", *_JAVA),
    "store": lambda store, _lake: ("--state", f"{store}/st"),
    "store-jobs": lambda _store, _lake: ("--jobs", "2"),
    "delta": lambda _store, _lake: ("--state", "st"),
    "delta-jobs": lambda _store, _lake: ("--jobs", "2"),
    "iceberg": lambda _store, _lake: ("--state", "st"),
    "iceberg-jobs": lambda _store, _lake: ("--jobs", "2"),
}


def courses(base: Path, bucket: S3Bucket) -> Iterator[Course]:
    """Run a range in each kind of place undisturbed."""
    for n in range(1, DAYS + 1):
        there = base / "log" / f"dt={day(n)}"
        there.mkdir(parents=True)
        ts = [100_000 * n + 3 * at for at in range(_ROWS)]
        columns = {"ts": ts, "user": ["abc"[at // 3 % 3] for at in ts], "x": [at / 7 for at in ts]}
        pq.write_table(pa.table(columns), there / "a.parquet")
    for name in _PLACES:
        course = Course(name, base, bucket)
        course.lay_out()
        began = time.monotonic()
        ran = wincli(*course.command, cwd=course.folder, env=course.env)
        assert ran.code == 0, (name, ran.err)
        course.seconds, course.whole, course.names = time.monotonic() - began, course.content(), course.all_names()
        yield course


def kill_all(course: Course, chance: random.Random) -> list[str]:
    """Kill a range at a random moment, run it again, and say what is not as undisturbed then."""
    course.lay_out()
    process = start(course.command, course.folder, course.env)
    time.sleep(chance.uniform(0.25, 1.0) * course.seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    again = wincli(*course.command, cwd=course.folder, env=course.env)
    if again.code != 0:
        return [f"running again ends with {again.code}: {again.err}"]
    faults = [] if course.content() == course.whole else ["the rows are not those of an undisturbed run"]
    names = course.all_names()
    faults += [f"left behind: {name}" for name in sorted(names - course.names)]
    return faults + [f"gone: {name}" for name in sorted(course.names - names)]
