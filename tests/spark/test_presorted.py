"""Rows that stand in order are scanned as they stand on one machine; where they do not, nothing of it stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
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
WHOLE = Sizes(small=1 << 40)

Run = Callable[[pa.Table, str, Sizes], Outcome]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """In order of ``t``, which repeats; one row has none."""
    random = np.random.default_rng(6)
    times = np.sort(random.integers(0, 900_000, ROWS))
    return pa.table({"t": pa.array(times, mask=times == times[1234]), "x": random.normal(size=ROWS)})


@pytest.fixture(params=["delta(t, 600)", "count(1500)"])
def run(request: pytest.FixtureRequest, session: SparkExecutor, tmp_path: Path) -> Run:
    def run(log: pa.Table, name: str, sizes: Sizes) -> Outcome:
        (tmp_path / name).mkdir()
        aggregates = [parse_aggregate("sum(x)"), parse_aggregate("count()")]
        plan = make_plan(parse_window(request.param), log.schema, [], ["t"], aggregates)
        source, out = MemorySource([log], [list(range(0, ROWS, 250))]), str(tmp_path / name)
        sink = FileSink(fs.LocalFileSystem(), out, out, "parquet", plan.schema, reject_schema(source.schema))
        return run_window(TaskContext(plan, source, sink, NONE), session, sizes)

    return run


def _parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and "_rejected" not in path.parts)


def test_rows_in_order_are_scanned_where_they_are_or_exchanged_to_the_same_rows(
    run: Run, log: pa.Table, session: SparkExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, once = run(log, "whole", WHOLE), run(log, "once", CUT)
    monkeypatch.setattr(session, "shared_folders", lambda: nullcontext(()))  # as on a cluster
    moved = run(log, "moved", CUT)
    assert once.strategy.name == "presorted"
    assert moved.strategy.name == "exchange"
    assert once.slices == len(once.strategy.sample.chunks) > 4
    assert moved.slices > 4
    assert whole.counts == once.counts == moved.counts
    assert whole.windows == once.windows == moved.windows > 1
    assert whole.counts.rejected == {"null_order": 1}
    for name, outcome in (("once", once), ("moved", moved)):
        assert _parts(tmp_path / name) == sorted(part.name for part in outcome.parts)
        assert same_rows(tmp_path / name, tmp_path / "whole")


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(ROWS - 2, id="at the end"),
        pytest.param(ROWS - 100, id="in the last chunk", marks=pytest.mark.nightly),
        pytest.param(2100, id="in the middle"),
    ],
)
def test_one_row_out_of_order_undoes_the_one_pass(run: Run, log: pa.Table, tmp_path: Path, late: int) -> None:
    """No sample sees it. The chunks before it are scanned and written by then."""
    rows = pa.concat_tables([log.slice(0, late), log.slice(1000, 1), log.slice(late)]).slice(0, ROWS)
    whole = run(rows, "whole", WHOLE)
    with mock.patch.object(FileSink, "discard", autospec=True, side_effect=FileSink.discard) as discard:
        cut = run(rows, "cut", CUT)
    assert discard.call_count == 1
    assert cut.slices > 4
    assert cut.counts == whole.counts
    assert cut.windows == whole.windows
    assert _parts(tmp_path / "cut") == sorted(part.name for part in cut.parts)
    assert same_rows(tmp_path / "cut", tmp_path / "whole")
