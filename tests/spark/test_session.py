"""Sessions: what workers are like, how failures come back, and that nothing is left behind.

What ends a session runs in a process of its own: a process has one Spark at a time, and this one's is shared.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.knocking import GATEWAY, REFUSED
from support.places import ROOT, TESTS
from support.spark_cluster import QUICK
from wincli.windowing.errors import DataError, SparkError
from wincli.windowing.spark.boot import Progress, SparkExecutor, guarded
from wincli.windowing.spark.code_archive import PACKAGES
from wincli.windowing.spark.setup import AUTHENTICATE


def double(x: int) -> int:
    return 2 * x


def overflow(x: int) -> int:
    raise DataError(f"sum of column 'é{x}' overflows", "cast it")


def divide(x: int) -> float:
    return 1 / x


def die(x: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(x: float) -> float:
    time.sleep(x)
    return x


def test_authentication_is_on_for_every_master(session: SparkExecutor) -> None:
    assert session.context.getConf().get(AUTHENTICATE) == "true"
    assert session.context.getConf().get("spark.authenticate.secret") is None  # Spark's own, in memory alone


def test_each_keeps_the_order_of_its_items(session: SparkExecutor) -> None:
    assert session.map("double", double, range(100)) == [2 * x for x in range(100)]
    assert session.map("double", double, []) == []


def test_an_error_of_ours_comes_back_as_itself(session: SparkExecutor) -> None:
    with pytest.raises(DataError) as caught:
        session.map("overflow", overflow, [7])
    assert (caught.value.what, caught.value.do) == ("sum of column 'é7' overflows", "cast it")


def test_an_error_of_ours_comes_back_through_a_shuffle(session: SparkExecutor) -> None:
    def fail(index: int, items: Iterator[object]) -> Iterator[object]:
        raise DataError(f"slice {index}", None)

    pairs = session.context.parallelize([(0, b"")], 1).partitionBy(1, int)
    with pytest.raises(DataError, match="slice 0"):
        session.run("fail", pairs.mapPartitionsWithIndex(guarded(fail)).collect)


def test_any_other_error_is_reported_by_its_last_line(session: SparkExecutor) -> None:
    with pytest.raises(SparkError) as caught:
        session.map("divide", divide, [0])
    assert caught.value.what == "Spark failed: ZeroDivisionError: division by zero"
    assert "Traceback" in str(caught.value.__cause__)


def test_killed_worker_is_reported_in_plain_words(session: SparkExecutor) -> None:
    with pytest.raises(SparkError, match="a Python worker was killed or crashed"):
        session.map("die", die, [0])
    assert session.map("double", double, [1]) == [2]


def test_interrupt_cancels_the_job_and_the_session_stays_usable(session: SparkExecutor) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.map("sleep", sleep, [60.0])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 30
    assert session.map("double", double, [1]) == [2]


def test_progress_counts_tasks(session: SparkExecutor) -> None:
    seen: list[Progress] = []
    session.on_progress = seen.append
    try:
        session.map("naps", sleep, [0.3] * 8)
    finally:
        session.on_progress = None
    assert {(each.label, each.total, each.stage, each.stages) for each in seen} == {("naps", 8, 1, 1)}
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert 0 < seen[-1].done <= 8


def look(_: int) -> tuple[str, int, int, int, list[str], bool]:
    import pyarrow

    threads = max(1, len(list(Path("/proc/self/task").glob("*"))))
    loaded = "wincli.windowing.engine.run" in sys.modules
    return sys.executable, threads, pyarrow.cpu_count(), os.getpid(), sys.path, loaded


def test_workers_are_the_drivers_python_with_one_thread_and_all_loaded(session: SparkExecutor) -> None:
    executable, threads, arrow_threads, pid, path, loaded = session.map("look", look, [0])[0]
    assert executable == sys.executable
    assert (threads, arrow_threads, loaded) == (1, 1, True)
    assert str(TESTS) in path
    assert psutil.Process(pid).parent().ppid() != os.getpid()


SCRIPT = """
import os, signal, sys, time
from wincli.conf.spark import spark_settings
from wincli.windowing.spark.boot import boot, start
from wincli.windowing.errors import WincliError

def pid(_):
    return os.getpid()

def session(master="local[2]", conf={}):
    return start(master, conf, spark_settings(master, {}))

def pids(running):
    import psutil
    return [child.pid for child in psutil.Process().children(recursive=True)]

def alive(there):
    import psutil
    return [p for p in there if psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE]
"""


def script(tmp_path: Path, text: str, **environ: str) -> subprocess.Popen[str]:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + text)
    scratch = tmp_path / "tmp"
    scratch.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(scratch), **environ}
    return subprocess.Popen([sys.executable, path], env=env, text=True, stdout=-1, stderr=-1, cwd=tmp_path)


def told(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert err == ""
    assert process.returncode == 0
    return out


def test_workers_grow_from_a_fork_of_the_driver(tmp_path: Path) -> None:
    out = told(
        script(
            tmp_path,
            """
from pathlib import Path
from wincli.windowing.spark.fork_server import NO_PANDAS, block_pandas
from wincli.windowing.spark.fork_server import prepare

def look(_):
    import pyarrow, psutil
    daemon = psutil.Process(os.getppid())
    threads = len(list(Path("/proc/self/task").glob("*")))
    counts = threads, pyarrow.cpu_count()
    return daemon.pid, daemon.ppid(), counts, os.environ["PYTHONSAFEPATH"], "pandas" in sys.modules

settings = spark_settings("local[2]", {})
prepare(settings)
block_pandas()
starting = boot("local[2]", {}, settings, environ={**os.environ, NO_PANDAS: "1"})
starting.start_fork_server()
found = starting.session().map("look", look, range(4))
there = pids(starting)
starting.close()
daemon = found[0][0]
print(found == [(daemon, os.getpid(), (1, 1), "1", False)] * 4, daemon in there)
print(alive(there), os.listdir(os.environ["TMPDIR"]))
""",
        )
    )
    assert out == "True True\n[] []\n"


def test_nothing_is_left_of_sessions_one_of_which_is_closed_before_it_is_up_and_one_in_the_middle_of_a_task(
    tmp_path: Path,
) -> None:
    out = told(
        script(
            tmp_path,
            """
first = boot("local[2]", {}, spark_settings("local[2]", {}))
first.close()
print(os.listdir(os.environ["TMPDIR"]))
with session(conf={"spark.local.dir": os.environ["TMPDIR"]}) as running:
    print(len(running.map("pid", pid, [1])), running.parallelism)
    there = pids(running)
print(len(there) > 2, alive(there))  # Java, the daemon, a worker

def write(_):
    for i in range(3000):
        open("still-there", "w").write(str(i))
        time.sleep(0.01)

def interrupt(*_):
    if os.path.exists("still-there"):  # the task is at work
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

running = session()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
try:
    running.map("write", write, [0])
except KeyboardInterrupt:
    running.close()
    last = open("still-there").read()
    time.sleep(0.3)
    print(open("still-there").read() == last, os.listdir(os.environ["TMPDIR"]))
""",
        )
    )
    assert out == "[]\n1 2\nTrue []\nTrue []\n"


TELL = """
for master, conf in CASES:
    try:
        session(master, conf)
    except WincliError as error:
        print(error)
print(os.listdir(os.environ["TMPDIR"]))
"""


def test_session_that_cannot_start_is_an_error_with_its_cause(tmp_path: Path) -> None:
    cases = [("moon", {}), ("spark://127.0.0.1:1", {}), ("local[2]", {"spark.local.dir": "/nowhere"})]
    lines = told(script(tmp_path, f"CASES = {cases!r}\n{TELL}")).splitlines()
    assert lines[0].startswith("Spark does not know this master: moon; say --master")
    assert lines[1].startswith("the Spark master spark://127.0.0.1:1 does not answer; check")
    assert lines[2].startswith("no folder for Spark's temporary files: No such file or directory: /nowhere/wincli-")
    assert lines[3] == "[]"


def test_code_travels_to_executors_elsewhere_which_load_kernels_compile_none_and_refuse_strangers(
    tmp_path: Path,
) -> None:
    text = (
        f"QUICK = {QUICK!r}"
        + """
import pyarrow as pa
import psutil
from pyspark.find_spark_home import _find_spark_home
from support.knocking import answer, is_loopback, listening
from wincli.windowing.spark.fork_server import NO_PANDAS
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.engine.warmup import warm

def look(_):
    from wincli.windowing.support.jit import Kernel
    import psutil
    import wincli.windowing
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("wincli.windowing.")]
    kernels = [value for module in ours for value in vars(module).values() if isinstance(value, Kernel)]
    kernels = [value.stats for value in kernels if value.compiled]
    loaded, compiled = (sum(sum(s[i].values()) for s in kernels) for i in (1, 2))
    code = wincli.windowing.__path__[0]
    daemon = psutil.Process(os.getppid()).cmdline()
    ours = "wincli.windowing.spark.daemon" in daemon
    return code, loaded, compiled, ours, os.environ["PYTHONPATH"].split(":")

schema = pa.schema([("x", pa.int64())])
plan = make_plan(parse_window("delta(x, 1)"), schema)
master = "local-cluster[1,1,1024]"
conf = {
    "spark.pyspark.python": sys.executable,
    "spark.executorEnv.PYTHONPATH": "/users/own",
    "spark.executor.extraJavaOptions": QUICK,
}
with boot(master, conf, spark_settings(master, conf), environ={**os.environ, NO_PANDAS: "1"}) as starting:
    starting.warm(warm, plan, schema)
    running = starting.session()
    ((code, loaded, compiled, is_ours, path),) = running.map("look", look, [0])
    print(code.split("/")[-3:], loaded > 0, compiled, is_ours, "wincli-code" in path, "/users/own" in path)
    print(os.path.exists(os.path.join(_find_spark_home(), "work", running.context.applicationId)))
    secret = running._setup.settings["spark.authenticate.secret"]
    processes = psutil.Process().children(recursive=True)
    print(len(secret), running.is_open, any(secret in word for each in processes for word in each.cmdline()))
    ports = [place for each in processes if each.name() == "java" for place in listening(each)]
    print(all(is_loopback(address) for address, _ in ports), sorted({answer(port) for _, port in ports}))
    print(sum(each.name() == "java" for each in processes))
print(os.listdir(os.environ["TMPDIR"]))
"""
    )
    code = tmp_path / "code"  # without kernels that were compiled before: then the driver has just compiled all
    for package in PACKAGES:
        folder = package.split(".")
        shutil.copytree(ROOT / folder[-1], code.joinpath(*folder), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "__init__.py", code / "wincli")
    out = told(script(tmp_path, text, PYTHONPATH=f"{code}:{TESTS}"))
    assert out.splitlines() == [
        "['wincli-code', 'wincli', 'windowing'] True 0 True True True",
        *("False", "64 False False", f"True {sorted([GATEWAY, REFUSED, 'page 403'])}", "2", "[]"),
    ]
