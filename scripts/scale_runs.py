"""Runs of a job on small clusters of this machine, and what each phase of them took: for `scripts/scale_model`.

A run is a process of wincli with ``local-cluster[N,1,1024]``: N executors with one core and 1 GB of Java each. Its
processes are looked at a few times a second, so the processor time of each is known by the end of each stage, which
Spark's event log tells. The load of other programs changes none of these figures but the seconds on the clock.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from scale_costs import JOB, MOST_SIZES, Run, Used, plan_of_job

from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.engine.map_side import read_rows, sequences_of
from wincli.windowing.engine.task import NONE, Sizes, TaskContext, pack, row_width
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.rows.merge import merge
from wincli.windowing.spark.java import find_java

ROOT = Path(__file__).resolve().parent.parent
_POLL = 0.2
_TIMES = 20
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: Python workers whose Java has ended stay below this process
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for executors. Else Java compiles in the background, in 5 to 13 s of a core as long as the run lasts."""
DRIVER, DRIVER_JAVA, EXECUTOR, WORKER = "driver", "driver_java", "executor", "worker"


@dataclass(frozen=True, slots=True)
class Case:
    """A run to make.

    ``rows``, ``keys``, ``files``: of its log.
    ``executors``: their number.
    ``split_kib``, ``slice_kib``: ``--split-size`` and ``--slice-size``.
    """

    rows: int
    keys: int
    files: int
    executors: int = 1
    split_kib: int = 96 << 10
    slice_kib: int = 192 << 10

    def log_in(self, folder: Path) -> Path:
        """Return where its log is, which is made if it is not there."""
        log = folder / f"scale-{self.rows}-{self.keys}-{self.files}"
        if not log.is_dir():
            sizes = [f"--{name}={getattr(self, name)}" for name in ("rows", "keys", "files")]
            unfinished = log.with_name(f"{log.name}.new")
            subprocess.run([sys.executable, str(ROOT / "scripts" / "gen_events"), *sizes, str(unfinished)], check=True)
            unfinished.rename(log)
        return log


# Each differs from another in one thing: rows, windows for each row, keys, map tasks, slices, blocks, files, executors.
FIT = (
    Case(1_000_000, 5_000, 100),
    Case(20_000_000, 5_000, 100),
    Case(20_000_000, 50_000, 100),
    Case(20_000_000, 5_000, 100, split_kib=8 << 10),
    Case(20_000_000, 5_000, 100, split_kib=8 << 10, slice_kib=2 << 10),
    Case(20_000_000, 5_000, 1_000, split_kib=800),
    Case(1_000_000, 5_000, 100, slice_kib=16),
    Case(1_000_000, 5_000, 100, executors=4, split_kib=400, slice_kib=256),
    Case(20_000_000, 5_000, 100, executors=3, split_kib=8 << 10, slice_kib=4 << 10),
    Case(10_000_000, 5_000_000, 10),
)
CHECK = tuple(Case(20_000_000, 20_000, 40, executors, 16 << 10, 8 << 10) for executors in (1, 2, 4, 8))


def measure(case: Case, data: Path) -> Run:
    """Make a run and return what it took."""
    log = case.log_in(data)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(dir=data) as folder:
        events, out = Path(folder) / "events", Path(folder) / "out"
        events.mkdir()
        began = time.time()
        seen = _watched(_command(case, log, out, events), Path(folder) / "stderr")
        wall = time.time() - began
        stages = _stages(next(path for path in events.iterdir() if not path.name.startswith(".")))
        found = json.loads((out / "_wincli" / "manifest.json").read_text())
        written = sum(path.stat().st_size for path in out.glob("part-*"))
    return _run(case, found, seen, stages, written, wall)


def _command(case: Case, log: Path, out: Path, events: Path) -> list[str]:
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.cores.max": str(case.executors),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # so that slices are chosen for all executors
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    return [
        str(Path(sys.executable).with_name("wincli")),
        *("run", str(log), str(out), *JOB, "--master", f"local-cluster[{case.executors},1,1024]"),
        *("--split-size", f"{case.split_kib}KiB", "--slice-size", f"{case.slice_kib}KiB"),
        *(word for name, value in settings.items() for word in ("--spark-conf", f"{name}={value}")),
    ]


@dataclass(slots=True)
class _Seen:
    """What was seen of the processes of a run.

    ``seconds``: processor seconds by kind of process, at each look.
    ``peaks``: the largest resident memory of one process of a kind, in bytes.
    """

    seconds: list[tuple[float, dict[str, float]]]
    peaks: dict[str, int]


def _watched(command: Sequence[str], log: Path) -> _Seen:
    """Run a command, and look at its processes until it ends. Raises `RuntimeError` where it fails."""
    spent: dict[tuple[int, float], tuple[str, float]] = {}
    seen, me = _Seen([], defaultdict(int)), psutil.Process()
    with log.open("wb") as errors, subprocess.Popen(command, stdout=errors, stderr=errors) as process:
        ended = False
        while not ended:
            ended = process.poll() is not None
            for each in me.children(recursive=True):
                _look(each, process.pid, spent, seen.peaks)
            seen.seconds.append((time.time(), _sums(spent)))
            time.sleep(0 if ended else _POLL)
    if process.returncode:
        raise RuntimeError(log.read_text()[-2000:])
    _end_orphans(me)
    return seen


def _look(
    process: psutil.Process, root: int, spent: dict[tuple[int, float], tuple[str, float]], peaks: dict[str, int]
) -> None:
    try:
        with process.oneshot():
            identity, times = (process.pid, process.create_time()), process.cpu_times()
            words = process.cmdline()  # empty once it has ended
            kind = _kind(process.pid == root, words) if words or identity not in spent else spent[identity][0]
            peaks[kind] = max(peaks[kind], process.memory_info().rss)
        spent[identity] = (kind, times.user + times.system)
    except psutil.Error:
        pass


def _kind(is_command: bool, words: Sequence[str]) -> str:
    if is_command:
        return DRIVER
    if any("CoarseGrainedExecutorBackend" in word for word in words):
        return EXECUTOR
    if any("SparkSubmit" in word for word in words):
        return DRIVER_JAVA
    is_worker = any("spark.daemon" in word for word in words)  # Spark's own, or `windowing.spark.daemon`
    return WORKER if is_worker else DRIVER


def _sums(spent: dict[tuple[int, float], tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for kind, seconds in spent.values():
        sums[kind] += seconds
    return dict(sums)


def _end_orphans(me: psutil.Process) -> None:
    """Wait for what the run has left, which ends by itself; all of it is below this process."""
    left = me.children(recursive=True)
    for process in psutil.wait_procs(left, timeout=10)[1]:
        process.kill()
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


@dataclass(frozen=True, slots=True)
class _Stage:
    """A stage in Spark's event log: when it began and ended, its tasks, and the sums of their metrics."""

    began: float
    ended: float
    tasks: int
    metrics: dict[str, int]


def _stages(log: Path) -> list[_Stage]:
    """Return the stages of an event log, in order."""
    metrics: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    found = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            _add(metrics[event["Stage ID"]], event["Task Metrics"])
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            times = (info["Submission Time"] / 1000, info["Completion Time"] / 1000)
            found.append(_Stage(*times, info["Number of Tasks"], metrics[info["Stage ID"]]))
    return sorted(found, key=lambda stage: stage.began)


def _add(sums: dict[str, int], given: dict[str, Any]) -> None:
    read, write = given["Shuffle Read Metrics"], given["Shuffle Write Metrics"]
    sums["fetched"] += read["Remote Blocks Fetched"] + read["Local Blocks Fetched"]
    sums["bytes_read"] += read["Remote Bytes Read"] + read["Local Bytes Read"]
    sums["bytes_written"] += write["Shuffle Bytes Written"]
    sums["spilled"] += given["Disk Bytes Spilled"]
    sums["result"] += given["Result Size"]


def _run(case: Case, manifest: dict[str, Any], seen: _Seen, stages: list[_Stage], written: int, wall: float) -> Run:
    exchange, scan = stages[-2:]  # the stages before count the cores
    phases = {"start": exchange.began, "map": exchange.ended, "scan": scan.ended, "end": float("inf")}
    before: dict[str, float] = {}
    used: dict[str, dict[str, float]] = {}
    for phase, until in phases.items():
        sums = next((sums for at, sums in reversed(seen.seconds) if at <= until), {})
        used[phase] = {kind: sums.get(kind, 0.0) - before.get(kind, 0.0) for kind in sums}
        before = sums
    return Run(
        **asdict(case),
        maps=exchange.tasks,
        slices=scan.tasks,
        windows=manifest["rows_out"],
        blocks=scan.metrics["fetched"],
        exchanged=exchange.metrics["bytes_written"],
        spilled=exchange.metrics["spilled"],
        written=written,
        seconds={phase: Used(**kinds) for phase, kinds in used.items()},
        driver_bytes=seen.peaks[DRIVER],
        driver_java_bytes=seen.peaks[DRIVER_JAVA],
        worker_bytes=seen.peaks[WORKER],
        wall=wall,
    )


def seconds_of_files(log: Path) -> float:
    """Return the processor seconds in which a task unpickles what it is told of a million files."""
    source = open_source([str(log)], ReadOptions(), LocalExecutor())
    data = pickle.dumps(source)
    began = time.process_time()
    for _ in range(_TIMES):
        pickle.loads(data)
    return _rounded((time.process_time() - began) / _TIMES / len(source.files))


def seconds_of_merge(log: Path) -> float:
    """Return the processor seconds in which a map task merges four chunks, for a million rows."""
    source = open_source([str(log)], ReadOptions(), LocalExecutor())
    work = TaskContext(plan_of_job(), source, None, NONE)
    chunks = pack(source.splits, row_width(source.schema, source.splits, work.columns), Sizes().chunk)[:4]
    found = [read_rows(work, chunk) for chunk in chunks]
    reads = [sequences_of(work, read.rows, read.pos, read.reasons) for read in found]
    merge(reads[:2])  # loads the kernels
    began = time.process_time()
    merge(reads)
    return _rounded((time.process_time() - began) / sum(len(read) for read in reads))


def _rounded(seconds: float) -> float:
    return float(f"{seconds * 1e6:.3g}")


def map_statuses() -> dict[str, int]:
    """Return the bytes that Spark keeps of a map task for the sizes of its blocks, as Java estimates them."""
    from pyspark import SparkConf, SparkContext

    os.environ["JAVA_HOME"] = str(Path(find_java(os.environ).path).resolve().parents[1])
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    context = SparkContext(conf=SparkConf().setMaster("local[1]").setAll(settings.items()))
    java = context._jvm
    place = java.org.apache.spark.storage.BlockManagerId.apply("1", "10.0.0.1", 7337, java.scala.Option.empty())
    estimate = java.org.apache.spark.util.SizeEstimator.estimate

    def of(slices: int) -> int:
        sizes = context._gateway.new_array(java.long, slices)
        for index in range(slices):
            sizes[index] = 16_000
        status = java.org.apache.spark.scheduler.MapStatus.apply(place, sizes, 1, 0)
        return int(estimate(status) - estimate(place))

    with context:
        each = (of(MOST_SIZES) - of(0)) / MOST_SIZES
        return {"task": of(0), "slice": round(each), "many": of(MOST_SIZES + 1)}
