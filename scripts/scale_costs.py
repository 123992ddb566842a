"""What a keyed run on a cluster costs, phase by phase, from measured costs: for `scripts/scale_model`.

Sizes are chosen by the functions with which the engine chooses them; nothing here runs or measures anything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wincli.windowing.engine.strategy import SAMPLED_SPLITS, rows_of_split
from wincli.windowing.engine.task import Sizes, group, pack, result_size, row_width, slice_count
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.ports import Split

AGGREGATES = ("count()", "sum(amount)", "max(amount)")
WINDOW = "delta(ts, 60)"
JOB = ("--window", WINDOW, "--key", "user", *(word for call in AGGREGATES for word in ("--agg", call)))
"""The job that was measured."""

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "user": pa.string(),
        "amount": pa.float64(),
        "latency": pa.float64(),
        "kind": pa.string(),
    }
)
COLUMNS = ("user", "ts", "amount")
_ROW_BYTES = 21  # of all columns, as the footers of the files say
_SECONDS_A_ROW = 0.01  # of the log: `scripts/gen_events`
_SPLIT = 64 << 20  # bytes of all columns that readers put into a split
_GRANTED = 4  # times its input: the memory of a task
MOST_SIZES = 2000
"""Up to so many slices Spark's driver keeps a byte for each block."""


def plan_of_job() -> Plan:
    """Return the plan of the measured job."""
    calls = [parse_aggregate(call) for call in AGGREGATES]
    return make_plan(parse_window(WINDOW), SCHEMA, ["user"], ["ts"], calls, Options())


def windows_a_row(keys: float) -> float:
    """Return how many windows there are for each row of the log with so many keys."""
    return 1 / (1 + 60 / (keys * _SECONDS_A_ROW))


@dataclass(frozen=True, slots=True)
class Log:
    """An input.

    ``rows``, ``keys``, ``files``: their numbers.
    """

    rows: int
    keys: int
    files: int

    @property
    def windows(self) -> float:
        """How many windows the job makes of it."""
        return self.rows * windows_a_row(self.keys)

    def splits(self) -> list[Split]:
        """Return the splits that readers make of it, a file at a time."""
        found: list[Split] = []
        bounds = [self.rows * i // self.files for i in range(self.files + 1)]
        for number, (low, high) in enumerate(itertools.pairwise(bounds)):
            parts = max(1, math.ceil((high - low) * _ROW_BYTES / _SPLIT))
            cuts = [low + (high - low) * i // parts for i in range(parts + 1)]
            found += [
                Split(len(found) + i, number, a, b - a, (b - a) * _ROW_BYTES, b == high, (0,))
                for i, (a, b) in enumerate(itertools.pairwise(cuts))
            ]
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a job runs.

    ``machines``, ``cores``: their number, and the cores of each for executors.
    ``executors``: executors on each machine.
    ``memory``: bytes of each machine.
    ``network``, ``disk``: bytes each second of each machine.
    ``reads``: reads each second of the disks of a machine, each somewhere else.
    ``processors``: cores that there are for all executors together; None: one for each core of an executor.
    ``in_driver``: whether the driver's Java starts the executors and waits for their end, as with ``local-cluster``.
    """

    machines: int
    cores: int
    executors: int = 1
    memory: int = 64 << 30
    network: float = 1.25e9
    disk: float = 1e9
    reads: float = 50_000.0
    processors: int | None = None
    in_driver: bool = False

    @property
    def tasks(self) -> int:
        """How many tasks run at a time."""
        return self.machines * self.cores

    @property
    def at_a_time(self) -> int:
        """How many processors work at a time."""
        return self.tasks if self.processors is None else min(self.tasks, self.processors)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the engine makes of a log on a cluster.

    ``log``: the log.
    ``splits``, ``chunks``, ``maps``, ``slices``: the numbers of splits, of chunks, of map tasks, and of scan tasks.
    ``chunk_bytes``, ``slice_bytes``: a mean chunk and a mean slice, as the engine estimates them.
    ``sample``: how many rows decide where slices begin.
    """

    log: Log
    splits: int
    chunks: int
    maps: int
    slices: int
    chunk_bytes: float
    slice_bytes: float
    sample: int

    @property
    def blocks(self) -> int:
        """How many blocks move: one of each map task for each slice."""
        return self.maps * self.slices


def shape_of(log: Log, tasks: int, sizes: Sizes) -> Shape:
    """Return the chunks, groups of chunks and slices that the engine chooses for ``tasks`` tasks at a time."""
    tasks = max(2, tasks)  # Spark counts two cores where there is one
    splits = log.splits()
    width = row_width(SCHEMA, splits, COLUMNS)
    chunks, nbytes = pack(splits, width, sizes.chunk), width * log.rows
    scanned = nbytes + result_size(plan_of_job(), log.rows)
    slices = slice_count(scanned, sizes.slice, tasks)
    maps = group(chunks, nbytes, slices, tasks, sizes)
    sample = min(len(splits), SAMPLED_SPLITS) * rows_of_split(nbytes // sizes.slice)
    return Shape(log, len(splits), len(chunks), len(maps), slices, nbytes / len(chunks), scanned / slices, sample)


@dataclass(frozen=True, slots=True)
class Used:
    """Processor seconds in a phase, by kind of process.

    ``driver``, ``driver_java``: the command, and its Java.
    ``executor``, ``worker``: the Java of all executors, and their Python.
    """

    driver: float = 0.0
    driver_java: float = 0.0
    executor: float = 0.0
    worker: float = 0.0

    @property
    def total(self) -> float:
        """Of all processes."""
        return self.driver + self.driver_java + self.executor + self.worker


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was measured.

    ``rows`` .. ``slice_kib``: as `scale_runs.Case`.
    ``maps``, ``slices``, ``windows``: how many map tasks, slices and windows there were.
    ``blocks``: blocks that scan tasks have fetched.
    ``exchanged``, ``spilled``, ``written``: bytes of the shuffle, of what Java put aside for it, and of the result.
    ``seconds``: processor seconds by phase: start, map, scan, end.
    ``driver_bytes``, ``driver_java_bytes``, ``worker_bytes``: the most memory of one process.
    ``wall``: seconds on the clock.
    """

    rows: int
    keys: int
    files: int
    executors: int
    split_kib: int
    slice_kib: int
    maps: int
    slices: int
    windows: int
    blocks: int
    exchanged: int
    spilled: int
    written: int
    seconds: Mapping[str, Used]
    driver_bytes: int
    driver_java_bytes: int
    worker_bytes: int
    wall: float

    @property
    def total(self) -> float:
        """Processor seconds of all phases and processes."""
        return sum(used.total for used in self.seconds.values())

    @property
    def counts(self) -> dict[str, float]:
        """What costs are paid for, by name."""
        return counts_of(
            self.executors, self.executors, self.files, self.rows, self.windows, self.maps, self.slices, self.keys
        )


def counts_of(
    executors: float,
    children: float,
    files: float,
    rows: float,
    windows: float,
    maps: float,
    slices: float,
    keys: float,
    merged: float = 0,
) -> dict[str, float]:
    """Return what costs are paid for, by name: rows and windows in millions, blocks in thousands.

    ``children``: executors that the driver's Java starts. ``keys``: of the log; what is paid for is each key in each
    map task that has rows of it. ``merged``: rows whose chunks map tasks merge. ``map_files``, ``slice_files``: tasks
    are told of all files of the input. These are in millions.
    """
    return {
        "run": 1.0,
        "executors": executors,
        "children": children,
        "files": files,
        "rows": rows / 1e6,
        "merged": merged / 1e6,
        "windows": windows / 1e6,
        "keys": maps * keys * -math.expm1(-rows / maps / keys) / 1e6,
        "maps": maps,
        "slices": slices,
        "blocks": maps * slices / 1e3,
        "map_files": maps * files / 1e6,
        "slice_files": slices * files / 1e6,
    }


PAID: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("start", "driver"): ("run", "files"),
    ("start", "driver_java"): ("run", "children"),
    ("start", "executor"): ("executors",),
    ("map", "driver"): ("run", "maps"),
    ("map", "driver_java"): ("run", "maps"),
    ("map", "executor"): ("executors", "rows", "maps", "blocks"),
    ("map", "worker"): ("executors", "rows", "keys", "maps", "blocks"),
    ("scan", "driver"): ("run", "slices"),
    ("scan", "driver_java"): ("run", "slices"),
    ("scan", "executor"): ("executors", "rows", "slices", "blocks"),
    ("scan", "worker"): ("executors", "rows", "windows", "keys", "slices", "blocks"),
    ("end", "driver"): ("run", "files", "slices"),
    ("end", "driver_java"): ("run", "children"),
}
"""What each kind of process is paid for in each phase."""

Costs = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Processor seconds by phase, kind of process and what they are paid for."""


BYTES: Mapping[str, tuple[str, ...]] = {
    "exchanged": ("rows", "keys", "blocks"),
    "written": ("windows", "slices"),
    "driver_bytes": ("run", "files", "slices"),
    "driver_java_bytes": ("run", "maps", "slices"),
}
"""What bytes are paid for."""


ALONE = ("map", "worker", "merged"), ("map", "worker", "map_files"), ("scan", "worker", "slice_files")
"""What is measured by itself: chunks are merged, and each task unpickles a context that names all files."""


def fit_seconds(runs: Sequence[Run], alone: Mapping[str, float]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the costs that come nearest to the processor seconds of runs, none of them negative.

    ``alone``: costs of those that are measured by themselves.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (phase, kind), names in PAID.items():
        known = {name: alone[name] for at, of, name in ALONE if (at, of) == (phase, kind)}
        took = [getattr(run.seconds[phase], kind) - _paid(known, run.counts) for run in runs]
        found.setdefault(phase, {})[kind] = _fit(runs, names, took, 1.0) | known
    return found


def fit_bytes(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Return the costs that come nearest to the bytes of runs, none of them negative."""
    return {what: _fit(runs, names, [getattr(run, what) for run in runs], 1e6) for what, names in BYTES.items()}


def _fit(runs: Sequence[Run], names: Sequence[str], took: Sequence[float], least: float) -> dict[str, float]:
    amounts = np.array([[run.counts[name] for name in names] for run in runs])
    weights = 1 / (np.maximum(took, 0) + least)  # errors count by their share, those of short runs less
    costs = _nonnegative(amounts * weights[:, None], np.array(took) * weights)
    return {name: float(f"{cost:.3g}") for name, cost in zip(names, costs, strict=True) if cost}


def _nonnegative(amounts: Any, took: Any) -> Any:
    """Return the least squares without negative numbers: the most negative is set to zero until there is none."""
    kept = list(range(amounts.shape[1]))
    costs = np.zeros(amounts.shape[1])
    while kept:
        solved = np.linalg.lstsq(amounts[:, kept], took, rcond=None)[0]
        if (solved >= 0).all():
            costs[kept] = solved
            break
        kept.pop(int(np.argmin(solved)))
    return costs


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was measured.

    ``measured``: on what, in words.
    ``seconds``: processor seconds by phase, kind of process, and what they are paid for.
    ``bytes``: bytes by what they are of, and what they are paid for.
    ``read``: bytes of a million rows in files, of the columns that the job needs.
    ``map_status``: bytes that Spark's driver keeps of a map task: ``task`` and ``slice``, and ``many`` where there are
        more slices than it keeps a byte for.
    """

    measured: Mapping[str, Any]
    seconds: Costs
    bytes: Mapping[str, Mapping[str, float]]
    read: float
    map_status: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a job will take.

    ``shape``: what the engine makes of it.
    ``seconds``: processor seconds by phase.
    ``exchanged``, ``read``, ``written``: bytes.
    ``map_status``: bytes that Spark's driver keeps of sizes of blocks.
    ``driver_bytes``, ``driver_java_bytes``: memory of both processes of the driver.
    ``wall``: seconds on the clock by what they are spent on, one after the other.
    ``limits``: for map and scan, seconds on the clock that each part of the cluster needs; the longest is ``wall``.
    ``slice_memory``: bytes that the task with the largest slice needs.
    """

    shape: Shape
    seconds: Mapping[str, Used]
    exchanged: float
    read: float
    written: float
    map_status: float
    driver_bytes: float
    driver_java_bytes: float
    slice_memory: float
    wall: Mapping[str, float]
    limits: Mapping[str, Mapping[str, float]]

    @property
    def total(self) -> float:
        """Processor seconds of all phases and processes."""
        return sum(used.total for used in self.seconds.values())


def forecast(inputs: Inputs, log: Log, cluster: Cluster, sizes: Sizes) -> Forecast:
    """Return what the job takes over a log on a cluster."""
    shape = shape_of(log, cluster.tasks, sizes)
    executors = cluster.machines * cluster.executors
    children = executors if cluster.in_driver else 0
    merged = log.rows if shape.maps < shape.chunks else 0
    counts = counts_of(
        executors, children, log.files, log.rows, log.windows, shape.maps, shape.slices, log.keys, merged
    )
    seconds = {
        phase: Used(**{kind: _paid(costs, counts) for kind, costs in kinds.items()})
        for phase, kinds in inputs.seconds.items()
    }
    found = {what: _paid(costs, counts) for what, costs in inputs.bytes.items()}
    read, status = inputs.read * counts["rows"], map_status_bytes(inputs, shape)
    exchanged, written = found["exchanged"], found["written"]
    limits = {
        "map": _limits(seconds["map"], shape.maps, cluster, 0, exchanged + read, shape.splits),
        "scan": _limits(seconds["scan"], shape.slices, cluster, exchanged, exchanged + written, shape.blocks),
    }
    start = seconds["start"]
    wall = {
        # executors start side by side, on a machine as many as it has processors
        "start": start.driver + start.driver_java + start.executor / min(executors, cluster.at_a_time),
        **{phase: max(parts.values()) for phase, parts in limits.items()},
        "end": seconds["end"].total,
    }
    return Forecast(
        shape,
        seconds,
        exchanged,
        read,
        written,
        status,
        found["driver_bytes"],
        found["driver_java_bytes"] + status,
        _GRANTED * shape.slice_bytes * largest_slice(shape.slices, shape.sample),
        wall,
        limits,
    )


def _paid(costs: Mapping[str, float], counts: Mapping[str, float]) -> float:
    return sum(cost * counts[name] for name, cost in costs.items())


def _limits(
    used: Used, tasks: int, cluster: Cluster, network: float = 0.0, disk: float = 0.0, reads: float = 0.0
) -> dict[str, float]:
    """Return the seconds on the clock that each part of a cluster needs for a stage, if it were the only one."""
    rounds = math.ceil(tasks / cluster.tasks) * cluster.tasks / tasks  # the last round may leave cores idle
    return {
        "processors": (used.executor + used.worker) * rounds / cluster.at_a_time,
        "driver": used.driver + used.driver_java,
        "network": network / (cluster.network * cluster.machines),
        "disk": disk / (cluster.disk * cluster.machines),
        "reads": reads / (cluster.reads * cluster.machines),
    }


def map_status_bytes(inputs: Inputs, shape: Shape) -> float:
    """Return the bytes that Spark's driver keeps of the sizes of all blocks: of many, only their mean."""
    status = inputs.map_status
    each = status["task"] + status["slice"] * shape.slices if shape.slices <= MOST_SIZES else status["many"]
    return shape.maps * each


def largest_slice(slices: int, sample: int) -> float:
    """Return how much larger than the mean the largest slice is, where ``sample`` rows decide where slices begin.

    Between two cuts lie as many sampled rows, which stand for a number of rows with a deviation of one over its root.
    """
    return 1 + math.sqrt(2 * math.log(max(2, slices)) * slices / sample)
