"""What other users of the machine find at the ports of a run: nothing that takes a word from them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
import pytest

from support.knocking import GATEWAY, REFUSED
from support.places import ROOT, TESTS

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))

LOCAL = """
import psutil
from support.knocking import answer, is_loopback, listening, work
from wincli.conf.spark import spark_settings
from wincli.windowing.spark.boot import start

master = "local[2]"
with start(master, {}, spark_settings(master, {})) as running:
    running.map("start a worker", len, ["ab"])
    driver, java = psutil.Process(), psutil.Process(running._gateway.process.pid)
    ports = listening(java)
    print(running.is_open, all(is_loopback(address) for address, _ in [*ports, *listening(driver)]))
    # Java gives a result to the driver at a port of its own, which it closes again
    print(sorted(answer(port) for _, port in ports if port in {port for _, port in listening(java)}))
    places = [place for each in java.children(recursive=True) for place in listening(each)]
    print(len(places), all(is_loopback(address) and work(port).endswith(b"err") for address, port in places))
"""


def test_connection_without_the_secret_is_refused_at_every_port_of_a_local_master(tmp_path: Path) -> None:
    told = run_alone(LOCAL, tmp_path)
    assert told == ["False True", f"{sorted([GATEWAY, REFUSED, REFUSED])}", "1 True"]


def run_alone(code: str, folder: Path) -> list[str]:
    """Run code in a process of its own, where no other test has opened ports, and return the lines that it prints."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPARK")}
    env |= {"PYTHONPATH": str(TESTS), "TMPDIR": str(folder), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=ROOT, text=True, capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


CROWD = """
import contextlib, socket
import psutil
from support.knocking import HOST, listening
from wincli.conf.spark import spark_settings
from wincli.windowing.spark.boot import start

master = "local[2]"
with start(master, {}, spark_settings(master, {})) as running, contextlib.ExitStack() as crowd:
    running.map("start a worker", len, ["ab"])
    driver, java = psutil.Process(), psutil.Process(running._gateway.process.pid)
    ports = {port for each in [driver, java, *java.children(recursive=True)] for _, port in listening(each)}
    for port in sorted(ports):
        for _ in range(400):
            with contextlib.suppress(OSError):
                crowd.enter_context(socket.create_connection((HOST, port), timeout=0.2))
    workers = java.children(recursive=True)
    print(len([place for each in workers for place in listening(each)]), len(workers) < 8)
    print(running.map("work", len, ["a" * number for number in range(8)]) == list(range(8)))
"""


@pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 has no Unix sockets for its workers")
def test_workers_have_no_port_that_a_crowd_of_strangers_could_fill() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # the path of a socket is short
        assert run_alone(CROWD, Path(short)) == ["0 True", "True"]
