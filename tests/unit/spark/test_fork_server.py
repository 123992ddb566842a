"""The seed: a fork of the driver that takes the place of Spark's daemon. Java is played by the test.

All of it runs in processes of its own: what is forked must not be pytest.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from wincli.windowing.spark.fork_server import FORK_SERVER, LOCK, may_fork, take_over_daemon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are seeds on Linux alone")

_DRIVER = """
import sys
from pathlib import Path
from wincli.windowing.spark.fork_server import start_fork_server
seed = start_fork_server(Path(sys.argv[1]))
if seed is not None:
    seed.do(Path.touch, Path(sys.argv[1] + ".told"))
print(seed and seed.pid, flush=True)
sys.stdin.read()
if seed is not None:
    print(seed.do(print))
    seed.end()
"""


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start Python with arguments; it gets no signal, and has ended when the test has."""
    processes = []

    def start(*args: str, **environ: str) -> subprocess.Popen[bytes]:
        env = {"PYTHONPATH": ":".join(filter(None, sys.path)), **environ}
        process = subprocess.Popen([sys.executable, *args], env=env, stdin=-1, stdout=-1, stderr=-1)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def planted(driver: subprocess.Popen[bytes]) -> psutil.Process:
    assert driver.stdout is not None
    return psutil.Process(int(driver.stdout.readline()))


def port(daemon: subprocess.Popen[bytes]) -> int:
    """What Spark's daemon says first."""
    assert daemon.stdout is not None
    return int(struct.unpack("!i", daemon.stdout.read(4))[0])


Start = Callable[..., subprocess.Popen[bytes]]


def test_a_seed_becomes_the_daemon_of_the_one_that_asks(started: Start, tmp_path: Path) -> None:
    place, lock = tmp_path / "seed", tmp_path / "lock"
    seed = planted(driver := started("-c", _DRIVER, str(place)))
    daemon = started(
        "-m",
        "wincli.windowing.spark.daemon",
        "pyspark.worker",
        **{FORK_SERVER: str(place), LOCK: str(lock), "MY": "1"},
    )
    listening = port(daemon)
    assert [each.laddr.port for each in seed.net_connections("tcp4")] == [listening]
    assert (tmp_path / "seed.told").exists()  # it has done first what it was told
    assert lock.exists()
    assert seed.name() == "python-wincli"
    assert daemon.communicate(timeout=30) == (b"", b"")  # closes its stdin, as Java does in the end
    assert driver.communicate(timeout=30) == (b"False\n", b"")  # a daemon takes no orders
    assert (daemon.returncode, driver.returncode, seed.is_running()) == (0, 0, False)


def test_a_second_daemon_loads_for_itself(started: Start, tmp_path: Path) -> None:
    place = tmp_path / "seed"
    seed = planted(started("-c", _DRIVER, str(place)))
    first = started("-m", "wincli.windowing.spark.daemon", "pyspark.worker", **{FORK_SERVER: str(place)})
    assert port(first) in [each.laddr.port for each in seed.net_connections("tcp4")]
    second = started("-m", "wincli.windowing.spark.daemon", "pyspark.worker", **{FORK_SERVER: str(place)})
    assert port(second) in [each.laddr.port for each in psutil.Process(second.pid).net_connections("tcp4")]


def test_a_seed_ends_with_its_driver(started: Start, tmp_path: Path) -> None:
    driver = started("-c", _DRIVER, str(tmp_path / "seed"))
    seed = planted(driver)
    driver.kill()
    driver.wait()
    assert psutil.wait_procs([seed], timeout=30)[1] == []
    assert not take_over_daemon(str(tmp_path / "seed"))


def test_a_driver_that_needs_no_worker_ends_its_seed(started: Start, tmp_path: Path) -> None:
    driver = started("-c", _DRIVER, str(tmp_path / "seed"))
    seed = planted(driver)
    assert driver.communicate(timeout=30) == (b"True\n", b"")
    assert not seed.is_running()


def test_there_is_no_seed_where_a_socket_cannot_have_that_name(started: Start, tmp_path: Path) -> None:
    driver = started("-c", _DRIVER, str(tmp_path / ("long" * 50)))
    assert driver.communicate(timeout=30) == (b"None\n", b"")
    assert not take_over_daemon(str(tmp_path / ("long" * 50)))


def test_workers_the_user_has_a_say_in_are_no_forks_of_the_driver() -> None:
    assert may_fork({"spark.driver.memory": "2g"})
    assert not may_fork({"spark.executorEnv.LD_PRELOAD": "x.so"})
    assert not may_fork({"spark.pyspark.python": "python3.13"})
    assert not may_fork({"spark.python.worker.reuse": "false"})
