"""Spark brings the scan the same blobs, whether it moves them or only where they lie; nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from support.in_memory_engine import MemorySource
from support.table_equality import same_rows
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.engine.run import Outcome, run_window
from wincli.windowing.engine.task import NONE, Sizes, TaskContext
from wincli.windowing.language.parser import parse_aggregate, parse_window
from wincli.windowing.planning.plan import Plan, make_plan
from wincli.windowing.spark.boot import SparkExecutor
from wincli.writers.output.sink import FileSink

ROWS = 4_000
SMALL = Sizes(small=0, chunk=16 << 10, slice=16 << 10, block=0)  # 0: each chunk has blocks of its own


@pytest.fixture(scope="module")
def log() -> pa.Table:
    random = np.random.default_rng(5)
    keys = [f"key {k}" for k in random.integers(0, 40, ROWS)]
    return pa.table({"k": keys, "t": np.sort(random.integers(0, 9_000, ROWS)), "x": random.normal(size=ROWS)})


@pytest.fixture
def run(log: pa.Table, session: SparkExecutor, tmp_path: Path) -> Callable[[str], Outcome]:
    plan = make_plan(parse_window("delta(t, 60)"), log.schema, ["k"], ["t"], [parse_aggregate("sum(x)")])

    def run(name: str) -> Outcome:
        (tmp_path / name).mkdir()
        return run_window(_work(plan, log, tmp_path / name), session, SMALL)

    return run


def _work(plan: Plan, log: pa.Table, out: Path) -> TaskContext:
    source = MemorySource([log], [list(range(0, ROWS, 250))])
    rejects = reject_schema(source.schema)
    return TaskContext(
        plan, source, FileSink(fs.LocalFileSystem(), str(out), str(out), "parquet", plan.schema, rejects), NONE
    )


def _watched(seen: list[Path], folders: Callable[[], AbstractContextManager[tuple[str, ...]]]) -> Callable[[], object]:
    @contextmanager
    def watched() -> Iterator[tuple[str, ...]]:
        with folders() as made:
            yield made
            seen.extend(path for folder in made for path in Path(folder).iterdir())

    return watched


def test_both_ways_give_the_same_result(
    run: Callable[[str], Outcome], session: SparkExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(session, "shared_folders", _watched(seen, session.shared_folders))
    in_files = run("in files")
    monkeypatch.setattr(session, "shared_folders", lambda: nullcontext(()))
    in_spark = run("in spark")
    assert len(in_files.strategy.sample.chunks) == len(in_spark.strategy.sample.chunks) == len(seen) > 4
    assert in_files.slices == in_spark.slices > 4
    assert in_files.counts == in_spark.counts
    assert in_files.windows == in_spark.windows > 500
    assert in_files.parts == in_spark.parts
    assert same_rows(tmp_path / "in files", tmp_path / "in spark")
    assert not [path for path in seen if path.exists() or path.parent.exists()]
