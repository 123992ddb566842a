"""The nightly example on a cluster over an S3 server, while its processes are killed: what is wrong afterwards."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from support.in_process import wincli_here
from support.places import ROOT
from support.processes import Ran, ended, manifest, start
from support.s3_server import S3Bucket
from support.spark_cluster import SparkCluster

Victim = Literal["executor", "worker", "python"]
Days = Mapping[str, tuple[Any, ...]]
VICTIMS: tuple[Victim, ...] = ("executor", "executor", "worker", "python")
EXAMPLE = ROOT / "conf" / "examples" / "nightly_sessions.yaml"
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
RANGE = ("--start", DAYS[0], "--end", "2026-11-04", "--split-size", "48KiB", "--slice-size", "24KiB")
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "100ms",
}
_POLL = 0.05
_LONGEST = 8.0  # seconds between two kills, at most


def log(day: str, rows: int = 4000) -> bytes:
    """A day of a log, as Parquet: 40 users, whose sessions begin and end at any time, at midnight, too."""
    chance = random.Random(day)
    midnight = dt.datetime.fromisoformat(day)
    moments = sorted(chance.randrange(86_400_000_000) for _ in range(rows))
    table = pa.table(
        {
            "ts": pa.array([midnight + dt.timedelta(microseconds=each) for each in moments], pa.timestamp("us")),
            "user": [f"u{chance.randrange(40)}" for _ in moments],
            "amount": [chance.uniform(0, 9) for _ in moments],
            "page": [f"/{chance.randrange(9)}" for _ in moments],
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=500)
    return file.getvalue()


def local_days(folder: Path) -> Days:
    """Run the example in a folder on one machine; what each day comes to."""
    shutil.copy(EXAMPLE, folder)
    for day in DAYS:
        path = folder / "events" / f"dt={day}" / "log.parquet"
        path.parent.mkdir(parents=True)
        path.write_bytes(log(day))
    ran = wincli_here("run", "-q", EXAMPLE.name, *RANGE, cwd=folder)
    assert ran.code == 0, ran.err
    return {day: told(manifest(folder / "sessions" / f"dt={day}")) for day in DAYS}


def told(of_result: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two equal results have in common: the digest of all rows, their number, and the account."""
    return of_result["digest"], of_result["rows_out"], of_result["counts"]


def put_log(bucket: S3Bucket) -> None:
    """Put the log of all days into a bucket."""
    for day in DAYS:
        bucket.put(f"events/dt={day}/log.parquet", log(day))


def job_on(bucket: S3Bucket) -> list[str]:
    """The arguments of ``wincli run`` with IN, OUT and state in a bucket."""
    places = (f"{bucket.uri}/events", f"{bucket.uri}/sessions", "--state", f"{bucket.uri}/state")
    return ["run", EXAMPLE.name, *places, *RANGE]


def cluster_options(cluster: SparkCluster, settings: Mapping[str, str]) -> list[str]:
    """The options that name a cluster and settings of Spark."""
    options = (("--spark-conf", f"{name}={value}") for name, value in settings.items())
    return ["--master", cluster.url, *(word for option in options for word in option)]


def on_s3(bucket: S3Bucket, day: str) -> dict[str, Any]:
    """The manifest of a day."""
    return dict(json.loads(bucket.get(f"sessions/dt={day}/_wincli/manifest.json") or b""))


def unnamed(bucket: S3Bucket, day: str) -> set[str]:
    """The objects in the folder of a day that its manifest does not name."""
    folder = f"sessions/dt={day}/"
    own = {f"{folder}{name}" for name in ("_SUCCESS", "_wincli/manifest.json")}
    return set(bucket.names(folder)) - own - {folder + part["name"] for part in on_s3(bucket, day)["parts"]}


def disturbed(
    folder: Path, bucket: S3Bucket, cluster: SparkCluster, victims: Sequence[Victim], chance: random.Random
) -> tuple[Ran, list[str]]:
    """Run the example on a cluster, and kill victims one after the other, each at a random moment after the first task.

    Returns how the run ended, and which victims were hit. A worker is killed once: the other must do the rest.
    """
    options = [*cluster_options(cluster, SPECULATION), "--ship-environment"]
    process = start([*job_on(bucket), *options], folder, {**bucket.env, **cluster.env})
    hit: list[str] = []
    for victim in victims:
        if victim == "worker" and "worker" in hit:
            continue
        target = _wait_for(process, cluster, victim, chance)
        if target is not None:
            target.kill()
            hit.append(victim)
    return ended(process), hit


def _wait_for(
    process: subprocess.Popen[str], cluster: SparkCluster, victim: Victim, chance: random.Random
) -> psutil.Process | None:
    """Wait until tasks run, and a random time more; return a victim, None where the run ends before."""
    due = None
    while process.poll() is None:
        tasks = cluster.python_workers()
        if due is None and tasks:
            due = time.monotonic() + chance.uniform(0, _LONGEST)
        if due is not None and tasks and time.monotonic() >= due:
            executor = chance.choice(cluster.executors())
            of_victim = {"executor": [executor], "worker": [psutil.Process(executor.ppid())], "python": tasks}
            return chance.choice(of_victim[victim])
        time.sleep(_POLL)
    return None


def faults_after(ran: Ran, bucket: S3Bucket, folder: Path, whole: Days) -> list[str]:
    """What is wrong after a run, and after one more run of everything on one machine: which may not leave anything."""
    faults = [] if ran.code == 0 else [f"ended with {ran.code}: {ran.err.strip()[-500:]}"]
    faults += list(_of_days(bucket, whole)) if ran.code == 0 else []
    with mock.patch.dict(os.environ, bucket.env):
        again = wincli_here(*job_on(bucket), "--redo", cwd=folder)
    faults += [] if again.code == 0 else [f"the next run ended with {again.code}: {again.err.strip()[-500:]}"]
    faults += _of_days(bucket, whole)
    faults += [f"left {name}" for day in DAYS for name in unnamed(bucket, day)]
    faults += [f"left {name}" for name in bucket.names() if name.rpartition("/")[2].endswith("wincli-lock")]
    return faults


def _of_days(bucket: S3Bucket, whole: Days) -> Iterator[str]:
    yield from (f"{day} is not that of one machine" for day in DAYS if told(on_s3(bucket, day)) != whole[day])
