"""What other users of the machine find at the ports of a run: nothing that takes a word from them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from support.knocking import GATEWAY, REFUSED, answer, is_loopback, listening, work
from support.places import ROOT, TESTS
from wincli.windowing.spark.boot import SparkExecutor
from wincli.windowing.spark.masters import AUTHENTICATE


def test_connection_without_the_secret_is_refused_at_every_port_of_a_local_master(session: SparkExecutor) -> None:
    assert session.map("start a worker", len, ["ab"]) == [2]
    assert not session.is_open
    driver = psutil.Process()
    java = psutil.Process(session._gateway.process.pid)
    ports = listening(java)
    assert all(is_loopback(address) for address, _ in [*ports, *listening(driver)])
    assert sorted(answer(port) for _, port in ports) == sorted([GATEWAY, REFUSED, REFUSED])
    daemons = [each for each in java.children(recursive=True) if listening(each)]
    places = [place for each in daemons for place in listening(each)]
    assert places  # one daemon, and another one where DataFrames have had tasks
    assert all(is_loopback(address) and work(port).endswith(b"err") for address, port in places)


CLUSTER = """
import sys
import psutil
from wincli.conf.spark import spark_settings
from support.knocking import answer, is_loopback, listening
from wincli.windowing.spark.boot import start

master = "local-cluster[1,1,1024]"
with start(master, {}, spark_settings(master, {})) as running:
    running.map("start a worker", len, ["ab"])
    secret = running._setup.settings["spark.authenticate.secret"]
    processes = psutil.Process().children(recursive=True)
    print(len(secret), running.is_open, any(secret in word for each in processes for word in each.cmdline()))
    ports = [place for each in processes if each.name() == "java" for place in listening(each)]
    print(all(is_loopback(address) for address, _ in ports), sorted({answer(port) for _, port in ports}))
    print(sum(each.name() == "java" for each in processes))
"""


def test_a_cluster_in_miniature_refuses_strangers_and_needs_nothing_set(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPARK")}
    env |= {"PYTHONPATH": str(TESTS), "TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER], env=env, cwd=ROOT, text=True, capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["64 False False", f"True {sorted([GATEWAY, REFUSED, 'page 403'])}", "2"]
    assert list(tmp_path.iterdir()) == []  # not even the folder that Spark keeps for each of its workers


def test_authentication_is_on_for_every_master(session: SparkExecutor) -> None:
    assert session.context.getConf().get(AUTHENTICATE) == "true"
    assert session.context.getConf().get("spark.authenticate.secret") is None  # Spark's own, in memory alone
