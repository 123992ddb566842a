"""Rows that stand in order are scanned where they stand; others are exchanged, by files or by Spark: the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from unittest import mock

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
from wincli.windowing.planning.plan import make_plan
from wincli.windowing.spark.boot import SparkExecutor
from wincli.writers.output.sink import FileSink

ROWS = 4_000
CUT = Sizes(small=0, chunk=16 << 10, slice=16 << 10)
BLOCKS = Sizes(small=0, chunk=16 << 10, slice=16 << 10, block=0)  # 0: each chunk has blocks of its own
WHOLE = Sizes(small=1 << 40)

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """In order of ``t``, which repeats; one row has none."""
    random = np.random.default_rng(6)
    times = np.sort(random.integers(0, 900_000, ROWS))
    keys = [f"key {k}" for k in random.integers(0, 40, ROWS)]
    return pa.table({"k": keys, "t": pa.array(times, mask=times == times[1234]), "x": random.normal(size=ROWS)})


@pytest.fixture
def run(session: SparkExecutor, tmp_path: Path) -> Run:
    def run(log: pa.Table, window: str, name: str, sizes: Sizes, key: tuple[str, ...] = ()) -> Outcome:
        (tmp_path / name).mkdir()
        aggregates = [parse_aggregate("sum(x)"), parse_aggregate("count()")]
        plan = make_plan(parse_window(window), log.schema, [*key], ["t"], aggregates)
        source, out = MemorySource([log], [list(range(0, ROWS, 250))]), str(tmp_path / name)
        sink = FileSink(fs.LocalFileSystem(), out, out, "parquet", plan.schema, reject_schema(source.schema))
        return run_window(TaskContext(plan, source, sink, NONE), session, sizes)

    return run


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and "_rejected" not in path.parts)


def watched(seen: list[Path], folders: Callable[[], AbstractContextManager[tuple[str, ...]]]) -> Callable[[], object]:
    @contextmanager
    def watch() -> Iterator[tuple[str, ...]]:
        with folders() as made:
            yield made
            seen.extend(path for folder in made for path in Path(folder).iterdir())

    return watch


def test_rows_of_keys_are_exchanged_by_files_and_by_spark(
    run: Run, log: pa.Table, session: SparkExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark brings the scan the same blobs, whether it moves them or only where they lie; nothing stays behind."""
    seen: list[Path] = []
    monkeypatch.setattr(session, "shared_folders", watched(seen, session.shared_folders))
    in_files = run(log, "delta(t, 6000)", "in files", BLOCKS, ("k",))
    monkeypatch.setattr(session, "shared_folders", lambda: nullcontext(()))
    in_spark = run(log, "delta(t, 6000)", "in spark", BLOCKS, ("k",))
    assert len(in_files.strategy.sample.chunks) == len(in_spark.strategy.sample.chunks) == len(seen) > 4
    assert in_files.slices == in_spark.slices > 4
    assert in_files.counts == in_spark.counts
    assert in_files.windows == in_spark.windows > 500
    assert in_files.parts == in_spark.parts
    assert same_rows(tmp_path / "in files", tmp_path / "in spark")
    assert not [path for path in seen if path.exists() or path.parent.exists()]


@pytest.mark.parametrize("window", ["delta(t, 600)", "count(1500)"])
def test_rows_in_order_are_scanned_where_they_are_or_exchanged_to_the_same_rows(
    run: Run, log: pa.Table, session: SparkExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    whole, once = run(log, window, "whole", WHOLE), run(log, window, "once", CUT)
    monkeypatch.setattr(session, "shared_folders", lambda: nullcontext(()))  # as on a cluster
    moved = run(log, window, "moved", CUT)
    assert once.strategy.name == "presorted"
    assert moved.strategy.name == "exchange"
    assert once.slices == len(once.strategy.sample.chunks) > 4
    assert moved.slices > 4
    assert whole.counts == once.counts == moved.counts
    assert whole.windows == once.windows == moved.windows > 1
    assert whole.counts.rejected == {"null_order": 1}
    for name, outcome in (("once", once), ("moved", moved)):
        assert parts(tmp_path / name) == sorted(part.name for part in outcome.parts)
        assert same_rows(tmp_path / name, tmp_path / "whole")


@pytest.mark.parametrize(
    ("window", "late"),
    [
        pytest.param("delta(t, 600)", ROWS - 2, id="at the end"),
        pytest.param("gap(t, 900)", ROWS - 100, id="in the last chunk", marks=pytest.mark.nightly),
        pytest.param("count(1500)", 2100, id="in the middle"),
    ],
)
def test_one_row_out_of_order_undoes_the_one_pass(
    run: Run, log: pa.Table, tmp_path: Path, window: str, late: int
) -> None:
    """No sample sees it. The chunks before it are scanned and written by then."""
    rows = pa.concat_tables([log.slice(0, late), log.slice(1000, 1), log.slice(late)]).slice(0, ROWS)
    whole = run(rows, window, "whole", WHOLE)
    with mock.patch.object(FileSink, "discard", autospec=True, side_effect=FileSink.discard) as discard:
        cut = run(rows, window, "cut", CUT)
    assert discard.call_count == 1
    assert cut.slices > 4
    assert cut.counts == whole.counts
    assert cut.windows == whole.windows
    assert parts(tmp_path / "cut") == sorted(part.name for part in cut.parts)
    assert same_rows(tmp_path / "cut", tmp_path / "whole")
