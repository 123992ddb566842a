"""A standalone cluster over an S3 server: the nightly example gives the bits of one machine, whatever dies meanwhile.

A proxy before the server sees each request: it knows when an executor is in the middle of its work, and which attempts
at a task there are. ``scripts/cluster_runs`` does more of it, at random moments.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import pytest

from support.cluster_runs import DAYS, SPECULATION, cluster_options, job_on, local_days, on_s3, put_log, told, unnamed
from support.fault_proxy import FaultProxy, Request, Side, UnsentError, serve
from support.in_process import wincli_here
from support.processes import wincli
from support.s3_server import S3Bucket, S3Server
from support.spark_cluster import SparkCluster, cluster_in

_PART = re.compile(r"/dt=([^/]+)/part-(\d+)-")
_PATIENCE = 600.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with cluster_in(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with serve(s3_server.endpoint) as started:
        yield started


class Disturbance:
    """What befalls the attempts to write parts: on the first day an executor is killed at its first upload; on the
    second day the first upload of a part is held until the run is over, as that of a machine that has stalled.

    ``killed``: the executor. ``ended``: set when the run is over. ``held``: the object that comes after that.
    ``part``: the number of its part. ``attempts``: the uploads of parts that began: day, and number of the part.
    """

    def __init__(self, cluster: SparkCluster) -> None:
        self.cluster = cluster
        self.killed: psutil.Process | None = None
        self.held: str | None = None
        self.part: str | None = None
        self.attempts: list[tuple[str, str]] = []
        self.ended = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, request: Request, side: Side) -> None:
        """Watch a request, as `FaultProxy` has it."""
        path = unquote(urlsplit(request.target).path)
        if request.method == "PUT" and side == "before" and (part := _PART.search(path)):
            self._upload(part[1], part[2], path, request.source)

    def _upload(self, day: str, part: str, path: str, source: int) -> None:
        with self._lock:
            self.attempts.append((day, part))
            if day == DAYS[0] and self.killed is None:
                self.killed = self.cluster.executor_at(source)
                assert self.killed is not None
                self.killed.kill()
                raise UnsentError
            is_held = day == DAYS[1] and self.held is None
            if is_held:
                self.held, self.part = path, part
        if is_held:
            self.ended.wait(_PATIENCE)


@pytest.mark.nightly  # two minutes; scripts/test has the cluster in miniature
def test_the_nightly_example_on_a_cluster_is_that_of_one_machine_whatever_its_executors_meet(
    tmp_path: Path, s3: S3Bucket, proxy: FaultProxy, cluster: SparkCluster
) -> None:
    whole = local_days(tmp_path)
    put_log(s3)
    disturbance = Disturbance(cluster)
    proxy.watch = disturbance
    options = cluster_options(cluster, {**SPECULATION, "spark.pyspark.python": sys.executable})
    env = {**s3.env, **cluster.env, "AWS_ENDPOINT_URL": proxy.endpoint}
    ran = wincli(*job_on(s3), *options, cwd=tmp_path, env=env)
    disturbance.ended.set()
    proxy.settle()
    assert ran.code == 0, ran.err
    assert {day: told(on_s3(s3, day)) for day in DAYS} == whole
    assert disturbance.killed is not None
    assert disturbance.held is not None
    late = disturbance.held.split("/", 2)[2]
    assert disturbance.attempts.count((DAYS[1], str(disturbance.part))) >= 2
    assert [unnamed(s3, day) for day in DAYS] == [set(), {late}, set()]

    again = wincli_here(*job_on(s3), "--redo", "--start", DAYS[1], "--end", DAYS[2], cwd=tmp_path)
    assert again.code == 0, again.err
    assert {day: told(on_s3(s3, day)) for day in DAYS} == whole
    assert [unnamed(s3, day) for day in DAYS] == [set(), set(), set()]
