"""The model of what a run on a cluster costs: its arithmetic, and that it has the numbers of tasks of the engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from support.in_memory_engine import MemorySink
from support.places import ROOT
from support.strategies import examples
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.engine.run import run_window
from wincli.windowing.engine.task import Sizes, TaskContext
from wincli.windowing.local_executor import LocalExecutor

SCRIPTS = ROOT / "scripts"
CHUNK_BY_CHUNK = Sizes(block=0)
NOTHING = {"merged": 0.0, "map_files": 0.0, "slice_files": 0.0}


def loaded() -> ModuleType:
    spec = spec_from_file_location("scale_costs", SCRIPTS / "scale_costs.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["scale_costs"] = module  # where dataclasses look for the types of their fields
    spec.loader.exec_module(module)
    return module


MODEL = loaded()
INPUTS = MODEL.Inputs(**yaml.safe_load((SCRIPTS / "scale_costs.yaml").read_text()))


def log_of(millions: int, keys: int = 500) -> Any:
    return MODEL.Log(millions * 10**6, millions * keys, millions)


@examples(30)
@given(st.integers(50, 2000), st.integers(1, 5), st.integers(1, 50), st.integers(1, 16))
def test_more_rows_never_take_less(millions: int, times: int, machines: int, cores: int) -> None:
    cluster = MODEL.Cluster(machines, cores)
    less, more = (
        MODEL.forecast(INPUTS, log_of(rows), cluster, CHUNK_BY_CHUNK) for rows in (millions, millions * times)
    )
    for name in ("total", "exchanged", "read", "written", "driver_bytes", "driver_java_bytes"):
        assert getattr(more, name) >= getattr(less, name), name
    for name in ("splits", "chunks", "maps", "slices", "blocks"):
        assert getattr(more.shape, name) >= getattr(less.shape, name), name


def test_more_machines_take_less_of_the_clock_for_the_tasks_and_more_blocks() -> None:
    few, many = (MODEL.forecast(INPUTS, log_of(10_000), MODEL.Cluster(n, 16), Sizes()) for n in (10, 100))
    assert many.limits["scan"]["processors"] < few.limits["scan"]["processors"]
    assert many.shape.blocks > few.shape.blocks


@pytest.mark.parametrize("field_of", ["network", "disk", "reads"])
def test_a_slower_part_of_the_cluster_takes_longer(field_of: str) -> None:
    fast = MODEL.Cluster(100, 16)
    slow = replace(fast, **{field_of: getattr(fast, field_of) / 1e6})
    found = [MODEL.forecast(INPUTS, log_of(10_000), cluster, Sizes()).wall["scan"] for cluster in (fast, slow)]
    assert found[0] < found[1]


def test_spark_keeps_few_bytes_of_the_sizes_of_many_blocks() -> None:
    status = replace(INPUTS, map_status={"task": 60, "slice": 1, "many": 240})
    shape = MODEL.Shape(log_of(1), 1, 10, 10, 2000, 1.0, 1.0, 1)
    assert MODEL.map_status_bytes(status, shape) == 10 * 2060
    assert MODEL.map_status_bytes(status, replace(shape, slices=2001)) == 10 * 240


def test_the_largest_of_many_slices_is_larger_than_of_few() -> None:
    """Drawn: cuts at every 20th of sorted sampled rows, 64,000 out of uniform places."""
    drawn = [np.diff(np.sort(np.random.default_rng(seed).random(64_000))[::20]).max() * 3200 for seed in range(5)]
    assert np.mean(drawn) == pytest.approx(MODEL.largest_slice(3200, 64_000), rel=0.15)
    assert MODEL.largest_slice(4, 64_000) < 1.02


def test_costs_of_made_up_runs_are_found_again() -> None:
    costs = {"run": 2.0, "maps": 0.01}
    runs = [made_up_run(maps, costs["run"] + costs["maps"] * maps) for maps in (1, 10, 100, 1000)]
    found = MODEL.fit_seconds(runs, NOTHING)["map"]["driver_java"]
    assert found == pytest.approx(costs, rel=0.01)


def test_no_cost_is_negative() -> None:
    found = MODEL.fit_seconds([made_up_run(maps, 5 - maps / 1000) for maps in (1, 10, 100, 1000)], NOTHING)["map"][
        "driver_java"
    ]
    assert found == {"run": pytest.approx(4.7, abs=0.3)}


def made_up_run(maps: int, seconds: float) -> Any:
    used = {phase: MODEL.Used(driver_java=seconds) for phase in ("start", "map", "scan", "end")}
    return MODEL.Run(1, 1, 1, 1, 1, 1, maps, 1, 1, maps, 1, 0, 1, used, 1, 1, 1, 1.0)


@dataclass(frozen=True)
class Counting(LocalExecutor):
    """Counts the tasks and the blocks of each shuffle."""

    seen: list[tuple[int, int, int]] = field(default_factory=list)

    def shuffle(
        self, label: str, send: Callable[..., Iterator[Any]], receive: Any, items: Sequence[Any], partitions: int
    ) -> list[Any]:
        blocks = 0

        def counted(given: Any) -> Iterator[Any]:
            nonlocal blocks
            for pair in send(given):
                blocks += 1
                yield pair

        found = super().shuffle(label, counted, receive, items, partitions)
        self.seen.append((len(items), partitions, blocks))
        return found


@pytest.mark.parametrize(
    ("sizes", "merges"),
    [
        (Sizes(0, 100_000, 1 << 20, block=0), False),
        (Sizes(0, 100_000, 1 << 20), True),
        (Sizes(0, 40_000, 70_000), False),
    ],
)
def test_the_model_has_the_tasks_and_blocks_of_the_engine(sizes: Sizes, merges: bool, tmp_path: Path) -> None:
    rows, files, keys = 24_000, 8, 3000
    rng = np.random.default_rng(1)
    for number in range(files):
        size = rows // files
        log = {
            "ts": pa.array(np.arange(size) + number * size, pa.timestamp("us")),
            "user": [f"u{key:05d}" for key in rng.integers(0, keys, size)],
            "amount": rng.random(size),
            "latency": rng.random(size),
            "kind": ["view"] * size,
        }
        parquet.write_table(pa.table(log), tmp_path / f"events-{number}.parquet")
    executor = Counting(parallelism=4, is_one_machine=False)
    source = open_source([str(tmp_path)], ReadOptions(), executor)
    run_window(TaskContext(MODEL.plan_of_job(), source, MemorySink(), "none"), executor, sizes)
    shape = MODEL.shape_of(MODEL.Log(rows, keys, files), 4, sizes)
    assert executor.seen == [(shape.maps, shape.slices, shape.blocks)]
    assert (shape.maps < shape.chunks) is merges
